"""A fit of all games at once, in any order, with intervals: the check on TrueSkill.

The model is Bradley and Terry's with Davidson's draws (1970). With d = θ₁ − θ₂ in logits and ν ≥ 0,

    win : draw : loss = e^{d/2} : ν : e^{−d/2}

so the odds of winning are e^d and equal players draw ν/(2 + ν) of their games. Each strength has
TrueSkill's prior N(25, (25/3)²) points, so a player that won all its games, or that never met the
others, has a finite rating with an honest, wide interval. Ratings are posterior means: scipy finds
the mode of the concave log-posterior, its Hessian there gives the covariance (Laplace's
approximation), and a first-order term moves the mode to the mean.

Games show only differences. With anchors, ratings are relative to them. Without, the mean of all
players is 25 and the interval of a rating is that of its difference to this mean.

Shapes: N players, P pairs that met, M free coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq, minimize

from league.errors import InvalidInput
from league.players import PayoffCell
from league.stats.ratings.belief import BETA, MU, NORMAL_LINK, SIGMA, draw_margin

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
MAX_NODES = 6_000
"""The covariance of this many takes 0.3 GB, and computing it three times that."""
_LOG_NU_MEAN, _LOG_NU_SIGMA = -1.5, 3.0
"""Prior of ln ν: 95 % between a draw in 1,500 and 49 in 50 games of equal players."""
MOST_NU = 1e6
"""With it equal players draw all but two of 10^6 games. Anchors far apart that drew ask for more,
where the size of a point can't be computed.
"""
REACH = NormalDist().inv_cdf(0.975)
"""Standard errors on each side of an estimate that hold the truth in 95 % of cases."""
_MATCHED_SCORE = 0.9
_LEAST_DRAWS = 1e-9
_LEAST_VARIANCE = 1.0
"""Of a pair's score, to count for the misfit: that of four games between equal players."""
_LEAST_FREEDOM = 0.5


def log_probabilities(d_P: Array, log_nu: float) -> tuple[Array, Array, Array]:
    """Returns ln P of win, draw and loss at differences in logits; `log_nu` is −∞ without draws."""
    half_P = d_P / 2.0
    total_P = np.logaddexp(np.abs(half_P), -np.abs(half_P))
    if log_nu > -math.inf:
        total_P = np.logaddexp(total_P, log_nu)
    return half_P - total_P, log_nu - total_P, -half_P - total_P


def expected_score(d_P: Array, nu: float) -> Array:
    """Returns the mean of 1 for a win, ½ for a draw, 0 for a loss at differences in logits."""
    x_P = np.exp(-np.abs(d_P) / 2.0)
    weaker_P = x_P * (x_P + nu / 2.0) / (1.0 + x_P * x_P + nu * x_P)
    return np.where(d_P >= 0.0, 1.0 - weaker_P, weaker_P)


def points_per_logit(nu: float) -> float:
    """Returns the TrueSkill points that equal one logit: 3.44 without draws.

    The two models bend differently, so no factor fits everywhere. With this one they agree where
    one player earns 0.9 of the points; between there and one half they differ by at most 0.9 %.
    """
    c, drawn_between_equals = math.sqrt(2.0) * BETA, nu / (2.0 + nu)
    margin = draw_margin(max(drawn_between_equals, _LEAST_DRAWS)) / c
    points = brentq(lambda x: NORMAL_LINK.score(x / c, margin) - _MATCHED_SCORE, 0, 200, xtol=1e-12)
    widest = 20.0 + 4.0 * math.log1p(nu)
    logits = brentq(lambda x: expected_score(np.array(x), nu) - _MATCHED_SCORE, 0, widest)
    return float(points / logits)


@dataclass(frozen=True)
class PairCounts:
    """Games of each pair that met, from the side of `first_P`, both seats together; a pair is there
    once, whichever player comes first.
    """

    first_P: Numbers
    second_P: Numbers
    wins_P: Array
    draws_P: Array
    losses_P: Array

    @property
    def games_P(self) -> Array:
        return self.wins_P + self.draws_P + self.losses_P

    @classmethod
    def of_cells(cls, cells: Iterable[PayoffCell]) -> tuple[PairCounts, list[str]]:
        """Returns the counts of a payoff table, which has each pair twice, and the players."""
        rows = [cell for cell in cells if cell.row < cell.column]
        names = sorted({name for cell in rows for name in (cell.row, cell.column)})
        number = {name: n for n, name in enumerate(names)}
        pairs_P2 = np.array([(number[c.row], number[c.column]) for c in rows], np.int64)
        counts_P3 = np.array([(c.wins, c.draws, c.losses) for c in rows], np.float64)
        return cls(*pairs_P2.reshape(-1, 2).T, *counts_P3.reshape(-1, 3).T), names


@dataclass(frozen=True)
class Interval:
    """An estimate and the bounds that hold the truth in 95 % of cases."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Fit:
    """Ratings of N players.

    Attributes:
        rating_N: points on TrueSkill's scale.
        covariance_NN: of the ratings in points², from chance alone; zeros for anchors.
        nu: Davidson's ν.
        points_per_logit: the scale between points and logits.
        is_anchored: whether ratings are relative to anchors, else to the mean.
        misfit: mean squared residual of a pair's score in units of chance: about 1 where one
            number a player explains the results, large where rock beats scissors beats paper.
        freedom: degrees of freedom of the misfit; 0 where there are too few games for one.
        names: of the players of a payoff table.
    """

    rating_N: Array
    covariance_NN: Array
    nu: float
    points_per_logit: float
    is_anchored: bool
    misfit: float
    freedom: float
    names: tuple[str, ...] = ()

    def number(self, name: str) -> int:
        """Returns a player's number in the fit; raises `InvalidInput` if it has no game."""
        if name not in self.names:
            raise InvalidInput(f"{name} has no game in this book, so the fit does not know it")
        return self.names.index(name)

    @property
    def widening(self) -> float:
        """The factor on intervals: √(misfit less two of its standard errors), at least 1."""
        if not self.freedom:
            return 1.0
        return math.sqrt(max(1.0, self.misfit - 2.0 * math.sqrt(2.0 / self.freedom)))

    def interval(self, player: int) -> Interval:
        """Returns one player's rating in points."""
        variance = float(self.covariance_NN[player, player])
        return self._around(float(self.rating_N[player]), variance)

    def difference(self, first: int, second: int) -> Interval:
        """Returns the difference of two ratings in points, surer than each of them alone."""
        c = self.covariance_NN
        variance = float(c[first, first] + c[second, second] - 2.0 * c[first, second])
        return self._around(float(self.rating_N[first] - self.rating_N[second]), variance)

    def win_probability(self, first: int, second: int) -> Interval:
        """Returns the probability that `first` wins outright."""
        gap = self.difference(first, second)
        d_3 = np.array([gap.estimate, gap.low, gap.high]) / self.points_per_logit
        win_3, _, _ = log_probabilities(d_3, math.log(self.nu))
        return Interval(*(float(x) for x in np.exp(win_3)))

    def _around(self, estimate: float, variance: float) -> Interval:
        reach = REACH * self.widening * math.sqrt(max(0.0, variance))
        return Interval(estimate, estimate - reach, estimate + reach)


def fit_cells(cells: Iterable[PayoffCell], anchors: Mapping[str, float] | None = None) -> Fit:
    """Fits the players of a payoff table; anchors without a game are left out."""
    counts, names = PairCounts.of_cells(cells)
    pinned = {n: anchors[name] for n, name in enumerate(names) if anchors and name in anchors}
    return replace(fit(counts, len(names), anchors=pinned), names=tuple(names))


def fit(
    counts: PairCounts,
    players: int,
    *,
    anchors: Mapping[int, float] | None = None,
) -> Fit:
    """Fits all players' ratings to their games.

    Args:
        players: N; a player without a game keeps its prior.
        anchors: points of the players that stay where they are.

    Raises:
        InvalidInput: too many players, or an anchor that is no player's rating.
    """
    anchors = dict(anchors or {})
    if players > MAX_NODES:
        raise InvalidInput(f"{players} players are too many for one fit: the limit is {MAX_NODES}")
    for player, points in anchors.items():
        if not 0 <= player < players or not math.isfinite(points):
            raise InvalidInput(
                f"anchor {player} at {points} points is not a rating of one of {players} players"
            )
    # the search for ν begins at the share of draws, as if all players were equal
    share = (float(counts.draws_P.sum()) + 0.5) / (float(counts.games_P.sum()) + 1.0)
    theta_N, nu = np.zeros(players), min(2.0 * share / (1.0 - share), MOST_NU)
    for _ in range(100):  # priors and anchors are in points, whose size in logits depends on ν
        scale = points_per_logit(nu)
        for player, points in anchors.items():
            theta_N[player] = (points - MU) / scale
        fixed = [*anchors, players] if nu >= MOST_NU else list(anchors)
        posterior = _Posterior(counts, SIGMA**-2.0 * scale**2, fixed, theta_N, nu)
        theta_N, nu = posterior.mode()
        if abs(points_per_logit(nu) / scale - 1.0) < 1e-6:
            break
    covariance_NN = posterior.covariance_NN()
    theta_N = theta_N + posterior.mean_less_mode_N(covariance_NN)
    if not anchors and players:
        row_N = covariance_NN.mean(axis=1)  # to the covariance of the differences to the mean
        theta_N = theta_N - theta_N.mean()
        covariance_NN = covariance_NN - row_N[:, None] - row_N[None, :] + row_N.mean()
    misfit, freedom = _misfit(counts, theta_N, covariance_NN, nu)
    covariance_NN *= scale**2
    return Fit(MU + scale * theta_N, covariance_NN, nu, scale, bool(anchors), misfit, freedom)


class _Posterior:
    """The log-posterior of θ of every player and η = ln ν, everything in logits. `fixed` are the
    coordinates that stay, η being the last.

    Σ over pairs of wins·ln P(win) + draws·ln P(draw) + losses·ln P(loss)
      − Σ over players of θ²/2s² − (η − η₀)²/2·3²

    The sum is concave, and its Hessian is that of an exponential family, so observed and expected
    information are the same. `x_M` holds θ of the free players, then η.
    """

    def __init__(
        self,
        counts: PairCounts,
        precision: float,
        fixed: Iterable[int],
        theta_N: Array,
        nu: float,
    ) -> None:
        self.counts, self.precision = counts, precision
        self.theta_N, self.log_nu = theta_N.copy(), math.log(nu)
        is_free_M = np.ones(len(theta_N) + 1, np.bool_)
        is_free_M[list(fixed)] = False
        self.free_M = np.flatnonzero(is_free_M)

    def mode(self) -> tuple[Array, float]:
        """Returns the most probable θ and ν, at most `MOST_NU`."""
        if not len(self.free_M):
            return self.theta_N, math.exp(self.log_nu)
        found = minimize(
            self.loss,
            np.append(self.theta_N, self.log_nu)[self.free_M],
            method="trust-exact",
            jac=True,
            hess=self.hessian,
            options={"gtol": 1e-7},
        )
        self.move(found.x)
        return self.theta_N, math.exp(min(self.log_nu, math.log(MOST_NU)))

    def move(self, x_M: Array) -> None:
        """Sets the point at which everything is computed."""
        point = np.append(self.theta_N, self.log_nu)
        point[self.free_M] = x_M
        self.theta_N, self.log_nu = point[:-1], float(point[-1])

    def log_probabilities(self) -> tuple[Array, Array, Array]:
        gap_P = self.theta_N[self.counts.first_P] - self.theta_N[self.counts.second_P]
        return log_probabilities(gap_P, self.log_nu)

    def loss(self, x_M: Array) -> tuple[float, Array]:
        """Returns the negative log-posterior and its gradient."""
        self.move(x_M)
        counts, off = self.counts, (self.log_nu - _LOG_NU_MEAN) / _LOG_NU_SIGMA
        win_P, draw_P, loss_P = self.log_probabilities()
        total = counts.wins_P @ win_P + counts.draws_P @ draw_P + counts.losses_P @ loss_P
        total -= (self.precision * self.theta_N @ self.theta_N + off**2) / 2.0
        mean_P = (np.exp(win_P) - np.exp(loss_P)) / 2.0
        pull_P = (counts.wins_P - counts.losses_P) / 2.0 - counts.games_P * mean_P
        gradient_N = self._by_player(pull_P, -pull_P) - self.precision * self.theta_N
        surplus = counts.draws_P.sum() - counts.games_P @ np.exp(draw_P)
        gradient = np.append(gradient_N, surplus - off / _LOG_NU_SIGMA)
        return -float(total), -gradient[self.free_M]

    def hessian(self, x_M: Array) -> Array:
        """Returns the Hessian of `loss`: the information of the games and the prior."""
        self.move(x_M)
        first_P, second_P, games_P = self.counts.first_P, self.counts.second_P, self.counts.games_P
        win_P, draw_P, loss_P = (np.exp(x_P) for x_P in self.log_probabilities())
        mean_P = (win_P - loss_P) / 2.0
        information_P = games_P * ((win_P + loss_P) / 4.0 - mean_P**2)
        players = len(self.theta_N)
        hessian = np.zeros((players + 1, players + 1))
        hessian[first_P, second_P] = hessian[second_P, first_P] = -information_P
        own_N = self._by_player(information_P, information_P) + self.precision
        hessian[np.arange(players), np.arange(players)] = own_N
        shared_P = games_P * mean_P * draw_P
        hessian[players, :players] = hessian[:players, players] = self._by_player(
            -shared_P, shared_P
        )
        hessian[players, players] = games_P @ (draw_P * (1.0 - draw_P)) + _LOG_NU_SIGMA**-2.0
        return hessian[np.ix_(self.free_M, self.free_M)]

    def covariance_NN(self) -> Array:
        """Returns the covariance of θ in logits²; zeros for fixed players."""
        hessian_MM = self.hessian(np.append(self.theta_N, self.log_nu)[self.free_M])
        inverse_MM = cho_solve(cho_factor(hessian_MM), np.eye(len(hessian_MM)))
        whole = np.zeros((len(self.theta_N) + 1,) * 2)
        whole[np.ix_(self.free_M, self.free_M)] = (inverse_MM + inverse_MM.T) / 2.0
        return whole[:-1, :-1]

    def mean_less_mode_N(self, covariance_NN: Array) -> Array:
        """Returns how far the posterior mean is from the mode, to first order: ½ C·Σ ℓ‴ Var[d].

        The likelihood falls more slowly towards wider gaps. For one player that is a small part of
        its standard error, but it is alike for all: at the mode a league stands too close together.
        """
        first_P, second_P = self.counts.first_P, self.counts.second_P
        win_P, _, loss_P = (np.exp(x_P) for x_P in self.log_probabilities())
        mean_P = (win_P - loss_P) / 2.0
        skew_P = mean_P / 4.0 - 0.75 * mean_P * (win_P + loss_P) + 2.0 * mean_P**3
        variance_P = _variances_of_gaps(covariance_NN, first_P, second_P)
        pull_P = -self.counts.games_P * skew_P * variance_P / 2.0
        return np.asarray(covariance_NN @ self._by_player(pull_P, -pull_P))

    def _by_player(self, first_P: Array, second_P: Array) -> Array:
        """Sums the pairs' values by their first and their second player."""
        players = len(self.theta_N)
        firsts_N = np.bincount(self.counts.first_P, first_P, players)
        seconds_N = np.bincount(self.counts.second_P, second_P, players)
        return np.asarray(firsts_N + seconds_N, np.float64)


def _variances_of_gaps(covariance_NN: Array, first_P: Numbers, second_P: Numbers) -> Array:
    own_N = np.diagonal(covariance_NN)
    return own_N[first_P] + own_N[second_P] - 2.0 * covariance_NN[first_P, second_P]


def _misfit(
    counts: PairCounts, theta_N: Array, covariance_NN: Array, nu: float
) -> tuple[float, float]:
    """Returns Pearson's χ² of the pairs' scores over its degrees of freedom, and these.

    A pair's leverage, the share that its own games have in its expectation, is taken from the
    degrees of freedom. Pairs of little variance are left out: one upset there makes a χ² of
    hundreds. Without degrees of freedom the result is (1, 0).
    """
    first_P, second_P = counts.first_P, counts.second_P
    d_P = theta_N[first_P] - theta_N[second_P]
    win_P, draw_P, _ = (np.exp(x_P) for x_P in log_probabilities(d_P, math.log(nu)))
    mean_P = win_P + draw_P / 2.0
    variance_P = counts.games_P * (win_P + draw_P / 4.0 - mean_P**2)
    residual_P = counts.wins_P + counts.draws_P / 2.0 - counts.games_P * mean_P
    leverage_P = variance_P * _variances_of_gaps(covariance_NN, first_P, second_P)
    counted_P = variance_P >= _LEAST_VARIANCE
    freedom = float(np.sum(1.0 - leverage_P[counted_P]))
    if freedom < _LEAST_FREEDOM:
        return 1.0, 0.0
    return float(np.sum(residual_P[counted_P] ** 2 / variance_P[counted_P])) / freedom, freedom
