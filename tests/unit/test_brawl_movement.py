"""Movement, stage and knock-out figures of the game."""

from __future__ import annotations

import numpy as np
import pytest
from arena import LEFT_GROUND_Y, RIGHT_GROUND_Y, Arena

from league.games.brawl import rules
from league.games.brawl.game import BrawlGame
from league.games.brawl.rules import DT
from league.games.brawl.stage import stage

FAR = (-6.0, LEFT_GROUND_Y)


@pytest.fixture
def arena() -> Arena:
    made = Arena()
    made.put(1, *FAR)
    made.play()
    return made


def heights(arena: Arena, keys_by_frame: list[str]) -> list[float]:
    """How far above the right ground seat 0 is after each frame."""
    rises = []
    for keys in keys_by_frame:
        arena.play(keys)
        rises.append(RIGHT_GROUND_Y - arena.of(0, "y"))
    return rises


def test_jump_peaks_at_frame_14_and_lands_after_31(arena: Arena) -> None:
    rises = heights(arena, ["space"] + [""] * 35)
    assert int(np.argmax(rises)) == 14
    assert max(rises) == pytest.approx(2.37, abs=0.005)
    assert next(frame + 1 for frame, rise in enumerate(rises) if rise <= 0) == 31


def test_three_jumps_rise_7_11_and_there_is_no_fourth(arena: Arena) -> None:
    jump = ["space"] + [""] * 14
    rises = heights(arena, jump * 3 + ["space"] + [""] * 5)
    assert max(rises) == pytest.approx(7.11, abs=0.01)
    assert arena.stat("jumps") == 3


def test_air_jumps_are_six_frames_apart_and_a_held_key_jumps_once(arena: Arena) -> None:
    heights(arena, ["space"] * 12)
    assert arena.stat("jumps") == 1
    arena.put(0, 4.0, RIGHT_GROUND_Y)
    heights(arena, ["", "space", "", "", "", "", "space", ""])
    assert arena.stat("jumps") == 2
    arena.put(0, 4.0, RIGHT_GROUND_Y)
    heights(arena, ["space", "", "", "", "", "", "space"])
    assert arena.stat("jumps") == 4


def test_leaving_the_ground_gives_jumps_and_recovery_back(arena: Arena) -> None:
    arena.put(0, 2.2, RIGHT_GROUND_Y, facing=-1, air_jumps=0, recoveries=0)
    arena.game._matches_N["frame"] = 145  # the platform is on its lower end, out of the way
    while arena.of(0, "grounded"):
        arena.play("A")
    assert arena.fields(0, "air_jumps", "recoveries") == (2, 1)


def test_walk_dash_and_run(arena: Arena) -> None:
    arena.put(0, 2.5, RIGHT_GROUND_Y)
    arena.play("D")
    assert arena.fields(0, "state", "vx") == (rules.WALKING, 6.75)
    arena.put(0, 2.5, RIGHT_GROUND_Y)
    speeds = []
    for _ in range(12):
        arena.play("D L")
        speeds.append(arena.of(0, "vx"))
    assert speeds == [10.0] * 9 + [8.0] * 3
    assert arena.of(0, "state") == rules.SPRINTING
    arena.play("")
    assert arena.fields(0, "state", "vx") == (rules.STANDING, 0.0)


def test_turn_takes_a_frame_and_backdash_keeps_facing(arena: Arena) -> None:
    arena.play("A")
    assert arena.fields(0, "state", "facing", "vx") == (rules.TURNAROUND, -1, 0.0)
    arena.play("A")
    assert arena.fields(0, "state", "vx") == (rules.WALKING, -6.75)
    arena.put(0, 5.0, RIGHT_GROUND_Y)
    states = []
    for _ in range(8):
        arena.play("A L")
        states.append(arena.of(0, "state"))
    assert states == [rules.BACKDASH] * 7 + [rules.TURNAROUND]
    assert arena.of(0, "x") == pytest.approx(5.0 - 7 * 4 * DT)


def test_air_turn_divides_speed_by_three(arena: Arena) -> None:
    arena.put(0, 4.0, -3.0, grounded=False, vx=6.0)
    arena.play("A")
    assert arena.fields(0, "state", "facing", "vx") == (rules.AIR_TURNAROUND, -1, 2.0)
    arena.play("A")
    assert arena.of(0, "vx") == pytest.approx(2.0 - 0.358)


def test_air_steering_stops_at_walking_speed(arena: Arena) -> None:
    arena.put(0, -3.0, -7.0, grounded=False)
    for _ in range(25):
        arena.play("D")
    assert arena.of(0, "vx") == 6.75


def test_falling_speed_and_fast_fall(arena: Arena) -> None:
    arena.put(0, 0.0, -7.5, grounded=False)
    arena.play()
    assert arena.of(0, "vy") == pytest.approx(17.808 * DT)
    before = arena.of(0, "vy")
    arena.play("S")
    assert arena.of(0, "vy") == pytest.approx(before + 17.808 * DT + 0.475)
    arena.put(0, 10.0, -7.5, grounded=False)
    arena.play("S", frames=25)
    assert arena.of(0, "vy") == 12.0


@pytest.mark.parametrize(("grounded", "wait"), [(True, 30), (False, 82)])
def test_dodge_lasts_ten_frames_and_comes_back_after_its_wait(
    arena: Arena, grounded: bool, wait: int
) -> None:
    arena.put(0, 4.0, RIGHT_GROUND_Y if grounded else -7.9, grounded=grounded, vx=0.0, vy=-8.0)
    begun = []
    for frame in range(wait + 2):
        if not grounded:
            arena.game._players_N2[0, 0]["y"] = -7.5
        arena.play("" if frame % 2 else "L")
        if arena.stat("dodges") > len(begun):
            begun.append(frame)
        if frame < 10:
            assert arena.fields(0, "state", "vx", "vy") == (rules.DODGE, 0.0, 0.0)
        assert frame != 10 or arena.of(0, "state") != rules.DODGE
    assert begun == [0, wait]


def test_taunt_holds_for_thirty_frames(arena: Arena) -> None:
    arena.play("G")
    for _ in range(29):
        arena.play("A")
        assert arena.of(0, "state") == rules.TAUNT
    arena.play("A")
    assert arena.of(0, "state") == rules.TURNAROUND


def test_stun_slows_and_bounces(arena: Arena) -> None:
    arena.put(0, 4.0, -6.0, grounded=False, vx=5.0, state=rules.STUN, stun_left=10)
    arena.play("A space")
    assert arena.of(0, "vx") == pytest.approx(5.0 - 0.239)
    arena.put(0, 4.0, 0.3, grounded=False, vy=8.0, state=rules.STUN, stun_left=10)
    arena.play()
    assert arena.of(0, "vy") == pytest.approx(-0.7 * (8.0 + 17.808 * DT))


def test_stun_leaves_an_air_jump(arena: Arena) -> None:
    arena.put(0, 4.0, -6.0, grounded=False, air_jumps=0, state=rules.STUN, stun_left=3)
    arena.play(frames=3)
    arena.play("space")
    assert arena.of(0, "vy") == -8.9


def test_platform_comes_back_after_290_frames_and_stays_between_its_waypoints(arena: Arena) -> None:
    places = []
    for _ in range(2 * 290):
        arena.play()
        now = arena.game._matches_N[0]
        places.append((now["platform_x"], now["platform_y"]))
    path = np.array(places)
    assert np.array_equal(path[:290], path[290:])
    periods = [p for p in range(1, 291) if np.allclose(path[:290], path[p : p + 290], atol=1e-9)]
    assert periods == [290]
    assert np.allclose(path[:, 1], 1.0 - path[:, 0])
    assert 0.9 < path[:, 0].max() < 1.0
    assert -1.0 < path[:, 0].min() < -0.9
    speeds = np.hypot(*stage("warehouse")["path"][0, :, 2:].T)
    assert 0.13 < speeds.min() < speeds.max() == pytest.approx(1.03, abs=0.01)


def test_platform_is_solid_from_below(arena: Arena) -> None:
    now = arena.game._matches_N[0]
    arena.put(0, now["platform_x"], now["platform_y"] + 1.2, grounded=False, vy=-30.0)
    arena.play()
    assert arena.of(0, "vy") == 0.0
    assert arena.of(0, "y") == pytest.approx(arena.game._matches_N[0]["platform_y"] + 0.6, abs=0.02)


@pytest.mark.parametrize(("x", "y"), [(14.2, 0.0), (-14.2, 0.0), (0.0, 8.2), (9.0, -8.2)])
def test_leaving_the_blast_zone_costs_a_stock_and_ninety_frames(
    arena: Arena, x: float, y: float
) -> None:
    arena.put(0, x, y, grounded=False, damage=77.0)
    arena.play()
    assert arena.fields(0, "state", "stocks") == (rules.KO, 2)
    for _ in range(89):
        arena.play("D space")
        assert arena.fields(0, "state", "x", "y") == (rules.KO, x, y)
    arena.play()
    side = arena.of(0, "side")
    assert arena.fields(0, "state", "damage") == (rules.IN_AIR, 0.0)
    assert arena.fields(0, "x", "facing") == (5.0 * side, -side)
    assert arena.fields(0, "air_jumps", "recoveries") == (0, 0)


@pytest.mark.parametrize("name", ["warehouse", "flat"])
def test_no_body_ever_overlaps_ground_or_platform(name: str) -> None:
    game = BrawlGame(64, stage=name)
    game.reset(np.arange(64, dtype=np.uint64))
    game.bots_N2[:32, 0] = game.spec.bot_index("based")
    random = np.random.default_rng(1)
    solids = stage(name)["solids"][0]
    for _ in range(1500):
        game.step(random.integers(0, 2, (64, 2, 10), dtype=np.uint8))
        alive = game._players_N2["state"] != rules.KO
        x, y = game._players_N2["x"], game._players_N2["y"]
        px, py = game._matches_N["platform_x"][:, None], game._matches_N["platform_y"][:, None]
        for left, top, right, bottom in (*solids, (px - 1, py - 0.1, px + 1, py + 0.1)):
            deep_x = np.minimum(x + 0.435 - left, right - (x - 0.435))
            deep_y = np.minimum(y + 0.5 - top, bottom - (y - 0.5))
            assert (np.minimum(deep_x, deep_y)[alive] < 1e-5).all()


def test_platform_lifts_and_lowers_who_stands_on_it() -> None:
    game = BrawlGame(1, stage="flat")
    game.reset(np.array([5], np.uint64))
    player, match = game._players_N2[0, 0], game._matches_N[0]
    player["x"], player["y"] = 0.2, match["platform_y"] - 0.6
    player["grounded"], player["on_platform"], player["state"] = 1, 1, rules.STANDING
    heights = []
    for _ in range(290):
        game.step(np.zeros((1, 2, 10), np.uint8))
        assert player["y"] == pytest.approx(match["platform_y"] - 0.6)
        assert (player["x"], player["on_platform"]) == (0.2, 1)
        heights.append(player["y"])
    assert max(heights) - min(heights) > 2.4
