"""Between SQLite rows and values."""

from __future__ import annotations

import sqlite3
import zlib
from dataclasses import fields
from typing import Any

from league.players import Book, MatchResult, Player, PlayerKind, PlayerState, Role, SeatResult
from matchmaker.store.rows import AssignmentRow, ResultRow

PLAYER_COLUMNS = tuple(field.name for field in fields(Player))
ASSIGNMENT_COLUMNS = AssignmentRow._fields
ASSIGNMENT_QUERY = """
SELECT a.*, e.deadline AS extended
FROM assignments AS a {} LEFT JOIN lease_extensions e ON e.incarnation = a.incarnation
"""
"""With a place for a hint of how to look."""
RESULT_QUERY = """
SELECT r.position, r.ordinal, a.match_id, r.incarnation, a.seat0, a.seat1, a.book, r.outcome, r.frames,
       r.failed, r.failure, r.finished_at, r.received_at, r.late, l.incarnation AS lost_by, r.step0, r.step1,
       r.end_step0, r.end_step1, r.stats
FROM results r JOIN assignments a USING (ordinal) LEFT JOIN lost_results l ON l.position = r.position
"""


def player_values(player: Player) -> tuple[Any, ...]:
    """In the order of PLAYER_COLUMNS."""
    values = {name: getattr(player, name) for name in PLAYER_COLUMNS}
    values |= {"kind": player.kind.value, "role": player.role.value, "state": player.state.value}
    return tuple(values.values())


def player_of(row: sqlite3.Row) -> Player:
    values = {name: row[name] for name in PLAYER_COLUMNS}
    values["kind"], values["role"] = PlayerKind(row["kind"]), Role(row["role"])
    values["state"] = PlayerState(row["state"])
    values["held_out"], values["milestone"] = bool(row["held_out"]), bool(row["milestone"])
    return Player(**values)


_BOOK, _DEADLINE = map(ASSIGNMENT_COLUMNS.index, ("book", "lease_deadline"))
_BOOKS = {book.value: book for book in Book}


def assignment_values(row: AssignmentRow) -> tuple[Any, ...]:
    """In the order of ASSIGNMENT_COLUMNS."""
    return *row[:_BOOK], row.book.value, *row[_BOOK + 1 :]


def assignment_of(row: sqlite3.Row) -> AssignmentRow:
    """`row` has the columns of ASSIGNMENT_QUERY. Progress has moved the deadline of an open
    lease on.
    """
    values = [row[name] for name in ASSIGNMENT_COLUMNS]
    values[_BOOK] = _BOOKS[row["book"]]
    if row["lease_state"] == "open" and row["extended"] is not None:
        values[_DEADLINE] = max(values[_DEADLINE], row["extended"])
    return AssignmentRow(*values)


def result_of(row: sqlite3.Row) -> ResultRow:
    """`row` has the columns of RESULT_QUERY, which are the fields in their order."""
    position, ordinal, match_id, incarnation, seat0, seat1, book, outcome, frames, failed, *left = (
        row
    )
    failure, finished_at, received_at, late, *others = left
    return ResultRow(
        position,
        ordinal,
        match_id,
        incarnation,
        seat0,
        seat1,
        _BOOKS[book],
        outcome,
        frames,
        bool(failed),
        failure,
        finished_at,
        received_at,
        bool(late),
        *others,
    )


def packed(text: str) -> str | bytes:
    """A draw's body as the file keeps it: compressed where that is shorter, for a long run makes
    many.

    It holds every candidate's weight. Those follow from the log, but only by folding all of it up
    to there, which no reader of one match could wait for.
    """
    compressed = zlib.compress(text.encode(), 1)  # more would take as long as finding the weights
    return compressed if len(compressed) < len(text.encode()) else text


def unpacked(kept: str | bytes) -> str:
    """What `packed` was given."""
    return kept if isinstance(kept, str) else zlib.decompress(kept).decode()


def reported(
    row: ResultRow,
    lease: AssignmentRow,
    digests: tuple[str, str],
    stats: tuple[dict[str, float], ...],
) -> MatchResult:
    """The result as it was reported; a report's names, digests and token are those of its lease."""
    first = SeatResult(
        player=lease.seat0,
        digest=digests[0],
        step_start=row.step0,
        step_end=row.end_step0,
        stats=stats[0],
    )
    second = SeatResult(
        player=lease.seat1,
        digest=digests[1],
        step_start=row.step1,
        step_end=row.end_step1,
        stats=stats[1],
    )
    return MatchResult(
        match_id=row.match_id,
        lease_token=lease.lease_token,
        outcome=row.outcome,
        frames=row.frames,
        seats=(first, second),
        failed=row.failed,
        failure=row.failure,
        finished_at=row.finished_at,
    )
