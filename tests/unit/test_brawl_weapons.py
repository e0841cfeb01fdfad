"""Spawners, picking up, dropping, and how weapons are observed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from arena import LEFT_GROUND_Y, RIGHT_GROUND_Y, Arena

from league.games.brawl.game import BrawlGame
from league.games.brawl.moves import HAMMER, NSIG, SPEAR, UNARMED
from league.games.brawl.stage import RULES
from league.games.brawl.weapons import NEVER

RIGHT, LEFT, OLDER, NEWER = range(4)


def place(arena: Arena, where: int, weapon: int, x: float, y: float = 0.4) -> None:
    """Lays a weapon that stays for long and can be taken at once."""
    slot, match = arena.game._weapons_NP[0, where], arena.game._matches_N[0]
    match["weapons_lying"] += 1 if slot["type"] == UNARMED else 0
    slot["type"], slot["x"], slot["y"], slot["ready"] = weapon, x, y, 0
    slot["shown_x"], slot["shown_y"], slot["leaves"], slot["comes"] = x, y, NEVER, NEVER


@pytest.fixture
def arena() -> Arena:
    """No weapon comes; seat 1 is far away."""
    made = Arena()
    made.game._weapons_NP["comes"] = NEVER
    made.put(1, -6.0, LEFT_GROUND_Y)
    return made


@pytest.fixture(scope="module")
def appearances() -> list[list[tuple[int, int, int, int]]]:
    """Of each spawner: (match, frame, type, frames it stayed) of all that came in 300 matches."""
    game = BrawlGame(300)
    game.reset(np.arange(300, dtype=np.uint64))
    rows = [np.zeros((300, 2), int)]
    for _ in range(1, 2600):
        game.step(game.idle_actions())
        rows.append(game._weapons_NP[:, :2]["type"].copy())
    types_TN2 = np.stack(rows)
    found: list[list[tuple[int, int, int, int]]] = [[], []]
    for n, side in np.ndindex(300, 2):
        changes = np.flatnonzero(np.diff(types_TN2[:, n, side])) + 1
        for at, gone in changes[: len(changes) // 2 * 2].reshape(-1, 2):  # it comes and goes
            found[side].append((n, at, types_TN2[at, n, side], gone - at))
    return found


@pytest.mark.parametrize("side", [RIGHT, LEFT])
def test_a_weapon_stays_351_frames_and_half_are_hammers(appearances: list, side: int) -> None:
    assert {stayed for *_, stayed in appearances[side]} == {351}
    kinds = np.array([kind for *_, kind, _ in appearances[side]])
    assert set(kinds) == {SPEAR, HAMMER}
    assert 0.45 < (kinds == HAMMER).mean() < 0.55


@pytest.mark.parametrize("side", [RIGHT, LEFT])
def test_the_first_comes_within_350_frames_and_the_cooldown_counts_from_its_coming(
    appearances: list, side: int
) -> None:
    by_match: dict[int, list[int]] = {}
    for n, at, *_ in appearances[side]:
        by_match.setdefault(n, []).append(at)
    firsts = np.array([frames[0] for frames in by_match.values()])
    assert 0 < firsts.min() < 15
    assert 335 < firsts.max() <= 350
    apart = np.array([b - a for frames in by_match.values() for a, b in itertools.pairwise(frames)])
    assert apart.min() == 352, "a cooldown that is over waits for its weapon to leave"
    assert 950 < apart.max() <= 1050
    assert abs(apart.mean() - 590) < 30


def test_a_weapon_can_be_taken_37_frames_after_it_came(arena: Arena) -> None:
    weapons = arena.game._weapons_NP[0]
    weapons["comes"][RIGHT] = arena.game.frames_N[0] + 1
    arena.play()
    assert weapons["type"][RIGHT] != UNARMED
    arena.put(0, float(weapons["x"][RIGHT]), RIGHT_GROUND_Y)
    frames = 0
    while arena.of(0, "weapon") == UNARMED:
        arena.play("H")
        frames += 1
    assert frames == 37
    assert arena.stat("pickups") == 1


def test_a_spawner_whose_weapon_is_taken_waits_from_then_on(arena: Arena) -> None:
    waits = []
    for seed in range(40):
        arena.game.reset(np.array([seed], np.uint64))
        arena.game._weapons_NP["comes"] = NEVER
        arena.put(0, 4.0, RIGHT_GROUND_Y)
        place(arena, RIGHT, SPEAR, 4.0)
        arena.play("H")
        arena.play("H")
        waits.append(arena.game._weapons_NP[0, RIGHT]["comes"] - arena.game.frames_N[0])
    assert 249 <= min(waits) < 400
    assert 800 < max(waits) <= 1050


def test_no_weapon_comes_while_a_dropped_one_lies(arena: Arena) -> None:
    arena.put(0, 4.0, RIGHT_GROUND_Y, weapon=HAMMER)
    arena.play("H")
    arena.game._weapons_NP["comes"][0, RIGHT] = arena.game.frames_N[0] + 1
    arena.play(frames=249)
    types = arena.game._weapons_NP[0]["type"]
    assert types.tolist() == [UNARMED, UNARMED, HAMMER] + [UNARMED] * 3
    arena.play()
    assert not types.any(), "the frame in which it leaves counts as well"
    arena.play()
    assert types[RIGHT] != UNARMED


def test_a_spawner_waits_for_the_frame_in_which_the_dropped_weapon_is_taken(arena: Arena) -> None:
    arena.put(0, 4.0, RIGHT_GROUND_Y, weapon=HAMMER)
    arena.play("H")
    arena.game._weapons_NP["comes"][0, RIGHT] = arena.game.frames_N[0] + 1
    arena.play(frames=20)
    arena.play("H")
    assert arena.of(0, "weapon") == HAMMER
    types = arena.game._weapons_NP[0]["type"]
    assert not types.any()
    arena.play()
    assert types[RIGHT] != UNARMED


def test_a_dropped_weapon_that_takes_the_first_place_leaves_its_own_empty(arena: Arena) -> None:
    for x, weapon in ((3.0, SPEAR), (4.0, HAMMER)):
        arena.put(0, x, RIGHT_GROUND_Y, weapon=weapon)
        arena.play("H")
    arena.play(frames=249)
    seen = arena.seen(1)
    assert seen["own slot2_type"] == 1.0
    assert [seen[f"own slot3_{name}"] for name in ("x", "y", "type")] == [0, 0, 0]


def test_the_view_shows_a_weapon_below_the_stage_at_7(arena: Arena) -> None:
    arena.put(0, 0.0, 7.5, grounded=False, weapon=SPEAR)
    arena.play("H")
    assert arena.seen(0)["own slot2_y"] == 7.0 / 8.0


@pytest.mark.parametrize(("weapon", "worth"), [(SPEAR, 1.0), (HAMMER, 2.0)])
def test_taking_arms_pays_once_and_empties_the_place(
    arena: Arena, weapon: int, worth: float
) -> None:
    place(arena, RIGHT, weapon, 4.0)
    arena.play()
    assert arena.of(0, "weapon") == UNARMED
    arena.play("H")
    assert (arena.of(0, "weapon"), *arena.terms("equip")) == (weapon, worth, 0)
    assert arena.game._weapons_NP[0, RIGHT]["type"] == UNARMED
    arena.play("H", frames=40)
    assert (arena.of(0, "weapon"), arena.term("equip"), arena.stat("pickups")) == (weapon, 0, 1)
    arena.play("K")
    assert arena.fields(0, "move", "weapon") == (NSIG, weapon)


@pytest.mark.parametrize("facing", [1, -1])
def test_dropping_costs_once_and_lays_the_weapon_ahead_and_below(arena: Arena, facing: int) -> None:
    arena.put(0, 4.0, RIGHT_GROUND_Y, weapon=HAMMER, facing=facing)
    arena.play("H")
    assert (arena.of(0, "weapon"), *arena.terms("drop")) == (UNARMED, -1, 0)
    dropped, (x, y) = arena.game._weapons_NP[0, OLDER], arena.fields(0, "x", "y")
    assert dropped["type"] == HAMMER
    assert (dropped["x"], dropped["y"]) == pytest.approx((x + 0.1 * facing, y + 0.27))
    arena.play("H")
    assert arena.term("drop") == 0


@pytest.mark.parametrize(("frames", "weapon"), [(14, UNARMED), (15, HAMMER)])
def test_a_fresh_press_takes_a_dropped_weapon_15_frames_later(
    arena: Arena, frames: int, weapon: int
) -> None:
    arena.put(0, 4.0, RIGHT_GROUND_Y, weapon=HAMMER)
    arena.play("H")
    arena.play(frames=frames - 1)
    arena.play("H")
    assert arena.of(0, "weapon") == weapon


def test_a_held_key_does_not_take_a_dropped_weapon(arena: Arena) -> None:
    arena.put(0, 4.0, RIGHT_GROUND_Y, weapon=HAMMER)
    arena.play("H", frames=60)
    assert arena.of(0, "weapon") == UNARMED


def test_a_dropped_weapon_falls_to_the_ground_and_stays_250_frames(arena: Arena) -> None:
    arena.put(0, 4.0, -3.0, grounded=False, weapon=SPEAR)
    arena.play("H")
    dropped, frames, shown = arena.game._weapons_NP[0, OLDER], 0, arena.seen(0)["own slot2_y"]
    while dropped["type"] == SPEAR:
        assert arena.game._matches_N[0]["weapons_lying"] == 1
        assert arena.seen(0)["own slot2_y"] == shown, "it is seen where it was dropped"
        height = dropped["y"]
        arena.play()
        frames += 1
    assert frames == 250
    assert height == pytest.approx(0.85 - 0.41, abs=0.11)
    assert arena.game._matches_N[0]["weapons_lying"] == 0


def test_four_dropped_weapons_lie_and_the_newer_ones_move_up(arena: Arena) -> None:
    for x, weapon in ((2.6, SPEAR), (4.0, HAMMER), (5.2, SPEAR), (6.6, HAMMER)):
        arena.put(0, x, RIGHT_GROUND_Y, weapon=weapon)
        arena.play("H")

    def lying() -> list[tuple[str, float]]:
        shown = arena.game.frame(0)["weapons"]
        return [(weapon["type"], round(weapon["x"], 1)) for weapon in shown if weapon["dropped"]]

    assert lying() == [("spear", 2.7), ("hammer", 4.1), ("spear", 5.3), ("hammer", 6.7)]
    arena.put(1, 4.1, RIGHT_GROUND_Y)
    arena.play()
    arena.play("", "H")
    assert arena.of(1, "weapon") == HAMMER
    assert lying() == [("spear", 2.7), ("spear", 5.3), ("hammer", 6.7)]
    assert [arena.seen(0)[f"own slot{slot}_type"] for slot in (2, 3)] == pytest.approx([2 / 3] * 2)
    while len(lying()) == 3:
        arena.play()
    assert lying() == [("spear", 5.3), ("hammer", 6.7)]
    assert [arena.seen(0)[f"own slot{slot}_type"] for slot in (2, 3)] == pytest.approx([2 / 3, 1])


def test_two_hands_take_two_dropped_weapons_in_one_frame(arena: Arena) -> None:
    for x, weapon in ((3.0, SPEAR), (6.0, HAMMER)):
        arena.put(0, x, RIGHT_GROUND_Y, weapon=weapon)
        arena.play("H")
    arena.put(0, 3.0, RIGHT_GROUND_Y)
    arena.put(1, 6.0, RIGHT_GROUND_Y)
    arena.play(frames=20)
    arena.play("H", "H")
    assert (arena.of(0, "weapon"), arena.of(1, "weapon")) == (SPEAR, HAMMER)


@pytest.mark.parametrize("nearer", [0, 1])
@pytest.mark.parametrize("by", RULES)
def test_of_two_hands_seat_0_gets_it_and_by_the_fair_rules_the_nearer(nearer: int, by: str) -> None:
    arena = Arena(rules=by)
    arena.put(nearer, 4.6, RIGHT_GROUND_Y)
    arena.put(1 - nearer, 3.2, RIGHT_GROUND_Y)
    place(arena, RIGHT, SPEAR, 4.0)
    arena.play("H", "H")
    gets = nearer if by == "fair" else 0
    assert (arena.of(gets, "weapon"), arena.of(1 - gets, "weapon")) == (SPEAR, UNARMED)


def test_two_weapons_dropped_in_one_frame_stay_in_their_hands_by_the_fair_rules() -> None:
    for by in RULES:
        arena = Arena(rules=by)
        arena.put(0, 4.0, RIGHT_GROUND_Y, weapon=SPEAR)
        arena.put(1, 6.0, RIGHT_GROUND_Y, weapon=HAMMER)
        arena.play("H", "H")
        lying = arena.game._weapons_NP[0]["type"].tolist()[:4]
        assert lying == ([0, 0, SPEAR, HAMMER] if by == "ai2" else [0, 0, 0, 0])


def test_all_four_places_are_observed_by_both_seats_and_spawners_hide_what_they_have(
    arena: Arena,
) -> None:
    for where in range(4):
        place(arena, where, 1 + where % 2, 3.0 + where, -1.0 - where)
    arena.play(frames=3)
    types = (1, 1, 2, 3)
    for seat, whose, where in itertools.product((0, 1), ("own", "opponent"), range(4)):
        seen = arena.seen(seat)
        slot = [seen[f"{whose} slot{where}_{name}"] for name in ("x", "y", "type")]
        units = np.array([3.0 + where, -1.0 - where, types[where]])
        assert slot == pytest.approx(units / [14, 8, 3], rel=1e-6)
