"""Each reward term's sign and size, the symmetry of wins and losses, and the presets."""

from __future__ import annotations

import numpy as np
import pytest
from arena import LEFT_GROUND_Y, RIGHT_GROUND_Y, Arena
from hypothesis import given
from hypothesis import strategies as st

from league.errors import ConfigError
from league.games.brawl import rules
from league.games.brawl.game import BrawlGame
from league.games.brawl.rewards import ANNEALED, PRESETS, TERMS, annealed_weights, reward_weights
from league.games.brawl.rules import DT


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
    assert arena.term("damage", 0) == pytest.approx(13 / 140) == -arena.term("damage", 1)
    assert (arena.term("damage_dealt", 0), arena.term("damage_dealt", 1)) == (
        pytest.approx(13 / 140),
        0,
    )
    assert (arena.term("damage_taken", 0), arena.term("damage_taken", 1)) == (
        0,
        pytest.approx(-13 / 140),
    )


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
    assert (arena.term("attack_state", 0), arena.term("attack_state", 1)) == (
        pytest.approx(2 * DT),
        0,
    )
    assert (arena.term("taunt", 0), arena.term("taunt", 1)) == (0, pytest.approx(2 * DT))
    arena = Arena()
    arena.play("W A S D", "W A S")
    assert (arena.term("many_keys", 0), arena.term("many_keys", 1)) == (pytest.approx(DT), 0)
    arena = Arena()
    arena.play("D")
    assert (arena.term("idle", 0), arena.term("idle", 1)) == (0, pytest.approx(DT))


@pytest.mark.parametrize(("keys", "direction"), [("D", 1), ("A", -1)])
@pytest.mark.parametrize(("opponent_x", "side"), [(6.0, 1), (2.5, -1)])
def test_toward_opponent_is_signed(
    arena: Arena, keys: str, direction: int, opponent_x: float, side: int
) -> None:
    arena.put(0, 4.0, RIGHT_GROUND_Y, facing=direction)
    arena.put(1, opponent_x, RIGHT_GROUND_Y)
    arena.play(keys)
    assert arena.term("toward_opponent", 0) == pytest.approx(side * direction * 6.75 * DT)
    assert arena.term("closing_distance", 0) == pytest.approx(side * direction * 6.75 * DT)
    assert arena.term("closing_distance", 1) == arena.term("closing_distance", 0)
    assert arena.term("toward_opponent", 1) == 0
    assert arena.term("toward_middle", 0) == pytest.approx(-direction * 6.75 * DT)


def test_passing_a_knocked_out_player_pays_nothing(arena: Arena) -> None:
    arena.put(1, 14.5, 0.0, grounded=False)
    arena.put(0, 4.0, RIGHT_GROUND_Y)
    for _ in range(91):
        arena.play("D" if arena.of(0, "x") < 5 else "")
        assert arena.term("toward_opponent", 0) == arena.term("closing_distance", 0) == 0
        assert arena.term("toward_middle", 1) == 0


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
    assert (
        arena.term("edge_pressure", 0)
        == pytest.approx(DT * 2.0 / 7.0)
        == -arena.term("edge_pressure", 1)
    )


def test_height_costs_squared_distance(arena: Arena) -> None:
    far(arena)
    arena.play()
    assert arena.term("height", 1) == pytest.approx(-DT * LEFT_GROUND_Y**2)
    assert arena.term("height", 1) < arena.term("height", 0) < 0


@pytest.mark.parametrize("fallen", [0, 1])
def test_knockout_and_win_are_opposite_for_the_seats(arena: Arena, fallen: int) -> None:
    arena.put(fallen, 0.0, 8.5, grounded=False, stocks=2)
    arena.play()
    assert (arena.term("knockout", fallen), arena.term("knockout", 1 - fallen)) == (-1, 1)
    assert arena.term("win", fallen) == 0
    assert (arena.stat("falls", fallen), arena.stat("knockouts", 1 - fallen)) == (1, 1)
    arena = Arena()
    arena.put(fallen, 0.0, 8.5, grounded=False, stocks=1)
    arena.play(frames=3)
    assert (arena.term("win", fallen), arena.term("win", 1 - fallen)) == (-1, 1)


def test_a_knocked_out_player_is_in_no_danger(arena: Arena) -> None:
    arena.put(0, 0.0, 8.5, grounded=False)
    arena.play(frames=5)
    assert arena.term("danger_zone", 0) == 0
    assert arena.term("knockout", 0) == -1


def test_combo_pays_for_hitting_the_stunned(arena: Arena) -> None:
    strike(arena)
    assert arena.term("combo", 0) == 0
    arena = Arena()
    arena.put(1, 4.7, RIGHT_GROUND_Y)
    arena.play("D J")
    while arena.stat("hits") == 0:
        arena.put(1, 4.7, RIGHT_GROUND_Y, state=rules.STUN, stun_left=5)
        arena.play()
    assert (arena.term("combo", 0), arena.term("combo", 1)) == (1, -1)


def test_every_term_is_zero_when_nothing_happens_to_it(arena: Arena) -> None:
    far(arena)
    arena.play()
    silent = set(TERMS) - {"edge_pressure", "height", "idle"}
    assert all(arena.term(name, seat) == 0 for name in silent for seat in (0, 1))


def test_presets_pay_wins_and_cost_losses_without_a_cut() -> None:
    win, knockout = TERMS.index("win"), TERMS.index("knockout")
    assert (reward_weights("dense")[win], reward_weights("sparse")[win]) == (50, 100)
    assert (reward_weights("dense")[knockout], reward_weights("sparse")[knockout]) == (8, 50)
    assert reward_weights("sparse")[TERMS.index("damage")] == 140  # one a point
    assert reward_weights("dense")[TERMS.index("danger_zone")] == 0.5
    assert reward_weights("dense")[TERMS.index("attack_state")] == np.float32(-0.04)
    assert reward_weights("laptop")[TERMS.index("toward_opponent")] == np.float32(0.6)
    for name in PRESETS:
        assert reward_weights(name).dtype == np.float32
        assert reward_weights(name)[win] > 0


def test_weights_can_be_overridden_and_mistakes_are_named() -> None:
    assert reward_weights("dense", {"win": 3.0})[TERMS.index("win")] == 3
    assert reward_weights("dense", {"win": 3.0})[TERMS.index("knockout")] == 8
    with pytest.raises(ConfigError, match="no reward preset 'dens'"):
        reward_weights("dens")
    with pytest.raises(ConfigError, match="no reward term 'wins'"):
        reward_weights("dense", {"wins": 1.0})
    with pytest.raises(ConfigError, match="finite"):
        reward_weights("dense", {"win": float("nan")})


def test_curriculum_turns_from_dense_into_sparse_in_the_course_of_a_run() -> None:
    dense, sparse = reward_weights("dense"), reward_weights("sparse")
    at = [
        annealed_weights("curriculum", step, 1000) for step in (0, 200, 350, 500, 800, 1000, 5000)
    ]
    assert np.array_equal(at[0], dense)
    assert np.array_equal(at[1], dense)
    assert at[2] == pytest.approx(0.75 * dense + 0.25 * sparse)
    assert at[3] == pytest.approx((dense + sparse) / 2)
    for weights in at[4:]:
        assert np.array_equal(weights, sparse)
    assert all(weights.dtype == np.float32 for weights in at)
    assert np.array_equal(reward_weights("curriculum"), dense)


@given(st.integers(1, 10**7), st.floats(0, 1), st.floats(0, 1))
def test_annealed_weights_move_steadily_and_stay_between_both_ends(
    steps: int, one: float, other: float
) -> None:
    dense, sparse = reward_weights("dense"), reward_weights("sparse")
    early, late = sorted((int(one * steps), int(other * steps)))
    shares = [ANNEALED["curriculum"].share(step, steps) for step in (early, late)]
    assert 0.0 <= shares[0] <= shares[1] <= 1.0
    weights = annealed_weights("curriculum", late, steps)
    slack = 1e-4
    assert (weights >= np.minimum(dense, sparse) - slack).all()
    assert (weights <= np.maximum(dense, sparse) + slack).all()


def test_a_wins_weight_is_never_annealed_away_and_other_presets_stay_as_they_are() -> None:
    win = TERMS.index("win")
    for step in range(0, 1001, 50):
        assert annealed_weights("curriculum", step, 1000)[win] >= 50
        assert annealed_weights("curriculum", step, 1000, {"win": 7.0})[win] == 7
        assert np.array_equal(annealed_weights("laptop", step, 1000), reward_weights("laptop"))
    with pytest.raises(ConfigError, match="no reward preset 'no'"):
        annealed_weights("no", 0, 1)


def test_every_term_is_paid_in_play_and_drops_and_arms_are_too(arena: Arena) -> None:
    """No term is named and never written: each is non-zero somewhere in random play."""
    game = BrawlGame(128)
    random = np.random.default_rng(6)
    game.reset(np.arange(128, dtype=np.uint64))
    seen = np.zeros(len(TERMS), bool)
    for _ in range(1500):
        game.step((random.random((128, 2, 10)) < 0.4).astype(np.uint8))
        seen |= (game.reward_terms_N2K != 0).any(axis=(0, 1))
    assert seen.all(), [name for name, paid in zip(TERMS, seen, strict=True) if not paid]


ANTISYMMETRIC = ("damage", "knockout", "combo", "win", "edge_pressure")
NEVER_POSITIVE = ("damage_taken", "danger_zone", "height", "drop")
NEVER_NEGATIVE = ("damage_dealt", "attack_state", "many_keys", "taunt", "idle", "equip")


def test_signs_and_symmetry_of_the_terms_hold_in_random_play() -> None:
    game = BrawlGame(64)
    random = np.random.default_rng(7)
    game.reset(np.arange(64, dtype=np.uint64))
    game.bots_N2[:32, 0] = game.spec.bot_index("weapon_seeker")
    for _ in range(1200):
        game.step((random.random((64, 2, 10)) < 0.4).astype(np.uint8))
        paid = {name: game.reward_terms_N2K[:, :, k] for k, name in enumerate(TERMS)}
        for name in ANTISYMMETRIC:
            assert np.array_equal(paid[name][:, 0], -paid[name][:, 1]), name
        assert np.array_equal(paid["closing_distance"][:, 0], paid["closing_distance"][:, 1])
        assert np.array_equal(paid["damage_dealt"][:, 0], -paid["damage_taken"][:, 1])
        assert np.allclose(paid["damage"], paid["damage_dealt"] + paid["damage_taken"], atol=1e-6)
        assert all((paid[name] <= 0).all() for name in NEVER_POSITIVE)
        assert all((paid[name] >= 0).all() for name in NEVER_NEGATIVE)


def played_returns(preset: str, one: str, other: str, matches: int = 24):  # type: ignore[no-untyped-def]
    """Weighted sum of each term over each match [N, 2, K], and the outcomes of seat 0."""
    game = BrawlGame(matches)
    game.bots_N2[:] = game.spec.bot_index(one), game.spec.bot_index(other)
    game.reset(np.arange(matches, dtype=np.uint64))
    sums = np.zeros_like(game.reward_terms_N2K, dtype=np.float64)
    outcomes = np.full(matches, np.nan)
    idle = np.zeros((matches, 2, 10), np.uint8)
    for _ in range(game.spec.max_frames):
        game.step(idle)
        running = np.isnan(outcomes)
        sums[running] += game.reward_terms_N2K[running]
        ended = running & game.ended_N
        outcomes[ended] = game.outcomes_N[ended]
    return sums * reward_weights(preset), outcomes


@pytest.mark.parametrize("preset", ["dense", "sparse", "curriculum", "duel", "laptop"])
@pytest.mark.parametrize(
    "pair", [("based", "constant"), ("weapon_seeker", "random"), ("aerial", "based")]
)
def test_who_wins_earns_more_than_who_loses(preset: str, pair: tuple[str, str]) -> None:
    """A win bonus that paid for losses too, or shaping that outweighs it, would turn this
    around.
    """
    sums, outcomes = played_returns(preset, *pair)
    decided = outcomes != 0.5
    returns = sums.sum(-1)[decided]
    winner = (outcomes[decided] == 0.0).astype(int)
    here = np.arange(decided.sum())
    assert decided.sum() >= 12
    earns_more = returns[here, winner] > returns[here, 1 - winner]
    assert earns_more.mean() >= (1.0 if preset in ("dense", "curriculum") else 0.6)
    assert returns[here, winner].mean() > 0 > returns[here, 1 - winner].mean()


@pytest.mark.parametrize("preset", ["dense", "sparse"])
def test_shaping_is_not_most_of_the_return(preset: str) -> None:
    """In public runs dense shaping made up 92 % of the return, with 0 % wins."""
    sums, _ = played_returns(preset, "based", "constant")
    sizes = dict(zip(TERMS, np.abs(sums).sum(axis=(0, 1)), strict=True))
    events = sum(sizes[name] for name in ("win", "knockout", "combo", "equip", "drop", "damage"))
    assert events > 0.95 * sum(sizes.values())


def test_a_win_of_100_arrives_as_100() -> None:
    """A clip of rewards at 10 once cut it."""
    sums, outcomes = played_returns("sparse", "based", "constant", 4)
    assert (outcomes == 1.0).all()
    assert sums[:, 0, TERMS.index("win")].tolist() == [100.0] * 4
    assert sums[:, 1, TERMS.index("win")].tolist() == [-100.0] * 4
    assert (sums.sum(-1)[:, 0] > 100).all()
