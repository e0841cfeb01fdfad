"""The game as a PettingZoo environment."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

import league.games
from league.games.gym_env import BrawlEnv
from league.games.registry import game_spec, make_batched


def test_pettingzoos_own_tests_pass_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(league.games.parallel_env(match_seconds=5), num_cycles=400)
        parallel_seed_test(league.games.parallel_env, num_cycles=200)


def test_the_example_of_the_documentation_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "gymnasium.md").read_text(
        encoding="utf-8"
    )
    mark = "<!-- run by tests/unit/test_parallel_env.py -->\n```python\n"
    exec(page.split(mark)[1].split("```")[0], {})
    assert re.fullmatch(r"(0\.0|0\.5|1\.0) \D+\d+: \D+\d\.\d\n", capsys.readouterr().out)


def keys(**held: int) -> dict[str, np.ndarray]:
    """By agent: the index of the one key that it holds."""
    return {agent: np.eye(10, dtype=np.int8)[held[agent]] for agent in ("player_0", "player_1")}


def test_it_is_the_match_that_gymnasium_plays() -> None:
    """Both faces seat the same match for a seed, and pay and show the same."""
    other = lambda view: np.eye(10, dtype=np.int8)[int(abs(view[0]) * 1000) % 10]  # noqa: E731
    one = BrawlEnv(opponent=other, match_seconds=4, frame_skip=2)
    both = league.games.parallel_env(match_seconds=4, frame_skip=2)
    view, _ = one.reset(seed=5)
    views, _ = both.reset(seed=5)
    assert np.array_equal(view, views["player_0"])
    for step in range(60):
        mine = np.eye(10, dtype=np.int8)[step % 10]
        theirs = other(views["player_1"])
        view, reward, ended, _, info = one.step(mine)
        views, rewards, ends, cuts, infos = both.step({"player_0": mine, "player_1": theirs})
        assert np.array_equal(view, views["player_0"])
        assert rewards["player_0"] == reward
        assert infos["player_0"] == info
        assert ends == {"player_0": ended, "player_1": ended}
        assert not any(cuts.values())
    assert ended
    assert both.agents == []
    assert infos["player_0"]["outcome"] + infos["player_1"]["outcome"] == 1.0
    assert both.step({}) == ({}, {}, {}, {}, {})


@pytest.mark.parametrize("mode", ["rgb_array", "ansi"])
def test_a_match_can_be_seen_to_its_end(mode: str) -> None:
    env = league.games.parallel_env(render_mode=mode, match_seconds=1)
    env.reset(seed=0)
    shown: list[Any] = [env.render()]
    while env.agents:
        env.step({agent: env.action_space(agent).sample() for agent in env.agents})
        shown.append(env.render())
    if mode == "ansi":
        assert shown[0].startswith("frame 0: (")
        assert shown[-2].startswith("frame 29: (")
        assert re.findall(r"[\d.]+", shown[-1]) == ["30", "0.5"]
        env.reset(seed=1)
        assert env.render().startswith("frame 0: (")
    else:
        assert shown[0].shape == (360, 640, 3)
        assert not np.array_equal(shown[0], shown[-2])
        assert not np.array_equal(shown[-2], shown[-1])


def test_a_missing_pettingzoo_is_named() -> None:
    code = (
        "import sys; sys.modules['pettingzoo'] = None\nimport league.games\n"
        "try:\n    league.games.parallel_env()\nexcept Exception as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'kumite[pettingzoo]'" in done.stdout


def test_the_game_can_be_played_as_a_pettingzoo_module() -> None:
    """The built-in game through PettingZoo and back is the same match."""
    spec = game_spec("pettingzoo:league.games")
    assert (spec.action_kind, spec.action_size) == ("keys", 10)
    game = make_batched("pettingzoo:league.games", 2, match_seconds=2)
    game.bots_N2[:] = 0
    game.reset(np.arange(2, dtype=np.uint64))
    for _ in range(60):
        game.step(np.zeros((2, 2, 10), np.uint8))
        assert not game.failures
    assert game.ended_N.all()
    assert (game.final_frames_N == 60).all()
