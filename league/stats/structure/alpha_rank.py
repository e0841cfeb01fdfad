"""α-rank: how much of the time a population under selection plays as each player does.

Shape suffixes: N players, A values of α.

A population of m copies of player σ is now and then entered by one copy of τ, who takes it over
with the chance of fixation (Omidshafiei et al. 2019, arXiv 1903.01373, one population and a
symmetric game)

    ρ(σ → τ) = (1 − exp(−u)) / (1 − exp(−m u)),  u = α (f_τ − f_σ) = 2 α A_τσ;   1/m where u = 0

The masses are the stationary distribution of this chain. The larger α, the less a worse player gets
in; in the limit only who beats whom counts, not by how much. Rates are kept as logarithms, and the
chain is solved without a subtraction, so no α is too large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from league.errors import InvalidInput
from league.stats.structure.nash import Matrix, checked

POPULATION = 50
"""m, as in the paper."""
EVEN = 1e-12
"""A payoff this close to 0 is a tie."""
NEGLIGIBLE = 40.0
"""exp(−40) is nothing beside 1 in double precision."""


def alpha_rank(payoff_NN: Matrix, alpha: float, population: int = POPULATION) -> Matrix:
    """Masses at a finite α, sum 1. `payoff_NN` is antisymmetric.

    Raises `InvalidInput` for another payoff, an α that is not above 0 or finite, or a population
    below 2.
    """
    checked(payoff_NN)
    if not 0.0 < alpha < np.inf or population < 2:
        raise InvalidInput(
            f"α-rank with α {alpha} and a population of {population} can't be: an α above 0, and two at least"
        )
    return _stationary(_log_fixation(2.0 * alpha * payoff_NN.T, population))


def _log_fixation(u_NN: Matrix, population: int) -> Matrix:
    """log ρ of an entrant with advantage u. For u < 0: log ρ(u) = log ρ(−u) + (m − 1) u, without
    overflow.
    """
    size_NN = np.maximum(np.abs(u_NN), EVEN)
    log_rho_NN = np.log(-np.expm1(-size_NN)) - np.log(-np.expm1(-population * size_NN))
    log_rho_NN += (population - 1) * np.minimum(u_NN, 0.0)
    even_NN = np.abs(u_NN) <= EVEN
    return np.where(even_NN, -np.log(population), log_rho_NN)


def _stationary(log_rate_NN: Matrix) -> Matrix:
    """Stationary distribution of the chain with these logarithms of rates from row to column.

    States are taken out one by one, their traffic going to those that are left, and put back in
    reverse order (Grassmann, Taksar and Heyman 1985). There are only sums and quotients, so
    logarithms will do, and small masses are as exact as large ones. The diagonal is not looked at.
    """
    rate_NN = log_rate_NN.copy()
    np.fill_diagonal(rate_NN, -np.inf)
    count = len(rate_NN)
    for state in range(count - 1, 0, -1):
        rate_NN[:state, state] -= np.logaddexp.reduce(rate_NN[state, :state])
        through = rate_NN[:state, state, None] + rate_NN[None, state, :state]
        np.logaddexp(rate_NN[:state, :state], through, out=rate_NN[:state, :state])
    log_mass_N = np.zeros(count)
    for state in range(1, count):
        log_mass_N[state] = np.logaddexp.reduce(log_mass_N[:state] + rate_NN[:state, state])
    mass_N: Matrix = np.exp(log_mass_N - np.logaddexp.reduce(log_mass_N))
    return mass_N


@dataclass(frozen=True)
class Sweep:
    """Masses at rising α: `mass_AN`, a row for each of `alpha_A`."""

    alpha_A: Matrix
    mass_AN: Matrix


def sweep(payoff_NN: Matrix, values: int = 30, population: int = POPULATION) -> Sweep:
    """From an α at which everybody has nearly the same mass to one beyond which nothing changes."""
    checked(payoff_NN)
    sizes = 2.0 * np.abs(payoff_NN[np.abs(payoff_NN) > EVEN])
    smallest, largest = (sizes.min(), sizes.max()) if len(sizes) else (1.0, 1.0)
    alpha_A = np.geomspace(0.01 / (population * largest), NEGLIGIBLE / smallest, values)
    return Sweep(alpha_A, np.array([alpha_rank(payoff_NN, alpha, population) for alpha in alpha_A]))


def alpha_rank_limit(payoff_NN: Matrix, population: int = POPULATION) -> Matrix:
    """Masses for α → ∞, exactly: who is better gets in at rate 1, who ties at 1/m, who is worse
    never.

    Any two players are joined by one way or both, so there is one set that selection does not
    leave: only its members have mass. It is one player where he beats everybody.
    """
    checked(payoff_NN)
    scale = np.abs(payoff_NN).max() or 1.0
    entrant_NN = payoff_NN.T / scale  # [σ, τ]: what τ gets of σ
    rate_NN = np.where(
        np.abs(entrant_NN) <= EVEN, 1.0 / population, (entrant_NN > 0).astype(np.float64)
    )
    np.fill_diagonal(rate_NN, 0.0)
    flow_NN = rate_NN.T - np.diag(rate_NN.sum(axis=1))
    flow_NN[-1] = 1.0  # one balance follows from the others: the sum takes its place
    mass_N = np.linalg.solve(flow_NN, np.append(np.zeros(len(rate_NN) - 1), 1.0))
    mass_N[mass_N < EVEN] = 0.0
    limit_N: Matrix = mass_N / mass_N.sum()
    return limit_N
