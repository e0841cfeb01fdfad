"""Elo as a line of the fit's points: known cases, another estimator, and observed scores."""

import math

import numpy as np
import pytest

from league.stats.gates import elo_of, score_of
from league.stats.ratings.belief import MU, NORMAL_LINK, draw_margin
from league.stats.ratings.elo import MEAN, PER_POINT, elo, samples
from league.stats.ratings.fit import PairCounts, fit, log_probabilities, points_per_logit


def counts(wins_NN, draws_NN=None) -> PairCounts:
    """The counts of a table of wins of the row over the column, and of draws."""
    draws_NN = np.zeros_like(wins_NN) if draws_NN is None else draws_NN
    first, second = np.triu_indices(len(wins_NN), 1)
    columns = (wins_NN[first, second], draws_NN[first, second], wins_NN[second, first])
    return PairCounts(first, second, *(np.asarray(column, np.float64) for column in columns))


def fitted(wins_NN, draws_NN=None):
    return fit(counts(wins_NN, draws_NN), len(wins_NN))


@pytest.mark.parametrize(("wins", "losses"), [(3, 1), (10, 1), (1, 1), (100, 1)])
def test_odds_of_ten_are_400_elo(wins: int, losses: int) -> None:
    """Elo's definition: D = 400 log10(odds)."""
    found = fitted(np.array([[0, wins], [losses, 0]]) * 1e6)
    gap = elo(found.rating_N[0]) - elo(found.rating_N[1])
    assert gap == pytest.approx(400 * math.log10(wins / losses), abs=0.1)
    assert elo(found.rating_N).mean() == pytest.approx(MEAN)


def test_a_logit_has_400_over_ln_10_elo() -> None:
    assert points_per_logit(0.0) * PER_POINT == pytest.approx(400 / math.log(10), rel=1e-6)
    assert elo(MU) == MEAN


def test_trueskill_and_elo_expect_the_same_of_a_clear_favourite() -> None:
    margin = draw_margin(0.1) / (math.sqrt(2) * 25 / 6)
    for score, near in ((0.9, 0.002), (0.75, 0.02), (0.6, 0.02)):
        gap = elo_of(score) / PER_POINT / (math.sqrt(2) * 25 / 6)
        assert float(NORMAL_LINK.score(gap, margin)) == pytest.approx(score, abs=near)


def minorised(wins_NN):
    """Bradley and Terry's maximum-likelihood strengths in Elo, by the MM algorithm of D. R. Hunter
    (Annals of Statistics 32, 2004, equation 3).
    """
    games_NN = wins_NN + wins_NN.T
    gamma_N = np.ones(len(wins_NN))
    for _ in range(20_000):
        gamma_N = wins_NN.sum(1) / (games_NN / (gamma_N[:, None] + gamma_N[None, :])).sum(1)
        gamma_N /= np.exp(np.log(gamma_N).mean())
    return MEAN + 400 * np.log10(gamma_N)


def test_it_is_the_maximum_likelihood_of_another_implementation() -> None:
    rng = np.random.default_rng(4)
    truth_N = rng.normal(1500, 200, 8)
    chance_NN = score_of_gaps(truth_N)
    upper = np.triu(rng.binomial(2_000, chance_NN), 1)
    wins_NN = upper + np.tril(2_000 - upper.T, -1)
    found = fitted(wins_NN)
    assert elo(found.rating_N) == pytest.approx(minorised(wins_NN), abs=2.0)


def score_of_gaps(elo_N):
    gaps = elo_N[:, None] - elo_N[None, :]
    return np.vectorize(score_of)(gaps)


@pytest.mark.parametrize(("drawn", "near"), [(0.0, 0.015), (0.1, 0.015), (0.3, 0.025)])
def test_expected_scores_agree_with_those_of_further_matches(drawn: float, near: float) -> None:
    """Elo from 400 matches a pair predicts the next 4,000. A share of the matches is drawn between
    equals, and fewer between others, as Davidson's model has it.
    """
    rng = np.random.default_rng(7)
    logits_N = rng.normal(0, 1.2, 12)
    nu = 2 * drawn / (1 - drawn)
    first, second = np.triu_indices(12, 1)
    half_P = (logits_N[first] - logits_N[second]) / 2
    weights = np.stack([np.exp(half_P), np.full_like(half_P, nu), np.exp(-half_P)], axis=1)
    chances_P3 = weights / weights.sum(1, keepdims=True)
    before, after = (
        np.array([rng.multinomial(size, chance) for chance in chances_P3]) for size in (400, 4_000)
    )
    found = fit(PairCounts(first, second, *before.T.astype(np.float64)), 12)
    elo_N = elo(found.rating_N)
    predicted_P = np.array([score_of(gap) for gap in elo_N[first] - elo_N[second]])
    scored_P = (after[:, 0] + after[:, 1] / 2) / 4_000
    order = np.argsort(predicted_P)
    for part in np.array_split(order, 5):
        assert predicted_P[part].mean() == pytest.approx(scored_P[part].mean(), abs=near)


@pytest.mark.parametrize(("won", "lost"), [(20, 0), (3, 0), (30, 10)])
def test_samples_have_the_quantiles_of_the_posterior(won: int, lost: int) -> None:
    """Against the posterior of two players on a grid, which is skewed without a loss."""
    met = counts(np.array([[0, won], [lost, 0]]))
    found = fit(met, 2)
    drawn_SN = samples(found, met, np.random.default_rng(1), draws=20_000)
    lead_S = (drawn_SN[:, 0] - drawn_SN[:, 1]) / found.points_per_logit
    logits = np.linspace(-5, 60, 200_001)
    win, _, loss = log_probabilities(logits, math.log(found.nu))
    prior = -((logits * found.points_per_logit / found.spread) ** 2) / 4  # of a difference
    weight = np.exp(prior + won * win + lost * loss)
    cumulated = np.cumsum(weight) / weight.sum()
    for share in (0.025, 0.5, 0.975):
        truth = logits[np.searchsorted(cumulated, share)]
        assert np.quantile(lead_S, share) == pytest.approx(truth, rel=0.06)
    assert drawn_SN.mean(1) == pytest.approx(np.full(20_000, MU))
    if (won, lost) == (20, 0):
        assert np.quantile(lead_S, 0.001) > 0.0, "who wins 20 of 20 is stronger"


def test_samples_of_many_games_are_the_fit() -> None:
    rng = np.random.default_rng(2)
    chance_NN = score_of_gaps(rng.normal(1500, 150, 6))
    upper = np.triu(rng.binomial(500, chance_NN), 1)
    met = counts(upper + np.tril(500 - upper.T, -1))
    found = fit(met, 6)
    drawn_SN = samples(found, met, rng)
    assert drawn_SN.mean(0) == pytest.approx(found.rating_N, abs=0.02)
    sigma_N = found.widening * np.sqrt(np.diagonal(found.covariance_NN))
    assert drawn_SN.std(0) == pytest.approx(sigma_N, rel=0.06)
