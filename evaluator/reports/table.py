"""``RUN/evaluator/evaluation_results.csv``: one row per snapshot, opponent and book."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from evaluator.journal import Played
from league.errors import DataCorrupt
from league.metrics import Mean, wilson_interval
from league.players import Book, Player
from league.runs.columns import EVALUATION
from league.runs.files import write_whole

COLUMNS = EVALUATION
"""The columns in their order, each with its meaning. `docs/evaluator.md` shows this table."""

KEY = ("player", "opponent", "book")
"""What a row is about: no two rows of the file agree in all of these."""

_STATS = ("damage_dealt", "damage_taken", "knockouts", "falls")
Row = dict[str, str]


def _number(value: float) -> str:
    return "" if value != value else f"{value:.4f}"  # NaN: no matches


def _win_rate(matches: Iterable[Played]) -> str:
    rate = Mean()
    for match in matches:
        rate = rate.add(float(match.outcome == 1.0))
    return _number(rate.value)


def _mean_stat(matches: Sequence[Played], name: str) -> str:
    mean = Mean()
    for match in matches:
        if name in match.stats:
            mean = mean.add(match.stats[name])
    return _number(mean.value)


def make_row(
    player: Player, opponent: str, book: Book, matches: Sequence[Played], frames_per_second: int
) -> Row:
    """The row of `player` against `opponent` over at least one match, all values as text."""
    wins = sum(m.outcome == 1.0 for m in matches)
    losses = sum(m.outcome == 0.0 for m in matches)
    interval = wilson_interval(wins, len(matches))
    frames = Mean(float(sum(m.frames for m in matches)), len(matches))
    newest = datetime.fromtimestamp(max(m.finished_at for m in matches), tz=UTC)
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
        "win_rate": _number(wins / len(matches)),
        "wilson_low": _number(interval.low),
        "wilson_high": _number(interval.high),
        "win_rate_seat_0": _win_rate(m for m in matches if m.slot.seat == 0),
        "win_rate_seat_1": _win_rate(m for m in matches if m.slot.seat == 1),
        "win_rate_left": _win_rate(m for m in matches if m.stats.get("spawn_side", 0.0) < 0),
        "win_rate_right": _win_rate(m for m in matches if m.stats.get("spawn_side", 0.0) > 0),
        **{f"{name}_mean": _mean_stat(matches, name) for name in _STATS},
        "seconds_mean": _number(frames.value / frames_per_second),
    }


class Report:
    """The file at `path`. A write replaces it whole, so a kill leaves either the old or the new
    one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def rows(self) -> list[Row]:
        """What the file holds, none when there is no file. Raises `DataCorrupt` on other
        columns.
        """
        if not self._path.exists():
            return []
        with self._path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if reader.fieldnames is None:
                return []
            if list(reader.fieldnames) != list(COLUMNS):
                raise DataCorrupt(
                    f"{self._path} has other columns than this version writes: move it away"
                )
            return [dict(row) for row in reader]

    def put(self, rows: Sequence[Row]) -> None:
        """Appends rows; a row about the same player, opponent and book is replaced.

        Raises `StorageFull` when the disk is full; the old file is whole then.
        """
        if not rows:
            return
        merged = {tuple(row[name] for name in KEY): row for row in [*self.rows(), *rows]}
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(COLUMNS), lineterminator="\n")
        writer.writeheader()
        writer.writerows(merged.values())
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._path, text.getvalue())
