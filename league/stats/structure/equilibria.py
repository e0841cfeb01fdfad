"""Computes Nash averaging and α-rank, which give each player a share of a mixture.

Shapes: N players, S of them with mass, R rows and C columns of a game between two groups. A payoff
is antisymmetric: a player wins as much as the other loses.

**Nash averaging** (Balduzzi et al. 2018, arXiv 1806.02643) is the mixture that no player beats

    p* = argmax entropy(p)  subject to  A p ≤ 0,  Σ p = 1,  p ≥ 0;   score n = A p*

First, linear programs over a few players find an equilibrium: players that beat the present mixture
are added until no player beats it. If there may be other equilibria, a further program finds an
equilibrium in the middle of them, whose support contains the supports of all others. Maximising the
entropy on this support is a smooth convex problem. Copies of a player (equal rows) count as a
single player and share its mass, so another copy does not change the mass of other players.

**α-rank** (Omidshafiei et al. 2019, arXiv 1903.01373, single population): in a population of m
copies of a player, a copy of another player appears. Selection decides whether this newcomer takes
over the population. The larger α is, the more certainly the better player prevails. The masses are
the stationary distribution of this Markov chain over the players, in the limit of large α.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize

from league.errors import InvalidInput, NumericalFault

Matrix = NDArray[np.float64]
POPULATION = 50
"""m of α-rank (the size of the population), as in the paper."""
_NOTHING = 1e-7
"""Payoffs below this share of the largest payoff count as 0. With such payoffs, the solver HiGHS
may find no solution.
"""
_TIED = 1e-8
"""A player beats a mixture only if its payoff against the mixture is above this share of the
largest payoff.
"""
_BEATEN = 1e-6
"""If a player's payoff against a computed equilibrium is at least this, rounding has misled the
program that computed the equilibrium.
"""
_DIGITS = 12
"""Players whose rows agree to this number of decimals are copies."""
_JOINING = 10
"""In each round of the search for an equilibrium, at most this many players join, or at most as
many as have already joined, if that number is larger.
"""
_EVEN = 1e-12
"""α-rank treats payoffs up to this size as ties."""


@dataclass(frozen=True)
class Nash:
    """Holds a Nash mixture. `mass_N` sums to 1, `score_N` is each player's payoff against the
    mixture, at most 0.
    """

    mass_N: Matrix
    score_N: Matrix


def nash_averaging(payoff_NN: Matrix) -> Nash:
    """Returns the maximum-entropy equilibrium of an antisymmetric payoff, and the players' scores
    against it. Raises the errors of `checked`.
    """
    checked(payoff_NN)
    scaled_NN = payoff_NN / (np.abs(payoff_NN).max() or 1.0)
    scaled_NN[np.abs(scaled_NN) < _NOTHING] = 0.0
    _, first, copy_of_N, copies = np.unique(
        scaled_NN.round(_DIGITS), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    single_NN = scaled_NN[np.ix_(first, first)]
    mass_N = _largest_entropy(single_NN, _some_equilibrium(single_NN))
    mass_N = (mass_N / copies)[copy_of_N.reshape(-1)]
    return Nash(mass_N, payoff_NN @ mass_N)


def checked(payoff_NN: Matrix) -> None:
    """Checks that a payoff is square, finite and antisymmetric. Otherwise raises `InvalidInput`."""
    if payoff_NN.ndim != 2 or payoff_NN.shape[0] != payoff_NN.shape[1] or not len(payoff_NN):
        raise InvalidInput(f"a payoff has the shape {payoff_NN.shape}: use players x players")
    if not np.isfinite(payoff_NN).all():
        raise InvalidInput("a payoff is not finite: keep win rates off 0 and 1 for logits")
    if not np.allclose(payoff_NN, -payoff_NN.T, rtol=1e-9, atol=1e-12 * np.abs(payoff_NN).max()):
        raise InvalidInput("a payoff is not antisymmetric: what one player wins the other loses")


def _some_equilibrium(payoff_NN: Matrix) -> Matrix:
    """Returns any equilibrium. It starts with a single player, and adds the best of the players
    that beat the present mixture until no player beats it.
    """
    joined = [int(np.argmax(payoff_NN.sum(axis=1)))]
    while True:
        mass_N = np.zeros(len(payoff_NN))
        mass_N[joined], _ = zero_sum(payoff_NN[np.ix_(joined, joined)])
        gain_N = payoff_NN @ mass_N
        gain_N[joined] = 0.0
        better = np.flatnonzero(gain_N > _TIED)
        if not len(better):
            return mass_N
        order = better[np.argsort(-gain_N[better], kind="stable")]
        joined += [int(index) for index in order[: max(_JOINING, len(joined))]]


def _largest_entropy(payoff_NN: Matrix, mass_N: Matrix) -> Matrix:
    """Returns the equilibrium of largest entropy, given any equilibrium."""
    candidates = np.flatnonzero(payoff_NN @ mass_N > -_TIED)
    if (mass_N[candidates] > _TIED).all() and _is_single(payoff_NN[np.ix_(candidates, candidates)]):
        return mass_N
    try:
        middle_N = _in_the_middle(payoff_NN, candidates)
    except NumericalFault:  # rounding misjudged who is a candidate
        return mass_N
    if (payoff_NN @ middle_N).max() > _BEATEN:
        return mass_N
    support = np.flatnonzero(middle_N > np.clip(-payoff_NN @ middle_N, _TIED, None))
    if _is_single(payoff_NN[np.ix_(support, support)]):
        return middle_N
    spread_N = np.zeros_like(middle_N)
    spread_N[support] = _spread(payoff_NN, support, middle_N[support])
    # If rounding misjudged the support, only the middle is an equilibrium.
    return spread_N if (payoff_NN @ spread_N).max() < _BEATEN else middle_N


def _is_single(payoff_SS: Matrix) -> bool:
    """Returns whether at most one mixture has a payoff of 0 against all of these players. If so,
    there is no other equilibrium.
    """
    rank = int(np.linalg.matrix_rank(payoff_SS, tol=_TIED * max(len(payoff_SS), 1)))
    return rank >= len(payoff_SS) - 1


def _in_the_middle(payoff_NN: Matrix, candidates: NDArray[np.intp]) -> Matrix:
    """Returns a strictly complementary equilibrium (Goldman and Tucker 1956).

    Such an equilibrium beats every player that has no mass in it. The linear program maximises t
    with p_i − (A p)_i ≥ t for each candidate i.
    """
    count = len(candidates)
    columns_NC = payoff_NN[:, candidates]
    slack_CC = columns_NC[candidates] - np.eye(count)
    zeros, ones = np.zeros((len(payoff_NN), 1)), np.ones((count, 1))
    bounds_MC = np.block([[columns_NC, zeros], [slack_CC, ones]])
    solution = _solved(
        np.append(np.zeros(count), -1.0),
        A_ub=bounds_MC,
        b_ub=np.zeros(len(bounds_MC)),
        A_eq=np.append(np.ones(count), 0.0)[None],
        b_eq=[1.0],
    )
    mass_N = np.zeros(len(payoff_NN))
    mass_N[candidates] = _mass(solution[:-1])
    return mass_N


def _spread(payoff_NN: Matrix, support: NDArray[np.intp], start_S: Matrix) -> Matrix:
    """Returns the mixture p of largest entropy whose A p is 0 on the support and ≤ 0 elsewhere."""
    outside = np.setdiff1d(np.arange(len(payoff_NN)), support)
    _, sizes, rows = np.linalg.svd(payoff_NN[np.ix_(support, support)])
    equal_MS = np.vstack([rows[sizes > _TIED * len(support)], np.ones(len(support))])
    wanted_M = np.append(np.zeros(len(equal_MS) - 1), 1.0)
    below_MS = payoff_NN[np.ix_(outside, support)]

    def negative_entropy(p_S: Matrix) -> tuple[float, Matrix]:
        log_S = np.log(np.maximum(p_S, 1e-300))
        return float(p_S @ log_S), log_S + 1.0

    solution = minimize(
        negative_entropy,
        start_S,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(support),
        constraints=[
            {"type": "eq", "fun": lambda p: equal_MS @ p - wanted_M, "jac": lambda p: equal_MS},
            {"type": "ineq", "fun": lambda p: -below_MS @ p, "jac": lambda p: -below_MS},
        ],
        options={"ftol": 1e-14, "maxiter": 1_000},
    )
    return _mass(solution.x)


def zero_sum(payoff_RC: Matrix) -> tuple[Matrix, float]:
    """Returns a best mixture of the rows, and its least payoff: max_p min_q pᵀ A q."""
    rows, columns = payoff_RC.shape
    solution = _solved(
        np.append(np.zeros(rows), -1.0),
        A_ub=np.hstack([-payoff_RC.T, np.ones((columns, 1))]),
        b_ub=np.zeros(columns),
        A_eq=np.append(np.ones(rows), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * rows + [(None, None)],
    )
    return _mass(solution[:-1]), float(solution[-1])


def relative_performance(payoff_RC: Matrix) -> float:
    """Returns the payoff per match of group R against group C if both play their best mixtures.

    This payoff is the value of the game between the groups (Balduzzi et al. 2019, arXiv
    1901.08106). If it is above 0, R has a mixture that beats every member of C.

    Raises:
        InvalidInput: the payoff is empty or not finite.
    """
    if payoff_RC.ndim != 2 or 0 in payoff_RC.shape or not np.isfinite(payoff_RC).all():
        raise InvalidInput(f"a payoff has the shape {payoff_RC.shape}: use finite rows x columns")
    return zero_sum(payoff_RC)[1]


def _solved(costs: Matrix, **program: Any) -> Matrix:
    solution = linprog(costs, method="highs", **program)
    if solution.x is None:
        raise NumericalFault(
            f"no equilibrium: {solution.message}; leave out players with few games"
        )
    return np.asarray(solution.x, np.float64)


def _mass(weights: Matrix) -> Matrix:
    """Removes negative rounding errors, and makes the sum 1."""
    positive = np.clip(weights, 0.0, None)
    return np.asarray(positive / positive.sum(), np.float64)


def alpha_rank(payoff_NN: Matrix, population: int = POPULATION) -> Matrix:
    """Computes the masses of α-rank for α → ∞.

    A better player takes over at rate 1, an equal player at rate 1/m, and a worse player never.
    Between any two players there is a transition in at least one direction. So there is exactly one
    smallest set of players that selection never leaves once it is inside. Only the members of this
    set have mass.

    Args:
        payoff_NN: antisymmetric payoff.
        population: m, the size of the population.

    Returns:
        N masses that sum to 1.

    Raises:
        InvalidInput: the payoff is not antisymmetric.
    """
    checked(payoff_NN)
    scale = np.abs(payoff_NN).max() or 1.0
    entrant_NN = payoff_NN.T / scale  # [σ, τ]: the payoff of τ against σ
    is_tie_NN = np.abs(entrant_NN) <= _EVEN
    rate_NN = np.where(is_tie_NN, 1.0 / population, (entrant_NN > 0).astype(np.float64))
    np.fill_diagonal(rate_NN, 0.0)
    flow_NN = rate_NN.T - np.diag(rate_NN.sum(axis=1))
    flow_NN[-1] = 1.0  # the last equation follows from the others: Σ mass = 1 replaces it
    mass_N = np.linalg.solve(flow_NN, np.append(np.zeros(len(rate_NN) - 1), 1.0))
    mass_N[mass_N < _EVEN] = 0.0
    return np.asarray(mass_N / mass_N.sum(), np.float64)
