"""The transitive share: known answers, tables with gaps, and what mere chance would show."""

import numpy as np
import pytest
from hypothesis import given, settings
from structure_games import (
    BIASED_RPS,
    CHAIN,
    DISC,
    RPS,
    blotto,
    chances,
    elo,
    expected,
    games,
    played,
)

from league.stats.structure.split import cyclicity, fitted_strengths, replayed, split


@pytest.mark.parametrize(
    ("payoff", "share"),
    [
        (elo([0.0, 0.3, 1.0, 2.0]), 1.0),
        (RPS, 0.0),
        (DISC, 0.0),
        (BIASED_RPS, 0.323),
        (blotto(5, 3), 0.229),
        (CHAIN, 8 / 9),
    ],
    ids=["elo", "rps", "disc", "biased rps", "blotto", "chain"],
)
def test_known_answers(payoff, share):
    assert split(payoff).transitive_share == pytest.approx(share, abs=5e-4)
    assert split(payoff).cyclic_share == pytest.approx(1 - share, abs=5e-4)


def test_nothing_to_split_is_no_share():
    assert np.isnan(split(np.zeros((3, 3))).transitive_share)
    assert np.isnan(split(np.zeros((1, 1))).cyclic_share)


@settings(max_examples=60, deadline=None)
@given(games())
def test_both_parts_are_antisymmetric_and_orthogonal(payoff):
    found = split(payoff)
    assert np.allclose(found.transitive_NN + found.cyclic_NN, payoff)
    assert np.allclose(found.transitive_NN, -found.transitive_NN.T)
    assert np.allclose(found.cyclic_NN.sum(axis=1), 0), (
        "nothing of a cycle makes anybody better on the whole"
    )
    assert np.sum(found.transitive_NN * found.cyclic_NN) == pytest.approx(0, abs=1e-9)
    assert np.allclose(found.strength_N, payoff.mean(axis=1), atol=1e-9)


def test_unknown_pairs_have_no_say():
    """A line of which only neighbours met is a line; whatever is written where nobody met."""
    payoff = elo([0.0, 1.0, 5.0, 5.5])
    known = np.eye(4, k=1, dtype=bool) | np.eye(4, k=-1, dtype=bool)
    payoff[~known] = 0.0
    found = split(payoff, known)
    assert found.transitive_share == pytest.approx(1.0)
    assert np.diff(found.strength_N) == pytest.approx([1.0, 4.0, 0.5])
    assert split(payoff).transitive_share < 0.9, "taken as even they look cyclic"


def test_players_in_two_worlds_are_split_apart():
    payoff = np.zeros((6, 6))
    payoff[:3, :3], payoff[3:, 3:] = RPS, elo([0.0, 1.0, 2.0])
    found = split(payoff, payoff != 0)
    assert found.strength_N == pytest.approx([0, 0, 0, -1, 0, 1])


def test_a_line_shows_no_more_cycle_than_chance():
    """Under the null the p-values are spread evenly, or large; their mean of 24 leagues has σ
    .06.
    """
    rng = np.random.default_rng(8)
    found = [
        cyclicity(played(chances(elo(2 * rng.normal(size=7))), 16, rng, drawn=0.2), 19, rng).p_value
        for _ in range(24)
    ]
    assert np.mean(found) > 0.35
    assert np.mean(np.array(found) <= 0.05) <= 0.17


def test_a_cycle_is_told_from_chance():
    rng = np.random.default_rng(3)
    found = cyclicity(played(chances(1.5 * RPS), 60, rng), 39, rng)
    assert found.share > 0.8
    assert found.by_chance < found.share
    assert found.p_value == 1 / 40


def test_even_players_have_a_share_of_noise_alone():
    """All shares of nothing are possible; the p-value knows."""
    rng = np.random.default_rng(12)
    found = cyclicity(played(np.full((6, 6), 0.5), 20, rng), 39, rng)
    assert found.share > 0.3
    assert found.p_value > 0.05


def test_nothing_played_is_told_as_nothing():
    found = cyclicity(expected(np.full((3, 3), 0.5), 10), 5, np.random.default_rng(0))
    assert np.isnan([found.share, found.by_chance, found.p_value]).all()


def test_strengths_are_those_of_the_counts():
    strength = np.array([-1.0, 0.0, 0.4, 0.6])
    found = fitted_strengths(expected(chances(elo(strength)), 10_000))
    assert found == pytest.approx(strength, abs=1e-3)
    beaten = expected(np.array([[0.5, 1.0], [0.0, 0.5]]), 5)
    assert np.isfinite(fitted_strengths(beaten)).all()


def test_matches_are_played_again_as_often_and_draw_as_often():
    rng = np.random.default_rng(1)
    table = played(chances(elo([0.0, 1.0, 2.0, -1.0])), 500, rng, drawn=0.5)
    again = replayed(table, table.chance_NN, rng)
    assert (again.games_NN == table.games_NN).all()
    assert again.draws_NN.sum() == pytest.approx(table.draws_NN.sum(), rel=0.1)
    assert again.wins_NN == pytest.approx(table.wins_NN, abs=100)
    assert (again.wins_NN != table.wins_NN).any()
