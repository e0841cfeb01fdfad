"""Measures cycles in a league (rock beats scissors beats paper): their share of the payoff, and the
cycles of three players.

Shapes: N players, M pairs that met. `x_NN[i, j]` is the value of player i against player j.

An antisymmetric payoff P is split (Balduzzi et al. 2018, arXiv 1806.02643; Jiang et al. 2011) into

    T_ij = r_i − r_j,  r the least squares fit (r_i = mean_j P_ij where all have met);   C = P − T

with the cyclic share ‖C‖² / ‖P‖². Pairs that never met do not count. Noise looks cyclic, too, so
`cyclicity` corrects the share of a table for its noise.

A three-cycle has three sides: each player against the player that it beats. The cycle is as strong
as its weakest side. A side is tested by an exact one-sided sign test that leaves out draws, and a
cycle is sure if its three sides pass (intersection-union, Berger 1982). The sides' p-values go
through Holm's step-down procedure (1979). So with 95 % probability, all cycles that are called sure
are real.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.special import betainc

from league.stats.structure.equilibria import Matrix, checked
from league.stats.structure.table import Table, logits

SURE = 0.05
"""Largest adjusted p-value of a cycle that is called sure."""
TINY = 1e-9
"""Squared norms of logits up to this size are rounding errors."""


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
    known_NN = np.ones(payoff_NN.shape, dtype=bool) if known_NN is None else known_NN
    return _splitter(known_NN)(payoff_NN)


def _splitter(known_NN: NDArray[np.bool_]) -> Callable[[Matrix], Split]:
    """Returns `split` for many payoffs whose known pairs are the same."""
    met_NN = known_NN & ~np.eye(len(known_NN), dtype=bool)
    laplacian_NN = np.diag(met_NN.sum(axis=1)) - met_NN
    # Only differences are determined. The added matrix sets each connected part's mean to 0.
    _, part_N = connected_components(met_NN, directed=False)
    inverse_NN = np.linalg.inv(laplacian_NN + (part_N[:, None] == part_N[None, :]))

    def splits(payoff_NN: Matrix) -> Split:
        payoff_NN = payoff_NN * met_NN
        strength_N = inverse_NN @ payoff_NN.sum(axis=1)
        transitive_NN = (strength_N[:, None] - strength_N[None, :]) * met_NN
        return Split(strength_N, transitive_NN, payoff_NN - transitive_NN)

    return splits


@dataclass(frozen=True)
class Cyclicity:
    """Gives the cyclic share ‖C‖² / ‖P‖² of the true logits P of the pairs that met.

    The observed share would be too large, because noise is mostly cyclic. So the true ‖C‖ is found
    from the observed part C + E, whose noise E is simulated. Each draw of the interval takes logits
    D from the posterior, plays their matches again, and solves

        ‖x C_D + E‖² = ‖observed part‖²,   E = cyclic part of the logits played again, minus C_D

    for x. The values ‖x C_D‖² are draws from a fiducial distribution of ‖C‖² (Hannig 2009, On
    generalized fiducial inference, Statistica Sinica 19). Draws of ‖T‖² come from the same matches.
    The interval has the middle 95 % of ‖C‖² / (‖C‖² + ‖T‖²). The estimate solves the equation for
    the mean noise.

    Observed logits are log((w + ½) / (l + ½)) after w wins and l losses, where a draw is half of
    each. Their bias is of order 1 / (w + l)² (Haldane 1956; Anscombe 1956). They do not depend on
    the ratings, unlike posterior means, which hide cycles of pairs with few matches.

    Attributes:
        share: the estimate, NaN if the observed payoff is no larger than noise.
        low, high: ends of the 95 % interval, 0 and 1 if the matches determine nothing.
    """

    share: float
    low: float
    high: float

    def __str__(self) -> str:
        share = "unknown" if np.isnan(self.share) else f"{self.share:.1%}"
        return f"{share} ({self.low:.1%} to {self.high:.1%})"


def cyclicity(table: Table, draws: int, rng: np.random.Generator) -> Cyclicity:
    """Estimates the cyclic share of a table's logits, with the formulas of `Cyclicity`.

    Where a draw's noise is larger than an observed part, the true part may be 0. Then the lower end
    of the interval counts it as 0. The upper end never counts a part as smaller than if the
    observed part had the size of the mean noise, because a lucky small part proves little.

    Args:
        table: the table.
        draws: number of draws. The interval of fewer than 39 draws is their range.
        rng: random numbers.
    """
    splits = _splitter(table.known_NN)
    observed = splits(_observed_logits(table))
    observed_2 = _products(observed, observed)
    along_D2, across_D2 = np.zeros((2, draws, 2))
    for index in range(draws):
        chance_NN = table.drawn(rng)
        drawn_NN = logits(chance_NN)
        again_NN = _observed_logits(replayed(table, chance_NN, rng))
        drawn, noise = splits(drawn_NN), splits(again_NN - drawn_NN)
        along_D2[index] = _products(drawn, noise) / np.sqrt(_products(drawn, drawn) + TINY)
        across_D2[index] = _products(noise, noise) - along_D2[index] ** 2
    bias_2 = along_D2.mean(axis=0)  # along D only, because it vanishes with the true part
    noise_D2 = across_D2 + (along_D2 - bias_2) ** 2
    least_D2 = np.where(noise_D2 < observed_2, _true(observed_2, along_D2, across_D2), 0.0)
    mean_2 = noise_D2.mean(axis=0)
    most_D2 = _true(np.maximum(observed_2, mean_2), along_D2, across_D2)
    likely_2 = np.where(mean_2 < observed_2, _true(observed_2, bias_2, mean_2), 0.0)
    share = float(_share(likely_2[0], likely_2[1], np.nan))
    lows, highs = _share(least_D2[:, 0], most_D2[:, 1], 0), _share(most_D2[:, 0], least_D2[:, 1], 1)
    # Weibull's percentiles are honest for few draws.
    low, high = (
        float(np.percentile(shares, percent, method="weibull"))
        for shares, percent in ((lows, 2.5), (highs, 97.5))
    )
    return Cyclicity(share, float(np.fmin(low, share)), float(np.fmax(high, share)))


def _observed_logits(table: Table) -> Matrix:
    scored_NN = table.wins_NN + 0.5 * table.draws_NN + 0.5
    return np.asarray(np.log(scored_NN / scored_NN.T))


def _products(one: Split, other: Split) -> Matrix:
    """Returns the inner products of the cyclic and of the transitive parts of two splits."""
    cyclic = np.sum(one.cyclic_NN * other.cyclic_NN)
    return np.array([cyclic, np.sum(one.transitive_NN * other.transitive_NN)])


def _true(observed: Matrix, along: Matrix, across: Matrix) -> Matrix:
    """Solves ‖x D + E‖² = observed, and returns ‖x D‖². If there is no solution, x comes nearest.

    Args:
        observed: squared norms of an observed part.
        along: component of E in the direction of D.
        across: squared norm of the rest of E.
    """
    square = np.maximum(np.sqrt(np.maximum(observed - across, 0.0)) - along, 0.0) ** 2
    return np.where(square > TINY, square, 0.0)


def _share(cyclic: Matrix, transitive: Matrix, empty: float) -> Matrix:
    """Returns ‖C‖² / (‖C‖² + ‖T‖²) of squared norms, `empty` for 0 / 0."""
    whole = np.asarray(cyclic + transitive)
    return np.divide(cyclic, whole, out=np.full(whole.shape, float(empty)), where=whole > 0)


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
