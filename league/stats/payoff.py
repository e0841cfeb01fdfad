"""Counts of one book's results by pair of players, a pure function of the results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
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

    def add(self, seat0: str, seat1: str, outcome: float) -> None:
        """Counts one match, `outcome` being seat 0's; a player against itself is not counted."""
        if seat0 == seat1:
            return
        mine = self._rows[seat0].setdefault(seat1, Counts())
        its = self._rows[seat1].setdefault(seat0, Counts())
        if outcome == 1.0:
            mine.wins, its.losses = mine.wins + 1, its.losses + 1
        elif outcome == 0.0:
            mine.losses, its.wins = mine.losses + 1, its.wins + 1
        else:
            mine.draws, its.draws = mine.draws + 1, its.draws + 1

    def counts(self, row: str, column: str) -> Counts:
        """Counts of `row` against `column`, zeros when they never met."""
        return self._rows.get(row, {}).get(column, NO_GAMES)

    def row(self, name: str) -> dict[str, Counts]:
        """Counts of `name` against each that it met."""
        return dict(self._rows.get(name, {}))

    def cells(self, rows: Iterable[str] = (), columns: Iterable[str] = ()) -> list[PayoffCell]:
        """Cells of the pairs that met, sorted by row and column; none named means all."""
        wanted_rows, wanted_columns = set(rows), set(columns)
        return [
            PayoffCell(row=row, column=column, wins=c.wins, draws=c.draws, losses=c.losses)
            for row in sorted(self._rows)
            if not wanted_rows or row in wanted_rows
            for column, c in sorted(self._rows[row].items(), key=lambda cell: cell[0])
            if not wanted_columns or column in wanted_columns
        ]

    def state(self) -> dict[str, dict[str, list[int]]]:
        """[wins, draws, losses] of each pair that met, once, by the smaller name and the other."""
        return {
            name: {other: [c.wins, c.draws, c.losses] for other, c in row.items() if name < other}
            for name, row in self._rows.items()
        }

    @classmethod
    def restored(cls, state: Mapping[str, Mapping[str, list[int]]]) -> PayoffTable:
        """The table that `state` was taken of."""
        table = cls()
        for name, others in state.items():
            for other, (wins, draws, losses) in others.items():
                table._rows[name][other] = Counts(wins, draws, losses)
                table._rows[other][name] = Counts(losses, draws, wins)
        return table
