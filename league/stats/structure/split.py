"""How much of a league one number a player explains, and how much is cyclic.

Shape suffixes: N players, M pairs that met.

An antisymmetric payoff P is split (Balduzzi et al. 2018, arXiv 1806.02643; Jiang et al. 2011,
"Statistical ranking and combinatorial Hodge theory") into

    T_ij = r_i − r_j,  r the least squares fit (r_i = mean_j P_ij where all have met);   C = P − T

and the transitive share is ‖T‖² / ‖P‖². Pairs that never met have no say. Matches are few, and
their noise looks cyclic, so the share is shown beside what a league without any cycle would show
after as many matches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from league.stats.ratings.fit import PairCounts, fit
from league.stats.structure.nash import Matrix, checked
from league.stats.structure.table import SURE, Table, logits


@dataclass(frozen=True)
class Split:
    """`strength_N`: r, mean 0. `transitive_NN` + `cyclic_NN` is the payoff, 0 where it is
    unknown.
    """

    strength_N: Matrix
    transitive_NN: Matrix
    cyclic_NN: Matrix

    @cached_property
    def transitive_share(self) -> float:
        """Between 0 and 1; NaN where all payoffs are 0, which both parts explain."""
        whole = float(np.sum((self.transitive_NN + self.cyclic_NN) ** 2))
        return float(np.sum(self.transitive_NN**2)) / whole if whole else float("nan")

    @property
    def cyclic_share(self) -> float:
        """What is left to 1."""
        return 1.0 - self.transitive_share


def split(payoff_NN: Matrix, known_NN: NDArray[np.bool_] | None = None) -> Split:
    """The two parts of an antisymmetric payoff. `known_NN` tells which pairs have met (default:
    all).

    Players whose matches don't connect them with the others get strengths of a mean of 0 among
    themselves.
    """
    checked(payoff_NN)
    met_NN = np.ones(payoff_NN.shape) if known_NN is None else np.asarray(known_NN, np.float64)
    np.fill_diagonal(met_NN, 0.0)
    payoff_NN = payoff_NN * met_NN
    laplacian_NN = np.diag(met_NN.sum(axis=1)) - met_NN
    # Differences alone are determined: what is added sets the mean of each connected part to 0.
    _, part_N = connected_components(met_NN, directed=False)
    together_NN = part_N[:, None] == part_N[None, :]
    strength_N = np.linalg.solve(laplacian_NN + together_NN, payoff_NN.sum(axis=1))
    transitive_NN = (strength_N[:, None] - strength_N[None, :]) * met_NN
    return Split(strength_N, transitive_NN, payoff_NN - transitive_NN)


@dataclass(frozen=True)
class Cyclicity:
    """The cyclic share of a table's logits over the pairs that met, beside what chance makes of
    none.

    Leagues without a cycle, with the same players' strengths and as many matches, show a cyclic
    part too: `by_chance` is the 95th percentile of theirs, in the same unit (the observed ‖P‖²),
    and `p_value` how many show one as large as the observed, which is counted in. NaN where there
    is nothing to split.
    """

    share: float
    by_chance: float
    p_value: float


def cyclicity(table: Table, draws: int, rng: np.random.Generator) -> Cyclicity:
    """A parametric bootstrap (of `draws` leagues) of ‖C‖² under «one number a player explains all».

    Of ‖C‖², not of the share: where all are equal all is noise, and any share of nothing is as
    likely.
    """
    observed = split(logits(table.chance_NN), table.known_NN)
    strength_N = fitted_strengths(table)
    chance_NN = np.clip(expit(strength_N[:, None] - strength_N[None, :]), SURE, 1 - SURE)
    null = [_cyclic_square(replayed(table, chance_NN, rng)) for _ in range(draws)]
    share, square = observed.cyclic_share, float(np.sum(observed.cyclic_NN**2))
    if np.isnan(share):
        return Cyclicity(share, share, share)
    whole = float(np.sum((observed.cyclic_NN + observed.transitive_NN) ** 2))
    p_value = (1 + sum(one >= square for one in null)) / (1 + draws)
    return Cyclicity(
        share, float(np.percentile(null, 95)) / whole if null else float("nan"), p_value
    )


def _cyclic_square(table: Table) -> float:
    return float(np.sum(split(logits(table.chance_NN), table.known_NN).cyclic_NN ** 2))


def fitted_strengths(table: Table) -> Matrix:
    """Strengths in natural logits, mean 0, such that P ≈ σ(r_i − r_j): the fit of the ratings.

    A draw is half a win here, for it is the share of points that is split.
    """
    rows_P, columns_P = np.nonzero(np.triu(table.known_NN, 1))
    pairs = (rows_P, columns_P)
    counts = PairCounts(*pairs, table.wins_NN[pairs], table.draws_NN[pairs], table.wins_NN.T[pairs])
    found = fit(counts, len(table.names), draws_as_halves=True)
    strength_N: Matrix = (found.rating_N - found.rating_N.mean()) / found.points_per_logit
    return strength_N


def replayed(table: Table, chance_NN: Matrix, rng: np.random.Generator) -> Table:
    """As many matches of each pair again, between players of these chances, with draws as often
    as before.
    """
    rows, columns = np.nonzero(np.triu(table.known_NN, 1))
    games_M, p_M = table.games_NN[rows, columns], chance_NN[rows, columns]
    drew_M = table.draw_chances(chance_NN)[rows, columns]
    won_M = p_M - 0.5 * drew_M
    counts_M3 = rng.multinomial(
        games_M.astype(np.int64),
        np.stack([won_M, drew_M, 1 - won_M - drew_M], axis=1).clip(0.0, 1.0),
    )
    wins_NN, draws_NN = np.zeros((2, *table.wins_NN.shape))
    wins_NN[rows, columns], wins_NN[columns, rows] = counts_M3[:, 0], counts_M3[:, 2]
    draws_NN[rows, columns] = draws_NN[columns, rows] = counts_M3[:, 1]
    return replace(table, wins_NN=wins_NN, draws_NN=draws_NN)
