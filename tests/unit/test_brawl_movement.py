"""The moving platform, knock-out and respawn; recordings of the original prove the rest
(test_brawl_recordings.py).
"""

from __future__ import annotations

import numpy as np
import pytest
from arena import LEFT_GROUND_Y, Arena

from league.errors import ConfigError
from league.games.brawl import rules
from league.games.brawl.game import BrawlGame
from league.games.brawl.stage import stage
from league.games.registry import game_spec


@pytest.fixture
def arena() -> Arena:
    made = Arena()
    made.put(1, -6.0, LEFT_GROUND_Y)
    made.play()
    return made


@pytest.mark.parametrize(("loop", "period"), [("run_match", 288), ("env.step", 290)])
def test_platform_begins_in_the_middle_and_comes_back(loop: str, period: int) -> None:
    game = BrawlGame(1, loop=loop)
    game.reset(np.array([5], np.uint64))
    places = [game._matches_N[0][["platform_x", "platform_y"]].tolist()]
    speed = slice(game.spec.own_size - 2, game.spec.own_size)
    assert not game.observations_N2O[0, :, speed].any(), "it begins to move in the first frame"
    for _ in range(2 * period):
        game.step(game.idle_actions())
        places.append(game._matches_N[0][["platform_x", "platform_y"]].tolist())
    path = np.array(places)
    assert path[0] == pytest.approx([0.0, 1.0], abs=1e-3)
    assert path[5, 0] < -0.1, "toward the left and low waypoint"
    assert np.array_equal(path[:period], path[period:-1])
    way = path[:period]
    assert [p for p in range(1, period + 1) if np.allclose(way, path[p : p + period])] == [period]
    assert np.allclose(path[:, 1], 1.0 - path[:, 0])
    assert 0.9 < path[:, 0].max() < 1.0
    assert -1.0 < path[:, 0].min() < -0.9
    speeds = np.hypot(*stage("warehouse")["path"][0, :, 2:].T)
    assert speeds.max() == pytest.approx(1.03, abs=0.01)


def test_platform_lifts_and_lowers_who_stands_on_it() -> None:
    arena = Arena(stage="flat")
    match = arena.game._matches_N[0]
    arena.put(0, 0.2, match["platform_y"] - 0.6)
    arena.play(frames=20)
    heights = []
    for _ in range(290):
        arena.play()
        heights.append(arena.of(0, "y"))
        assert match["platform_y"] - heights[-1] == pytest.approx(0.55, abs=0.06)
        assert arena.fields(0, "x", "state") == (0.2, rules.STANDING)
    assert max(heights) - min(heights) > 2.4


def test_a_loop_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="step"):
        BrawlGame(1, loop="step")
    with pytest.raises(ConfigError, match="step"):
        game_spec("brawl", loop="step")


@pytest.mark.parametrize(("x", "y"), [(14.2, 0.0), (-14.2, 0.0), (0.0, 8.2), (9.0, -8.2)])
def test_leaving_the_blast_zone_costs_a_stock_and_ninety_frames(
    arena: Arena, x: float, y: float
) -> None:
    arena.put(0, x, y, grounded=False, damage=77.0, weapon=1)
    arena.play()
    assert arena.fields(0, "state", "stocks") == (rules.KO, 2)
    for _ in range(89):
        arena.play("D space")
        assert arena.fields(0, "state", "x", "y") == (rules.KO, x, y)
    arena.play()
    side = arena.of(0, "side")
    assert arena.fields(0, "state", "damage", "weapon") == (rules.IN_AIR, 0.0, 0)
    assert arena.fields(0, "x", "y") == (5.0 * side, 0.0)
    assert arena.fields(0, "air_jumps", "recoveries") == (0, 0)
    assert arena.game._matches_N[0]["weapons_lying"] == 0
