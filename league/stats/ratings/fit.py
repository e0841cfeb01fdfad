"""Fits ratings with intervals to all games at once, whatever their order, to check TrueSkill.

The model is Bradley and Terry's with Davidson's draws (1970). With d = θ₁ − θ₂ in logits and ν ≥ 0,

    win : draw : loss = e^{d/2} : ν : e^{−d/2}

so the odds of winning are e^d and equal players draw ν/(2 + ν) of their games. Each strength has
the prior N(25, s²) points, so a player that won all its games, or that never met the others, has a
finite rating with an honest, wide interval. The width of the league, s, is estimated from the games
(empirical Bayes), within LEAST_SPREAD to MOST_SPREAD. If s were fixed, the fitted ratings of a
wider league would be too close together.

Ratings are posterior means, found by expectation propagation (Minka 2001; Rasmussen and Williams
2006, section 3.6). It starts at the mode of the concave log-posterior, which scipy finds. The
likelihood of each pair's games is replaced by a Gaussian factor of the pair's gap, the difference
of the two strengths. Together with the factors of all other pairs, this factor gives the gap's true
posterior mean and variance. The mode alone would not do: if all of a player's games had the same
result, its posterior is skewed, and the curvature at the mode does not measure its width. ν and s
are set where the slope of the evidence is 0:

    s² = Σ θ² / γ,   γ = N − Σ Var θ / s²,   the number of strengths that games determine

(MacKay 1992, Bayesian interpolation, section 4).

Games show only differences between ratings. With anchors, ratings are relative to them. Without
anchors, the mean of all players is 25, and the interval of a rating applies to its difference from
this mean.

Players of a `Block` have a joint prior instead and have no effect on s. Each group of blocks has a
factor κ, which scales a part of the prior's variance and is estimated from the games like s. With
blocks, each pair's gap also deviates from the difference of its ratings, by N(0, τ²) points, and τ
is estimated too. The games of a pair show only the sum of the difference and the deviation. So even
thousands of games leave the difference uncertain by τ.

Shapes: N players, P pairs that met, K players of a block, M free coordinates.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy.linalg import cholesky
from scipy.linalg.lapack import dpotri
from scipy.optimize import brentq, minimize

from league.errors import InvalidInput
from league.metrics import Measured
from league.players import PayoffCell
from league.stats.payoff import Stakes
from league.stats.ratings.belief import BETA, MU, NORMAL_LINK, SIGMA, draw_margin

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
MAX_NODES = 6_000
"""Largest number of players. The covariance of this many players takes 0.3 GB, and its computation
takes several times as much.
"""
_LOG_NU_MEAN, _LOG_NU_SIGMA = -1.5, 3.0
"""Prior of ln ν. With 95 % probability, equal players draw between 1 in 1,500 and 49 in 50 of their
games.
"""
LEAST_SPREAD, MOST_SPREAD = SIGMA / 10.0, SIGMA * 4.0
"""Bounds of s (the spread of strengths) in points. They equal 42 and 1,680 Elo."""
_SPREAD_SIGMA = 1.0
"""Standard deviation of the prior of ln s, whose mean is ln SIGMA. With 95 % probability, s is
between 59 and 3,000 Elo. The prior is needed because the games of only two players do not determine
s.
"""
_KAPPA, _KAPPA_SIGMA = 5.0, 1.0
"""The prior of ln κ (κ scales a block's prior) is N(ln _KAPPA, _KAPPA_SIGMA²). With 95 %
probability, κ is between 0.7 and 36 points².
"""
_LEAST_KAPPA, _MOST_KAPPA = 0.01, 1_000.0
_TAU, _TAU_SIGMA = 0.5, 1.0
"""The prior of ln τ (τ is the deviation of pairs from their ratings) is N(ln _TAU, _TAU_SIGMA²).
With 95 % probability, τ is between 4 and 180 Elo.
"""
_LEAST_TAU, _MOST_TAU = 0.02, 20.0
_MOST_LOG_NU = 7.0
"""Largest ln ν. At this value equal players draw 99.8 % of their games. The limit is needed because
any large ν fits draws between anchors (fixed ratings) that are far apart.
"""
_SWEEPS, _DAMPING, _ENOUGH = 200, 0.7, 1e-3
"""`_SWEEPS` is the largest number of sweeps over all pairs (some twenty suffice). In a sweep, each
factor moves by the share `_DAMPING` of its full step. The sweeps end when the change, in standard
errors, is below `_ENOUGH`.
"""
_ROUGHLY = 0.1
"""Weight of a step of ln κ or ln τ in the change that is compared with `_ENOUGH`. The weight is
small because κ and τ are far more uncertain than such a step.
"""
_NODES, _WEIGHTS = (x[[4, 3, 5, 2, 6, 1, 7, 0, 8]] for x in hermegauss(9))  # the centre first
_MOST_LOG_WEIGHT = 600.0
"""Largest log weight of a quadrature node relative to the central node. float64 ends at e^709."""
_NEAR = 2.0
"""If a gap's new mean is within this many standard errors of its present mean, the quadrature nodes
also give a good new variance. Otherwise the variance is kept.
"""
_MOST_MODES = 20
"""Largest number of searches for the mode. Each search converts points to logits by the ν that the
previous search found.
"""
_WIDER, _WIDER_SWEEPS = 0.1, 8
"""To measure how the ratings depend on s, ln s is raised by `_WIDER`, and `_WIDER_SWEEPS` sweeps
adapt the ratings.
"""
REACH = NormalDist().inv_cdf(0.975)
"""Standard errors on each side of an estimate that contain the truth in 95 % of cases."""
_MATCHED_SCORE = 0.9
_LEAST_DRAWS = 1e-9
_LEAST_GAP_VARIANCE = 1e-12
"""Least variance of a gap in logits². Without this limit, the gap of two anchors would have
variance 0.
"""
_LEAST_VARIANCE = 1.0
"""Pairs whose score has a smaller variance do not count for the misfit. The score of four games
between equal players who never draw has this variance.
"""
_LEAST_FREEDOM = 0.5
DRAWS_BAR = 2.5
"""Draws do not follow Davidson's model if |`Fit.draws_z`| is at least this value. docs/ratings.md
says how often this warns.
"""


def log_probabilities(d_P: Array, log_nu: float) -> tuple[Array, Array, Array]:
    """Computes the log-probabilities of results.

    Args:
        d_P: differences in logits.
        log_nu: ln ν, −∞ without draws.

    Returns:
        ln P of win, draw and loss, each of shape P.
    """
    half_P = d_P / 2.0
    total_P = np.logaddexp(np.abs(half_P), -np.abs(half_P))
    if log_nu > -math.inf:
        total_P = np.logaddexp(total_P, log_nu)
    return half_P - total_P, log_nu - total_P, -half_P - total_P


def expected_score(d_P: Array, nu: float) -> Array:
    """Computes expected scores: the mean of 1 for a win, ½ for a draw, 0 for a loss.

    Args:
        d_P: differences in logits.
        nu: Davidson's ν.

    Returns:
        The scores of shape P.
    """
    x_P = np.exp(-np.abs(d_P) / 2.0)
    weaker_P = x_P * (x_P + nu / 2.0) / (1.0 + x_P * x_P + nu * x_P)
    return np.where(d_P >= 0.0, 1.0 - weaker_P, weaker_P)


def points_per_logit(nu: float) -> float:
    """Returns the TrueSkill points that equal a logit: 3.44 without draws.

    TrueSkill's model and this model have different curves, so no factor fits everywhere. With this
    factor both models agree on a score of 0.9. For scores between 0.9 and ½ they differ by at most
    0.9 %.
    """
    c, drawn_between_equals = math.sqrt(2.0) * BETA, nu / (2.0 + nu)
    margin = draw_margin(max(drawn_between_equals, _LEAST_DRAWS)) / c
    points = brentq(lambda x: NORMAL_LINK.score(x / c, margin) - _MATCHED_SCORE, 0, 200, xtol=1e-12)
    widest = 20.0 + 4.0 * math.log1p(nu)
    logits = brentq(lambda x: expected_score(np.array(x), nu) - _MATCHED_SCORE, 0, widest)
    return float(points / logits)


@dataclass(frozen=True)
class PairCounts:
    """Counts the games of each pair of players that met, whichever seats they had. Wins and losses
    are counted for the player `first_P`.

    Each pair appears once, whichever player comes first.
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
    def of_cells(
        cls, cells: Iterable[PayoffCell], others: Iterable[str] = ()
    ) -> tuple[PairCounts, list[str]]:
        """Counts each pair of a payoff table once, although the table has each pair twice. Also
        returns the players' names.

        In games with payoffs, `Stakes.counted` converts payments to these counts.

        Args:
            others: further players, who need not have met any player.
        """
        rows = [cell for cell in cells if cell.row < cell.column]
        stakes = Stakes.of(rows)
        names = sorted({name for cell in rows for name in (cell.row, cell.column)} | {*others})
        number = {name: n for n, name in enumerate(names)}
        pairs_P2 = np.array([(number[c.row], number[c.column]) for c in rows], np.int64)
        counts_P3 = np.array([stakes.counted(cell) for cell in rows], np.float64)
        first_P, second_P = pairs_P2.reshape(-1, 2).T
        wins_P, draws_P, losses_P = counts_P3.reshape(-1, 3).T
        return cls(first_P, second_P, wins_P, draws_P, losses_P), names


@dataclass(frozen=True)
class Block:
    """Gives K players the joint prior N(25, `known_KK` + κ·`walk_KK`).

    Both matrices are in points², and their sum has an inverse. Blocks of the same `group` share κ.
    """

    nodes_K: Numbers
    known_KK: Array
    walk_KK: Array
    group: int = 0

    def precision_KK(self, kappa: float) -> Array:
        """Returns the inverse of the prior's covariance, in 1/points²."""
        return _inverse(self.known_KK + kappa * self.walk_KK)


@dataclass(frozen=True)
class Fit:
    """Holds the fitted ratings of N players.

    Attributes:
        rating_N: the ratings in points, on TrueSkill's scale.
        covariance_NN: covariance of the ratings in points², from chance alone, with zeros for
            anchors (players with fixed ratings).
        nu: Davidson's ν.
        points_per_logit: the scale between points and logits.
        is_anchored: whether ratings are relative to anchors. Otherwise they are relative to the
            mean of all players.
        misfit: mean square of the deviations of the pairs' scores from the fit, in units of the
            mean square that chance alone gives. It is about 1 if one rating per player explains the
            results, and large if rock beats scissors beats paper.
        freedom: degrees of freedom of the misfit, 0 if there are too few games.
        spread: s, the standard deviation of the players' strengths in points.
        kappas: κ of each group of blocks in points².
        tau: τ in points, 0 without blocks.
        draws_z: a statistic that is approximately standard normal if draws follow Davidson's model.
            It is positive if unequal players draw more often than the model predicts, and negative
            if they draw less often.
        names: names of the players of a payoff table.
    """

    rating_N: Array
    covariance_NN: Array
    nu: float
    points_per_logit: float
    is_anchored: bool
    misfit: float
    freedom: float
    spread: float
    kappas: tuple[float, ...]
    tau: float
    draws_z: float
    names: tuple[str, ...] = ()

    def number(self, name: str) -> int:
        """Returns a player's index in the fit. Raises `InvalidInput` for a player without a
        game.
        """
        if name not in self.names:
            raise InvalidInput(f"{name} has no game in this book, so the fit does not know it")
        return self.names.index(name)

    @property
    def explains_draws(self) -> bool:
        """Returns whether draws at narrow and at wide gaps are as frequent as Davidson's model
        predicts.
        """
        return abs(self.draws_z) < DRAWS_BAR

    @property
    def widening(self) -> float:
        """Returns the factor by which intervals are widened: √(misfit − 2 standard errors of the
        misfit), but at least 1.
        """
        if not self.freedom:
            return 1.0
        return math.sqrt(max(1.0, self.misfit - 2.0 * math.sqrt(2.0 / self.freedom)))

    def interval(self, player: int) -> Measured:
        """Returns a player's rating with its 95 % interval, in points."""
        variance = float(self.covariance_NN[player, player])
        return self._around(float(self.rating_N[player]), variance)

    def difference(self, first: int, second: int) -> Measured:
        """Returns the difference of two ratings with its 95 % interval, in points.

        The difference is often more certain than either rating.
        """
        c = self.covariance_NN
        variance = float(c[first, first] + c[second, second] - 2.0 * c[first, second])
        return self._around(float(self.rating_N[first] - self.rating_N[second]), variance)

    def win_probability(self, first: int, second: int) -> Measured:
        """Returns the probability that `first` wins outright."""
        gap = self.difference(first, second)
        d_3 = np.array([gap.value, gap.low, gap.high]) / self.points_per_logit
        win_3, _, _ = log_probabilities(d_3, math.log(self.nu))
        return Measured(*(float(x) for x in np.exp(win_3)))

    def _around(self, estimate: float, variance: float) -> Measured:
        reach = REACH * self.widening * math.sqrt(max(0.0, variance))
        return Measured(estimate, estimate - reach, estimate + reach)


def fit_cells(cells: Iterable[PayoffCell], anchors: Mapping[str, float] | None = None) -> Fit:
    """Fits the players of a payoff table.

    Args:
        cells: the payoff table.
        anchors: ratings in points of the players whose rating is fixed. Anchors without a game are
            left out.

    Raises:
        InvalidInput: there are too many players, or an anchor is not a number of points.
    """
    counts, names = PairCounts.of_cells(cells)
    pinned = {n: anchors[name] for n, name in enumerate(names) if anchors and name in anchors}
    return replace(fit(counts, len(names), anchors=pinned), names=tuple(names))


def fit(
    counts: PairCounts,
    players: int,
    *,
    anchors: Mapping[int, float] | None = None,
    blocks: Sequence[Block] = (),
) -> Fit:
    """Fits all players' ratings to their games.

    Args:
        counts: games of the pairs.
        players: N, the number of players. A player without a game keeps its prior.
        anchors: ratings in points of the players whose rating is fixed.
        blocks: joint priors. A player is in at most one block.

    Raises:
        InvalidInput: there are too many players, or an anchor is not the rating of a player.
    """
    anchors = dict(anchors or {})
    if players > MAX_NODES:
        raise InvalidInput(f"{players} players are too many for one fit: the limit is {MAX_NODES}")
    for player, points in anchors.items():
        if not 0 <= player < players or not math.isfinite(points):
            raise InvalidInput(
                f"anchor {player} at {points} points is not a rating of one of {players} players"
            )
    posterior = _Posterior(counts, players, anchors, blocks)
    posterior.fit()
    theta_N, scale = posterior.theta_N, posterior.scale
    covariance_NN = posterior.whole_covariance_NN()
    if not anchors and players:
        row_N = covariance_NN.mean(axis=1)  # for the covariance of the differences from the mean
        theta_N = theta_N - theta_N.mean()
        covariance_NN = covariance_NN - row_N[:, None] - row_N[None, :] + row_N.mean()
    nu = math.exp(posterior.log_nu)
    tau = posterior.tau / scale
    misfit, freedom = _misfit(counts, theta_N, covariance_NN, nu, tau)
    return Fit(
        rating_N=MU + scale * theta_N,
        covariance_NN=covariance_NN * scale**2,
        nu=nu,
        points_per_logit=scale,
        is_anchored=bool(anchors),
        misfit=misfit,
        freedom=freedom,
        spread=posterior.spread,
        kappas=tuple(posterior.kappa_G),
        tau=posterior.tau,
        draws_z=posterior.draws_z(),
    )


class _Posterior:
    """Holds a Gaussian posterior of the players' strengths θ, and the values of η = ln ν and of s.

    θ and η are in logits. The logarithm of the posterior is, up to a constant,

    Σ over pairs of wins·ln P(win) + draws·ln P(draw) + losses·ln P(loss)
      − Σ over players of θ²/2s² − Σ over blocks of θᵀQθ/2 − (η − η₀)²/2·3²

    which is concave. `x_M` holds θ of the free players (all but the anchors), then η. A pair's
    factor is exp(−`precision_P` d²/2 + `pull_P` d), where d is the gap of the pair's ratings plus
    the pair's deviation.
    """

    def __init__(
        self,
        counts: PairCounts,
        players: int,
        anchors: Mapping[int, float],
        blocks: Sequence[Block],
    ) -> None:
        self.counts, self.anchors, self.blocks = counts, anchors, blocks
        # the search for ν begins at the share of draws, as if all players were equal
        share = (float(counts.draws_P.sum()) + 0.5) / (float(counts.games_P.sum()) + 1.0)
        self.log_nu = math.log(2.0 * share / (1.0 - share))
        self.spread, self.tau = SIGMA, _TAU if blocks else 0.0
        self.kappa_G = [_KAPPA] * (1 + max((block.group for block in blocks), default=-1))
        self.theta_N = np.zeros(players)
        is_free_N = np.ones(players, np.bool_)
        is_free_N[list(anchors)] = False
        self.free_N = np.flatnonzero(is_free_N)
        self.free_M = np.append(self.free_N, players)
        self.has_own_N = np.ones(players, np.bool_)
        for block in blocks:
            self.has_own_N[block.nodes_K] = False
        self.own_N = np.flatnonzero(is_free_N & self.has_own_N)
        self._rescale()

    def _rescale(self) -> None:
        """Converts anchors and the prior from points to logits. The scale between the two depends
        on ν.
        """
        if self.log_nu >= _MOST_LOG_NU:
            self.log_nu, self.free_M = _MOST_LOG_NU, self.free_N
        self.scale = points_per_logit(math.exp(self.log_nu))
        self.prior = (self.scale / self.spread) ** 2
        self.prior_N = self.prior * self.has_own_N
        self.joint = [
            (block.nodes_K, block.precision_KK(self.kappa_G[block.group]) * self.scale**2)
            for block in self.blocks
        ]
        for player, points in self.anchors.items():
            self.theta_N[player] = (points - MU) / self.scale

    def fit(self) -> None:
        """Finds the posterior. The first factors approximate the pairs' likelihoods at the mode for
        s = SIGMA.
        """
        for _ in range(_MOST_MODES):
            log_nu = self.log_nu
            self._climb()
            if abs(self.log_nu - log_nu) < 1e-6:
                break
        counts, (_, mean_P, self.precision_P) = self.counts, self._expected()
        self.pull_P = (counts.wins_P - counts.losses_P) / 2.0 - counts.games_P * mean_P
        self.pull_P += self.precision_P * self._gaps()
        self._solve()
        spreads = _Search(LEAST_SPREAD, MOST_SPREAD)
        taus, kappas_G = (
            _Search(_LEAST_TAU, _MOST_TAU),
            [_Search(_LEAST_KAPPA, _MOST_KAPPA) for _ in self.kappa_G],
        )
        for _ in range(_SWEEPS):
            change = self._sweep()
            self.spread = spreads.moved(self.spread, *self._spread_slope())
            if self.blocks:
                slopes_G = [self._kappa_slope(group) for group in range(len(self.kappa_G))]
                for group, kappas in enumerate(kappas_G):
                    self.kappa_G[group] = kappas.moved(self.kappa_G[group], *slopes_G[group])
                self.tau = taus.moved(self.tau, *self._tau_slope())
                change = max(change, *(_ROUGHLY * abs(x.step) for x in (taus, *kappas_G)))
            self._rescale()
            change = max(change, self._solve())
            if change < _ENOUGH and abs(spreads.step) < _ENOUGH:
                break

    def _climb(self) -> None:
        """Moves θ and ν to the mode of the posterior."""
        start = np.append(self.theta_N, self.log_nu)[self.free_M]
        if not len(start):
            return
        options = {"gtol": 1e-3}
        solution = minimize(
            self.loss, start, method="trust-exact", jac=True, hess=self.hessian, options=options
        )
        self.move(solution.x)
        self._rescale()

    def _gaps(self) -> Array:
        return self.theta_N[self.counts.first_P] - self.theta_N[self.counts.second_P]

    def _expected(self) -> tuple[Array, Array, Array]:
        """Returns the probability of a draw, the mean of ½ for a win and −½ for a loss, and the
        Fisher information of a pair's games about its gap.
        """
        win_P, draw_P, loss_P = (
            np.exp(x_P) for x_P in log_probabilities(self._gaps(), self.log_nu)
        )
        mean_P = (win_P - loss_P) / 2.0
        return draw_P, mean_P, self.counts.games_P * ((win_P + loss_P) / 4.0 - mean_P**2)

    def _sweep(self) -> float:
        """Updates every pair's factor, and ν. Returns how far ν moved, in standard errors.

        For each pair, the pair's factor in the posterior of the gap is replaced by the likelihood
        of the pair's games. The result is integrated by Gauss-Hermite quadrature, whose nodes are
        placed by the present posterior.
        """
        counts = self.counts
        gap_P, variance_P = self._played_gaps()
        sigma_P = np.sqrt(np.maximum(variance_P, _LEAST_GAP_VARIANCE))
        slope_P, bend_P = self.pull_P - self.precision_P * gap_P, self.precision_P * sigma_P**2
        centre_P, moments_5P = np.zeros(0), np.zeros((5, len(gap_P)))
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            win_P, draw_P, loss_P = log_probabilities(gap_P + node * sigma_P, self.log_nu)
            log_P = counts.wins_P * win_P + counts.draws_P * draw_P + counts.losses_P * loss_P
            log_P -= slope_P * sigma_P * node - bend_P * node**2 / 2.0
            centre_P = log_P if node == 0.0 else centre_P
            weight_P = weight * np.exp(np.minimum(log_P - centre_P, _MOST_LOG_WEIGHT))
            drawn_P = np.exp(draw_P)
            for moment_P, value in zip(
                moments_5P, (1.0, node, node**2, drawn_P, drawn_P * (1.0 - drawn_P)), strict=True
            ):
                moment_P += weight_P * value
        _, mean_P, square_P, drawn_P, spread_P = moments_5P / moments_5P[0]
        is_near_P = np.abs(mean_P) < _NEAR
        narrower_P = 1.0 / np.where(is_near_P, square_P - mean_P**2, 1.0)
        precision_P = self.precision_P + (narrower_P - 1.0) / sigma_P**2
        pull_P = self.pull_P + mean_P * narrower_P / sigma_P
        pull_P += gap_P * (narrower_P - 1.0) / sigma_P**2
        self.pull_P += _DAMPING * (pull_P - self.pull_P)
        self.precision_P += _DAMPING * (np.maximum(precision_P, 0.0) - self.precision_P)
        off = (self.log_nu - _LOG_NU_MEAN) / _LOG_NU_SIGMA**2
        slope = counts.draws_P.sum() - counts.games_P @ drawn_P - off
        curvature = counts.games_P @ spread_P + _LOG_NU_SIGMA**-2.0
        if len(self.free_M) == len(self.free_N):
            return 0.0
        self.log_nu += min(max(slope / curvature, -1.0), 1.0)
        return abs(slope) / math.sqrt(curvature)

    def _spread_slope(self) -> tuple[float, float]:
        """Returns the derivative of the log evidence with respect to ln s, and approximately its
        curvature (positive at a maximum).
        """
        own_N = self.own_N
        variance = float(np.sum(np.diagonal(self.covariance_NN) * self.has_own_N))
        free = len(own_N) - self.prior * variance
        square = self.prior * float(self.theta_N[own_N] @ self.theta_N[own_N])
        off = math.log(self.spread / SIGMA) / _SPREAD_SIGMA**2
        return square - free - off, 2.0 * free**2 / max(len(own_N), 1) + _SPREAD_SIGMA**-2.0

    def _kappa_slope(self, group: int) -> tuple[float, float]:
        """Returns the derivative of the log evidence with respect to ln κ of a group, and
        approximately its curvature (positive at a maximum).

        A block with precision Q and walk W adds ½κ(θᵀQWQθ − tr(QW − QWQ Var θ)) to the derivative.
        """
        kappa = self.kappa_G[group]
        slope = -math.log(kappa / _KAPPA) / _KAPPA_SIGMA**2
        bend = _KAPPA_SIGMA**-2.0
        for block, (nodes_K, q_KK) in zip(self.blocks, self.joint, strict=True):
            if block.group != group:
                continue
            theta_K, own_KK = self.theta_N[nodes_K], self.covariance_NN[np.ix_(nodes_K, nodes_K)]
            qw_KK = q_KK @ block.walk_KK * (kappa / self.scale**2)
            known_KK = qw_KK - qw_KK @ q_KK @ own_KK
            slope += float(theta_K @ qw_KK @ q_KK @ theta_K - np.trace(known_KK)) / 2.0
            bend += float(np.sum(known_KK * known_KK.T)) / 2.0
        return slope, bend

    def _shares(self) -> tuple[float, Array]:
        """Returns τ² in logits², and for each pair the share of its factor that belongs to the gap
        of the ratings, not to the pair's deviation.
        """
        tau2 = (self.tau / self.scale) ** 2
        return tau2, 1.0 / (1.0 + tau2 * self.precision_P)

    def _played_gaps(self) -> tuple[Array, Array]:
        """Returns the means and variances of the pairs' gaps, deviations included."""
        first_P, second_P = self.counts.first_P, self.counts.second_P
        tau2, share_P = self._shares()
        variance_P = _variances_of_gaps(self.covariance_NN, first_P, second_P)
        gap_P = share_P * (self._gaps() + tau2 * self.pull_P)
        return gap_P, share_P * tau2 + share_P**2 * variance_P

    def _tau_slope(self) -> tuple[float, float]:
        """Returns the derivative of the log evidence with respect to ln τ, and approximately its
        curvature (positive at a maximum).
        """
        first_P, second_P = self.counts.first_P, self.counts.second_P
        tau2, share_P = self._shares()
        variance_P = _variances_of_gaps(self.covariance_NN, first_P, second_P)
        known_P = 1.0 - share_P - tau2 * (share_P * self.precision_P) ** 2 * variance_P
        square_P = tau2 * (share_P * (self.pull_P - self.precision_P * self._gaps())) ** 2
        slope, off = float(np.sum(square_P - known_P)), math.log(self.tau / _TAU) / _TAU_SIGMA**2
        bend = 2.0 * float(known_P @ known_P) + _TAU_SIGMA**-2.0
        return slope - off, bend + 2.0 * max(-slope, 0.0)  # nearly all of the bend if τ is small

    def whole_covariance_NN(self) -> Array:
        """Returns the covariance of θ including the uncertainty of s (Kass and Steffey 1989).

        To first order this uncertainty adds dθ/d ln s (dθ/d ln s)ᵀ Var ln s. The derivative and the
        variance are measured by a second fit with a larger s.
        """
        wider = copy.deepcopy(self)
        wider.spread *= math.exp(_WIDER)
        wider._rescale()
        for _ in range(_WIDER_SWEEPS):
            wider._sweep()
            wider._solve()
        bend = (self._spread_slope()[0] - wider._spread_slope()[0]) / _WIDER
        moved_N = (wider.theta_N - self.theta_N) / _WIDER
        variance = 1.0 / max(bend, _SPREAD_SIGMA**-2.0)
        return self.covariance_NN + variance * np.outer(moved_N, moved_N)

    def _solve(self) -> float:
        """Multiplies the prior by all factors, which gives the new posterior. Returns the largest
        change of a mean, in standard errors.
        """
        first_P, second_P, players = self.counts.first_P, self.counts.second_P, len(self.theta_N)
        _, share_P = self._shares()
        precision_P, pull_P = share_P * self.precision_P, share_P * self.pull_P
        precision_NN = np.zeros((players, players))
        precision_NN[first_P, second_P] = precision_NN[second_P, first_P] = -precision_P
        own_N = self._by_player(precision_P, precision_P) + self.prior_N
        precision_NN[np.arange(players), np.arange(players)] = own_N
        for nodes_K, q_KK in self.joint:
            precision_NN[np.ix_(nodes_K, nodes_K)] += q_KK
        free_N, before_N = self.free_N, self.theta_N.copy()
        self.theta_N[free_N] = 0.0
        pull_N = self._by_player(pull_P, -pull_P) - precision_NN @ self.theta_N
        free_NN = np.ix_(free_N, free_N)
        self.covariance_NN = np.zeros((players, players))
        self.covariance_NN[free_NN] = _inverse(precision_NN[free_NN])
        self.theta_N[free_N] = (self.covariance_NN @ pull_N)[free_N]
        sigma_N = np.sqrt(np.diagonal(self.covariance_NN)[free_N])
        return float(np.max(np.abs(self.theta_N - before_N)[free_N] / sigma_N, initial=0.0))

    def draws_z(self) -> float:
        """Returns the statistic, in standard errors, of a score test for κ = 0 in the model P(draw)
        ∝ ν·(2 cosh(d/2))^κ.

        This κ has nothing to do with the blocks. κ = 0 is Davidson's model. At κ = 1 all pairs draw
        ν/(1 + ν) of their games. A pair's expected draws come from the games of the other pairs,
        because the pair's own games would hide a misfit.
        """
        counts = self.counts
        gap_P, variance_P = self._played_gaps()
        left_P = np.maximum(1.0 - self.precision_P * variance_P, _LEAST_GAP_VARIANCE)
        rest_P = (gap_P - self.pull_P * variance_P) / left_P
        sigma_P, moments_3P = np.sqrt(variance_P / left_P), np.zeros((3, len(gap_P)))
        for node, weight in zip(_NODES, _WEIGHTS / _WEIGHTS.sum(), strict=True):
            d_P = rest_P + node * sigma_P
            drawn_P = np.exp(log_probabilities(d_P, self.log_nu)[1])
            values = drawn_P, drawn_P**2, np.logaddexp(d_P / 2.0, -d_P / 2.0)
            moments_3P += weight * np.array(values)
        drawn_P, square_P, width_P = moments_3P
        chance_P = counts.games_P * drawn_P * (1.0 - drawn_P)
        if self.log_nu == _MOST_LOG_NU or not chance_P.sum() > 0.0:
            return 0.0
        width_P = width_P - width_P @ chance_P / chance_P.sum()  # ν explains the share of all draws
        variance_P = chance_P + counts.games_P * (counts.games_P - 1.0) * (square_P - drawn_P**2)
        surplus_P = counts.draws_P - counts.games_P * drawn_P
        error = math.sqrt(width_P**2 @ variance_P)
        return float(width_P @ surplus_P) / error if error > 0.0 else 0.0

    def move(self, x_M: Array) -> None:
        """Sets θ and η to the values in `x_M`."""
        point = np.append(self.theta_N, self.log_nu)
        point[self.free_M] = x_M
        self.theta_N, self.log_nu = point[:-1], float(point[-1])

    def loss(self, x_M: Array) -> tuple[float, Array]:
        """Returns the negative log-posterior and its gradient."""
        self.move(x_M)
        counts, off = self.counts, (self.log_nu - _LOG_NU_MEAN) / _LOG_NU_SIGMA
        win_P, draw_P, loss_P = log_probabilities(self._gaps(), self.log_nu)
        drawn_P, mean_P, _ = self._expected()
        total = counts.wins_P @ win_P + counts.draws_P @ draw_P + counts.losses_P @ loss_P
        total -= (self.prior_N * self.theta_N @ self.theta_N + off**2) / 2.0
        pull_P = (counts.wins_P - counts.losses_P) / 2.0 - counts.games_P * mean_P
        gradient_N = self._by_player(pull_P, -pull_P) - self.prior_N * self.theta_N
        for nodes_K, q_KK in self.joint:
            theta_K = self.theta_N[nodes_K]
            total -= theta_K @ q_KK @ theta_K / 2.0
            gradient_N[nodes_K] -= q_KK @ theta_K
        surplus = counts.draws_P.sum() - counts.games_P @ drawn_P
        gradient = np.append(gradient_N, surplus - off / _LOG_NU_SIGMA)
        return -float(total), -gradient[self.free_M]

    def hessian(self, x_M: Array) -> Array:
        """Returns the Hessian of `loss`: the information of the games and the prior."""
        self.move(x_M)
        first_P, second_P, games_P = self.counts.first_P, self.counts.second_P, self.counts.games_P
        draw_P, mean_P, information_P = self._expected()
        players = len(self.theta_N)
        hessian = np.zeros((players + 1, players + 1))
        hessian[first_P, second_P] = hessian[second_P, first_P] = -information_P
        own_N = self._by_player(information_P, information_P) + self.prior_N
        hessian[np.arange(players), np.arange(players)] = own_N
        for nodes_K, q_KK in self.joint:
            hessian[np.ix_(nodes_K, nodes_K)] += q_KK
        shared_P = games_P * mean_P * draw_P
        hessian[players, :players] = hessian[:players, players] = self._by_player(
            -shared_P, shared_P
        )
        hessian[players, players] = games_P @ (draw_P * (1.0 - draw_P)) + _LOG_NU_SIGMA**-2.0
        return hessian[np.ix_(self.free_M, self.free_M)]

    def _by_player(self, first_P: Array, second_P: Array) -> Array:
        """Sums the pairs' values by player. A pair adds one value to its first player and another
        to its second.
        """
        players = len(self.theta_N)
        firsts_N = np.bincount(self.counts.first_P, first_P, players)
        seconds_N = np.bincount(self.counts.second_P, second_P, players)
        return np.asarray(firsts_N + seconds_N, np.float64)


@dataclass
class _Search:
    """Searches for the value between `least` and `most` at which a derivative with respect to the
    value's logarithm is 0.
    """

    least: float
    most: float
    step: float = math.inf
    steps: list[float] = field(default_factory=list)

    def moved(self, value: float, slope: float, bend: float) -> float:
        """Returns the next value to try. Sets `step` to the planned change of the value's
        logarithm.
        """
        self.steps.append(slope / bend)
        self.step = self.steps[-1]
        if len(self.steps) == 3:  # Aitken: the steps shrink by a nearly constant factor
            self.step /= 1.0 - min(max(self.steps[2] / (self.steps[1] or 1.0), 0.0), 0.95)
            self.steps = []
        return min(max(value * math.exp(min(max(self.step, -1.0), 1.0)), self.least), self.most)


def _inverse(positive: Array) -> Array:
    """Returns the inverse of a symmetric positive matrix."""
    if not len(positive):
        return positive
    upper, _ = dpotri(cholesky(positive, check_finite=False))
    return np.asarray(np.triu(upper) + np.triu(upper, 1).T)


def _variances_of_gaps(covariance_NN: Array, first_P: Numbers, second_P: Numbers) -> Array:
    own_N = np.diagonal(covariance_NN)
    return own_N[first_P] + own_N[second_P] - 2.0 * covariance_NN[first_P, second_P]


def _misfit(
    counts: PairCounts, theta_N: Array, covariance_NN: Array, nu: float, tau: float
) -> tuple[float, float]:
    """Returns Pearson's χ² of the pairs' scores, divided by its degrees of freedom, and the degrees
    of freedom.

    The variance that chance explains includes the pairs' deviations of `tau` logits. A pair adds
    less than 1 degree of freedom: 1 minus its leverage, which is the weight of its own games in its
    expected score. Pairs of little variance are left out, because a single upset in such a pair
    would add hundreds to χ². Without degrees of freedom the result is (1, 0).
    """
    first_P, second_P = counts.first_P, counts.second_P
    d_P = theta_N[first_P] - theta_N[second_P]
    win_P, draw_P, _ = (np.exp(x_P) for x_P in log_probabilities(d_P, math.log(nu)))
    mean_P = win_P + draw_P / 2.0
    variance_P = counts.games_P * (win_P + draw_P / 4.0 - mean_P**2)
    residual_P = counts.wins_P + counts.draws_P / 2.0 - counts.games_P * mean_P
    counted_P = variance_P >= _LEAST_VARIANCE
    wider_P = 1.0 + tau**2 * variance_P
    gaps_P = _variances_of_gaps(covariance_NN, first_P, second_P)
    leverage_P = variance_P / wider_P * gaps_P
    variance_P = variance_P * wider_P
    freedom = float(np.sum(1.0 - leverage_P[counted_P]))
    if freedom < _LEAST_FREEDOM:
        return 1.0, 0.0
    return float(np.sum(residual_P[counted_P] ** 2 / variance_P[counted_P])) / freedom, freedom
