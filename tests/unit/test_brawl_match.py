"""Whole matches: seats, sides, observation, time-out and the scripted bots."""

from __future__ import annotations

import math

import numpy as np
import pytest
from arena import LEFT_GROUND_Y, RIGHT_GROUND_Y, Arena

from league.games.brawl.game import BrawlGame
from league.games.brawl.layout import FIELDS


def test_observation_fields_and_scales() -> None:
    arena = Arena()
    values = {"vx": 9.0, "vy": -6.0, "facing": -1, "air_jumps": 1, "recoveries": 1}
    arena.put(0, -7.0, -4.0, grounded=False, **values, damage=350.0, stocks=2)
    arena.put(1, 6.0, RIGHT_GROUND_Y)
    arena.play("", "D K")
    own = dict(zip(FIELDS, arena.game.observations_N2O[0, 0].tolist(), strict=False))
    other = dict(zip(FIELDS, arena.game.observations_N2O[0, 1].tolist(), strict=False))
    platform = arena.game._matches_N[0]
    expected = {
        "x": arena.of(0, "x") / 14,
        "y": arena.of(0, "y") / 8,
        "vx": math.tanh(arena.of(0, "vx") / 12),
        "vy": math.tanh(arena.of(0, "vy") / 12),
        **{"facing": -1, "grounded": 0, "aerial": 1, "air_jumps": 0.5, "state": 6 / 12},
        **{"recoveries": 1, "damage": 0.5, "stocks": 2 / 3},
        "platform_x": platform["platform_x"] / 14,
        "platform_vy": platform["platform_vy"] / 2,
    }
    assert {name: own[name] for name in expected} == pytest.approx(expected, rel=1e-6)
    assert (other["move"], other["state"]) == (pytest.approx(7 / 12), pytest.approx(8 / 12))
    assert other["grounded"] == 1
    assert all(own[f"slot{slot}_{f}"] == 0 for slot in range(4) for f in ("x", "y", "type"))


def test_time_out_counts_stocks() -> None:
    for stocks, outcome in (((2, 1), 1.0), ((1, 2), 0.0), ((2, 2), 0.5)):
        arena = Arena(max_frames=30)
        arena.put(0, 4.0, RIGHT_GROUND_Y, stocks=stocks[0])
        arena.put(1, -6.0, LEFT_GROUND_Y, stocks=stocks[1])
        arena.play(frames=40)
        assert arena.game.ended_N[0]
        assert arena.game.outcomes_N[0] == outcome


def test_what_an_ended_match_leaves_behind_is_its_last_frame() -> None:
    short, long = BrawlGame(8, max_frames=50), BrawlGame(8, max_frames=500)
    random = np.random.default_rng(3)
    for game in (short, long):
        game.reset(np.arange(8, dtype=np.uint64))
    for _ in range(50):
        actions = random.integers(0, 2, (8, 2, 10), dtype=np.uint8)
        short.step(actions)
        long.step(actions)
    assert short.ended_N.all()
    assert not long.ended_N.any()
    assert np.array_equal(short.final_observations_N2O, long.observations_N2O)
    assert np.array_equal(short.final_stats_N2S, long.stats_N2S)
    assert (short.final_stats_N2S != short.stats_N2S).any()


@pytest.mark.parametrize(("fallen", "outcome"), [((0,), 0.0), ((1,), 1.0), ((0, 1), 0.5)])
def test_the_last_stock_ends_the_match(fallen: tuple[int, ...], outcome: float) -> None:
    arena = Arena()
    for seat in fallen:
        arena.put(seat, 0.0, 8.5, grounded=False, stocks=1)
    arena.play()
    assert arena.game.ended_N[0]
    assert arena.game.outcomes_N[0] == outcome


@pytest.mark.parametrize("threads", [3, 40])
def test_matches_are_the_same_on_any_number_of_threads(threads: int) -> None:
    one, many = BrawlGame(33, max_frames=300), BrawlGame(33, max_frames=300, threads=threads)
    random = np.random.default_rng(4)
    for game in (one, many):
        game.bots_N2[:8, 0] = game.spec.bot_index("based")
        game.reset(np.arange(33, dtype=np.uint64))
    for _ in range(400):
        actions = random.integers(0, 2, (33, 2, 10), dtype=np.uint8)
        one.step(actions)
        many.step(actions)
        assert one.observations_N2O.tobytes() == many.observations_N2O.tobytes()
        assert one.reward_terms_N2K.tobytes() == many.reward_terms_N2K.tobytes()
    assert one.final_stats_N2S.tobytes() == many.final_stats_N2S.tobytes()
    many.close()
    many.close()
