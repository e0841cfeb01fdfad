"""How far the ratings of the clean matches are from the truth, which only a simulation knows.

Shape suffixes: N players that have clean matches (they never change), Q pairs of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.players import Book
from league.stats.ratings import BETA, MU, Belief
from league.stats.ratings.belief import draw_margin
from league.stats.ratings.epochs import Epoch
from league.stats.ratings.fit import MAX_NODES, Fit, PairCounts, expected_score, fit
from matchmaker.simulate.cast import Cast
from matchmaker.simulate.scenarios import Scenario
from matchmaker.state.view import LeagueView

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
PAIRS = 20_000
REACH = 1.959964


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """None stands where a scenario has no such truth, or too many players for a fit.

    Attributes:
        rank_correlation: Spearman's, of TrueSkill's μ and the true strengths. trueskill_error,
        fit_error: mean absolute error of a pair's predicted score, over pairs at random.
        ratings_held: share of the fit's 95 % intervals of ratings that hold the true one.
        scores_held: the same of pairs' scores. misfit: of the fit; about 1 where one number a
        player says it all.
    """

    players: int
    rank_correlation: float | None
    trueskill_error: float
    fit_error: float | None
    ratings_held: float | None
    scores_held: float | None
    misfit: float | None


def accuracy_of(view: LeagueView, scenario: Scenario, cast: Cast, seed: int) -> Accuracy | None:
    """Of the clean matches; None where nobody has any."""
    with view.lock:
        table = view.tables[Book.EVAL]
        counts, names = PairCounts.of_cells(table.payoff.cells())
        beliefs, epoch = [table.belief(name) for name in names], table.epoch
    if not names:
        return None
    number_N = np.array([cast.number[name] for name in names])
    first_Q, second_Q = _pairs(len(names), seed)
    truth_Q = scenario.chances(number_N[first_Q], number_N[second_Q]).score_G
    strength_N = None if scenario.strength_N is None else scenario.strength_N[number_N]
    found = fit(counts, len(names)) if len(names) <= MAX_NODES else None
    held = error = None
    if found is not None:
        low_Q, score_Q, high_Q = _fit_scores(found, first_Q, second_Q)
        held = float(((low_Q <= truth_Q) & (truth_Q <= high_Q)).mean())
        error = float(np.abs(score_Q - truth_Q).mean())
    return Accuracy(
        players=len(names),
        rank_correlation=None
        if strength_N is None
        else _order([one.mu for one in beliefs], strength_N),
        trueskill_error=float(
            np.abs(_trueskill_scores(beliefs, epoch, first_Q, second_Q) - truth_Q).mean()
        ),
        fit_error=error,
        ratings_held=None
        if found is None or strength_N is None
        else _ratings_held(found, strength_N),
        scores_held=held,
        misfit=None if found is None else found.misfit,
    )


def _pairs(players: int, seed: int) -> tuple[Numbers, Numbers]:
    rng = np.random.default_rng([seed, 3])
    first_Q = rng.integers(players, size=PAIRS)
    return first_Q, (first_Q + rng.integers(1, players, size=PAIRS)) % players


def _fit_scores(found: Fit, first_Q: Numbers, second_Q: Numbers) -> tuple[Array, Array, Array]:
    """Low end, estimate and high end of pairs' scores."""
    c = found.covariance_NN
    gap_Q = found.rating_N[first_Q] - found.rating_N[second_Q]
    variance_Q = c[first_Q, first_Q] + c[second_Q, second_Q] - 2.0 * c[first_Q, second_Q]
    reach_Q = REACH * found.widening * np.sqrt(np.maximum(variance_Q, 0.0))
    low_Q, score_Q, high_Q = (
        expected_score(x_Q / found.points_per_logit, found.nu)
        for x_Q in (gap_Q - reach_Q, gap_Q, gap_Q + reach_Q)
    )
    return low_Q, score_Q, high_Q


def _ratings_held(found: Fit, strength_N: Array) -> float:
    """Ratings are relative to their mean, so the truth is too."""
    low_N, high_N = found.intervals()
    truth_N = MU + found.points_per_logit * (strength_N - strength_N.mean())
    return float(((low_N <= truth_N) & (truth_N <= high_N)).mean())


def _trueskill_scores(
    beliefs: list[Belief], epoch: Epoch, first_Q: Numbers, second_Q: Numbers
) -> Array:
    mu_N, variance_N = (
        np.array(x) for x in zip(*((b.mu, b.sigma**2) for b in beliefs), strict=True)
    )
    c_Q = np.sqrt(2 * BETA**2 + variance_N[first_Q] + variance_N[second_Q])
    t_Q, e_Q = (mu_N[first_Q] - mu_N[second_Q]) / c_Q, draw_margin(epoch.draw_probability) / c_Q
    return epoch.link.score(t_Q, e_Q)


def _order(mus: list[float], strength_N: Array) -> float:
    from scipy.stats import spearmanr

    value = float(spearmanr(mus, strength_N).statistic)
    return 0.0 if math.isnan(value) else value
