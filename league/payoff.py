"""Who beat whom, how often: counts of one book, a pure function of its results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from league.players import PayoffCell


@dataclass(slots=True)
class Counts:
    """Matches of one player against another, from the first one's point of view."""

    wins: int = 0
    draws: int = 0
    losses: int = 0

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses


NO_GAMES = Counts()


class PayoffTable:
    """Counts by ordered pair; both directions are kept, so a row reads at once."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Counts]] = defaultdict(dict)

    @classmethod
    def of_cells(cls, cells: Iterable[PayoffCell]) -> PayoffTable:
        """The table that gave these `cells`; each is told from one side or both, alike."""
        table = cls()
        for cell in cells:
            table._rows[cell.row][cell.column] = Counts(cell.wins, cell.draws, cell.losses)
            table._rows[cell.column][cell.row] = Counts(cell.losses, cell.draws, cell.wins)
        return table

    def add(self, seat0: str, seat1: str, outcome: float) -> None:
        """Counts one match; `outcome` is seat 0's (1, 0.5, 0). A player against itself is not counted."""
        if seat0 == seat1:
            return
        row0, row1 = self._rows[seat0], self._rows[seat1]
        first, second = row0.get(seat1), row1.get(seat0)
        if first is None or second is None:
            first = row0[seat1] = Counts()
            second = row1[seat0] = Counts()
        if outcome == 1.0:
            first.wins += 1
            second.losses += 1
        elif outcome == 0.0:
            first.losses += 1
            second.wins += 1
        else:
            first.draws += 1
            second.draws += 1

    def counts(self, row: str, column: str) -> Counts:
        """Counts of `row` against `column`, zeros when they never met."""
        return self._rows.get(row, {}).get(column, NO_GAMES)

    def total(self, row: str) -> Counts:
        """Counts of `row` against everybody."""
        cells = self._rows.get(row, {}).values()
        return Counts(sum(c.wins for c in cells), sum(c.draws for c in cells), sum(c.losses for c in cells))

    def cells(self, rows: Iterable[str] = (), columns: Iterable[str] = ()) -> list[PayoffCell]:
        """Cells of the pairs that met, sorted by row and column; none named means all."""
        wanted_rows, wanted_columns = set(rows), set(columns)
        return [
            PayoffCell(row=row, column=column, wins=c.wins, draws=c.draws, losses=c.losses)
            for row in sorted(self._rows)
            if not wanted_rows or row in wanted_rows
            for column, c in sorted(self._rows[row].items())
            if not wanted_columns or column in wanted_columns
        ]
