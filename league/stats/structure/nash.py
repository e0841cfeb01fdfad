"""Nash averaging: the mixture of players that nobody beats, and what everybody scores against it.

Shape suffixes: N players, S of them that have mass, R rows and C columns of a game between two
groups.

For an antisymmetric payoff A (Balduzzi et al. 2018, arXiv 1806.02643, "Re-evaluating evaluation")

    p* = argmax entropy(p)  subject to  A p ≤ 0,  Σ p = 1,  p ≥ 0;   score n = A p*

The equilibria are a polytope. All of them have mass only where every one of them earns 0
(complementary slackness), and the one of largest entropy has mass wherever any of them has. So:
find one equilibrium by linear programs over few players (those who beat the mixture so far join);
if others are possible, a linear program for one in the middle tells the players that can have mass;
among their equalities the largest entropy is a smooth convex problem in as many unknowns as there
are constraints.

Where several equilibria are possible, entropy alone would shift mass to a player of whom there are
copies. So copies (equal rows) are made one first and share its mass afterwards: one more copy moves
nobody else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize
from scipy.special import logsumexp, softmax

from league.errors import InvalidInput, NumericalFault

Matrix = NDArray[np.float64]
TIED = 1e-8
"""Payoffs, relative to the largest, that count as none: linear programs are as exact as that."""
DIGITS = 12
"""Rows equal to so many decimals are copies."""
JOINING = 10
"""At least this many players join at a time while an equilibrium is looked for."""


@dataclass(frozen=True)
class Nash:
    """`mass_N`: the mixture, sums to 1. `score_N`: payoff of each player against it, 0 at most."""

    mass_N: Matrix
    score_N: Matrix


def nash_averaging(payoff_NN: Matrix) -> Nash:
    """The maximum-entropy equilibrium of an antisymmetric payoff, and every player's score against
    it.

    Copies of a player share its mass and change nothing else. Raises `InvalidInput` unless the
    payoff is square, finite and antisymmetric, with a player at least.
    """
    checked(payoff_NN)
    scaled_NN = payoff_NN / (np.abs(payoff_NN).max() or 1.0)
    _, first, copy_of_N, copies = np.unique(
        scaled_NN.round(DIGITS), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    single_NN = scaled_NN[np.ix_(first, first)]
    mass_N = _largest_entropy(single_NN, _some_equilibrium(single_NN))
    mass_N = (mass_N / copies)[copy_of_N.reshape(-1)]
    return Nash(mass_N, payoff_NN @ mass_N)


def checked(payoff_NN: Matrix) -> None:
    """Raises `InvalidInput` unless the payoff is square, finite and antisymmetric, with a player
    at least.
    """
    if payoff_NN.ndim != 2 or payoff_NN.shape[0] != payoff_NN.shape[1] or not len(payoff_NN):
        raise InvalidInput(
            f"a payoff of shape {payoff_NN.shape} can't be used: give players x players"
        )
    if not np.isfinite(payoff_NN).all():
        raise InvalidInput(
            "a payoff that is not finite can't be used: keep win rates off 0 and 1 for logits"
        )
    if not np.allclose(payoff_NN, -payoff_NN.T, rtol=1e-9, atol=1e-12 * np.abs(payoff_NN).max()):
        raise InvalidInput("the payoff is not antisymmetric: what one wins the other must lose")


def _some_equilibrium(payoff_NN: Matrix) -> Matrix:
    """Any equilibrium, found among few players: as long as somebody beats the mixture, he joins."""
    mass_N = np.zeros(len(payoff_NN))
    joined = [int(np.argmax(payoff_NN.sum(axis=1)))]
    while True:
        mass_N[:] = 0.0
        mass_N[joined], _ = zero_sum(payoff_NN[np.ix_(joined, joined)])
        gain_N = payoff_NN @ mass_N
        gain_N[joined] = 0.0
        better = np.flatnonzero(gain_N > TIED)
        if not len(better):
            return mass_N
        order = better[np.argsort(-gain_N[better], kind="stable")]
        joined += [int(index) for index in order[: max(JOINING, len(joined))]]


def _largest_entropy(payoff_NN: Matrix, mass_N: Matrix) -> Matrix:
    """The equilibrium of largest entropy, given any one of them."""
    candidates = np.flatnonzero(payoff_NN @ mass_N > -TIED)
    if (mass_N[candidates] > TIED).all() and _is_single(payoff_NN[np.ix_(candidates, candidates)]):
        return mass_N
    middle_N = _in_the_middle(payoff_NN, candidates)
    support = np.flatnonzero(middle_N > np.clip(-payoff_NN @ middle_N, TIED, None))
    if _is_single(payoff_NN[np.ix_(support, support)]):
        return middle_N
    spread_N = np.zeros_like(middle_N)
    spread_N[support] = _spread(payoff_NN, support)
    # Only where rounding misled about the support is the spread one no equilibrium; the middle one
    # is.
    return spread_N if (payoff_NN @ spread_N).max() < 1e-6 else middle_N


def _is_single(payoff_SS: Matrix) -> bool:
    """Whether only one direction earns 0 against all: then the equilibrium with this support is
    the only.
    """
    return (
        int(np.linalg.matrix_rank(payoff_SS, tol=TIED * max(len(payoff_SS), 1)))
        >= len(payoff_SS) - 1
    )


def _in_the_middle(payoff_NN: Matrix, candidates: NDArray[np.intp]) -> Matrix:
    """A strictly complementary equilibrium: who has no mass loses against it (Goldman and Tucker
    1956).

    Maximises t with p_i − (A p)_i ≥ t for every candidate i.
    """
    count = len(candidates)
    columns_NC = payoff_NN[:, candidates]
    slack_CC = columns_NC[candidates] - np.eye(count)
    bounds_MC = np.block(
        [[columns_NC, np.zeros((len(payoff_NN), 1))], [slack_CC, np.ones((count, 1))]]
    )
    found = _solved(
        np.append(np.zeros(count), -1.0),
        A_ub=bounds_MC,
        b_ub=np.zeros(len(bounds_MC)),
        A_eq=np.append(np.ones(count), 0.0)[None],
        b_eq=[1.0],
    )
    mass_N = np.zeros(len(payoff_NN))
    mass_N[candidates] = _mass(found[:-1])
    return mass_N


def _spread(payoff_NN: Matrix, support: NDArray[np.intp]) -> Matrix:
    """Largest entropy on the support: A p = 0 there, A p ≤ 0 elsewhere, by the dual.

    With multipliers x (free for equalities, ≥ 0 for the others) p = softmax(−Bᵀx) and x minimises
    log Σ exp(−Bᵀx). Rows elsewhere are taken in only once they are broken: few ever are.
    """
    outside = np.setdiff1d(np.arange(len(payoff_NN)), support)
    _, sizes, rows = np.linalg.svd(payoff_NN[np.ix_(support, support)])
    equal_MS = rows[sizes > TIED * len(support)]
    bounded = np.zeros(0, np.intp)
    while True:
        constraints_MS = np.vstack([equal_MS, payoff_NN[np.ix_(bounded, support)]])
        mass_S = _softest(constraints_MS, len(equal_MS))
        gain = payoff_NN[np.ix_(outside, support)] @ mass_S
        broken = np.setdiff1d(outside[gain > TIED], bounded)
        if not len(broken):
            return mass_S
        bounded = np.append(bounded, broken)


def _softest(constraints_MS: Matrix, free: int) -> Matrix:
    """softmax(−Bᵀx) of largest entropy: the first `free` rows of B make equalities, the others
    bounds.
    """
    count, size = constraints_MS.shape
    if not count:
        return np.full(size, 1.0 / size)

    def dual(x_M: Matrix) -> tuple[float, Matrix]:
        heights_S = -constraints_MS.T @ x_M
        return float(logsumexp(heights_S)), -constraints_MS @ softmax(heights_S)

    bounds = [(None, None)] * free + [(0.0, None)] * (count - free)
    options = {"ftol": 0.0, "gtol": 1e-12, "maxiter": 10_000, "maxfun": 100_000, "maxcor": 50}
    found = minimize(
        dual, np.zeros(count), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return softmax(-constraints_MS.T @ found.x)


def zero_sum(payoff_RC: Matrix) -> tuple[Matrix, float]:
    """A best mixture of the rows of a zero-sum game, and what it gets at least: max_p min_q pᵀ A
    q.
    """
    rows, columns = payoff_RC.shape
    found = _solved(
        np.append(np.zeros(rows), -1.0),
        A_ub=np.hstack([-payoff_RC.T, np.ones((columns, 1))]),
        b_ub=np.zeros(columns),
        A_eq=np.append(np.ones(rows), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * rows + [(None, None)],
    )
    return _mass(found[:-1]), float(found[-1])


def _solved(costs: Matrix, **program: Any) -> Matrix:
    found = linprog(costs, method="highs", **program)
    if found.x is None:
        raise NumericalFault(
            f"no equilibrium was found ({found.message}): leave out players with few games"
        )
    solution: Matrix = found.x
    return solution


def _mass(weights: Matrix) -> Matrix:
    """Without what rounding left below 0, summing to 1."""
    positive = np.clip(weights, 0.0, None)
    mass: Matrix = positive / positive.sum()
    return mass


def relative_performance(payoff_RC: Matrix) -> float:
    """Relative population performance: what group R gets per match of group C when both mix at
    best.

    The value of the game between the groups (Balduzzi et al. 2019, arXiv 1901.08106; AlphaStar's
    Methods). Above 0: R has a mixture that no member of C can cope with.
    """
    if payoff_RC.ndim != 2 or 0 in payoff_RC.shape or not np.isfinite(payoff_RC).all():
        raise InvalidInput(
            f"a payoff of shape {payoff_RC.shape} can't be used: give rows x columns of numbers"
        )
    return zero_sum(payoff_RC)[1]
