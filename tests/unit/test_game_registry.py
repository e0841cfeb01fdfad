"""Games by name, their settings, and the compiled step's cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from league.errors import ConfigError
from league.games.registry import game_names, game_spec, make_batched, reward_weights
from league.games.settings import GameSettings
from league.settings.base import lay_over


def test_settings_have_the_defaults_of_full_training_and_name_mistakes() -> None:
    settings = GameSettings()
    assert (settings.name, settings.frame_skip, settings.reward) == ("brawl", 1, "dense")
    assert settings.spec().max_frames == 2700


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"options": {"stage": "moon"}}, "'moon'"),
        ({"name": "chess"}, "'chess'"),
        ({"name": "python:nowhere:make", "reward": "laptop"}, "'nowhere'$"),
        ({"reward": "denser"}, "'denser'"),
        ({"name": "kuhn", "reward": "laptop"}, "dense, sparse .*--preset board"),
        ({"reward_weights": {"wins": 1}}, "'wins'"),
        ({"frame_skip": 0}, "frame_skip"),
        ({"frameskip": 2}, "'frame_skip'"),
    ],
)
def test_wrong_settings_are_named(values: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        lay_over({"game": values})


def test_spec_settings_and_registration_do_not_load_the_compiler() -> None:
    code = (
        "import sys, league.games, league.games.settings, league.games.registry as r;"
        "r.game_spec('brawl'); sys.exit('numba' in sys.modules or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_edited_rule_is_compiled_anew() -> None:
    """The cache key of the compiled step holds the digest of all the game's sources."""
    from league.games.brawl import kernel

    digest = kernel._sources_digest()
    for function in (kernel.reset_matches, kernel.step_matches):
        assert digest in [cell.cell_contents for cell in function.py_func.__closure__]


@pytest.mark.long
def test_processes_on_an_empty_cache_compile_once_and_load_no_compiler(tmp_path: Path) -> None:
    (tmp_path / "filling.py").write_text(
        "from league.games.brawl.compiling import cached\n"
        "open('imports', 'a').write('x')\n"
        "@cached\n"
        "def fill(numbers):\n"
        "    for i in range(numbers.size):\n"
        "        numbers[i] = i\n"
    )
    code = (
        "import sys, numpy, filling; from league.games.brawl.compiling import load\n"
        "numbers = numpy.zeros(4); load({filling.fill: (numbers,)}); filling.fill(numbers)\n"
        "print(numbers.sum(), 'numba.np.arraymath' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path)}
    command, pipe = [sys.executable, "-c", code], subprocess.PIPE
    processes = [
        subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, text=True
        )
        for _ in range(2)
    ]
    printed = [process.communicate() for process in processes]
    assert [out for out, _ in printed] == ["6.0 False\n"] * 2
    assert any("is compiled" in told for _, told in printed)
    later = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert later.stderr == ""
    assert (tmp_path / "imports").read_text() == "xxxx"  # these three, and the one that compiled


def test_a_game_plays_without_the_compiler() -> None:
    """It would take a second and 25 MB."""
    code = (
        "import sys; from league.games.brawl.game import BrawlGame; game = BrawlGame(2, threads=2);"
        "game.reset(game.next_seeds_N); game.step(game.idle_actions(), 9);"
        "sys.exit('numba.np.arraymath' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_game_of_a_module_and_a_registered_one_are_called_by_the_name_they_are_made_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from league.games import registry

    path = "python:league.games.brawl.game:BrawlGame"
    assert make_batched(path, 2).spec.name == game_spec(path).name == path
    monkeypatch.setattr(registry, "_registered", {})
    registry.register("mine", make_batched("brawl", 1).__class__)
    assert "mine" in game_names()
    assert make_batched("mine", 2, max_frames=30).spec.name == "mine"
    for taken in ("mine", "brawl", "", "a:b"):
        with pytest.raises(ConfigError, match=repr(taken)):
            registry.register(taken, make_batched("brawl", 1).__class__)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("python:nowhere.to.be:found", "nowhere.to.be:found"),
        ("python:league.games.base:Nothing", "league.games.base:Nothing"),
        ("brawll", "'brawl'"),
    ],
)
def test_a_game_that_can_not_be_found_is_named(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_batched(name, 1)


def test_an_option_that_the_game_does_not_take_is_named() -> None:
    with pytest.raises(ConfigError, match=r"'brawl'.*'gravity'"):
        make_batched("brawl", 1, gravity=3)


def test_an_error_inside_a_game_is_not_taken_for_a_wrong_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from league.games import registry

    def broken(num_matches: int, *, max_frames: int | None = None) -> None:
        raise TypeError("a helper got a wrong argument")

    monkeypatch.setattr(registry, "_registered", {"broken": broken})
    with pytest.raises(TypeError):
        make_batched("broken", 1)


def test_reward_weights_are_the_presets_with_single_ones_replaced() -> None:
    spec = game_spec("brawl")
    weights = reward_weights(spec, "sparse", {"taunt": 2.0})
    assert weights[spec.reward_terms.index("taunt")] == 2
    assert weights[spec.reward_terms.index("win")] == spec.reward_presets["sparse"]["win"]
    for preset, overrides, message in (
        ("densest", {}, "no reward preset 'densest'"),
        ("dense", {"wins": 1.0}, "'wins'"),
        ("dense", {"win": float("inf")}, "finite"),
    ):
        with pytest.raises(ConfigError, match=message):
            reward_weights(spec, preset, overrides)
