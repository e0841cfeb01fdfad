"""Three-cycles: players of whom the first beats the second, who beats the third, who beats the
first.

Shape suffixes: N players; `x_NN[i, j]` is of i against j.

A cycle is as strong as its weakest side: the least of its three shares. The test: each side is an
exact sign test (more wins than losses, draws left out, one-sided), and the cycle holds if all three
do, so its p-value is the largest of the three (an intersection–union test, Berger 1982). Looking at
many cycles is corrected for on the sides they are made of: p-values of all sides that were played,
both ways, go through Holm's step-down procedure (1979), which asks nothing about how they depend on
each other. With 95 % probability not one of all cycles called sure (adjusted p ≤ .05) is a false
one.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from league.stats.structure.nash import Matrix
from league.stats.structure.table import Table

SURE = 0.05
"""Cycles with an adjusted p-value up to this are called sure."""


@dataclass(frozen=True)
class Cycle:
    """The first of `players` (indices) beats the second, who beats the third, who beats the first.

    `chances`: posterior shares of these three sides, `games` their matches, `p_value` is adjusted.
    """

    players: tuple[int, int, int]
    chances: tuple[float, float, float]
    games: tuple[int, int, int]
    p_value: float

    @property
    def strength(self) -> float:
        """Share of the weakest side, above ½."""
        return min(self.chances)


def side_p_values(table: Table) -> Matrix:
    """Adjusted p-values of «i beats j»; 1 where they never met."""
    wins_NN, losses_NN = table.wins_NN, table.wins_NN.T
    rows, columns = np.nonzero(table.known_NN)
    won, lost = wins_NN[rows, columns], losses_NN[rows, columns]
    adjusted_NN = np.ones(wins_NN.shape)
    adjusted_NN[rows, columns] = holm(binom.sf(won - 1, won + lost, 0.5))
    return adjusted_NN


def holm(p_values: Matrix) -> Matrix:
    """Holm's adjusted p-values: each times how many are not smaller, never falling, 1 at most."""
    order = np.argsort(p_values, kind="stable")
    remaining = np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * remaining))
    return adjusted


def count_cycles(beats_NN: NDArray[np.bool_]) -> int:
    """How many three-cycles there are, each counted once: trace(B³) / 3."""
    beats = beats_NN.astype(np.float32)
    ways_NN = beats @ beats  # small whole numbers, exact in single precision
    return round(float(np.sum(ways_NN.T * beats, dtype=np.float64)) / 3)


def sure_cycles(table: Table) -> int:
    """How many cycles are sure."""
    return count_cycles(side_p_values(table) <= SURE)


def strongest_cycles(table: Table, most: int) -> list[Cycle]:
    """The `most` strongest cycles between players who all met, the strongest first."""
    strength_NN = np.where(table.known_NN & (table.chance_NN > 0.5), table.chance_NN, 0.0)
    levels = np.unique(strength_NN[strength_NN > 0.0])[::-1]
    if most < 1 or not len(levels):
        return []
    enough = bisect_left(
        range(len(levels)), most, key=lambda i: count_cycles(strength_NN >= levels[i])
    )
    strong_NN = strength_NN >= levels[min(enough, len(levels) - 1)]
    p_NN = side_p_values(table)
    found = (_cycle(table, p_NN, players) for players in _cycles(strong_NN))
    return heapq.nsmallest(most, found, key=lambda one: (-one.strength, one.p_value, one.players))


def _cycles(beats_NN: NDArray[np.bool_]) -> Iterator[tuple[int, int, int]]:
    """Every cycle once, beginning with the player of least index."""
    for first in range(len(beats_NN)):
        for second in np.flatnonzero(beats_NN[first]):
            if second > first:
                thirds = np.flatnonzero(beats_NN[second] & beats_NN[:, first])
                yield from ((first, int(second), int(third)) for third in thirds[thirds > first])


def _cycle(table: Table, p_NN: Matrix, players: tuple[int, int, int]) -> Cycle:
    first, second, third = players
    sides = ((first, second), (second, third), (third, first))
    one, two, three = (float(table.chance_NN[side]) for side in sides)
    a, b, c = (int(table.games_NN[side]) for side in sides)
    return Cycle(players, (one, two, three), (a, b, c), max(float(p_NN[side]) for side in sides))
