"""Between SQLite rows and values."""

from __future__ import annotations

import json
import sqlite3
import zlib
from dataclasses import fields
from typing import Any

from league.players import Book, MatchResult, Player, PlayerKind, PlayerState, Role, SeatResult
from matchmaker.store.base import AssignmentRow, ResultRow

PLAYER_COLUMNS = tuple(field.name for field in fields(Player))
ASSIGNMENT_COLUMNS = tuple(field.name for field in fields(AssignmentRow))
RESULT_QUERY = """
SELECT r.position, r.ordinal, a.match_id, r.incarnation, a.seat0, a.seat1, a.book, r.outcome, r.frames,
       r.failed, r.failure, r.finished_at, r.received_at, r.late, l.incarnation AS lost_by, r.seats_json,
       json_extract(r.seats_json, '$[0].step_start') AS step0,
       json_extract(r.seats_json, '$[1].step_start') AS step1
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


def assignment_values(row: AssignmentRow) -> tuple[Any, ...]:
    """In the order of ASSIGNMENT_COLUMNS."""
    return tuple(
        value.value if isinstance(value := getattr(row, name), Book) else value for name in ASSIGNMENT_COLUMNS
    )


def assignment_of(row: sqlite3.Row) -> AssignmentRow:
    values = {name: row[name] for name in ASSIGNMENT_COLUMNS}
    values["book"] = Book(row["book"])
    return AssignmentRow(**values)


def result_of(row: sqlite3.Row) -> ResultRow:
    values = dict(row)
    values["book"] = Book(row["book"])
    values["failed"], values["late"] = bool(row["failed"]), bool(row["late"])
    return ResultRow(**values)


def packed(text: str) -> str | bytes:
    """A draw's body as the file keeps it: compressed where that is shorter, for a long run makes many.

    It holds every candidate's weight. Those follow from the log, but only by folding all of it up to there,
    which no reader of one match could wait for.
    """
    compressed = zlib.compress(text.encode())
    return compressed if len(compressed) < len(text.encode()) else text


def unpacked(kept: str | bytes) -> str:
    """What `packed` was given."""
    return kept if isinstance(kept, str) else zlib.decompress(kept).decode()


def seats_json(result: MatchResult) -> str:
    """Both seats' behaviour as the log keeps it."""
    seats = [
        {
            "player": seat.player,
            "digest": seat.digest,
            "step_start": seat.step_start,
            "step_end": seat.step_end,
            "stats": dict(seat.stats),
        }
        for seat in result.seats
    ]
    return json.dumps(seats, separators=(",", ":"), allow_nan=False)


def match_result_of(row: ResultRow, lease_token: str) -> MatchResult:
    """The result as it was reported."""
    first, second = (SeatResult(**seat) for seat in json.loads(row.seats_json))
    return MatchResult(
        match_id=row.match_id,
        lease_token=lease_token,
        outcome=row.outcome,
        frames=row.frames,
        seats=(first, second),
        failed=row.failed,
        failure=row.failure,
        finished_at=row.finished_at,
    )
