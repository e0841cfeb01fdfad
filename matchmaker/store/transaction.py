"""Writing a league's SQLite file, inside one transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

from league.players import Event, MatchResult, Player
from matchmaker.store import announced, converting
from matchmaker.store.base import Transaction
from matchmaker.store.reader import SqliteReader
from matchmaker.store.rows import (
    AggregateRow,
    AssignmentRow,
    BeatRow,
    DrawRow,
    IncarnationRow,
    ResultRow,
)
from matchmaker.store.seat_stats import StatNames
from matchmaker.store.waiting import ManyRows, WaitingRows


def _insert(table: str, columns: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


_INSERT_PLAYER = _insert("players", converting.PLAYER_COLUMNS)
_ASSIGNMENTS = ManyRows("assignments", converting.ASSIGNMENT_COLUMNS)
_REQUESTS = ManyRows("requests", ("request_id", "method", "fingerprint", "reply", "at"))
_RESULT_COLUMNS = (
    "position",
    "ordinal",
    "incarnation",
    "outcome",
    "frames",
    "failed",
    "failure",
    "finished_at",
    "received_at",
    "late",
    "step0",
    "step1",
    "end_step0",
    "end_step1",
    "stats",
)
_RESULTS = ManyRows("results", _RESULT_COLUMNS)
_Kept = tuple[str, str, bytes]
_KEPT_REPLY = "SELECT request_id, method, fingerprint, reply FROM requests WHERE request_id"
_result_fields = attrgetter(*_RESULT_COLUMNS)


class SqliteTransaction(SqliteReader, Transaction):
    """The one writer's, begun at once; the store ends it. A part of it can be undone by itself."""

    def __init__(
        self, connection: sqlite3.Connection, stat_names: StatNames, expected: Sequence[str] = ()
    ) -> None:
        """`expected`: ids of the requests that it is for."""
        super().__init__(connection, stat_names)
        self.effects: list[Callable[[], None]] = []
        connection.execute("BEGIN IMMEDIATE")
        self._waiting = WaitingRows(connection, (_ASSIGNMENTS, _REQUESTS))
        self._replies: dict[str, _Kept | None] = dict.fromkeys(expected)
        if expected:
            places = ", ".join("?" * len(expected))
            for row in connection.execute(f"{_KEPT_REPLY} IN ({places})", expected):
                self._replies[row["request_id"]] = row["method"], row["fingerprint"], row["reply"]

    @property
    def _connection(self) -> sqlite3.Connection:
        """For whatever is executed: behind the rows that wait."""
        self._waiting.settle()
        return self._opened

    @property
    def is_open(self) -> bool:
        """False also when SQLite itself gave it up, as on a full disk."""
        return self._opened.in_transaction

    @property
    def changes(self) -> int:
        """Rows that its connection has ever changed."""
        return self._opened.total_changes

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def roll_back(self) -> None:
        self._stat_names.forget()
        if self.is_open:
            self._opened.execute("ROLLBACK")

    def begin_part(self) -> None:
        self._waiting.begin_part()

    def keep_part(self) -> None:
        self._waiting.keep_part()

    def undo_part(self) -> None:
        self._stat_names.forget()
        self._waiting.undo_part()
        self.effects.clear()  # those of the parts before have run

    def set_meta(self, key: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def add_player(self, player: Player) -> None:
        self._connection.execute(_INSERT_PLAYER, converting.player_values(player))

    def update_player(self, player: Player) -> None:
        values = (player.state.value, player.milestone, player.name)
        self._connection.execute(
            "UPDATE players SET state = ?, milestone = ? WHERE name = ?", values
        )

    def add_incarnation(self, row: IncarnationRow) -> int:
        cursor = self._connection.execute(
            "INSERT INTO incarnations (worker, player, checkpoint_step, checkpoint_log_position, opened_at, "
            "event_position) VALUES (?, ?, ?, ?, ?, ?)",
            (
                row.worker,
                row.player,
                row.checkpoint_step,
                row.checkpoint_log_position,
                row.opened_at,
                row.event_position,
            ),
        )
        return int(cursor.lastrowid or 0)

    def fence(self, worker: str, by: int) -> list[int]:
        unfenced = "FROM incarnations WHERE worker = ? AND number < ? AND fenced_by IS NULL ORDER BY number"
        numbers = [row["number"] for row in self._all(f"SELECT number {unfenced}", worker, by)]
        self._connection.executemany(
            "UPDATE incarnations SET fenced_by = ? WHERE number = ?",
            [(by, number) for number in numbers],
        )
        return numbers

    def set_beat(self, row: BeatRow) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO heartbeats VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                row.incarnation,
                row.at,
                row.progress,
                row.step,
                row.mix,
                row.activity,
                row.metrics_json,
            ),
        )

    def add_policy(self, policy_hash: str, body_json: str, at: float) -> bool:
        cursor = self._connection.execute(
            "INSERT OR IGNORE INTO policies VALUES (?, ?, ?)", (policy_hash, body_json, at)
        )
        return cursor.rowcount == 1

    def add_draw(self, row: DrawRow) -> int:
        cursor = self._connection.execute(
            "INSERT INTO draws (policy_hash, log_position, event_position, body_json, stream) "
            "VALUES (?, ?, ?, ?, ?)",
            (
                row.policy_hash,
                row.log_position,
                row.event_position,
                converting.packed(row.body_json),
                row.stream,
            ),
        )
        return int(cursor.lastrowid or 0)

    def add_assignments(self, new: Sequence[AssignmentRow]) -> None:
        self._waiting.add(_ASSIGNMENTS, map(converting.assignment_values, new))

    def close_leases(self, ordinals: Iterable[int], state: str, at: float, reason: str) -> None:
        self._connection.execute(
            "UPDATE assignments SET lease_state = ?, closed_at = ?, close_reason = ? "
            "WHERE ordinal IN (SELECT value FROM json_each(?))",
            (state, at, reason, json.dumps(list(ordinals))),
        )

    def extend_leases(self, incarnation: int, deadline: float) -> None:
        self._connection.execute(
            "INSERT INTO lease_extensions VALUES (?, ?) "
            "ON CONFLICT (incarnation) DO UPDATE SET deadline = max(deadline, excluded.deadline)",
            (incarnation, deadline),
        )

    def renew_leases(self, deadline: float) -> None:
        self._connection.execute("DELETE FROM lease_extensions")
        self._connection.execute(
            "UPDATE assignments SET lease_deadline = ? WHERE lease_state = 'open'", (deadline,)
        )

    def add_results(
        self, taken: Sequence[tuple[MatchResult, AssignmentRow, bool]], received_at: float
    ) -> list[ResultRow]:
        newest = self._connection.execute(
            "SELECT ifnull(max(position), 0) FROM results"
        ).fetchone()[0]
        packed, added = self._stat_names.packed, []
        for position, (result, lease, late) in enumerate(taken, start=newest + 1):
            first, second = result.seats
            added.append(
                ResultRow(
                    position,
                    lease.ordinal,
                    lease.match_id,
                    lease.incarnation,
                    lease.seat0,
                    lease.seat1,
                    lease.book,
                    result.outcome,
                    result.frames,
                    result.failed,
                    result.failure,
                    result.finished_at,
                    received_at,
                    late,
                    None,
                    first.step_start,
                    second.step_start,
                    first.step_end,
                    second.step_end,
                    packed(first.stats, second.stats),
                )
            )
        _RESULTS.insert(self._connection, map(_result_fields, added))
        return added

    def announce(self, results: Sequence[ResultRow]) -> int:
        row = announced.row_of(results, results[-1].received_at)
        cursor = self._connection.execute(
            "INSERT INTO events SELECT ifnull(max(position), 0) + ?, ?, ?, ?, ? FROM events",
            (len(results), row.at, row.kind, row.text, row.data_json),
        )
        return int(cursor.lastrowid or 0)

    def lose_results(self, player: str, after: int, by: int) -> int:
        cursor = self._connection.execute(
            "INSERT INTO lost_results SELECT r.position, ? FROM results r "
            "JOIN assignments a USING (ordinal) JOIN incarnations i ON i.number = r.incarnation "
            "LEFT JOIN lost_results l ON l.position = r.position "
            "WHERE r.position > ? AND i.player = ? AND a.book = 'train' AND l.position IS NULL "
            "AND i.worker = (SELECT worker FROM incarnations WHERE number = ?)",
            (by, after, player, by),
        )
        return cursor.rowcount

    def add_events(self, events: Sequence[Event]) -> int:
        self._connection.executemany(
            "INSERT INTO events (at, kind, text, data_json) VALUES (?, ?, ?, ?)",
            [(event.at, event.kind, event.text, event.data_json) for event in events],
        )
        return int(self._connection.execute("SELECT max(position) FROM events").fetchone()[0] or 0)

    def add_aggregates(self, row: AggregateRow) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO aggregates VALUES (?, ?, ?, ?, ?)",
            (row.log_position, row.event_position, row.at, row.digest, row.body),
        )

    def forget_aggregates(self, *, behind: int | None = None, newest: int = 0) -> None:
        if behind is not None:
            self._connection.execute("DELETE FROM aggregates WHERE log_position > ?", (behind,))
            return
        kept = "SELECT log_position FROM aggregates ORDER BY log_position DESC LIMIT ?"
        self._connection.execute(
            f"DELETE FROM aggregates WHERE log_position NOT IN ({kept})", (newest,)
        )

    def forget_requests(self, before: float) -> int:
        return self._connection.execute("DELETE FROM requests WHERE at < ?", (before,)).rowcount

    def after_commit(self, effect: Callable[[], None]) -> None:
        self.effects.append(effect)

    def kept_reply(self, request_id: str) -> _Kept | None:
        """(method, fingerprint, reply) of a request that took effect."""
        if request_id not in self._replies:
            row = self._opened.execute(f"{_KEPT_REPLY} = ?", (request_id,)).fetchone()
            self._replies[request_id] = row and (row["method"], row["fingerprint"], row["reply"])
        return self._replies[request_id]

    def keep_reply(
        self, request_id: str, method: str, fingerprint: str, reply: bytes, at: float
    ) -> None:
        """The last thing of a part: nothing undoes it."""
        self._waiting.add(_REQUESTS, [(request_id, method, fingerprint, reply, at)])
        self._replies[request_id] = method, fingerprint, reply
