"""Counts of one book's results by pair of players, a pure function of the results."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from league.players import PayoffCell

MOST_STATS = 64
"""Statistics that a table sums, the first ones: the most that a result may hold of a seat."""


@dataclass(slots=True)
class Sums:
    """Over one player's matches against another; `stats` in the order of the table's names."""

    seat0_games: int
    seat0_wins: int
    frames: int
    stats: array[float]


@dataclass(slots=True)
class Counts:
    """Matches of one player against another, from the first one's point of view."""

    wins: int = 0
    draws: int = 0
    losses: int = 0
    sums: Sums | None = None

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses


NO_GAMES = Counts()


class PayoffTable:
    """Counts by ordered pair; both directions are kept, so a row reads at once."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Counts]] = defaultdict(dict)
        self._stats: dict[str, int] = {}  # number of each statistic

    def add(self, seat0: str, seat1: str, outcome: float) -> None:
        """Counts one match, `outcome` being seat 0's; a player against itself is not counted."""
        if seat0 != seat1:
            self.count(seat0, seat1, outcome)
            self.count(seat1, seat0, 1.0 - outcome)

    def count(self, row: str, column: str, outcome: float) -> None:
        """Counts one match for its row alone."""
        counts = self._rows[row].get(column)
        if counts is None:
            counts = self._rows[row][column] = Counts()
        if outcome == 1.0:
            counts.wins += 1
        elif outcome == 0.0:
            counts.losses += 1
        else:
            counts.draws += 1

    def measure(
        self,
        seat0: str,
        seat1: str,
        outcome: float,
        frames: int,
        stats: Iterable[Mapping[str, float]],
    ) -> None:
        """Sums the numbers of a match that `add` has counted, `stats` by seat."""
        if seat0 == seat1:
            return
        pairs = (seat0, seat1), (seat1, seat0)
        for seat, ((row, column), of_seat) in enumerate(zip(pairs, stats, strict=True)):
            counts, numbers = self._rows[row][column], self._stats
            sums = counts.sums
            if sums is None:
                sums = counts.sums = Sums(0, 0, 0, array("d", bytes(8 * len(numbers))))
            if seat == 0:
                sums.seat0_games += 1
                sums.seat0_wins += outcome == 1.0
            sums.frames += frames
            total = sums.stats
            for name, value in of_seat.items():
                number = numbers.get(name)
                if number is None:
                    if len(numbers) == MOST_STATS:
                        continue
                    number = numbers[name] = len(numbers)
                if number >= len(total):
                    total.extend([0.0] * (len(numbers) - len(total)))
                total[number] += value

    def counts(self, row: str, column: str) -> Counts:
        """Counts of `row` against `column`, zeros when they never met."""
        return self._rows.get(row, {}).get(column, NO_GAMES)

    def row(self, name: str) -> dict[str, Counts]:
        """Counts of `name` against each that it met."""
        return dict(self._rows.get(name, {}))

    def cells(
        self, rows: Iterable[str] = (), columns: Iterable[str] = (), *, with_stats: bool = False
    ) -> list[PayoffCell]:
        """Cells of the pairs that met, sorted by row and column; none named means all."""
        wanted_rows, wanted_columns = set(rows), set(columns)
        return [
            self._cell(row, column, counts, with_stats)
            for row in sorted(self._rows)
            if not wanted_rows or row in wanted_rows
            for column, counts in sorted(self._rows[row].items(), key=lambda cell: cell[0])
            if not wanted_columns or column in wanted_columns
        ]

    def _cell(self, row: str, column: str, counts: Counts, with_stats: bool) -> PayoffCell:
        cell = PayoffCell(
            row=row, column=column, wins=counts.wins, draws=counts.draws, losses=counts.losses
        )
        sums = counts.sums
        if sums is None or not with_stats:
            return cell
        totals = zip(self._stats, sums.stats, strict=False)
        return replace(
            cell,
            seat0_games=sums.seat0_games,
            seat0_wins=sums.seat0_wins,
            frames=sums.frames,
            means={name: total / counts.games for name, total in totals},
        )

    def cell(self, row: str, column: str) -> PayoffCell:
        """The cell of one pair with its statistics, zeros when they never met."""
        return self._cell(row, column, self.counts(row, column), with_stats=True)

    def state(self) -> dict[str, Any]:
        """Every number of each cell, as JSON keeps it to the last bit."""
        return {
            "stats": list(self._stats),
            "rows": {
                row: {column: _numbers(counts) for column, counts in cells.items()}
                for row, cells in self._rows.items()
            },
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> PayoffTable:
        """The table that `state` was taken of."""
        table = cls()
        table._stats = {name: number for number, name in enumerate(state["stats"])}
        for row, cells in state["rows"].items():
            for column, (wins, draws, losses, *more) in cells.items():
                sums = Sums(more[0], more[1], more[2], array("d", more[3:])) if more else None
                table._rows[row][column] = Counts(wins, draws, losses, sums)
        return table


def _numbers(counts: Counts) -> list[float]:
    numbers: list[float] = [counts.wins, counts.draws, counts.losses]
    sums = counts.sums
    if sums is not None:
        numbers += [sums.seat0_games, sums.seat0_wins, sums.frames, *sums.stats]
    return numbers
