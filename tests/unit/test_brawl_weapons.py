"""Spawners, picking up, dropping, and how weapons are observed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from arena import LEFT_GROUND_Y, RIGHT_GROUND_Y, Arena

from league.games.brawl.game import BrawlGame
from league.games.brawl.moves import HAMMER, NSIG, SPEAR, UNARMED
from league.games.brawl.weapons import NEVER

RIGHT, LEFT, DROPPED_RIGHT, DROPPED_LEFT = range(4)


def place(arena: Arena, where: int, weapon: int, x: float, y: float = 0.7, **fields: int) -> None:
    """Lays a weapon that stays for long and can be taken at once."""
    slot, match = arena.game._weapons_N4[0, where], arena.game._matches_N[0]
    match["weapons_lying"] += 1 if slot["type"] == UNARMED else 0
    slot["type"], slot["x"], slot["y"], slot["ready"] = weapon, x, y, 0
    slot["leaves"], slot["comes"] = NEVER, NEVER
    for name, value in fields.items():
        slot[name] = value
    all_places = arena.game._weapons_N4[0]
    match["weapons_change"] = min(all_places["leaves"].min(), all_places["comes"].min())


@pytest.fixture
def arena() -> Arena:
    """The game drops no weapon; seat 1 is far away."""
    made = Arena()
    made.game._weapons_N4["comes"] = NEVER
    made.game._matches_N["weapons_change"] = NEVER
    made.put(1, -6.0, LEFT_GROUND_Y)
    return made


@pytest.fixture(scope="module")
def appearances() -> list[list[tuple[int, int, int, int]]]:
    """Of each spawner: (match, frame, type, frames it stayed) of all that came in 300 matches."""
    game = BrawlGame(300)
    game.reset(np.arange(300, dtype=np.uint64))
    idle = np.zeros((300, 2, 10), np.uint8)
    rows = [np.zeros((300, 2), int)]
    for _ in range(1, 2600):
        game.step(idle)
        rows.append(game._weapons_N4[:, :2]["type"].copy())
    types_TN2 = np.stack(rows)
    found: list[list[tuple[int, int, int, int]]] = [[], []]
    for n, side in np.ndindex(300, 2):
        changes = np.flatnonzero(np.diff(types_TN2[:, n, side])) + 1
        for at, gone in changes[: len(changes) // 2 * 2].reshape(-1, 2):  # it comes and goes
            found[side].append((n, at, types_TN2[at, n, side], gone - at))
    return found


@pytest.mark.parametrize("side", [RIGHT, LEFT])
def test_a_weapon_stays_350_frames_and_half_are_hammers(appearances: list, side: int) -> None:
    assert {stayed for *_, stayed in appearances[side]} == {350}
    kinds = np.array([kind for *_, kind, _ in appearances[side]])
    assert set(kinds) == {SPEAR, HAMMER}
    assert 0.45 < (kinds == HAMMER).mean() < 0.55


@pytest.mark.parametrize("side", [RIGHT, LEFT])
def test_the_first_comes_within_350_frames_and_later_ones_after_the_cooldown(
    appearances: list, side: int
) -> None:
    by_match: dict[int, list[int]] = {}
    for n, at, *_ in appearances[side]:
        by_match.setdefault(n, []).append(at)
    firsts = np.array([frames[0] for frames in by_match.values()])
    assert 0 < firsts.min() < 15
    assert 335 < firsts.max() <= 350
    waits = np.array(
        [b - a - 350 for frames in by_match.values() for a, b in itertools.pairwise(frames)]
    )
    assert 250 <= waits.min() < 300
    assert 960 < waits.max() <= 1050
    assert abs(waits.mean() - 540) < 40  # fewer of the long ones fit into a match


def test_a_weapon_can_be_taken_36_frames_after_it_appeared(arena: Arena) -> None:
    weapons = arena.game._weapons_N4[0]
    weapons["comes"][RIGHT] = arena.game._matches_N["weapons_change"] = arena.game.frames_N[0] + 1
    arena.play()
    assert weapons["type"][RIGHT] != UNARMED
    arena.put(0, float(weapons["x"][RIGHT]), RIGHT_GROUND_Y)
    frames = 0
    while arena.of(0, "weapon") == UNARMED:
        arena.play("H")
        frames += 1
    assert frames == 36
    assert arena.stat("pickups") == 1


@pytest.mark.parametrize(("weapon", "worth"), [(SPEAR, 1.0), (HAMMER, 2.0)])
def test_taking_arms_pays_once_and_empties_the_place(
    arena: Arena, weapon: int, worth: float
) -> None:
    place(arena, RIGHT, weapon, 4.0)
    arena.play()
    assert arena.of(0, "weapon") == UNARMED
    arena.play("H")
    assert (arena.of(0, "weapon"), *arena.terms("equip")) == (weapon, worth, 0)
    assert arena.game._weapons_N4[0, RIGHT]["type"] == UNARMED
    arena.play("H", frames=40)
    assert (arena.of(0, "weapon"), arena.term("equip"), arena.stat("pickups")) == (weapon, 0, 1)
    arena.play("K")
    assert arena.fields(0, "move", "weapon") == (NSIG, weapon)


def test_dropping_costs_once_lies_where_it_fell_and_can_be_taken_after_15_frames(
    arena: Arena,
) -> None:
    arena.put(0, 4.0, RIGHT_GROUND_Y, weapon=HAMMER, side=1)
    arena.play("H")
    assert (arena.of(0, "weapon"), *arena.terms("drop")) == (UNARMED, -1, 0)
    dropped = arena.game._weapons_N4[0, DROPPED_RIGHT]
    assert (dropped["type"], dropped["x"], dropped["y"]) == (HAMMER, 4.0, RIGHT_GROUND_Y)
    frames = 0
    while arena.of(0, "weapon") == UNARMED:
        arena.play("H")
        frames += 1
        assert arena.term("drop") == 0
    assert (frames, arena.of(0, "weapon")) == (15, HAMMER)


@pytest.mark.parametrize(("side", "where"), [(1, DROPPED_RIGHT), (-1, DROPPED_LEFT)])
def test_a_dropped_weapon_stays_250_frames_in_the_place_of_its_side(
    arena: Arena, side: int, where: int
) -> None:
    arena.put(0, 4.0, RIGHT_GROUND_Y, weapon=SPEAR, side=side)
    arena.play("H")
    frames = 0
    while arena.game._weapons_N4[0, where]["type"] == SPEAR:
        assert arena.game._matches_N[0]["weapons_lying"] == 1
        arena.play()
        frames += 1
    assert frames == 250
    assert arena.game._matches_N[0]["weapons_lying"] == 0


@pytest.mark.parametrize("nearer", [0, 1])
def test_of_two_hands_the_nearer_gets_it(arena: Arena, nearer: int) -> None:
    place(arena, RIGHT, SPEAR, 4.0)
    arena.put(nearer, 4.6, RIGHT_GROUND_Y)
    arena.put(1 - nearer, 3.2, RIGHT_GROUND_Y)
    arena.play("H", "H")
    assert (arena.of(nearer, "weapon"), arena.of(1 - nearer, "weapon")) == (SPEAR, UNARMED)


def test_a_knockout_takes_the_weapon_away(arena: Arena) -> None:
    arena.put(0, 0.0, 8.5, grounded=False, weapon=SPEAR)
    arena.play()
    assert arena.of(0, "weapon") == UNARMED
    assert arena.game._matches_N[0]["weapons_lying"] == 0


def test_all_four_places_are_observed_by_both_seats() -> None:
    arena = Arena()
    for where in range(4):
        place(arena, where, 1 + where % 2, 3.0 + where, -1.0 - where)
    arena.play()
    names = arena.game.spec.observation_names
    for view in arena.game.observations_N2O[0]:
        seen = dict(zip(names, view.tolist(), strict=True))
        for whose, where in itertools.product(("own", "opponent"), range(4)):
            slot = [seen[f"{whose} slot{where}_{name}"] for name in ("x", "y", "type")]
            units = np.array([3.0 + where, -1.0 - where, 1 + where % 2])
            assert slot == pytest.approx(units / [14, 8, 3], rel=1e-6)
