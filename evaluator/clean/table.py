"""``RUN/evaluator/evaluation_results.csv``: a row per snapshot, opponent and book."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from league.metrics import wilson_interval
from league.players import Book, PayoffCell, Player, PlayerKind
from league.runs.columns import EVALUATION
from league.runs.files import write_whole

COLUMNS = EVALUATION
"""The columns in their order, each with its meaning. `docs/evaluator.md` shows this table."""
_STATS = ("damage_dealt", "damage_taken", "knockouts", "falls")
Row = dict[str, str]


def make_row(player: Player, book: Book, cell: PayoffCell, frames_per_second: int) -> Row:
    """Returns the row of `player` against the opponent `cell.column`, with all values as text."""
    interval = wilson_interval(cell.wins, cell.games)
    seat1_games, seat1_wins = cell.games - cell.seat0_games, cell.wins - cell.seat0_wins
    return {
        "player": player.name,
        "step": str(player.step),
        "opponent": cell.column,
        "book": book.value,
        "matches": str(cell.games),
        "wins": str(cell.wins),
        "draws": str(cell.draws),
        "losses": str(cell.losses),
        "win_rate": _ratio(cell.wins, cell.games),
        "wilson_low": f"{interval.low:.4f}",
        "wilson_high": f"{interval.high:.4f}",
        "win_rate_seat_0": _ratio(cell.seat0_wins, cell.seat0_games),
        "win_rate_seat_1": _ratio(seat1_wins, seat1_games),
        **{
            f"{name}_mean": f"{cell.means[name]:.4f}" if name in cell.means else ""
            for name in _STATS
        },
        "seconds_mean": _ratio(cell.frames, cell.games * frames_per_second),
    }


def _ratio(part: float, whole: float) -> str:
    return f"{part / whole:.4f}" if whole else ""


def write_table(
    path: Path,
    players: Mapping[str, Player],
    cells: Iterable[tuple[Book, PayoffCell]],
    frames_per_second: int,
) -> None:
    """Writes the rows of all snapshots.

    It replaces the whole file at once, so a kill leaves either the old file or the new file.
    Several evaluators may write the file, because each of them writes all matches in the log.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    for book, cell in cells:
        player = players.get(cell.row)
        if player is not None and player.kind is PlayerKind.SNAPSHOT and cell.games:
            writer.writerow(make_row(player, book, cell, frames_per_second))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.getvalue())
