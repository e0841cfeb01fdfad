"""Whole matches: seats, sides, observation, time-out and the scripted bots."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from arena import LEFT_GROUND_Y, RIGHT_GROUND_Y, Arena

import league
from league.games.brawl import rules
from league.games.brawl.game import BrawlGame
from league.games.brawl.kernel import reset_matches, step_matches
from league.games.brawl.moves import HAMMER, UNARMED


def test_observation_fields_and_scales() -> None:
    arena = Arena()
    values = {"vx": 9.0, "vy": -6.0, "facing": -1, "jumps": 1}
    arena.put(0, -7.0, -4.0, grounded=False, **values, damage=350.0, stocks=2)
    arena.put(1, 6.0, RIGHT_GROUND_Y)
    arena.play("", "D K")
    own, other = arena.seen(0), arena.seen(1)
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
    assert {name: own[f"own {name}"] for name in expected} == pytest.approx(expected, rel=1e-6)
    assert {name: other[f"opponent {name}"] for name in expected} == pytest.approx(
        expected, rel=1e-6
    )
    assert arena.of(0, "vy") == pytest.approx(-6.0 + rules.GRAVITY_PER_FRAME), "after the physics"
    assert other["own move"] == pytest.approx(7 / 12)
    assert other["own state"] == pytest.approx(8 / 12)
    assert other["own grounded"] == 1
    assert all(own[f"own slot{slot}_{f}"] == 0 for slot in range(4) for f in ("x", "y", "type"))


def test_speed_is_shown_up_to_10_and_height_up_to_7() -> None:
    arena = Arena()
    arena.put(0, 0.0, 7.5, grounded=False, vx=30.0, vy=11.0)
    arena.put(1, 0.0, -7.5, grounded=False, vx=-30.0)
    arena.play()
    seen, fastest = arena.seen(0), math.tanh(10 / 12)
    assert [seen["own vx"], seen["own vy"]] == pytest.approx([fastest, fastest])
    assert seen["opponent vx"] == pytest.approx(-fastest)
    assert [seen["own y"], seen["opponent y"]] == pytest.approx([7 / 8, -7 / 8])


def test_no_jumps_or_recoveries_are_shown_on_the_ground() -> None:
    arena, shown = Arena(), []
    for keys in ("", "D", "space", "J"):
        arena.put(0, 4.0, RIGHT_GROUND_Y)
        arena.play(keys)
        seen = arena.seen(0)
        shown.append((seen["own air_jumps"], seen["own recoveries"]))
    assert shown == [(0, 0), (0, 0), (1, 1), (1, 1)]


@pytest.mark.parametrize(
    ("weapon", "damage", "speed"),
    [
        *((UNARMED, 0.0, 5.8), (UNARMED, 100.0, 19.0), (UNARMED, 200.0, 42.0)),
        *((HAMMER, 0.0, 8.6), (HAMMER, 100.0, 24.0), (HAMMER, 200.0, 48.0)),
    ],
)
def test_a_launch_grows_with_the_victims_damage(weapon: int, damage: float, speed: float) -> None:
    """The side sig's, in u/s; the recordings hold launches at low damage alone."""
    arena = Arena(rules="fair")  # there the victim feels it a frame later
    arena.put(0, 4.0, RIGHT_GROUND_Y, weapon=weapon)
    arena.play("D K")
    while arena.stat("hits") == 0:
        arena.put(1, arena.of(0, "x") + 0.8, RIGHT_GROUND_Y - 0.4, grounded=False, damage=damage)
        arena.play()
    assert math.hypot(*arena.fields(1, "push_x", "push_y")) == pytest.approx(speed, rel=0.03)


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


def test_read_only_arrays_are_played_by_the_same_compiled_code() -> None:
    game = BrawlGame(2)
    before = [len(one.overloads) for one in (reset_matches, step_matches)]
    game.reset(np.frombuffer(np.arange(2, dtype=np.uint64).tobytes(), np.uint64))
    idle = game.idle_actions()
    game.step(np.frombuffer(idle.tobytes(), np.uint8).reshape(idle.shape))
    assert [len(one.overloads) for one in (reset_matches, step_matches)] == before


def test_it_is_made_where_neither_the_code_nor_the_home_can_be_written(tmp_path: Path) -> None:
    """Only a user without a root's rights is refused there, as in a new namespace."""
    code, home = tmp_path / "code", tmp_path / "home"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(league.__file__).parent, code / "league", ignore=ignored)
    home.mkdir()
    folders = [home, *(path for path in (code, *code.rglob("*")) if path.is_dir())]
    program = (
        "import league\nfrom league.games.brawl.game import BrawlGame\n"
        "print(league.__file__, BrawlGame(2).num_matches)"
    )
    for folder in folders:
        folder.chmod(0o500)
    try:
        done = subprocess.run(
            ["unshare", "--user", sys.executable, "-B", "-c", program],
            capture_output=True,
            text=True,
            env={"PATH": "/usr/bin:/bin", "HOME": str(home), "PYTHONPATH": str(code)},
        )
    finally:
        for folder in folders:
            folder.chmod(0o700)
    if done.stderr.startswith("unshare"):
        pytest.skip("this system lets nobody have a namespace of their own (unshare --user)")
    assert done.stdout.split() == [f"{code}/league/__init__.py", "2"], done.stderr
