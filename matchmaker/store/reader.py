"""Reading a league's SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from league.players import Event, Player
from matchmaker.store import announced, converting
from matchmaker.store.base import Reader
from matchmaker.store.rows import (
    AggregateRow,
    AssignmentRow,
    BeatRow,
    DrawRow,
    IncarnationRow,
    ResultRow,
)
from matchmaker.store.seat_stats import StatNames

NEVER = (1 << 63) - 1
"""A position that no log reaches."""
# By itself SQLite walks past every closed row to spare the sort.
_OPEN = (
    converting.ASSIGNMENT_QUERY.format("INDEXED BY open_leases") + "WHERE a.lease_state = 'open'"
)


class SqliteReader(Reader):
    """Queries over one connection; whoever hands it out sees to its transaction."""

    def __init__(self, connection: sqlite3.Connection, stat_names: StatNames | None = None) -> None:
        self._opened = connection
        self._stat_names = stat_names or StatNames(connection)

    @property
    def _connection(self) -> sqlite3.Connection:
        return self._opened

    def _one(self, sql: str, *values: Any) -> sqlite3.Row | None:
        return self._connection.execute(sql, values).fetchone()

    def _all(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        return self._connection.execute(sql, values).fetchall()

    def select(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._connection.execute(sql, values)]

    def meta(self, key: str) -> str | None:
        row = self._one("SELECT value FROM meta WHERE key = ?", key)
        return None if row is None else row["value"]

    def players(self) -> list[Player]:
        return [
            converting.player_of(row) for row in self._all("SELECT * FROM players ORDER BY ordinal")
        ]

    def incarnation(self, number: int) -> IncarnationRow | None:
        row = self._one("SELECT * FROM incarnations WHERE number = ?", number)
        return None if row is None else IncarnationRow(**row)

    def newest_incarnations(self) -> list[IncarnationRow]:
        newest = "SELECT max(number) FROM incarnations GROUP BY worker"
        query = f"SELECT * FROM incarnations WHERE number IN ({newest}) ORDER BY number"
        return [IncarnationRow(**row) for row in self._all(query)]

    def beat(self, incarnation: int) -> BeatRow | None:
        row = self._one("SELECT * FROM heartbeats WHERE incarnation = ?", incarnation)
        return None if row is None else BeatRow(**row)

    def assignment(self, match_id: str) -> AssignmentRow | None:
        row = self._one(converting.ASSIGNMENT_QUERY.format("") + "WHERE a.match_id = ?", match_id)
        return None if row is None else converting.assignment_of(row)

    def assignments(self, first: int, count: int) -> list[AssignmentRow]:
        query = (
            converting.ASSIGNMENT_QUERY.format("")
            + "WHERE a.ordinal >= ? AND a.ordinal < ? ORDER BY a.ordinal"
        )
        return [converting.assignment_of(row) for row in self._all(query, first, first + count)]

    def matches_beginning(self, start: str, limit: int) -> list[str]:
        query = (
            "SELECT match_id FROM assignments WHERE match_id >= ? AND match_id < ?"
            " ORDER BY match_id LIMIT ?"
        )
        return [row["match_id"] for row in self._all(query, start, f"{start}\x7f", limit)]

    def open_assignments(self, incarnation: int | None = None) -> list[AssignmentRow]:
        query = _OPEN
        if incarnation is None:
            found = self._all(query + " ORDER BY a.ordinal")
        else:
            found = self._all(query + " AND a.incarnation = ? ORDER BY a.ordinal", incarnation)
        return [converting.assignment_of(row) for row in found]

    def open_count(self, incarnation: int) -> int:
        query = "SELECT count(*) FROM assignments WHERE lease_state = 'open' AND incarnation = ?"
        row = self._one(query, incarnation)
        return 0 if row is None else row[0]

    def replacement(self, match_id: str) -> str | None:
        query = "SELECT match_id FROM assignments WHERE replaces = ? AND replaces != '' ORDER BY ordinal DESC"
        row = self._one(query, match_id)
        return None if row is None else row["match_id"]

    def draw(self, number: int) -> DrawRow | None:
        row = self._one("SELECT * FROM draws WHERE number = ?", number)
        return (
            None
            if row is None
            else DrawRow(**{**row, "body_json": converting.unpacked(row["body_json"])})
        )

    def result(self, ordinal: int) -> ResultRow | None:
        row = self._one(converting.RESULT_QUERY + "WHERE r.ordinal = ?", ordinal)
        return None if row is None else converting.result_of(row)

    def results(self, after: int = 0, until: int | None = None) -> Iterator[ResultRow]:
        query = (
            converting.RESULT_QUERY + "WHERE r.position > ? AND r.position <= ? ORDER BY r.position"
        )
        for row in self._connection.execute(query, (after, NEVER if until is None else until)):
            yield converting.result_of(row)

    def stats(self, row: ResultRow) -> tuple[dict[str, float], dict[str, float]]:
        return self._stat_names.unpacked(row.stats)

    def events(self, after: int, limit: int) -> list[Event]:
        query = "SELECT * FROM events WHERE position > ? ORDER BY position LIMIT ?"
        found: list[Event] = []
        for row in self._all(query, after, limit):
            event = Event(**row)
            found += self._announced(event, after) if event.kind == announced.KIND else [event]
            if len(found) >= limit:
                break
        return found[:limit]

    def _announced(self, event: Event, after: int) -> list[Event]:
        """Those of a row of results that are behind `after`."""
        first, last = announced.span_of(event.data_json)
        first = max(first, last + 1 - (event.position - after))
        return list(announced.events_of(list(self.results(first - 1, last)), event.position))

    def policy_json(self, log_position: int) -> str | None:
        row = self._one(
            "SELECT body_json FROM policies WHERE hash = "
            "(SELECT policy_hash FROM draws WHERE log_position <= ? ORDER BY number DESC LIMIT 1)",
            log_position,
        ) or self._one("SELECT body_json FROM policies ORDER BY at DESC LIMIT 1")
        return None if row is None else row["body_json"]

    def events_of(self, *kinds: str) -> list[Event]:
        query = (
            f"SELECT * FROM events WHERE kind IN ({', '.join('?' * len(kinds))}) ORDER BY position"
        )
        return [Event(**row) for row in self._all(query, *kinds)]

    def category_counts(
        self, after: int = 0, until: int | None = None
    ) -> list[tuple[str, str, str, int]]:
        query = (
            "SELECT i.player, a.mix, a.category, count(*) FROM assignments a "
            "JOIN incarnations i ON i.number = a.incarnation "
            "WHERE a.mix != '' AND a.replaces = '' AND a.ordinal > ? AND a.ordinal <= ? GROUP BY 1, 2, 3"
        )
        return [tuple(row) for row in self._all(query, after, NEVER if until is None else until)]

    def match_at(self, position: int) -> str:
        query = "SELECT match_id FROM results JOIN assignments USING (ordinal) WHERE position = ?"
        row = self._one(query, position)
        return "" if row is None else row["match_id"]

    def aggregates(self, until: int | None = None) -> Iterator[AggregateRow]:
        query = "SELECT * FROM aggregates WHERE log_position <= ? ORDER BY log_position DESC"
        for row in self._connection.execute(query, (NEVER if until is None else until,)):
            yield AggregateRow(**row)

    def next_deadline(self, incarnation: int) -> float | None:
        query = f"SELECT min(max(lease_deadline, ifnull(extended, 0))) FROM ({_OPEN}) WHERE incarnation = ?"
        row = self._one(query, incarnation)
        return None if row is None else row[0]

    def overdue(self, now: float, before: float) -> list[AssignmentRow]:
        passed = "a.lease_deadline <= ? AND ifnull(e.deadline, 0) <= ?"
        query = f"{_OPEN} AND ({passed} OR a.lease_deadline <= ?) ORDER BY a.ordinal"
        return [converting.assignment_of(row) for row in self._all(query, now, now, before)]

    def positions(self) -> tuple[int, int, int]:
        row = self._one(
            "SELECT (SELECT ifnull(max(position), 0) FROM results), "
            "(SELECT ifnull(max(position), 0) FROM events), "
            "(SELECT ifnull(max(ordinal), 0) FROM assignments)"
        )
        assert row is not None
        return row[0], row[1], row[2]
