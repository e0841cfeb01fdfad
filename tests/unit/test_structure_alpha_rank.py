"""α-rank: known answers, OpenSpiel's as a cross-check, and no α too large."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structure_games import BIASED_RPS, CHAIN, RPS, elo, games

from league.errors import InvalidInput
from league.stats.structure.alpha_rank import alpha_rank, alpha_rank_limit, sweep


def test_rock_paper_scissors_is_even_at_every_alpha():
    for alpha in (1e-6, 0.1, 1.0, 100.0, 1e9):
        assert alpha_rank(RPS, alpha) == pytest.approx(np.full(3, 1 / 3), abs=1e-9)
    assert alpha_rank_limit(RPS) == pytest.approx(np.full(3, 1 / 3), abs=1e-12)
    # The limit asks who beats whom, not by how much: the biased game is the same to it.
    assert alpha_rank_limit(BIASED_RPS) == pytest.approx(np.full(3, 1 / 3), abs=1e-12)


def test_a_chain_ends_at_its_best():
    assert alpha_rank_limit(CHAIN) == pytest.approx(np.array([0, 0, 1]))
    assert alpha_rank(CHAIN, 10.0) == pytest.approx(np.array([0, 0, 1]), abs=1e-12)
    line = elo([0.3, 2.0, 1.0, 1.9])
    assert alpha_rank_limit(line) == pytest.approx(np.array([0, 1, 0, 0]))
    assert sweep(line).mass_AN[-1] == pytest.approx(np.array([0, 1, 0, 0]), abs=1e-9)


def test_two_players_by_hand():
    """π_1/π_0 = ρ(0→1)/ρ(1→0) = exp((m − 1) u) with u = 2 α A."""
    mass = alpha_rank(np.array([[0.0, -0.2], [0.2, 0.0]]), 0.5, population=10)
    assert mass[1] / mass[0] == pytest.approx(np.exp(9 * 0.2))


def test_ties_are_entered_by_chance():
    """Two tie at the top: each enters the other at 1/m, so both have half."""
    payoff = np.array([[0.0, 0, 1], [0, 0, 1], [-1, -1, 0]])
    assert alpha_rank_limit(payoff) == pytest.approx(np.array([0.5, 0.5, 0]))
    # One beats the third that the other ties with: he is left at 1/m, entered at 1/m and from the
    # third at 1.
    payoff = np.array([[0.0, 0, 1], [0, 0, 0], [-1, 0, 0]])
    m = 50.0
    rates = np.array([[0, 1 / m, 0], [1 / m, 0, 1 / m], [1, 1 / m, 0]])
    flow = rates.T - np.diag(rates.sum(axis=1))
    mass = alpha_rank_limit(payoff, population=50)
    assert flow @ mass == pytest.approx(np.zeros(3), abs=1e-12)
    assert mass.sum() == pytest.approx(1)


@pytest.mark.parametrize("alpha", [0.05, 0.7, 3.0])
def test_it_agrees_with_open_spiel(alpha):
    alpharank = pytest.importorskip("open_spiel.python.egt.alpharank")
    rng = np.random.default_rng(2)
    for count in (2, 3, 5, 8):
        payoff = rng.normal(size=(count, count))
        payoff = payoff - payoff.T
        _, _, theirs, _, _ = alpharank.compute([payoff], m=20, alpha=alpha)
        assert alpha_rank(payoff, alpha, population=20) == pytest.approx(theirs, abs=1e-7)


@settings(max_examples=50, deadline=None)
@given(games())
def test_the_sweep_ends_in_the_limit(payoff):
    swept = sweep(payoff, values=6)
    assert np.allclose(swept.mass_AN.sum(axis=1), 1)
    assert np.allclose(swept.mass_AN[0], 1 / len(payoff), atol=0.05)
    assert np.allclose(swept.mass_AN[-1], alpha_rank_limit(payoff), atol=1e-8)


@settings(max_examples=50, deadline=None)
@given(games(), st.floats(1e-3, 1e6), st.randoms(use_true_random=False))
def test_permuting_players_permutes_the_answer(payoff, alpha, random):
    order = list(range(len(payoff)))
    random.shuffle(order)
    permuted = payoff[np.ix_(order, order)]
    assert np.allclose(alpha_rank(permuted, alpha), alpha_rank(payoff, alpha)[order], atol=1e-8)
    assert np.allclose(alpha_rank_limit(permuted), alpha_rank_limit(payoff)[order], atol=1e-9)


def test_no_alpha_is_too_large_and_no_payoff_too_small():
    payoff = elo([0.0, 1e-9, 1.0])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for alpha in (1e-12, 1.0, 1e12, 1e100):
            mass = alpha_rank(payoff, alpha, population=1000)
            assert np.isfinite(mass).all()
            assert mass.sum() == pytest.approx(1)
    assert mass == pytest.approx(np.array([0, 0, 1]), abs=1e-12)


@pytest.mark.parametrize(
    ("alpha", "population"), [(0.0, 50), (-1.0, 50), (np.inf, 50), (np.nan, 50), (1.0, 1)]
)
def test_what_is_no_selection_is_refused(alpha, population):
    with pytest.raises(InvalidInput, match="an α above 0, and two at least"):
        alpha_rank(RPS, alpha, population)


def test_two_hundred_players_with_one_best():
    rng = np.random.default_rng(1)
    payoff = elo(rng.normal(size=200))
    mass = alpha_rank(payoff, 1e4)
    assert mass.argmax() == payoff.sum(axis=1).argmax()
    assert mass.max() == pytest.approx(1, abs=1e-6)
    assert alpha_rank_limit(payoff).max() == pytest.approx(1)
