"""``RUN/evaluator/evaluation_results.csv``: one row per snapshot, opponent and book."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from evaluator.journal import Played
from league.errors import DataCorrupt
from league.metrics import wilson_interval
from league.players import Book, Player
from league.runs.columns import EVALUATION
from league.runs.files import write_whole

COLUMNS = EVALUATION
"""The columns in their order, each with its meaning. `docs/evaluator.md` shows this table."""

KEY = ("player", "opponent", "book")
"""What a row is about: no two rows of the file agree in all of these."""

_STATS = ("damage_dealt", "damage_taken", "knockouts", "falls")
Row = dict[str, str]


def make_row(
    player: Player, opponent: str, book: Book, matches: Sequence[Played], frames_per_second: int
) -> Row:
    """The row of `player` against `opponent` over at least one match, all values as text."""
    wins = sum(m.outcome == 1.0 for m in matches)
    losses = sum(m.outcome == 0.0 for m in matches)
    interval = wilson_interval(wins, len(matches))
    newest = datetime.fromtimestamp(max(m.finished_at for m in matches), tz=UTC)
    side = "spawn_side"
    return {
        "finished_at": newest.isoformat(timespec="seconds"),
        "player": player.name,
        "step": str(player.step),
        "opponent": opponent,
        "book": book.value,
        "matches": str(len(matches)),
        "wins": str(wins),
        "draws": str(len(matches) - wins - losses),
        "losses": str(losses),
        "win_rate": _mean([m.outcome == 1.0 for m in matches]),
        "wilson_low": _mean([interval.low]),
        "wilson_high": _mean([interval.high]),
        "win_rate_seat_0": _mean([m.outcome == 1.0 for m in matches if m.seat == 0]),
        "win_rate_seat_1": _mean([m.outcome == 1.0 for m in matches if m.seat == 1]),
        "win_rate_left": _mean([m.outcome == 1.0 for m in matches if m.stats.get(side, 0.0) < 0]),
        "win_rate_right": _mean([m.outcome == 1.0 for m in matches if m.stats.get(side, 0.0) > 0]),
        **{
            f"{name}_mean": _mean([m.stats[name] for m in matches if name in m.stats])
            for name in _STATS
        },
        "seconds_mean": _mean([m.frames / frames_per_second for m in matches]),
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

    def put(self, rows: Sequence[Row]) -> None:
        """Appends rows, or replaces those about the same player, opponent and book."""
        merged = {tuple(row[name] for name in KEY): row for row in [*self.rows(), *rows]}
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(COLUMNS), lineterminator="\n")
        writer.writeheader()
        writer.writerows(merged.values())
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._path, text.getvalue())
