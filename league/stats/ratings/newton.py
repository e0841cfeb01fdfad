"""The most probable strengths given all games, and how sure they are: Newton's method on a concave
sum.

The log-posterior in θ (logits) and η = ln ν is

    Σ over pairs of wins·ln p(win) + draws·ln p(draw) + losses·ln p(loss)
      − Σ over nodes of θ²/2s² − Σ over blocks of θᵀQθ/2 − (η − η₀)²/2·3²

Every term is concave, the Hessian is that of an exponential family (so observed and expected
information are one), and its inverse at the top is the covariance of θ and η together (Laplace's
approximation).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, lapack

from league.stats.ratings.davidson import log_odds_free
from league.stats.ratings.pairs import PairCounts

Array = NDArray[np.float64]
LOG_NU_MEAN, LOG_NU_SIGMA = -1.5, 3.0
"""Prior of η: 95 % between a draw in 1,500 and 49 in 50 games of equals."""
_ENOUGH = 1e-9
_MOST_STEPS = 200


@dataclass(frozen=True)
class Block:
    """What is believed of K nodes together before any game: a Gaussian around the mean.

    Attributes:
        nodes_K: their numbers.
        precision_KK: inverse of their covariance.
    """

    nodes_K: NDArray[np.int64]
    precision_KK: Array


@dataclass(frozen=True)
class Problem:
    """What is maximised. N nodes; everything in logits.

    Attributes:
        precision_N: 1/s² of each node's own prior around 0; 0 for one that is in a block.
        blocks: precisions in 1/logits².
        fixed_N: whether a node stays where `start_N` has it.
        has_draws: whether ν is found; without, a draw is half a win and half a loss.
    """

    counts: PairCounts
    precision_N: Array
    blocks: tuple[Block, ...]
    fixed_N: NDArray[np.bool_]
    has_draws: bool


@dataclass(frozen=True)
class Point:
    """θ of every node, and η."""

    theta_N: Array
    log_nu: float


def climb(problem: Problem, start: Point) -> Point:
    """The most probable point.

    Raises:
        ArithmeticError: none was found, as where a count is not finite.
    """
    point, height = start, _height(problem, start)
    for _ in range(_MOST_STEPS):
        gradient_M, hessian_MM = _slopes(problem, point)
        step_M = cho_solve(cho_factor(hessian_MM, lower=True, overwrite_a=True), gradient_M)
        rise = float(gradient_M @ step_M)
        if rise < _ENOUGH:
            return _moved(problem, point, step_M)
        share = 1.0
        while share > 1e-6:
            ahead = _moved(problem, point, share * step_M)
            reached = _height(problem, ahead)
            if reached >= height + 1e-4 * share * rise:
                break
            share /= 2.0
        point, height = ahead, reached
    raise ArithmeticError(f"the fit found no most probable ratings in {_MOST_STEPS} steps")


def covariance(problem: Problem, point: Point) -> Array:
    """Of θ of all nodes, in logits²; zeros for fixed ones. What η is unsure of is in it."""
    _, hessian_MM = _slopes(problem, point)
    factor_MM, failed = lapack.dpotrf(hessian_MM, lower=True, overwrite_a=True, clean=True)
    inverse_MM, failed_too = lapack.dpotri(factor_MM, lower=True, overwrite_c=True)
    if failed or failed_too:
        raise ArithmeticError("the fit's information has no inverse")
    free = np.flatnonzero(~problem.fixed_N)
    lower = inverse_MM[: len(free), : len(free)]
    whole = np.zeros((len(problem.fixed_N),) * 2)
    whole[np.ix_(free, free)] = np.tril(lower) + np.tril(lower, -1).T
    return whole


def mean_off_mode(problem: Problem, point: Point, covariance_NN: Array) -> Array:
    """By how much the mean of θ lies beside its most probable value, to first order: ½ C·Σ ℓ‴
    Var[d].

    A likelihood falls slower towards wider gaps. That is a small part of each standard error, but
    alike for all, so that at the top a whole league stands too close together.
    """
    counts, nodes = problem.counts, len(point.theta_N)
    first_P, second_P = counts.first_P, counts.second_P
    win_P, _, loss_P = (np.exp(x) for x in log_odds_free(_gaps(problem, point), point.log_nu))
    mean_P = (win_P - loss_P) / 2.0
    skew_P = mean_P / 4.0 - 0.75 * mean_P * (win_P + loss_P) + 2.0 * mean_P**3
    variance_N = np.diagonal(covariance_NN)
    variance_P = variance_N[first_P] + variance_N[second_P] - 2.0 * covariance_NN[first_P, second_P]
    pull_P = -counts.games_P * skew_P * variance_P / 2.0
    pull_N = np.bincount(first_P, pull_P, nodes) - np.bincount(second_P, pull_P, nodes)
    return np.asarray(covariance_NN @ pull_N)


def _moved(problem: Problem, point: Point, step_M: Array) -> Point:
    theta_N = point.theta_N.copy()
    free_N = ~problem.fixed_N
    free = int(free_N.sum())
    theta_N[free_N] += step_M[:free]
    return Point(theta_N, point.log_nu + float(step_M[free]) if problem.has_draws else point.log_nu)


def _terms(problem: Problem) -> tuple[Array, Array, Array]:
    """Wins, draws and losses as the model counts them."""
    counts = problem.counts
    if problem.has_draws:
        return counts.wins_P, counts.draws_P, counts.losses_P
    return counts.wins_P + counts.draws_P / 2.0, np.zeros(0), counts.losses_P + counts.draws_P / 2.0


def _gaps(problem: Problem, point: Point) -> Array:
    return point.theta_N[problem.counts.first_P] - point.theta_N[problem.counts.second_P]


def _height(problem: Problem, point: Point) -> float:
    wins_P, draws_P, losses_P = _terms(problem)
    win_P, draw_P, loss_P = log_odds_free(_gaps(problem, point), point.log_nu)
    total = float(wins_P @ win_P + losses_P @ loss_P)
    if problem.has_draws:
        total += float(draws_P @ draw_P) - ((point.log_nu - LOG_NU_MEAN) / LOG_NU_SIGMA) ** 2 / 2.0
    total -= float(problem.precision_N @ point.theta_N**2) / 2.0
    for block in problem.blocks:
        theta_K = point.theta_N[block.nodes_K]
        total -= float(theta_K @ block.precision_KK @ theta_K) / 2.0
    return total


def _slopes(problem: Problem, point: Point) -> tuple[Array, Array]:
    """Gradient and negative Hessian over the free nodes, with η last where it is found."""
    counts, nodes = problem.counts, len(point.theta_N)
    first_P, second_P, games_P = counts.first_P, counts.second_P, counts.games_P
    wins_P, draws_P, losses_P = _terms(problem)
    win_P, draw_P, loss_P = (np.exp(x) for x in log_odds_free(_gaps(problem, point), point.log_nu))
    mean_P = (win_P - loss_P) / 2.0
    pull_P = (wins_P - losses_P) / 2.0 - games_P * mean_P
    information_P = games_P * ((win_P + loss_P) / 4.0 - mean_P**2)
    gradient = np.zeros(nodes + 1)
    hessian = np.zeros((nodes + 1, nodes + 1))
    hessian[first_P, second_P] = hessian[second_P, first_P] = -information_P
    for side_P, sign in ((first_P, 1.0), (second_P, -1.0)):
        gradient[:nodes] += np.bincount(side_P, weights=sign * pull_P, minlength=nodes)
        hessian[np.arange(nodes), np.arange(nodes)] += np.bincount(
            side_P, information_P, minlength=nodes
        )
        if problem.has_draws:
            shared_P = -sign * games_P * mean_P * draw_P
            hessian[nodes, :nodes] += np.bincount(side_P, weights=shared_P, minlength=nodes)
    hessian[:nodes, nodes] = hessian[nodes, :nodes]
    if problem.has_draws:
        gradient[nodes] = (
            np.sum(draws_P - games_P * draw_P) - (point.log_nu - LOG_NU_MEAN) / LOG_NU_SIGMA**2
        )
        hessian[nodes, nodes] = np.sum(games_P * draw_P * (1.0 - draw_P)) + LOG_NU_SIGMA**-2.0
    _add_priors(problem, point, gradient, hessian)
    free = np.flatnonzero(np.append(~problem.fixed_N, problem.has_draws))
    if len(free) == nodes + 1:
        return gradient, hessian
    return gradient[free], hessian[np.ix_(free, free)]


def _add_priors(problem: Problem, point: Point, gradient: Array, hessian: Array) -> None:
    nodes = len(point.theta_N)
    gradient[:nodes] -= problem.precision_N * point.theta_N
    hessian[np.arange(nodes), np.arange(nodes)] += problem.precision_N
    for block in problem.blocks:
        gradient[block.nodes_K] -= block.precision_KK @ point.theta_N[block.nodes_K]
        hessian[np.ix_(block.nodes_K, block.nodes_K)] += block.precision_KK
