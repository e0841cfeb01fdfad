"""Measures cycles in a league (rock beats scissors beats paper): their share of the payoff, and the
cycles of three players.

Shapes: N players, M pairs that met. `x_NN[i, j]` is the value of player i against player j.

An antisymmetric payoff P is split (Balduzzi et al. 2018, arXiv 1806.02643; Jiang et al. 2011) into

    T_ij = r_i − r_j,  r the least squares fit (r_i = mean_j P_ij where all have met);   C = P − T

with the transitive share ‖T‖² / ‖P‖². Pairs that never met do not count. Noise also looks cyclic,
so the share is compared with simulated leagues without cycles.

A three-cycle has three sides: each player against the player that it beats. The cycle is as strong
as its weakest side. A side is tested by an exact one-sided sign test that leaves out draws, and a
cycle is sure if its three sides pass (intersection-union, Berger 1982). The sides' p-values go
through Holm's step-down procedure (1979). So with 95 % probability, all cycles that are called sure
are real.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.special import betainc

from league.stats.ratings.fit import PairCounts, expected_score, fit
from league.stats.structure.equilibria import Matrix, checked
from league.stats.structure.table import OFF_BOUNDS, Table, logits

SURE = 0.05
"""Largest adjusted p-value of a cycle that is called sure."""


@dataclass(frozen=True)
class Split:
    """Holds the transitive and the cyclic part of a payoff, which add up to the payoff.

    Both parts are 0 for pairs that never met. `strength_N` holds the strengths r, whose mean is 0.
    """

    strength_N: Matrix
    transitive_NN: Matrix
    cyclic_NN: Matrix

    @cached_property
    def cyclic_share(self) -> float:
        """Returns ‖C‖² / ‖P‖² for the payoff P and its cyclic part C, NaN if all payoffs are 0."""
        whole = float(np.sum((self.transitive_NN + self.cyclic_NN) ** 2))
        return float(np.sum(self.cyclic_NN**2)) / whole if whole else float("nan")


def split(payoff_NN: Matrix, known_NN: NDArray[np.bool_] | None = None) -> Split:
    """Splits an antisymmetric payoff into its transitive and its cyclic part.

    If the players fall into groups without matches between them, the strengths of each group have
    mean 0.

    Args:
        payoff_NN: the payoff.
        known_NN: the pairs that have met, None for all.

    Raises:
        InvalidInput: the payoff is not antisymmetric.
    """
    checked(payoff_NN)
    met_NN = np.ones(payoff_NN.shape) if known_NN is None else np.asarray(known_NN, np.float64)
    np.fill_diagonal(met_NN, 0.0)
    payoff_NN = payoff_NN * met_NN
    laplacian_NN = np.diag(met_NN.sum(axis=1)) - met_NN
    # Only differences are determined. The added matrix sets each connected part's mean to 0.
    _, part_N = connected_components(met_NN, directed=False)
    together_NN = part_N[:, None] == part_N[None, :]
    strength_N = np.linalg.solve(laplacian_NN + together_NN, payoff_NN.sum(axis=1))
    transitive_NN = (strength_N[:, None] - strength_N[None, :]) * met_NN
    return Split(strength_N, transitive_NN, payoff_NN - transitive_NN)


@dataclass(frozen=True)
class Cyclicity:
    """Compares the cyclic share of a table's logits with the cyclic shares in leagues without
    cycles.

    These leagues are simulated with the table's strengths and numbers of matches.

    Attributes:
        share: the cyclic share ‖C‖² / ‖P‖² over the pairs that met, NaN if there is nothing to
            split.
        by_chance: 95th percentile of the simulated leagues' ‖C‖², in units of the observed ‖P‖².
        p_value: share of leagues, the observed league included, whose ‖C‖² is at least as large as
            the observed ‖C‖².
    """

    share: float
    by_chance: float
    p_value: float


def cyclicity(table: Table, draws: int, rng: np.random.Generator) -> Cyclicity:
    """Compares ‖C‖², the squared norm of the cyclic part of the table's logits, with its values in
    simulated leagues in which one rating per player explains all results.

    Comparing the cyclic shares would not work: if all players are equal, noise can give any share.

    Args:
        table: the table.
        draws: number of simulated leagues.
        rng: random numbers.

    Returns:
        The comparison.
    """
    observed = split(logits(table.chance_NN), table.known_NN)
    if np.isnan(observed.cyclic_share):
        return Cyclicity(np.nan, np.nan, np.nan)
    chance_NN = fitted_chances(table)

    def cyclic_square(sample: Table) -> float:
        return float(np.sum(split(logits(sample.chance_NN), sample.known_NN).cyclic_NN ** 2))

    null = [cyclic_square(replayed(table, chance_NN, rng)) for _ in range(draws)]
    square = float(np.sum(observed.cyclic_NN**2))
    whole = float(np.sum((observed.cyclic_NN + observed.transitive_NN) ** 2))
    p_value = (1 + sum(value >= square for value in null)) / (1 + draws)
    by_chance = float(np.percentile(null, 95)) / whole if null else float("nan")
    return Cyclicity(observed.cyclic_share, by_chance, p_value)


def fitted_chances(table: Table) -> Matrix:
    """Returns each player's expected share of a match against each other player if one rating per
    player explained all results.
    """
    first_M, second_M = np.nonzero(np.triu(table.known_NN, 1))
    wins_M, losses_M = table.wins_NN[first_M, second_M], table.wins_NN[second_M, first_M]
    counts = PairCounts(first_M, second_M, wins_M, table.draws_NN[first_M, second_M], losses_M)
    fitted = fit(counts, len(table.names))
    gap_NN = (fitted.rating_N[:, None] - fitted.rating_N[None, :]) / fitted.points_per_logit
    return np.clip(expected_score(gap_NN, fitted.nu), OFF_BOUNDS, 1.0 - OFF_BOUNDS)


def replayed(table: Table, chance_NN: Matrix, rng: np.random.Generator) -> Table:
    """Simulates each pair's matches, with the table's share of draws.

    Args:
        table: the pairs and numbers of matches.
        chance_NN: row player's expected share of a match.
        rng: random numbers.
    """
    rows, columns = np.nonzero(np.triu(table.known_NN, 1))
    games_M, p_M = table.games_NN[rows, columns], chance_NN[rows, columns]
    drew_M = table.draw_chances(chance_NN)[rows, columns]
    won_M = p_M - 0.5 * drew_M
    chances_M3 = np.stack([won_M, drew_M, 1 - won_M - drew_M], axis=1).clip(0.0, 1.0)
    counts_M3 = rng.multinomial(np.maximum(games_M.round(), 1).astype(np.int64), chances_M3)
    wins_NN, draws_NN = np.zeros((2, *table.wins_NN.shape))
    wins_NN[rows, columns], wins_NN[columns, rows] = counts_M3[:, 0], counts_M3[:, 2]
    draws_NN[rows, columns] = draws_NN[columns, rows] = counts_M3[:, 1]
    return replace(table, wins_NN=wins_NN, draws_NN=draws_NN)


@dataclass(frozen=True)
class Cycle:
    """Describes three players: the first beats the second, the second the third, the third the
    first.

    Attributes:
        players: indices.
        chances, games: for each of the three sides, the winner's posterior share and the number of
            matches.
        p_value: the cycle's p-value, adjusted for testing all sides in the league.
    """

    players: tuple[int, ...]
    chances: tuple[float, ...]
    games: tuple[int, ...]
    p_value: float

    @property
    def strength(self) -> float:
        """Returns the winner's share on the cycle's weakest side, which is above ½."""
        return min(self.chances)


def side_p_values(table: Table) -> Matrix:
    """Returns the adjusted p-values of "i beats j", 1 if the two players never met."""
    wins_NN, losses_NN = table.wins_NN, table.wins_NN.T
    rows, columns = np.nonzero(table.known_NN)
    won, lost = wins_NN[rows, columns], losses_NN[rows, columns]
    adjusted_NN = np.ones(wins_NN.shape)
    # P(at least `won` wins of won + lost). betainc also takes the fractional wins of games with
    # payoffs.
    adjusted_NN[rows, columns] = holm(np.where(won > 0, betainc(won, lost + 1, 0.5), 1.0))
    return adjusted_NN


def holm(p_values: Matrix) -> Matrix:
    """Returns Holm's adjusted p-values: each p-value times the number of p-values that are not
    smaller, at most 1.
    """
    order = np.argsort(p_values, kind="stable")
    remaining = np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * remaining))
    return adjusted


def count_cycles(beats_NN: NDArray[np.bool_]) -> int:
    """Returns the number of three-cycles, trace(B³) / 3, where B_ij is 1 if i beats j and else
    0.
    """
    beats = beats_NN.astype(np.float32)
    ways_NN = beats @ beats  # small whole numbers, exact in single precision
    return round(float(np.sum(ways_NN.T * beats, dtype=np.float64)) / 3)


def sure_cycles(table: Table) -> int:
    """Returns the number of three-cycles that are sure, because all three sides pass the test."""
    return count_cycles(side_p_values(table) <= SURE)


def strongest_cycles(table: Table, most: int) -> list[Cycle]:
    """Returns up to `most` three-cycles, strongest first. The three players of a cycle have all met
    each other.
    """
    strength_NN = np.where(table.known_NN & (table.chance_NN > 0.5), table.chance_NN, 0.0)
    levels = np.unique(strength_NN[strength_NN > 0.0])[::-1]
    if most < 1 or not len(levels):
        return []
    enough = bisect_left(
        range(len(levels)), most, key=lambda i: count_cycles(strength_NN >= levels[i])
    )
    strong_NN = strength_NN >= levels[min(enough, len(levels) - 1)]
    p_NN = side_p_values(table)
    cycles = (_cycle(table, p_NN, players) for players in _cycles(strong_NN))
    return heapq.nsmallest(
        most, cycles, key=lambda cycle: (-cycle.strength, cycle.p_value, cycle.players)
    )


def _cycles(beats_NN: NDArray[np.bool_]) -> Iterator[tuple[int, int, int]]:
    """Yields every three-cycle once, beginning with its player of least index."""
    for first in range(len(beats_NN)):
        for second in np.flatnonzero(beats_NN[first]):
            if second > first:
                thirds = np.flatnonzero(beats_NN[second] & beats_NN[:, first])
                yield from ((first, int(second), int(third)) for third in thirds[thirds > first])


def _cycle(table: Table, p_NN: Matrix, players: tuple[int, int, int]) -> Cycle:
    sides = list(zip(players, (*players[1:], players[0]), strict=True))
    return Cycle(
        players,
        tuple(float(table.chance_NN[side]) for side in sides),
        tuple(int(table.matches_NN[side]) for side in sides),
        max(float(p_NN[side]) for side in sides),
    )
