"""Counts the results of a book (all matches of one kind) by pair of players. The counts depend only
on the results.

In games with payoffs, players are compared by their mean payoff, in units of a stake. The stake is
about the mean size of the payments (`Stakes.stake`). A match that pays x is worth ½ + x / (2 ·
stake) points. Such points vary more than wins and losses, so n matches count for n · stake² / x̄²,
where x̄² is the mean square of the payments.
"""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from statistics import NormalDist
from typing import Any

from league.metrics import Measured
from league.players import PayoffCell

MOST_STATS = 64
"""Largest number of statistics that a table sums. A result may hold this many statistics for each
seat.
"""
FEW = 50
"""A pair's mean payment may raise the stake (about the mean size of all payments). For the pair's
mean, `FEW` matches with payment 0 are added to the pair's matches.
"""
LEAST_SQUARES = 1e-200
"""If the sum of the squared payments is below this, all payments count as 0, because floats would
lose them.
"""
USUAL = 10
"""To compute the mean square of a pair's payments, this many matches with the mean square of all
matches are added to the pair's matches.
"""


@dataclass(slots=True)
class Sums:
    """Holds sums over a player's matches against another player. `stats` has a sum for each
    statistic, in the order in which the table first met their names.
    """

    seat0_games: int
    seat0_wins: int
    frames: int
    stats: array[float]


@dataclass(slots=True)
class Counts:
    """Counts the matches of two players from the first player's point of view."""

    wins: int = 0
    draws: int = 0
    losses: int = 0
    sums: Sums | None = None
    paid: float = 0.0
    staked: float = 0.0
    squares: float = 0.0

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses


NO_GAMES = Counts()


@dataclass(slots=True)
class Stakes:
    """Describes the payments in all matches of one kind, by sums over all matches and by the
    largest mean payment between two players.
    """

    games: int = 0
    decided: int = 0
    staked: float = 0.0
    squares: float = 0.0
    most: float = 0.0

    @classmethod
    def of(cls, cells: Iterable[PayoffCell | Counts]) -> Stakes:
        """Returns the `Stakes` of the matches of these pairs of players."""
        stakes = cls()
        for cell in cells:
            stakes.add(cell, cell.games, cell.wins + cell.losses, cell.staked, cell.squares)
        return stakes

    def add(
        self, pair: PayoffCell | Counts, games: int, decided: int, staked: float, squares: float
    ) -> None:
        """Adds further matches of a pair, given by sums.

        Args:
            pair: the pair's counts, which include these matches.
            games: number of matches.
            decided: matches other than draws.
            staked: sum of the payments' absolute values.
            squares: sum of the payments' squares.
        """
        self.games += games
        self.decided += decided
        self.staked += staked
        self.squares += squares
        self.most = max(self.most, abs(pair.paid) / (pair.games + FEW))

    @property
    def stake(self) -> float:
        """Returns the stake: the mean size of the payments other than 0, or more if some pair's
        matches pay more on average.

        It is 0 in games without payoffs.
        """
        if self.squares < LEAST_SQUARES:
            return 0.0
        return max(self.staked / max(self.decided, 1), self.most)

    @property
    def square(self) -> float:
        """Returns the mean square of the payments."""
        return self.squares / self.games if self.games else 0.0

    def counted(self, cell: PayoffCell | Counts) -> tuple[float, float, float]:
        """Returns a pair's wins, draws and losses.

        In games with payoffs, the wins and losses are imaginary matches that each pay one stake.
        Together they carry as much evidence as the pair's matches.
        """
        stake = self.stake
        if not stake or not cell.games:
            return cell.wins, cell.draws, cell.losses
        square = (cell.squares + USUAL * self.square) / (cell.games + USUAL)
        worth = cell.games * stake**2 / square
        won = min(max(0.5 + cell.paid / (2.0 * stake * cell.games), 0.0), 1.0)
        return won * worth, 0.0, (1.0 - won) * worth

    def mean(self, cell: PayoffCell, confidence: float = 0.95) -> Measured | None:
        """Computes the mean payment to the first player in a pair's matches, with an interval.

        The interval adds z² imaginary matches to the pair's matches, where z is the normal quantile
        (Agresti and Coull). The imaginary matches pay 0 on average, and the mean of their squared
        payments equals the mean of all squared payments. So the interval stays wide if there are
        few matches that all paid the same.

        Args:
            cell: the pair's counts.
            confidence: probability that the interval covers the mean.

        Returns:
            The mean and its interval, None in games without payoffs.
        """
        if not self.stake or not cell.games:
            return None
        z = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
        worth = cell.games + z * z
        mean = cell.paid / worth
        half = z * math.sqrt(
            max((cell.squares + z * z * self.square) / worth - mean * mean, 0.0) / worth
        )
        value = cell.paid / cell.games
        return Measured(value, min(mean - half, value), max(mean + half, value))


def paid_each(cells: Collection[PayoffCell]) -> dict[str, float]:
    """Returns the mean payment to each player per match, {} in games without payoffs."""
    paid, games = defaultdict[str, float](float), defaultdict[str, int](int)
    for cell in cells:
        paid[cell.row] += cell.paid
        games[cell.row] += cell.games
    return (
        {name: total / games[name] for name, total in paid.items()}
        if any(cell.squares for cell in cells)
        else {}
    )


class PayoffTable:
    """Counts matches by ordered pair of players. A row has a player's results, from its point of
    view, against each opponent (column). Each match is in two rows, so a row can be read without
    searching the other rows.
    """

    def __init__(self) -> None:
        self.stakes = Stakes()
        self._rows: dict[str, dict[str, Counts]] = defaultdict(dict)
        self._stats: dict[str, int] = {}  # position of each statistic in `Sums.stats`

    def add(self, seat0: str, seat1: str, outcome: float, paid: float = 0.0) -> None:
        """Counts a match. Matches of a player against itself are left out.

        Args:
            seat0, seat1: names of the players.
            outcome: outcome of seat 0: 1, ½ or 0.
            paid: payment to seat 0, negative if seat 0 paid.
        """
        if seat0 != seat1:
            self.count(seat0, seat1, outcome, paid)
            self.count(seat1, seat0, 1.0 - outcome, -paid)
            pair = self._rows[seat0][seat1]
            self.stakes.add(pair, 1, outcome != 0.5, abs(paid), paid * paid)

    def count(self, row: str, column: str, outcome: float, paid: float = 0.0) -> None:
        """Counts a match for only one of its two players.

        Args:
            row, column: names of the player for whom the match is counted, and of its opponent.
            outcome: outcome of the player `row`: 1, ½ or 0.
            paid: payment to `row`, negative if `row` paid.
        """
        counts = self._rows[row].get(column)
        if counts is None:
            counts = self._rows[row][column] = Counts()
        if outcome == 1.0:
            counts.wins += 1
        elif outcome == 0.0:
            counts.losses += 1
        else:
            counts.draws += 1
        if paid:
            counts.paid += paid
            counts.staked += abs(paid)
            counts.squares += paid * paid

    def measure(
        self,
        seat0: str,
        seat1: str,
        outcome: float,
        frames: int,
        stats: Iterable[Mapping[str, float]],
    ) -> None:
        """Sums the statistics of a match that `add` has counted.

        Args:
            seat0, seat1: names of the players.
            outcome: outcome of seat 0.
            frames: frames of the match.
            stats: statistics by seat.
        """
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
        """Returns the counts of `row` against `column`, zeros if they never met."""
        return self._rows.get(row, {}).get(column, NO_GAMES)

    def row(self, name: str) -> dict[str, Counts]:
        """Returns the counts of `name` against each player that it met."""
        return dict(self._rows.get(name, {}))

    def cells(
        self, rows: Iterable[str] = (), columns: Iterable[str] = (), *, with_stats: bool = False
    ) -> list[PayoffCell]:
        """Returns the cells of the pairs that met, sorted by row and column.

        Args:
            rows: names of rows, empty for all.
            columns: names of columns, empty for all.
            with_stats: whether to add frames, seats and mean statistics.
        """
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
            row=row,
            column=column,
            wins=counts.wins,
            draws=counts.draws,
            losses=counts.losses,
            paid=counts.paid,
            staked=counts.staked,
            squares=counts.squares,
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
        """Returns the cell of a pair with its statistics, zeros if they never met."""
        return self._cell(row, column, self.counts(row, column), with_stats=True)

    def state(self) -> dict[str, Any]:
        """Returns all counts and sums in a form that JSON keeps to the last bit."""
        return {
            "stakes": astuple(self.stakes),
            "stats": list(self._stats),
            "rows": {
                row: {column: _numbers(counts) for column, counts in cells.items()}
                for row, cells in self._rows.items()
            },
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> PayoffTable:
        """Returns the table from which `state` was taken."""
        table = cls()
        table.stakes = Stakes(*state["stakes"])
        table._stats = {name: number for number, name in enumerate(state["stats"])}
        for row, cells in state["rows"].items():
            for column, (wins, draws, losses, paid, staked, squares, *more) in cells.items():
                sums = Sums(more[0], more[1], more[2], array("d", more[3:])) if more else None
                counts = Counts(wins, draws, losses, sums, paid, staked, squares)
                table._rows[row][column] = counts
        return table


def _numbers(counts: Counts) -> list[float]:
    numbers: list[float] = [counts.wins, counts.draws, counts.losses]
    numbers += [counts.paid, counts.staked, counts.squares]
    sums = counts.sums
    if sums is not None:
        numbers += [sums.seat0_games, sums.seat0_wins, sums.frames, *sums.stats]
    return numbers
