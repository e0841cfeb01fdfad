"""Nash averaging and α-rank: known answers, properties on any game, sizes of a league."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from structure_games import BIASED_RPS, CHAIN, DISC, RPS, elo, games

from league.errors import InvalidInput
from league.stats.structure.equilibria import (
    alpha_rank,
    nash_averaging,
    relative_performance,
)

THIRD, SIXTH = 1 / 3, 1 / 6


@pytest.mark.parametrize(
    ("payoff", "mass", "score"),
    [
        (RPS, (THIRD, THIRD, THIRD), (0, 0, 0)),
        (CHAIN, (0, 0, 1), (-1, -1, 0)),
        (BIASED_RPS, (1 / 16, 10 / 16, 5 / 16), (0, 0, 0)),
        (DISC, (SIXTH,) * 6, (0,) * 6),
        (np.zeros((4, 4)), (0.25,) * 4, (0,) * 4),
        (np.zeros((1, 1)), (1,), (0,)),
        (elo([3.0, 1.0]), (1, 0), (0, -2)),
    ],
    ids=["rps", "chain", "biased rps", "disc", "all even", "alone", "two"],
)
def test_known_answers(payoff, mass, score):
    found = nash_averaging(payoff)
    assert found.mass_N == pytest.approx(np.array(mass), abs=1e-9)
    assert found.score_N == pytest.approx(np.array(score), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(games())
def test_it_is_an_equilibrium(payoff):
    found = nash_averaging(payoff)
    assert found.mass_N.sum() == pytest.approx(1, abs=1e-12)
    assert found.mass_N.min() >= 0
    assert found.score_N.max() <= 1e-7
    assert np.allclose(found.score_N, payoff @ found.mass_N)


@pytest.mark.parametrize("least", [-3, -9, -12, -300])
def test_payoffs_of_all_sizes_have_an_equilibrium(least):
    """Also below the precision of linear programs: draws from the posterior of a league in which
    nearly all pairs drew all their games are such.
    """
    rng = np.random.default_rng(-least)
    for count in rng.integers(2, 16, 30):
        size = 10.0 ** rng.uniform(least, 0, (count, count))
        payoff = np.triu(rng.choice([-1.0, 0.0, 1.0], (count, count)) * size, 1)
        payoff -= payoff.T
        found = nash_averaging(payoff)
        assert found.mass_N.sum() == pytest.approx(1, abs=1e-12)
        assert found.mass_N.min() >= 0
        assert found.score_N.max() <= 1e-6 * np.abs(payoff).max()


@settings(max_examples=40, deadline=None)
@given(games())
def test_no_other_equilibrium_has_more_entropy_and_none_a_player_that_it_lacks(payoff):
    """By two linear programs over all equilibria: entropy is concave, so its slope at the
    largest leads nowhere up. Copies are one player here.
    """
    _, single = np.unique(payoff, axis=0, return_index=True)
    payoff = payoff[np.ix_(single, single)]
    mass = nash_averaging(payoff).mass_N
    slope = np.log(np.maximum(mass, 1e-9))

    def least(costs):
        count = len(payoff)
        return linprog(
            costs,
            A_ub=payoff,
            b_ub=np.zeros(count),
            A_eq=np.ones((1, count)),
            b_eq=[1.0],
            method="highs",
        ).fun

    lacking = mass < 1e-9
    assert least(-lacking.astype(float)) == pytest.approx(0, abs=1e-6)
    assert least(slope) >= mass @ slope - 1e-5


@settings(max_examples=40, deadline=None)
@given(games(), st.integers(0, 8), st.integers(1, 3))
def test_copies_share_the_mass_and_change_nothing_else(payoff, which, copies):
    which %= len(payoff)
    rows = [*range(len(payoff)), *[which] * copies]
    alone, together = nash_averaging(payoff), nash_averaging(payoff[np.ix_(rows, rows)])
    assert np.allclose(together.score_N, alone.score_N[rows], atol=1e-8)
    alike = np.flatnonzero((payoff == payoff[which]).all(axis=1))
    others = np.setdiff1d(np.arange(len(payoff)), alike)
    assert np.allclose(together.mass_N[others], alone.mass_N[others], atol=1e-8)
    everybody = [*alike, *range(len(payoff), len(rows))]
    assert np.allclose(
        together.mass_N[everybody], alone.mass_N[alike].sum() / len(everybody), atol=1e-8
    )


@settings(max_examples=40, deadline=None)
@given(games(), st.randoms(use_true_random=False))
def test_the_order_of_players_does_not_matter(payoff, random):
    order = list(range(len(payoff)))
    random.shuffle(order)
    permuted = payoff[np.ix_(order, order)]
    found, shuffled = nash_averaging(payoff), nash_averaging(permuted)
    assert np.allclose(shuffled.mass_N, found.mass_N[order], atol=1e-6)
    assert np.allclose(alpha_rank(permuted), alpha_rank(payoff)[order], atol=1e-9)


@pytest.mark.parametrize(
    "payoff",
    [
        np.zeros((0, 0)),
        np.zeros((2, 3)),
        np.array([[0, np.inf], [-np.inf, 0]]),
        np.ones((2, 2)),
    ],
    ids=["empty", "not square", "not finite", "not antisymmetric"],
)
def test_what_is_no_such_game_is_refused(payoff):
    for solve in (nash_averaging, alpha_rank):
        with pytest.raises(InvalidInput):
            solve(payoff)


def test_relative_performance_of_groups():
    assert relative_performance(RPS[:1, 1:2]) == -1
    assert relative_performance(RPS) == pytest.approx(0, abs=1e-9)
    assert relative_performance(RPS[[2]]) == -1
    assert relative_performance(RPS[:2]) == pytest.approx(-relative_performance(RPS[:, :2]))
    # Rock and paper against all three: p on paper gets min(p, 1 − p, …): best is 2/3 on paper,
    # −1/3.
    assert relative_performance(RPS[:2]) == pytest.approx(-1 / 3)
    with pytest.raises(InvalidInput, match="0, 3"):
        relative_performance(np.zeros((0, 3)))


def test_alpha_rank_asks_which_player_wins_and_not_by_how_much():
    assert alpha_rank(BIASED_RPS) == pytest.approx(np.full(3, 1 / 3), abs=1e-12)
    assert alpha_rank(CHAIN) == pytest.approx(np.array([0, 0, 1]))


def test_alpha_rank_agrees_with_open_spiel():
    alpharank = pytest.importorskip("open_spiel.python.egt.alpharank")
    rng = np.random.default_rng(2)
    for count in (2, 3, 5, 8):
        payoff = rng.choice([-1.0, 1.0], size=(count, count))
        payoff = np.triu(payoff, 1) - np.triu(payoff, 1).T
        _, _, theirs, _, _ = alpharank.compute([payoff], m=20, alpha=3.0)
        assert alpha_rank(payoff, population=20) == pytest.approx(theirs, abs=1e-4)
