"""Who beat whom how often, as arrays: what a fit of all games at once reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.players import PayoffCell

Numbers = NDArray[np.int64]
Counts = NDArray[np.float64]


@dataclass(frozen=True)
class PairCounts:
    """Games of each pair that met, P of them; a pair is there once, whichever player comes first.

    Attributes:
        first_P, second_P: numbers of the two players.
        wins_P, draws_P, losses_P: from the first one's side, both seats together.
    """

    first_P: Numbers
    second_P: Numbers
    wins_P: Counts
    draws_P: Counts
    losses_P: Counts

    @property
    def games_P(self) -> Counts:
        return self.wins_P + self.draws_P + self.losses_P

    @classmethod
    def of_games(
        cls, seat0_G: Numbers, seat1_G: Numbers, outcome_G: Counts, players: int
    ) -> PairCounts:
        """Counts of G games; `outcome_G` is seat 0's, in {1, ½, 0}. A player against itself is
        left out.
        """
        seat0_G, seat1_G = np.asarray(seat0_G, np.int64), np.asarray(seat1_G, np.int64)
        rated_G = seat0_G != seat1_G
        seat0_G, seat1_G, outcome_G = (
            seat0_G[rated_G],
            seat1_G[rated_G],
            np.asarray(outcome_G)[rated_G],
        )
        is_swapped_G = seat0_G > seat1_G
        low_G, high_G = np.where(is_swapped_G, (seat1_G, seat0_G), (seat0_G, seat1_G))
        pair_P, of_G = np.unique(low_G * players + high_G, return_inverse=True)
        wins_G = outcome_G == np.where(is_swapped_G, 0.0, 1.0)
        draws_G = outcome_G == 0.5

        def count(which_G: NDArray[np.bool_]) -> Counts:
            return np.bincount(of_G[which_G], minlength=len(pair_P)).astype(np.float64)

        low_P, high_P = np.divmod(pair_P, players)
        return cls(low_P, high_P, count(wins_G), count(draws_G), count(~wins_G & ~draws_G))

    @classmethod
    def of_cells(cls, cells: Iterable[PayoffCell]) -> tuple[PairCounts, list[str]]:
        """Counts of a payoff table, which tells each pair from both sides, and the names of the
        players.
        """
        rows = [cell for cell in cells if cell.row < cell.column]
        names = sorted({name for cell in rows for name in (cell.row, cell.column)})
        number = {name: n for n, name in enumerate(names)}
        numbers = np.array([(number[c.row], number[c.column]) for c in rows], np.int64).reshape(
            -1, 2
        )
        counts = np.array([(c.wins, c.draws, c.losses) for c in rows], np.float64).reshape(-1, 3)
        return cls(*numbers.T, *counts.T), names
