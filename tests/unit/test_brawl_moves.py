"""The eleven unarmed moves: timing, damage, knockback and stun of GAME.md's table."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from arena import LEFT_GROUND_Y, RIGHT_GROUND_Y, Arena

from league.games.brawl import moves, rules
from league.games.brawl.hits import knockback_speed
from league.games.brawl.movesets import MOVES

# name: keys, first hit, whiff, damage by stage, force fixed and variable of the last stage, angle, stun
TABLE = {
    "NLight": ("J", 3, 15, (3, 3, 3, 5), 52, 31, 30, 11),
    "DLight": ("S J", 5, 16, (8,), 45, 5, 90, 15),
    "SLight": ("D J", 7, 17, (13,), 80, 20, 0, 9),
    "NSig": ("K", 10, 17, (20,), 40, 46, 90, 9),
    "DSig": ("S K", 7, 25, (16, 16), 40, 60, 170, 9),
    "SSig": ("D K", 11, 22, (18,), 45, 55, 0, 9),
    "NAir": ("J", 4, 19, (3, 3, 5), 71, 37, 45, 9),
    "DAir": ("S J", 6, 23, (16,), 65, 5, 0, 9),
    "SAir": ("D J", 7, 20, (13,), 45, 40, 0, 8),
    "Recovery": ("K", 6, 22, (15,), 55, 40, 80, 12),
    "Groundpound": ("S K", 10, 32, (17,), 48, 46, -90, 9),
}
TYPES = {name: number for number, name in moves.MOVE_NAMES.items()}
AERIAL = ("NAir", "DAir", "SAir", "Recovery", "Groundpound")


def begun(name: str, *, in_reach: bool) -> Arena:
    """A match in which seat 0 has just pressed the keys of a move, the opponent in its way or far away."""
    arena = Arena()
    x, y = 4.0, (RIGHT_GROUND_Y - 3.0 if name in AERIAL else RIGHT_GROUND_Y)
    arena.put(0, x, y, grounded=name not in AERIAL, recoveries=1, vy=-3.0 if name in AERIAL else 0.0)
    arena.put(1, *((x + 0.3, y) if in_reach else (-6.0, LEFT_GROUND_Y)), grounded=not in_reach)
    arena.play(TABLE[name][0])
    return arena


def follow(arena: Arena) -> None:
    """Keeps the opponent in the middle of whatever comes."""
    arena.put(1, arena.of(0, "x") + 0.3, arena.of(0, "y"), grounded=False, state=rules.STUN, stun_left=2)


@pytest.mark.parametrize("name", TABLE)
def test_first_hit(name: str) -> None:
    arena = begun(name, in_reach=True)
    assert arena.of(0, "move") == TYPES[name]
    frame = 0
    while arena.stat("hits") == 0:
        follow(arena)
        arena.play()
        frame += 1
    assert frame == TABLE[name][1]


@pytest.mark.parametrize("name", TABLE)
def test_whiff_locks(name: str) -> None:
    arena = begun(name, in_reach=False)
    frames = 1
    while True:
        arena.play()
        if arena.of(0, "state") != rules.ATTACK:
            break
        frames += 1
    assert frames == TABLE[name][2]
    assert arena.stat("attacks") == 1


@pytest.mark.parametrize("name", TABLE)
def test_damage_by_stage(name: str) -> None:
    arena = begun(name, in_reach=True)
    damage = [arena.of(1, "damage")]
    while arena.of(0, "state") == rules.ATTACK:
        follow(arena)
        if name == "DSig" and len(damage) == 2:  # its second stage strikes behind
            arena.put(1, arena.of(0, "x") - 0.5, arena.of(0, "y"), grounded=False)
        arena.play()
        if arena.of(1, "damage") != damage[-1]:
            damage.append(arena.of(1, "damage"))
    assert tuple(after - before for before, after in pairwise(damage)) == TABLE[name][3]


@pytest.mark.parametrize("name", TABLE)
def test_rows_hold_force_angle_and_stun(name: str) -> None:
    *_, fixed, variable, angle, stun = TABLE[name]
    last = MOVES[moves.UNARMED, TYPES[name]].stages[-1]
    assert (last.fixed, last.variable, last.angle, last.stun) == (fixed, variable, angle, stun)


@pytest.mark.parametrize(("name", "speeds"), [("NLight", (5.2, 12.0, 24.0)), ("SSig", (5.8, 19.0, 42.0))])
def test_knockback_at_0_100_and_200(name: str, speeds: tuple[float, ...]) -> None:
    last = MOVES[moves.UNARMED, TYPES[name]].stages[-1]
    for damage, speed in zip((0, 100, 200), speeds, strict=True):
        assert knockback_speed(damage + last.damage, last.fixed, last.variable) == pytest.approx(
            speed, rel=0.03
        )


@pytest.mark.parametrize("facing", [1, -1])
@pytest.mark.parametrize("damage", [0.0, 150.0])
def test_a_hit_adds_its_knockback_and_stuns(facing: int, damage: float) -> None:
    arena = Arena()
    arena.put(0, 5.0, RIGHT_GROUND_Y, facing=facing)
    arena.put(1, 5.0 + 0.6 * facing, RIGHT_GROUND_Y, damage=damage)
    arena.play("D K" if facing > 0 else "A K")
    arena.play(frames=11)
    x = damage + 18
    speed = 0.096 * (45 + 55 * (x / 70 + x * x / 12000))
    assert arena.of(1, "vx") == pytest.approx(facing * speed)
    assert (arena.of(1, "state"), arena.of(1, "stun_left"), arena.of(1, "damage")) == (rules.STUN, 9, x)


@pytest.mark.parametrize("name", ["DLight", "SSig"])
def test_a_stunned_player_does_nothing_for_as_many_frames_as_the_move_says(name: str) -> None:
    arena = begun(name, in_reach=True)
    while arena.of(1, "stun_left") == 0:
        arena.put(1, arena.of(0, "x") + 0.3, arena.of(0, "y"), grounded=False)
        arena.play()
    frames = 0
    while True:
        arena.play("", "space" if frames % 2 else "")
        if arena.of(1, "state") != rules.STUN:
            break
        frames += 1
    assert frames == TABLE[name][-1]


def test_upward_angle_goes_up_and_dsig_strikes_backward_behind() -> None:
    arena = begun("DLight", in_reach=True)
    while arena.stat("hits") == 0:
        follow(arena)
        arena.play()
    assert arena.of(1, "vy") < -4.0
    assert arena.of(1, "vx") == pytest.approx(0.0, abs=1e-9)
    arena = begun("DSig", in_reach=False)
    while arena.stat("hits") == 0:
        arena.put(1, arena.of(0, "x") - 0.7, RIGHT_GROUND_Y, state=rules.STUN, stun_left=2)
        arena.play()
    speed = knockback_speed(16.0, 40.0, 60.0)
    assert arena.of(1, "vx") == pytest.approx(speed * math.cos(math.radians(170)))


def test_a_stage_hits_once() -> None:
    arena = begun("SSig", in_reach=True)
    while arena.of(0, "state") == rules.ATTACK:
        follow(arena)
        arena.play()
    assert arena.stat("hits") == 1


def test_the_jab_goes_on_only_when_it_hits() -> None:
    arena = begun("NLight", in_reach=False)
    arena.play(frames=6)
    arena.put(1, arena.of(0, "x") + 0.3, RIGHT_GROUND_Y)
    arena.play(frames=8)
    assert arena.stat("hits") == 0


def test_a_dodge_is_not_hit() -> None:
    arena = begun("SLight", in_reach=True)
    arena.put(1, 4.5, RIGHT_GROUND_Y)
    arena.play("", "L")
    while arena.of(0, "state") == rules.ATTACK:
        arena.put(1, arena.of(0, "x") + 0.3, RIGHT_GROUND_Y, state=rules.DODGE, state_left=9)
        arena.play()
    assert arena.stat("hits") == 0


def test_a_trade_hits_both() -> None:
    arena = Arena()
    arena.put(0, 4.0, RIGHT_GROUND_Y)
    arena.put(1, 4.6, RIGHT_GROUND_Y, facing=-1)
    arena.play("K", "K")
    arena.put(0, 4.4, RIGHT_GROUND_Y, state=rules.ATTACK)
    arena.put(1, 4.6, RIGHT_GROUND_Y, facing=-1, state=rules.ATTACK)
    arena.play(frames=10)
    assert (arena.stat("hits", 0), arena.stat("hits", 1)) == (1, 1)
    assert (arena.of(0, "damage"), arena.of(1, "damage")) == (20, 20)


def test_a_grounded_player_hit_downward_bounces() -> None:
    arena = Arena()
    arena.put(1, 4.0, RIGHT_GROUND_Y)
    arena.put(0, 4.0, RIGHT_GROUND_Y - 1.6, grounded=False)
    arena.play("S K")
    while arena.stat("hits") == 0:
        arena.play()
    assert arena.of(1, "vy") == pytest.approx(-0.7 * knockback_speed(17.0, 48.0, 46.0), rel=0.15)


def test_damage_ends_at_700() -> None:
    arena = begun("SSig", in_reach=True)
    while arena.stat("hits") == 0:
        arena.put(1, arena.of(0, "x") + 0.5, RIGHT_GROUND_Y, damage=695.0)
        arena.play()
    assert arena.of(1, "damage") == 700
    assert arena.stat("damage_dealt") == 5


@pytest.mark.parametrize(
    ("keys", "grounded", "name"),
    [
        ("J K", True, "NSig"),
        ("W D K", True, "NSig"),
        ("S D J", True, "DLight"),
        ("W S J", False, "NAir"),
        ("D K", False, "Recovery"),
        ("S D K", False, "Groundpound"),
    ],
)
def test_keys_choose_the_move(keys: str, grounded: bool, name: str) -> None:
    arena = Arena()
    arena.put(0, 4.0, RIGHT_GROUND_Y - (0 if grounded else 2), grounded=grounded, recoveries=1)
    arena.play(keys)
    assert arena.of(0, "move") == TYPES[name]


def test_recovery_is_spent_and_missed() -> None:
    arena = Arena()
    arena.put(0, 4.0, -3.0, grounded=False, recoveries=1)
    arena.play("K")
    assert (arena.of(0, "move"), arena.of(0, "recoveries")) == (moves.RECOVERY, 0)
    arena.put(0, 4.0, -3.0, grounded=False, recoveries=0, move=0)
    arena.play("K")
    assert arena.of(0, "move") == moves.NO_MOVE


@pytest.mark.parametrize(("keys", "earliest", "latest"), [("K", 4, 36), ("S K", 2, 30), ("D K", 6, 40)])
def test_a_held_sig_waits_until_its_latest_frame(keys: str, earliest: int, latest: int) -> None:
    arena = Arena()
    arena.put(1, -6.0, LEFT_GROUND_Y)
    progress = []
    for _ in range(latest + 3):
        arena.play(keys)
        progress.append(arena.of(0, "move_frame"))
    assert progress[earliest] == progress[latest] == earliest
    assert progress[latest + 1] == earliest + 1
    assert 2 <= earliest <= 6
    assert 30 <= latest <= 40
