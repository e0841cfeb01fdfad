"""The 33 moves: timing, damage, knockback, stun and reach of GAME.md's table, measured in play."""

from __future__ import annotations

import math

import pytest
from move_table import AERIAL, KEYS, TABLE, begun, blows, far, offer, row

from league.games.brawl import rules
from league.games.brawl.moves import HAMMER, SPEAR, UNARMED, WEAPON_NAMES

ROWS = [pytest.param(*key, id=f"{WEAPON_NAMES[key[0]]}-{key[1]}") for key in TABLE]
every_move = pytest.mark.parametrize(("weapon", "name"), ROWS)


@every_move
def test_first_hit_damage_by_stage_and_reach(weapon: int, name: str) -> None:
    figures, found = TABLE[weapon, name], blows(weapon, name)
    assert found[0][0] == figures.first_hit
    assert tuple(damage for _, damage, _, _ in found) == figures.damage
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
    _, dealt, vx, vy = blows(weapon, name, damage)[-1]
    x = damage + dealt
    speed = 0.096 * (figures.fixed + figures.variable * (x / 70 + x * x / 12000))
    assert math.hypot(vx, vy) == pytest.approx(speed, rel=0.03)
    direction = math.degrees(math.atan2(-vy, vx))
    assert direction == pytest.approx(figures.angle, abs=1e-3)


@every_move
def test_stun(weapon: int, name: str) -> None:
    arena, stages = begun(weapon, name), row(weapon, name).stages
    stuns, frame = set(), 0
    while arena.of(0, "state") == rules.ATTACK:
        waiting = [stage for stage in stages if stage.end > frame + 1]
        offer(arena, waiting[0] if waiting else stages[-1])
        arena.game._players_N2[0, 1]["stun_left"] = 0
        arena.play()
        frame += 1
        stuns |= {arena.of(1, "stun_left")} - {0}
    assert stuns == set(TABLE[weapon, name].stuns)


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
