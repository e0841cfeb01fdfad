"""Games by name, their settings, and the compiled step's cache."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit

from league.config import build
from league.errors import ConfigError
from league.games.registry import game_names, game_spec, make_batched
from league.games.settings import GameSettings


def test_brawl_is_known_by_name() -> None:
    assert "brawl" in game_names()
    game = make_batched("brawl", 3, max_frames=60)
    assert game.spec == game_spec("brawl", max_frames=60)
    assert (game.num_matches, game.spec.max_frames) == (3, 60)
    assert [bot.name for bot in game.spec.bots] == ["constant", "random", "based", "clockwork"]
    with pytest.raises(ConfigError, match="no game 'brawll'"):
        game_spec("brawll")


def test_settings_have_the_defaults_of_full_training_and_name_mistakes() -> None:
    settings = GameSettings()
    assert (settings.name, settings.stage, settings.frame_skip, settings.reward) == (
        "brawl",
        "",
        1,
        "dense",
    )
    assert settings.spec().max_frames == 2700


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"stage": "moon"}, "no stage 'moon'"),
        ({"name": "chess"}, "there is no game 'chess'"),
        ({"reward": "denser"}, "no reward preset 'denser'"),
        ({"reward_weights": {"wins": 1}}, "no reward term 'wins'"),
        ({"frame_skip": 0}, "frame_skip"),
        ({"frameskip": 2}, "did you mean 'frame_skip'"),
    ],
)
def test_wrong_settings_are_named(values: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(GameSettings, "game", values)


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

    def made(source: str):  # type: ignore[no-untyped-def]
        @njit(cache=True)
        def answer() -> int:
            return len(source)

        return answer

    keys = {made(text)._cache._index_key(((), None), made("a").targetctx.codegen()) for text in ("a", "b")}
    assert len(keys) == 2


def test_the_digest_holds_all_that_the_compiled_step_is_made_of() -> None:
    from league.games.brawl import kernel

    for name in kernel.COMPILED:
        text = Path(kernel.__file__).with_name(name).read_text()
        imported = set(re.findall(r"from league\.games\.brawl\.(\w+) import", text))
        imported |= set(re.findall(r"\w+", " ".join(re.findall(r"games\.brawl import ([^(\n]+)", text))))
        assert {f"{module}.py" for module in imported} <= set(kernel.COMPILED), name


def test_the_step_lets_other_threads_run() -> None:
    import threading
    import time

    game = make_batched("brawl", 2000)
    game.reset(np.arange(2000, dtype=np.uint64))
    idle = np.zeros((2000, 2, 10), np.uint8)
    game.step(idle)
    ticks: list[float] = []
    playing = threading.Event()

    def tick() -> None:
        while not playing.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.002)

    watcher = threading.Thread(target=tick)
    watcher.start()
    begin = time.perf_counter()
    game.step(idle, frames=100)
    seconds = time.perf_counter() - begin
    playing.set()
    watcher.join()
    during = [t for t in ticks if begin + 0.01 < t < begin + seconds - 0.01]
    assert seconds > 0.04
    assert len(during) >= 3
