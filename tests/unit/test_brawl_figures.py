"""The 33 moves: timing, damage, knockback, stun and reach of GAME.md's table, measured in play; how
moves are chosen, and what a hit does.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest
from arena import LEFT_GROUND_Y, RIGHT_GROUND_Y, Arena

from league.games.brawl import moves, rules
from league.games.brawl.hits import knockback_speed
from league.games.brawl.moves import HAMMER, MOVES, SPEAR, UNARMED, WEAPON_NAMES


class Figures(NamedTuple):
    """A row of GAME.md's table.

    `reach` is (from, to) forward of the attacker, over all boxes of the move; `up` and `down` where
    given. `late` is the damage of a later blow, to a victim that the first one missed.
    """

    first_hit: int
    whiff: int
    damage: tuple[int, ...]
    fixed: int
    variable: int
    angle: float  # of the last stage
    stuns: tuple[int, ...]  # that the stages may have
    reach: tuple[float, float]
    up: float | None = None
    down: float | None = None
    late: int | None = None


TABLE = {
    (UNARMED, "NLight"): Figures(3, 15, (3, 3, 3, 5), 52, 31, 30, (11,), (-0.1, 0.8)),
    (UNARMED, "DLight"): Figures(5, 16, (8,), 45, 5, 90, (15,), (0.0, 0.8)),
    (UNARMED, "SLight"): Figures(7, 17, (13,), 80, 20, 0, (9,), (-0.1, 0.9)),
    (UNARMED, "NSig"): Figures(10, 17, (20,), 40, 46, 90, (9,), (0.0, 0.45), up=0.97),
    (UNARMED, "DSig"): Figures(7, 25, (16, 16), 40, 60, 170, (9,), (-0.8, 1.1)),
    (UNARMED, "SSig"): Figures(11, 22, (18,), 45, 55, 0, (9,), (0.2, 1.0)),
    (UNARMED, "NAir"): Figures(4, 19, (3, 3, 5), 71, 37, 45, (9,), (-0.1, 0.8)),
    (UNARMED, "DAir"): Figures(6, 23, (16,), 65, 5, 0, (9,), (0.0, 0.45), down=0.6),
    (UNARMED, "SAir"): Figures(7, 20, (13,), 45, 40, 0, (8,), (0.3, 1.0)),
    (UNARMED, "Recovery"): Figures(6, 22, (15,), 55, 40, 80, (12,), (0.0, 0.4), up=0.9),
    (UNARMED, "Groundpound"): Figures(10, 32, (17,), 48, 46, -90, (9,), (-0.3, 0.35), down=0.86),
    (SPEAR, "NLight"): Figures(4, 24, (4, 5, 5), 67, 5, 0, (8,), (0.8, 1.8)),
    (SPEAR, "DLight"): Figures(5, 23, (1, 2, 3), 48, 0, 0, (12,), (0.0, 1.6)),
    (SPEAR, "SLight"): Figures(7, 27, (8, 7), 110, 0, 55, (9,), (-0.2, 2.0)),
    (SPEAR, "NSig"): Figures(11, 25, (24,), 50, 56, 70, (8,), (-0.5, 1.7), up=1.4),
    (SPEAR, "DSig"): Figures(19, 35, (27,), 65, 52, 0, (7,), (0.1, 2.1)),
    (SPEAR, "SSig"): Figures(16, 23, (25,), 72, 54, 0, (8,), (0.5, 2.4)),
    (SPEAR, "NAir"): Figures(8, 21, (12, 3), 100, 10, 90, (13,), (-1.2, 1.2), up=1.2, down=1.2),
    (SPEAR, "DAir"): Figures(7, 17, (13,), 49, 28, 0, (5,), (-0.1, 0.45), up=-0.9, down=1.9),
    (SPEAR, "SAir"): Figures(7, 20, (17,), 45, 42, 0, (11,), (1.35, 2.2)),
    (SPEAR, "Recovery"): Figures(8, 27, (18,), 61, 44, 90, (12,), (-0.7, 1.4), up=0.7),
    (SPEAR, "Groundpound"): Figures(10, 38, (18,), 53, 42, 0, (11,), (-1.3, 1.2), down=0.4),
    (HAMMER, "NLight"): Figures(4, 21, (5, 5, 9), 65, 45, 0, (16,), (0.2, 1.8)),
    (HAMMER, "DLight"): Figures(5, 21, (7,), 35, 6, 90, (13,), (0.1, 1.6)),
    (HAMMER, "SLight"): Figures(7, 20, (17,), 56, 8, 0, (12,), (0.5, 2.0), late=15),
    (HAMMER, "NSig"): Figures(10, 32, (9, 18), 60, 52, 0, (12,), (0.0, 2.0), up=1.9),
    (HAMMER, "DSig"): Figures(16, 53, (18, 12), 57, 54, 0, (12, 17), (-0.2, 1.7)),
    (HAMMER, "SSig"): Figures(17, 40, (26,), 65, 58, 15, (12,), (0.0, 2.2)),
    (HAMMER, "NAir"): Figures(9, 22, (20,), 40, 50, 80, (14,), (-0.7, 1.0), up=1.8),
    (HAMMER, "DAir"): Figures(6, 24, (2, 4), 45, 48, 90, (12,), (-0.8, 0.5), down=1.3),
    (HAMMER, "SAir"): Figures(9, 23, (20,), 58, 44, 0, (12,), (0.4, 1.85), late=18),
    (HAMMER, "Recovery"): Figures(7, 22, (2, 13), 45, 29, -80, (8,), (-0.9, 0.1), up=1.4),
    (HAMMER, "Groundpound"): Figures(13, 36, (25,), 48, 55, 0, (11,), (-0.5, 0.3), down=1.3),
}
KEYS = {
    "NLight": "J",
    "DLight": "S J",
    "SLight": "D J",
    "NSig": "K",
    "DSig": "S K",
    "SSig": "D K",
    "NAir": "J",
    "DAir": "S J",
    "SAir": "D J",
    "Recovery": "K",
    "Groundpound": "S K",
}
TYPES = {name: number for number, name in moves.MOVE_NAMES.items()}
AERIAL = ("NAir", "DAir", "SAir", "Recovery", "Groundpound")
IN_THE_AIR = {"Recovery": -4.0}  # others -6.5: room to fall


def row(weapon: int, name: str) -> moves.Move:
    """The game's own row."""
    return MOVES[weapon, TYPES[name]]


def far(arena: Arena) -> None:
    """Puts the opponent out of every reach."""
    arena.put(1, -6.0, LEFT_GROUND_Y)


def begun(weapon: int, name: str) -> Arena:
    """A match in which seat 0 has just pressed the keys of a move; the opponent is far away."""
    arena = Arena()
    x, y = (0.0, IN_THE_AIR.get(name, -6.5)) if name in AERIAL else (4.0, RIGHT_GROUND_Y)
    arena.put(0, x, y, grounded=name not in AERIAL, recoveries=1, weapon=weapon)
    far(arena)
    arena.play(KEYS[name])
    assert arena.of(0, "move") == TYPES[name]
    return arena


def offer(arena: Arena, stage: moves.Stage, damage: float = 0.0) -> None:
    """Puts the opponent into the middle of a stage's box, in the air and at rest when the blow
    comes.
    """
    near, reach, top, bottom = stage.box
    x = arena.of(0, "x") + arena.of(0, "facing") * (near + reach) / 2
    y = arena.of(0, "y") + (top + bottom) / 2
    arena.put(1, x, y, grounded=False, vy=-rules.GRAVITY_PER_FRAME, damage=damage)


class Blow(NamedTuple):
    frame: int
    damage: float
    vx: float
    vy: float
    stun: float


def blows(weapon: int, name: str, damage: float = 0.0) -> list[Blow]:
    """Each blow to an opponent who is always offered to the next stage."""
    arena, stages = begun(weapon, name), row(weapon, name).stages
    found, frame = [], 0
    while arena.of(0, "state") == rules.ATTACK:
        waiting = [stage for stage in stages if stage.end > frame + 1]
        offer(arena, waiting[0] if waiting else stages[-1], damage)
        arena.play()
        frame += 1
        dealt = arena.of(1, "damage") - damage
        if dealt:
            found.append(Blow(frame, dealt, *arena.fields(1, "vx", "vy", "stun_left")))
    return found


ROWS = [pytest.param(*key, id=f"{WEAPON_NAMES[key[0]]}-{key[1]}") for key in TABLE]
every_move = pytest.mark.parametrize(("weapon", "name"), ROWS)


@every_move
def test_first_hit_damage_and_stun_by_stage_and_reach(weapon: int, name: str) -> None:
    figures, found = TABLE[weapon, name], blows(weapon, name)
    assert found[0].frame == figures.first_hit
    assert tuple(blow.damage for blow in found) == figures.damage
    assert {blow.stun for blow in found} == set(figures.stuns)
    boxes = [stage.box for stage in row(weapon, name).stages]
    assert (min(box[0] for box in boxes), max(box[1] for box in boxes)) == figures.reach
    if figures.up is not None:
        assert min(box[2] for box in boxes) == -figures.up
    if figures.down is not None:
        assert max(box[3] for box in boxes) == figures.down


@every_move
def test_whiff_locks(weapon: int, name: str) -> None:
    arena = begun(weapon, name)
    frames = 0
    while arena.of(0, "state") == rules.ATTACK:
        frames += 1
        arena.play()
    assert frames == TABLE[weapon, name].whiff
    assert arena.stat("attacks") == 1
    assert arena.stat("hits") == 0


@pytest.mark.parametrize(("weapon", "name"), [(HAMMER, "SLight"), (HAMMER, "SAir")])
def test_a_late_blow_hurts_less_and_only_whom_the_early_one_missed(weapon: int, name: str) -> None:
    arena, late = begun(weapon, name), row(weapon, name).stages[1]
    while arena.stat("hits") == 0:
        far(arena)
        if arena.of(0, "move_frame") + 1 >= late.start:
            offer(arena, late)
        arena.play()
    assert arena.of(1, "damage") == TABLE[weapon, name].late


@every_move
@pytest.mark.parametrize("damage", [0.0, 200.0])
def test_knockback_is_within_3_percent_of_the_formula(
    weapon: int, name: str, damage: float
) -> None:
    figures = TABLE[weapon, name]
    blow = blows(weapon, name, damage)[-1]
    x = damage + blow.damage
    speed = 0.096 * (figures.fixed + figures.variable * (x / 70 + x * x / 12000))
    assert math.hypot(blow.vx, blow.vy) == pytest.approx(speed, rel=0.03)
    direction = math.degrees(math.atan2(-blow.vy, blow.vx))
    assert direction == pytest.approx(figures.angle, abs=1e-3)


@pytest.mark.parametrize("facing", [1, -1])
@pytest.mark.parametrize(("weapon", "name"), [(UNARMED, "SSig"), (SPEAR, "SSig"), (HAMMER, "SSig")])
def test_who_stands_within_reach_is_hit_and_who_stands_beyond_is_not(
    weapon: int, name: str, facing: int
) -> None:
    keys = KEYS[name] if facing > 0 else KEYS[name].replace("D", "A")
    near, reach = TABLE[weapon, name].reach
    for distance, hits in (
        (reach + rules.HURT_RADIUS - 0.02, 1),
        (reach + rules.HURT_RADIUS + 0.02, 0),
        (near - rules.HURT_RADIUS + 0.02, 1),
        (near - rules.HURT_RADIUS - 0.02, 0),
    ):
        arena = begun(weapon, name)
        x = 4.8 - 0.8 * facing  # all of the reach lies over the right ground
        arena.put(0, x, 0.35, facing=facing, weapon=weapon)
        arena.play(keys)
        while arena.of(0, "state") == rules.ATTACK:
            arena.put(1, x + facing * distance, 0.35, vy=-rules.GRAVITY_PER_FRAME)
            arena.play()
        assert arena.stat("hits") == hits, distance


MULTIPLE = [(weapon, name) for (weapon, name), figures in TABLE.items() if len(figures.damage) > 1]


@pytest.mark.parametrize(
    ("weapon", "name"),
    [key for key in MULTIPLE if key not in ((UNARMED, "DSig"), (HAMMER, "DSig"))],
)
def test_every_blow_of_a_move_reaches_who_was_hit_by_the_first(weapon: int, name: str) -> None:
    """The test does not move the victim: holding, pushing and dragging must keep the victim in
    reach.
    """
    arena, first = begun(weapon, name), row(weapon, name).stages[0]
    near, reach, _top, _bottom = first.box
    while arena.stat("hits") == 0:
        if name in AERIAL:
            offer(arena, first)
            arena.game._players_N2[0, 1]["vy"] = arena.of(0, "vy")  # both fall
        else:
            arena.put(1, arena.of(0, "x") + (near + reach) / 2, arena.of(0, "y"))
        arena.play()
    while arena.of(0, "state") == rules.ATTACK:
        arena.play()
    assert arena.of(1, "damage") == sum(TABLE[weapon, name].damage)
    assert arena.stat("hits") == len(TABLE[weapon, name].damage)


@pytest.mark.parametrize("weapon", [UNARMED, SPEAR, HAMMER])
@pytest.mark.parametrize("name", ["NSig", "DSig", "SSig"])
def test_a_held_sig_waits_and_its_charge_adds_no_damage(weapon: int, name: str) -> None:
    move = row(weapon, name)
    assert 2 <= move.charge_from <= 6
    assert 30 <= move.charge_until <= 40
    tapped, held = begun(weapon, name), begun(weapon, name)
    dealt = []
    for arena, keys in ((tapped, ""), (held, KEYS[name])):
        frames = 0
        while arena.stat("hits") == 0:
            offer(arena, move.stages[0])
            arena.play(keys)
            frames += 1
        dealt.append((frames, arena.of(1, "damage"), arena.of(1, "vx")))
    charge = move.charge_until - move.charge_from
    assert dealt[1][0] == dealt[0][0] + charge
    assert dealt[1][1:] == dealt[0][1:]


@pytest.mark.parametrize(
    ("weapon", "name"), [(SPEAR, "SLight"), (SPEAR, "NLight"), (HAMMER, "Recovery")]
)
def test_a_dragging_stage_takes_its_victim_along(weapon: int, name: str) -> None:
    arena, first = begun(weapon, name), row(weapon, name).stages[0]
    while arena.stat("hits") == 0:
        offer(arena, first)
        arena.game._players_N2[0, 1]["vx"] = -4.0
        arena.play()
    assert arena.of(1, "vx") == arena.of(0, "vx")
    assert arena.of(1, "vy") == arena.of(0, "vy")


@pytest.mark.parametrize("name", ["DLight", "SSig"])
def test_a_stunned_player_does_nothing_for_as_many_frames_as_the_move_says(name: str) -> None:
    arena = begun(UNARMED, name)
    while arena.of(1, "stun_left") == 0:
        arena.put(1, arena.of(0, "x") + 0.3, arena.of(0, "y"), grounded=False)
        arena.play()
    frames = 0
    while True:
        arena.play("", "space" if frames % 2 else "")
        if arena.of(1, "state") != rules.STUN:
            break
        frames += 1
    assert frames == TABLE[UNARMED, name].stuns[-1]


def test_the_jab_goes_on_only_when_it_hits() -> None:
    arena = begun(UNARMED, "NLight")
    arena.play(frames=6)
    arena.put(1, arena.of(0, "x") + 0.3, RIGHT_GROUND_Y)
    arena.play(frames=8)
    assert arena.stat("hits") == 0


def test_a_dodge_is_not_hit() -> None:
    arena = begun(UNARMED, "SLight")
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


def test_recovery_is_spent_and_missed() -> None:
    arena = Arena()
    arena.put(0, 4.0, -3.0, grounded=False, recoveries=1)
    arena.play("K")
    assert arena.fields(0, "move", "recoveries") == (moves.RECOVERY, 0)
    arena.put(0, 4.0, -3.0, grounded=False, recoveries=0, move=0)
    arena.play("K")
    assert arena.of(0, "move") == moves.NO_MOVE
