"""Ratings from all games at once, in any order, with intervals: what stands beside TrueSkill.

Bradley and Terry's model with Davidson's draws (`davidson`), each player's strength a priori N(25,
(25/3)²) points, as TrueSkill has it. So a player that won all its games, or that nobody met who met
the others, has a rating and an honest, wide interval. Ratings are posterior means, found by
Newton's method (`newton`).

Only differences can be seen in games. Where players are anchored, ratings are relative to them.
Where none is, the mean of all in the fit is 25, and the interval of a rating is that of its
difference to this mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from league.errors import InvalidInput
from league.players import PayoffCell
from league.stats.ratings.belief import MU, SIGMA
from league.stats.ratings.davidson import (
    drawn_between_equals,
    expected_score,
    log_odds_free,
    points_per_logit,
)
from league.stats.ratings.newton import Block, Point, Problem, climb, covariance, mean_off_mode
from league.stats.ratings.pairs import PairCounts

Array = NDArray[np.float64]
MAX_NODES = 6_000
"""The covariance of so many takes 0.3 GB, and its making three times that."""
_LEAST_VARIANCE = 1.0
"""Of a pair's score, to say something of the misfit: four games between equals have it."""
_LEAST_FREEDOM = 0.5


@dataclass(frozen=True)
class Interval:
    """An estimate and the bounds that hold the truth at the level asked for, 95 % unless told."""

    estimate: float
    low: float
    high: float

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Fit:
    """Ratings of N players.

    Attributes:
        rating_N: points on TrueSkill's scale. covariance_NN: of the ratings, points², as chance
        makes it; zeros for anchors. nu: Davidson's ν; 0 where draws were taken as halves.
        points_per_logit: the scale between the two. is_anchored: whether ratings are relative to
        anchors, else to the mean. misfit: mean squared residual of a pair's score in units of what
        chance makes: about 1 where one
            number a player explains the results, and large where rock beats scissors beats paper.
        freedom: of how many pairs, less what was fitted to them; 0 where the misfit can't be told.
    """

    rating_N: Array
    covariance_NN: Array
    nu: float
    points_per_logit: float
    is_anchored: bool
    misfit: float
    freedom: float

    @property
    def widening(self) -> float:
        """By what intervals are wider than chance makes them: √(misfit less two of its standard
        errors).
        """
        if not self.freedom:
            return 1.0
        return math.sqrt(max(1.0, self.misfit - 2.0 * math.sqrt(2.0 / self.freedom)))

    @property
    def draw_probability(self) -> float:
        """Share of draws between equals."""
        return drawn_between_equals(self.nu)

    def intervals(self, level: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper bounds of every rating."""
        reach_N = _reach(level) * self.widening * np.sqrt(np.diagonal(self.covariance_NN))
        return self.rating_N - reach_N, self.rating_N + reach_N

    def interval(self, player: int, level: float = 0.95) -> Interval:
        estimate = float(self.rating_N[player])
        return self._around(estimate, float(self.covariance_NN[player, player]), level)

    def difference(self, first: int, second: int, level: float = 0.95) -> Interval:
        """Of two ratings, in points: surer than each of them, since what moves both falls out."""
        c = self.covariance_NN
        variance = float(c[first, first] + c[second, second] - 2.0 * c[first, second])
        return self._around(float(self.rating_N[first] - self.rating_N[second]), variance, level)

    def score(self, first: int, second: int, level: float = 0.95) -> Interval:
        """What `first` earns a match against `second`: 1 a win, ½ a draw."""
        d_3 = self._logits(self.difference(first, second, level))
        return Interval(*(float(x) for x in expected_score(d_3, self.nu)))

    def win_probability(self, first: int, second: int, level: float = 0.95) -> Interval:
        """That `first` wins outright."""
        d_3 = self._logits(self.difference(first, second, level))
        win_3, _, _ = log_odds_free(d_3, math.log(self.nu) if self.nu else -math.inf)
        return Interval(*(float(x) for x in np.exp(win_3)))

    def _around(self, estimate: float, variance: float, level: float) -> Interval:
        reach = _reach(level) * self.widening * math.sqrt(max(0.0, variance))
        return Interval(estimate, estimate - reach, estimate + reach)

    def _logits(self, gap: Interval) -> Array:
        return np.array([gap.estimate, gap.low, gap.high]) / self.points_per_logit


def fit(
    counts: PairCounts,
    players: int,
    *,
    anchors: Mapping[int, float] | None = None,
    blocks: Sequence[Block] = (),
    prior_sigma: float = SIGMA,
    draws_as_halves: bool = False,
) -> Fit:
    """Fits all players' ratings to the games of `counts`.

    Args:
        players: how many there are, N; those without a game get what the prior says. anchors:
        points of the players that stay where they are put. blocks: players whose strengths hang
        together (`lineage`), precisions in 1/points²; they have no
            other prior.
        prior_sigma: of a player's strength around 25, in points. draws_as_halves: no model of
        draws: each is half a win and half a loss. Intervals get too wide.

    Raises:
        InvalidInput: too many players, or an anchor that is none of them.
    """
    anchors = dict(anchors or {})
    _check(players, anchors, prior_sigma)
    has_draws = not draws_as_halves
    precision_N = np.full(players, prior_sigma**-2.0)
    for block in blocks:
        precision_N[block.nodes_K] = 0.0
    fixed_N = np.zeros(players, np.bool_)
    fixed_N[list(anchors)] = True
    nu = _first_nu(counts) if has_draws else 0.0
    theta_N = np.zeros(players)
    while True:  # priors and anchors are in points, whose size in logits is known once ν is
        scale = points_per_logit(nu)
        scaled = tuple(Block(block.nodes_K, block.precision_KK * scale**2) for block in blocks)
        problem = Problem(counts, precision_N * scale**2, scaled, fixed_N, has_draws)
        for player, points in anchors.items():
            theta_N[player] = (points - MU) / scale
        point = climb(problem, Point(theta_N, math.log(nu) if has_draws else -math.inf))
        theta_N, nu = point.theta_N, math.exp(point.log_nu)
        if abs(points_per_logit(nu) / scale - 1.0) < 1e-6:
            break
    covariance_NN = covariance(problem, point)
    theta_N = theta_N + mean_off_mode(problem, point, covariance_NN)
    covariance_NN *= scale**2
    if not anchors and players:
        theta_N, covariance_NN = theta_N - theta_N.mean(), _around_the_mean(covariance_NN)
    misfit, freedom = _misfit(counts, theta_N, covariance_NN / scale**2, nu)
    return Fit(MU + scale * theta_N, covariance_NN, nu, scale, bool(anchors), misfit, freedom)


@dataclass(frozen=True)
class LeagueFit:
    """A fit with the players' names."""

    fit: Fit
    names: tuple[str, ...]

    def number(self, name: str) -> int:
        """Raises `InvalidInput` for one that was not in the fit."""
        try:
            return self.names.index(name)
        except ValueError:
            raise InvalidInput(
                f"{name} has no game in this book, so the fit does not know it"
            ) from None


def fit_cells(cells: Iterable[PayoffCell], anchors: Mapping[str, float] | None = None) -> LeagueFit:
    """Fits a payoff table's players; anchors that have no game are left out.

    Raises:
        InvalidInput: too many players.
    """
    counts, names = PairCounts.of_cells(cells)
    pinned = {n: anchors[name] for n, name in enumerate(names) if anchors and name in anchors}
    return LeagueFit(fit(counts, len(names), anchors=pinned), tuple(names))


def _check(players: int, anchors: Mapping[int, float], prior_sigma: float) -> None:
    if players > MAX_NODES:
        raise InvalidInput(f"{players} players are too many for one fit: {MAX_NODES} are the most")
    if not (math.isfinite(prior_sigma) and prior_sigma > 0.0):
        raise InvalidInput(f"prior_sigma = {prior_sigma} is none: use a number of points above 0")
    for player, points in anchors.items():
        if not 0 <= player < players or not math.isfinite(points):
            raise InvalidInput(
                f"anchor {player} at {points} is none of the {players} players' ratings"
            )


def _first_nu(counts: PairCounts) -> float:
    """Where the search for ν begins: the share of draws, as if all were equals."""
    drawn, games = float(counts.draws_P.sum()), float(counts.games_P.sum())
    share = (drawn + 0.5) / (games + 1.0)
    return 2.0 * share / (1.0 - share)


def _around_the_mean(covariance_NN: Array) -> Array:
    """Covariance of the differences to the mean of all."""
    row_N = covariance_NN.mean(axis=1)
    return covariance_NN - row_N[:, None] - row_N[None, :] + row_N.mean()


def _misfit(
    counts: PairCounts, theta_N: Array, covariance_NN: Array, nu: float
) -> tuple[float, float]:
    """Pearson's χ² of the pairs' scores over its degrees of freedom, and these; (1, 0) where there
    are none.

    A pair takes its leverage from these: the share that its own games have in what is expected of
    it. Pairs of little variance are left out, for there one upset makes a χ² of hundreds.
    """
    first_P, second_P = counts.first_P, counts.second_P
    d_P = theta_N[first_P] - theta_N[second_P]
    win_P, draw_P, _ = (np.exp(x) for x in log_odds_free(d_P, math.log(nu) if nu else -math.inf))
    mean_P = win_P + draw_P / 2.0
    variance_P = counts.games_P * (win_P + draw_P / 4.0 - mean_P**2)
    residual_P = counts.wins_P + counts.draws_P / 2.0 - counts.games_P * mean_P
    own_N = np.diagonal(covariance_NN)
    unsure_P = own_N[first_P] + own_N[second_P] - 2.0 * covariance_NN[first_P, second_P]
    told = variance_P >= _LEAST_VARIANCE
    freedom = float(np.sum(1.0 - variance_P[told] * unsure_P[told]))
    if freedom < _LEAST_FREEDOM:
        return 1.0, 0.0
    return float(np.sum(residual_P[told] ** 2 / variance_P[told])) / freedom, freedom


def _reach(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise InvalidInput(
            f"an interval of level {level} is none: use one above 0 and below 1, as 0.95"
        )
    return NormalDist().inv_cdf((1.0 + level) / 2.0)
