"""``RUN/evaluator/evaluation_results.csv``: one row per snapshot, opponent and book."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from league.errors import DataCorrupt
from league.metrics import wilson_interval
from league.players import Book, MatchResult, PayoffCell, Player
from league.runs.columns import EVALUATION
from league.runs.files import write_whole

COLUMNS = EVALUATION
"""The columns in their order, each with its meaning. `docs/evaluator.md` shows this table."""

KEY = ("player", "opponent", "book")
"""What a row is about: no two rows of the file agree in all of these."""

_STATS = ("damage_dealt", "damage_taken", "knockouts", "falls")
Row = dict[str, str]


def make_row(
    player: Player,
    book: Book,
    cell: PayoffCell,
    results: Sequence[MatchResult],
    frames_per_second: int,
) -> Row:
    """The row of `player` against the cell's column, all values as text.

    The matchmaker counts, so the row agrees with its log. By seat and by side, and in the means,
    are `results`: those of the matches that this process played.
    """
    seats = [0 if result.seats[0].player == player.name else 1 for result in results]
    won = [result.outcome == 1.0 - seat for result, seat in zip(results, seats, strict=True)]
    stats = [result.seats[seat].stats for result, seat in zip(results, seats, strict=True)]
    sides = [of_match.get("spawn_side", 0.0) for of_match in stats]
    newest = max((result.finished_at for result in results), default=time.time())
    interval = wilson_interval(cell.wins, cell.games)

    def won_where(chosen: Sequence[bool]) -> str:
        return _mean([win for win, it_is in zip(won, chosen, strict=True) if it_is])

    return {
        "finished_at": datetime.fromtimestamp(newest, tz=UTC).isoformat(timespec="seconds"),
        "player": player.name,
        "step": str(player.step),
        "opponent": cell.column,
        "book": book.value,
        "matches": str(cell.games),
        "wins": str(cell.wins),
        "draws": str(cell.draws),
        "losses": str(cell.losses),
        "win_rate": _mean([cell.wins / cell.games]),
        "wilson_low": _mean([interval.low]),
        "wilson_high": _mean([interval.high]),
        "win_rate_seat_0": won_where([seat == 0 for seat in seats]),
        "win_rate_seat_1": won_where([seat == 1 for seat in seats]),
        "win_rate_left": won_where([side < 0 for side in sides]),
        "win_rate_right": won_where([side > 0 for side in sides]),
        **{f"{name}_mean": _mean([s[name] for s in stats if name in s]) for name in _STATS},
        "seconds_mean": _mean([result.frames / frames_per_second for result in results]),
    }


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.4f}" if values else ""


class Report:
    """The file at `path`. A write replaces it whole: a kill leaves the old or the new one."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def rows(self) -> list[Row]:
        """What the file holds, nothing when it is missing; `DataCorrupt` on other columns."""
        if not self._path.exists():
            return []
        with self._path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if reader.fieldnames is None:
                return []
            if list(reader.fieldnames) != list(COLUMNS):
                raise DataCorrupt(f"{self._path} has columns of another version: move it away")
            return [dict(row) for row in reader]

    def put(self, rows: Sequence[Row], *, is_whole: bool = True) -> None:
        """Appends rows, or replaces those about the same player, opponent and book. The rows of a
        gauntlet that is not whole have no `finished_at`, and give way to those of a whole one.
        """
        players, known = {row["player"] for row in rows}, self.rows()
        if not is_whole and any(r["finished_at"] and r["player"] in players for r in known):
            return
        known = [row for row in known if row["finished_at"] or row["player"] not in players]
        added = rows if is_whole else [{**row, "finished_at": ""} for row in rows]
        merged = {tuple(row[name] for name in KEY): row for row in [*known, *added]}
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(COLUMNS), lineterminator="\n")
        writer.writeheader()
        writer.writerows(merged.values())
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._path, text.getvalue())
