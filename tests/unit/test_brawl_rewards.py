"""Each reward term's sign and size, the symmetry of wins and losses, and the presets."""

from __future__ import annotations

import numpy as np
import pytest
from arena import LEFT_GROUND_Y, RIGHT_GROUND_Y, Arena
from numpy.typing import NDArray

from league.games.brawl import rules
from league.games.brawl.game import BrawlGame
from league.games.brawl.rewards import TERMS, annealed_weights
from league.games.brawl.rules import DT
from league.games.brawl.spec import brawl_spec
from league.games.registry import reward_weights


@pytest.fixture
def arena() -> Arena:
    return Arena()


def far(arena: Arena) -> None:
    arena.put(1, -6.0, LEFT_GROUND_Y)


def strike(arena: Arena) -> None:
    """Seat 0 hits seat 1 with a side light."""
    arena.put(1, 4.7, RIGHT_GROUND_Y)
    arena.play("D J")
    while arena.stat("hits") == 0:
        arena.play()


def test_damage_pays_the_striker_and_costs_the_struck(arena: Arena) -> None:
    strike(arena)
    assert arena.terms("damage") == pytest.approx((13 / 140, -13 / 140))
    assert arena.terms("damage_dealt") == (pytest.approx(13 / 140), 0)
    assert arena.terms("damage_taken") == (0, pytest.approx(-13 / 140))


def test_only_the_lower_part_is_dangerous_and_costs(arena: Arena) -> None:
    arena.put(0, 0.0, 4.3, grounded=False)
    arena.play()
    assert arena.term("danger_zone", 0) == pytest.approx(-DT)
    assert arena.term("danger_zone", 1) == 0
    arena.put(0, 0.0, 3.0, grounded=False)
    arena.play()
    assert arena.term("danger_zone", 0) == 0


def test_attack_taunt_idle_and_many_keys_count_seconds(arena: Arena) -> None:
    far(arena)
    arena.play("J", "G", frames=2)
    assert arena.terms("attack_state") == (pytest.approx(2 * DT), 0)
    assert arena.terms("taunt") == (0, pytest.approx(2 * DT))
    arena = Arena()
    arena.play("W A S D", "W A S")
    assert arena.terms("many_keys") == (pytest.approx(DT), 0)
    arena = Arena()
    arena.play("D")
    assert arena.terms("idle") == (0, pytest.approx(DT))


@pytest.mark.parametrize(("keys", "direction"), [("D", 1), ("A", -1)])
@pytest.mark.parametrize(("opponent_x", "side"), [(6.0, 1), (2.5, -1)])
def test_toward_opponent_is_signed(
    arena: Arena, keys: str, direction: int, opponent_x: float, side: int
) -> None:
    arena.put(0, 4.0, RIGHT_GROUND_Y, facing=direction)
    arena.put(1, opponent_x, RIGHT_GROUND_Y)
    arena.play(keys)
    before = arena.of(0, "x")
    arena.play(keys)
    way = arena.of(0, "x") - before
    assert way * direction > 0.2
    assert arena.term("toward_opponent", 0) == pytest.approx(side * way)
    assert arena.term("closing_distance", 0) == pytest.approx(side * way)
    assert arena.term("closing_distance", 1) == arena.term("closing_distance", 0)
    assert arena.term("toward_opponent", 1) == 0
    assert arena.term("toward_middle", 0) == pytest.approx(-way)


def test_a_fall_gives_back_what_the_way_to_the_opponent_paid(arena: Arena) -> None:
    """Else falling again and again would be paid: the pull is the change of a potential."""
    arena.put(0, 0.0, 8.5, grounded=False)
    arena.put(1, 5.0, RIGHT_GROUND_Y)
    total = 0.0
    for _ in range(92):
        arena.play()
        total += arena.term("toward_opponent", 0)
    assert arena.of(0, "x") == pytest.approx(-5.0)
    assert total == pytest.approx(-5.0)


def test_edge_pressure_pays_who_stands_nearer_to_the_middle(arena: Arena) -> None:
    arena.play()
    assert arena.terms("edge_pressure") == pytest.approx((DT * 2.0 / 7.0, -DT * 2.0 / 7.0))


def test_height_costs_squared_distance(arena: Arena) -> None:
    far(arena)
    arena.play()
    assert arena.term("height", 1) == pytest.approx(-DT * LEFT_GROUND_Y**2)
    assert arena.term("height", 1) < arena.term("height", 0) < 0


def test_who_is_knocked_out_goes_on_paying_for_its_place(arena: Arena) -> None:
    arena.put(0, 0.0, 8.5, grounded=False)
    for _ in range(90):
        arena.play()
        assert arena.of(0, "state") == rules.KO
        y = arena.of(0, "y")
        assert arena.term("danger_zone", 0) == pytest.approx(-DT)
        assert arena.term("height", 0) == pytest.approx(-DT * y * y)
        assert arena.term("attack_state", 0) == arena.term("idle", 0) == 0
    arena.play()
    assert arena.term("danger_zone", 0) == 0


@pytest.mark.parametrize("fallen", [0, 1])
def test_a_knockout_is_opposite_for_the_seats_and_no_win_yet(arena: Arena, fallen: int) -> None:
    arena.put(fallen, 0.0, 8.5, grounded=False, stocks=2)
    arena.play()
    assert (arena.term("knockout", fallen), arena.term("knockout", 1 - fallen)) == (-1, 1)
    assert arena.term("win", fallen) == 0
    assert (arena.stat("falls", fallen), arena.stat("knockouts", 1 - fallen)) == (1, 1)


def test_combo_pays_for_hitting_the_stunned(arena: Arena) -> None:
    strike(arena)
    assert arena.term("combo", 0) == 0
    arena = Arena()
    arena.put(1, 4.7, RIGHT_GROUND_Y)
    arena.play("D J")
    while arena.stat("hits") == 0:
        arena.put(1, 4.7, RIGHT_GROUND_Y, state=rules.STUN, stun_left=5)
        arena.play()
    assert arena.terms("combo") == (1, -1)


def weights(preset: str, overrides: dict[str, float] | None = None) -> NDArray[np.float32]:
    return reward_weights(brawl_spec(), preset, overrides or {})


def test_curriculum_turns_from_dense_into_sparse_in_the_course_of_a_run() -> None:
    dense, sparse, win = weights("dense"), weights("sparse"), TERMS.index("win")
    mixed = {
        0: dense,
        200: dense,
        350: 0.75 * dense + 0.25 * sparse,
        500: (dense + sparse) / 2,
        800: sparse,
        1000: sparse,
        5000: sparse,
    }
    for step, wanted in mixed.items():
        found = annealed_weights("curriculum", step, 1000, {})
        assert found.dtype == np.float32
        assert found == pytest.approx(wanted)
        assert found[win] >= 50, "a win's weight is never annealed away"
        assert annealed_weights("curriculum", step, 1000, {"win": 7.0})[win] == 7
    assert np.array_equal(weights("curriculum"), dense)


ANTISYMMETRIC = ("damage", "knockout", "combo", "win", "edge_pressure")
NEVER_POSITIVE = ("damage_taken", "danger_zone", "height", "drop")
NEVER_NEGATIVE = ("damage_dealt", "attack_state", "many_keys", "taunt", "idle", "equip")


def test_every_term_is_paid_and_signs_and_symmetry_hold_in_random_play() -> None:
    game, seen = BrawlGame(64), np.zeros(len(TERMS), bool)
    random = np.random.default_rng(7)
    game.reset(np.arange(64, dtype=np.uint64))
    game.bots_N2[:32, 0] = game.spec.bot_index("weapon_seeker")
    for _ in range(1200):
        game.step((random.random((64, 2, 10)) < 0.4).astype(np.uint8))
        seen |= (game.reward_terms_N2K != 0).any(axis=(0, 1))
        paid = {name: game.reward_terms_N2K[:, :, k] for k, name in enumerate(TERMS)}
        for name in ANTISYMMETRIC:
            assert np.array_equal(paid[name][:, 0], -paid[name][:, 1]), name
        assert np.array_equal(paid["closing_distance"][:, 0], paid["closing_distance"][:, 1])
        assert np.array_equal(paid["damage_dealt"][:, 0], -paid["damage_taken"][:, 1])
        assert np.allclose(paid["damage"], paid["damage_dealt"] + paid["damage_taken"], atol=1e-6)
        assert all((paid[name] <= 0).all() for name in NEVER_POSITIVE)
        assert all((paid[name] >= 0).all() for name in NEVER_NEGATIVE)
    assert seen.all(), [name for name, paid in zip(TERMS, seen, strict=True) if not paid]
