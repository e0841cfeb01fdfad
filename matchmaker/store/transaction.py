"""Queries over a league's log, and the one writer's transaction."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import chain
from typing import Any, TypeVar

from sqlite_utils import Database

from league.players import Book, Event, MatchResult, Player, PlayerKind, PlayerState, Role
from matchmaker.store.rows import (
    AssignmentRow,
    BeatRow,
    DrawRow,
    FoldRow,
    IncarnationRow,
    ResultRow,
)

T = TypeVar("T")
_END = (1 << 63) - 1
_PLAYER_FIELDS = tuple(field.name for field in fields(Player))
_EVENT_FIELDS = tuple(field.name for field in fields(Event))
_RESULT_COLUMNS = ResultRow._fields.index("match_id")
_RESULTS = """
SELECT r.*, a.match_id, a.seat0, a.seat1, a.book, a.category, l.incarnation
FROM results r JOIN assignments a USING (ordinal) LEFT JOIN lost_results l USING (position)
"""
_GATE_MATCHES = """
SELECT a.ordinal, a.lease_state, a.seat0, a.seed, r.outcome, r.failed, r.late
FROM assignments a INDEXED BY gate_matches LEFT JOIN results r USING (ordinal)
WHERE a.category = 'gate' AND a.ordinal > :after
AND ((a.seat0 = :candidate AND a.seat1 = :victim) OR (a.seat1 = :candidate AND a.seat0 = :victim))
ORDER BY a.ordinal
"""
_BOOKS = {book.value: book for book in Book}
_BOOK = AssignmentRow._fields.index("book")
_encoded = json.JSONEncoder(separators=(",", ":")).encode


class Reader:
    """Queries of one connection; the store begins and ends the transaction around them."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def select(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """The rows of any query; values are named as in ``:name``."""
        return self._db.execute(sql, values).fetchall()

    def _rows(self, make: Callable[[Any], T], sql: str, *values: Any) -> list[T]:
        return [make(row) for row in self._db.execute(sql, values)]

    def _row(self, make: Callable[[Any], T], sql: str, *values: Any) -> T | None:
        row = self._db.execute(sql, values).fetchone()
        return None if row is None else make(row)

    def meta(self, key: str) -> str | None:
        return self._row(_first, "SELECT value FROM meta WHERE key = ?", key)

    def players(self) -> list[Player]:
        """All players, in order of registration."""
        columns = ", ".join(_PLAYER_FIELDS)
        return self._rows(_player, f"SELECT {columns} FROM players ORDER BY ordinal")

    def incarnation(self, number: int) -> IncarnationRow | None:
        query = "SELECT * FROM incarnations WHERE number = ?"
        return self._row(IncarnationRow._make, query, number)

    def newest_incarnations(self) -> list[IncarnationRow]:
        """The newest incarnation of each worker."""
        newest = "SELECT max(number) FROM incarnations GROUP BY worker"
        query = f"SELECT * FROM incarnations WHERE number IN ({newest}) ORDER BY number"
        return self._rows(IncarnationRow._make, query)

    def opened_at(self) -> dict[int | None, int]:
        """Positions of the events that opened incarnations, by their numbers."""
        return dict(self.select("SELECT number, event_position FROM incarnations"))

    def beat(self, incarnation: int) -> BeatRow | None:
        """The newest heartbeat of an incarnation."""
        query = "SELECT * FROM heartbeats WHERE incarnation = ?"
        return self._row(BeatRow._make, query, incarnation)

    def last_mix(self, incarnation: int) -> str:
        """The mix that an incarnation drew from last, "" when it drew none."""
        query = "SELECT mix FROM assignments WHERE incarnation = ? AND mix != ''"
        return self._row(_first, f"{query} ORDER BY ordinal DESC LIMIT 1", incarnation) or ""

    def last_step(self, incarnation: IncarnationRow) -> int:
        """The learner's step in an incarnation's newest result, or else at its checkpoint."""
        query = (
            "SELECT iif(learner_seat = 0, end_step0, end_step1) "
            "FROM results r JOIN assignments USING (ordinal) "
            "WHERE r.event_position > ? AND r.incarnation = ? AND learner_seat >= 0 "
            "ORDER BY r.event_position DESC LIMIT 1"
        )
        found = self._row(_first, query, incarnation.event_position, incarnation.number)
        return incarnation.checkpoint_step if found is None else int(found)

    def assignment(self, match_id: str) -> AssignmentRow | None:
        return self.assignments([match_id]).get(match_id)

    def assignments(self, match_ids: Collection[str]) -> dict[str, AssignmentRow]:
        """The assignments with these ids; unknown ids are left out."""
        where = "WHERE match_id IN (SELECT value FROM json_each(?))"
        return {row.match_id: row for row in self._assignments(where, json.dumps([*match_ids]))}

    def _assignments(self, where: str, *values: Any) -> list[AssignmentRow]:
        return self._rows(_assignment, f"SELECT * FROM assignments {where}", *values)

    def matches_with_prefix(self, prefix: str, limit: int) -> list[AssignmentRow]:
        """The first `limit` assignments whose match id begins with `prefix`."""
        where = "WHERE match_id >= ? AND match_id < ? ORDER BY match_id LIMIT ?"
        return self._assignments(where, prefix, f"{prefix}\x7f", limit)

    def drawn_assignments(self) -> Iterator[AssignmentRow]:
        """Assignments that were drawn from a mix, and not carried over a restart, in order."""
        query = "SELECT * FROM assignments WHERE mix != '' AND replaces = '' ORDER BY ordinal"
        return map(_assignment, self._db.execute(query))

    def open_assignments(
        self, incarnation: int | None = None, until: float = float("inf")
    ) -> list[AssignmentRow]:
        """Open leases, of one incarnation or all, with deadlines up to `until`, in order."""
        # Without the hint SQLite walks past every closed row to avoid the sort.
        where = "INDEXED BY open_leases WHERE lease_state = 'open' AND lease_deadline <= ?"
        if incarnation is not None:
            where += f" AND incarnation = {incarnation:d}"
        return self._assignments(f"{where} ORDER BY ordinal", until)

    def open_leases(self, incarnation: int) -> tuple[int, float | None]:
        """How many leases of an incarnation are open, and their first deadline, None without."""
        query = "SELECT count(*), min(lease_deadline) FROM assignments"
        return self.select(
            f"{query} WHERE lease_state = 'open' AND incarnation = :number", number=incarnation
        )[0]

    def open_counts(self) -> dict[int, int]:
        """The number of open leases by incarnation; incarnations without any are left out."""
        where = "FROM assignments WHERE lease_state = 'open'"
        return dict(self.select(f"SELECT incarnation, count(*) {where} GROUP BY 1"))

    def gate_matches(self, after: int, candidate: str, victim: str) -> list[tuple[Any, ...]]:
        """A gate's matches above an ordinal, in order; `_GATE_MATCHES` has the columns."""
        return self.select(_GATE_MATCHES, after=after, candidate=candidate, victim=victim)

    def draw(self, number: int) -> DrawRow | None:
        row = self._row(DrawRow._make, "SELECT * FROM draws WHERE number = ?", number)
        return row and row._replace(body_json=zlib.decompress(row.body_json).decode())  # type: ignore[arg-type]

    def policy_json(self) -> str | None:
        """The sampling settings that were used last."""
        newest = "SELECT policy_hash FROM draws ORDER BY number DESC LIMIT 1"
        query = f"SELECT body_json FROM policies ORDER BY hash = ({newest}) DESC, at DESC LIMIT 1"
        return self._row(_first, query)

    def result(self, ordinal: int) -> ResultRow | None:
        """The result of the match of an assignment."""
        return self._row(_result, f"{_RESULTS} WHERE r.ordinal = ?", ordinal)

    def results(self, after: int = 0, until: int = _END) -> Iterator[ResultRow]:
        """Results of positions above `after` up to `until`, in commit order."""
        query = f"{_RESULTS} WHERE r.position > ? AND r.position <= ? ORDER BY r.position"
        return map(_result, self._db.execute(query, [after, until]))

    def events(self, after: int, limit: int) -> list[Event]:
        """The first `limit` events after a position, results among them."""
        query = "SELECT * FROM all_events WHERE position > ? ORDER BY position LIMIT ?"
        return self._rows(_event, query, after, limit)

    def events_of(self, *kinds: str) -> list[Event]:
        """All events of these kinds, in order; results are not among them."""
        query = "SELECT * FROM events WHERE kind IN (SELECT value FROM json_each(?))"
        return self._rows(_event, f"{query} ORDER BY position", json.dumps(kinds))

    def category_counts(self, after: int = 0, until: int = _END) -> dict[tuple[str, str, str], int]:
        """Matches drawn by (player, mix, category) above `after`, up to `until`; carried once."""
        rows = self.select(
            "SELECT i.player, a.mix, a.category, count(*) FROM assignments a "
            "JOIN incarnations i ON i.number = a.incarnation WHERE a.mix != '' "
            "AND a.replaces = '' AND a.ordinal > :after AND a.ordinal <= :until GROUP BY 1, 2, 3",
            after=after,
            until=until,
        )
        return {tuple(key): count for *key, count in rows}

    def counts(self) -> dict[str, int]:
        """How many players, assignments, results and lost results there are."""
        tables = ("players", "assignments", "results", "lost_results")
        return {table: self._db.table(table).count for table in tables}

    def lease_counts(self) -> dict[str, int]:
        """Assignments by the state of their lease, and results whose lease had expired."""
        states = ("open", "reported", "expired", "abandoned", "released")
        found = self.select("SELECT lease_state, count(*) FROM assignments GROUP BY 1")
        late = self._db.table("results").count_where("late")
        return dict.fromkeys(states, 0) | dict(found) | {"late": late}

    def folds(self) -> list[FoldRow]:
        """Stored folds, newest first."""
        return self._rows(FoldRow._make, "SELECT * FROM folds ORDER BY log_position DESC")

    def positions(self) -> tuple[int, int, int]:
        """Positions of the newest result and event, and the newest assignment's ordinal."""
        ((result, of_result, event, ordinal),) = self.select(
            "SELECT (SELECT max(position) FROM results), (SELECT max(event_position) FROM results),"
            " (SELECT max(position) FROM events), (SELECT max(ordinal) FROM assignments)"
        )
        return result or 0, max(of_result or 0, event or 0), ordinal or 0


class Transaction(Reader):
    """The one writer's transaction; its queries see what it wrote."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.effects: list[Callable[[], None]] = []

    def after_commit(self, effect: Callable[[], None]) -> None:
        """Changes memory by `effect` once the transaction is on disk; in a shared commit, before
        the next request begins, while readers of memory wait.
        """
        self.effects.append(effect)

    def _insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Inserts 16 rows a statement, since each statement hands Python's lock to another thread.

        64 assignments take 0.4 ms, by `insert_all` of sqlite-utils 1.2 ms.
        """
        for first in range(0, len(rows), 16):
            part = rows[first : first + 16]
            places = ", ".join([f"({', '.join('?' * len(part[0]))})"] * len(part))
            values = [*chain.from_iterable(part)]
            self._db.conn.execute(f"INSERT INTO {table} VALUES {places}", values)

    def _insert_one(self, table: str, row: dict[str, Any]) -> int:
        return int(self._db.table(table).insert(row).last_rowid or 0)

    def set_meta(self, key: str, value: str) -> None:
        self._db.table("meta").upsert({"key": key, "value": value}, pk="key")

    def add_player(self, player: Player) -> None:
        self._insert_one("players", {name: getattr(player, name) for name in _PLAYER_FIELDS})

    def update_player(self, player: Player) -> None:
        """Writes the state and the milestone; nothing else of a player ever changes."""
        self._db.execute(
            "UPDATE players SET state = ?, milestone = ? WHERE name = ?",
            [player.state, player.milestone, player.name],
        )

    def add_incarnation(self, row: IncarnationRow) -> int:
        """Ignores `row.number` and returns the new one."""
        return self._insert_one("incarnations", {**row._asdict(), "number": None})

    def fence(self, worker: str, by: int) -> list[int]:
        """Marks the worker's unfenced incarnations before `by` and returns them."""
        rows = self.select(
            "UPDATE incarnations SET fenced_by = :by WHERE worker = :worker AND number < :by "
            "AND fenced_by IS NULL RETURNING number",
            worker=worker,
            by=by,
        )
        return sorted(number for (number,) in rows)

    def set_beat(self, row: BeatRow) -> None:
        self._db.table("heartbeats").upsert(row._asdict(), pk="incarnation")

    def add_policy(self, policy_hash: str, body_json: str, at: float) -> bool:
        """Returns whether the policy is new."""
        row = {"hash": policy_hash, "body_json": body_json, "at": at}
        before = self._db.table("policies").count
        self._db.table("policies").insert(row, ignore=True)
        return self._db.table("policies").count > before

    def add_draw(self, row: DrawRow) -> int:
        """Returns the draw's number."""
        values = {**row._asdict(), "number": None}
        values["body"] = zlib.compress(values.pop("body_json").encode(), 1)
        return self._insert_one("draws", values)

    def add_assignments(self, rows: Sequence[AssignmentRow]) -> None:
        self._insert("assignments", rows)

    def close_leases(self, ordinals: Iterable[int], state: str, at: float, reason: str) -> None:
        self._db.conn.executemany(
            "UPDATE assignments SET lease_state = ?, closed_at = ?, close_reason = ? "
            "WHERE ordinal = ?",
            [(state, at, reason, ordinal) for ordinal in ordinals],
        )

    def extend_leases(self, incarnation: int, deadline: float) -> None:
        """Moves the deadlines of the incarnation's open leases: never back, never past a limit."""
        self._db.execute(
            "UPDATE assignments SET lease_deadline = min(max(lease_deadline, ?), lease_limit) "
            "WHERE lease_state = 'open' AND incarnation = ?",
            [deadline, incarnation],
        )

    def renew_leases(self, deadline: float, limit: float) -> None:
        """Gives every open lease this deadline and limit, also where it had later ones."""
        self._db.execute(
            "UPDATE assignments SET lease_deadline = ?, lease_limit = ? WHERE lease_state = 'open'",
            [deadline, limit],
        )

    def add_results(
        self, accepted: Sequence[tuple[MatchResult, AssignmentRow]], received_at: float
    ) -> list[ResultRow]:
        """Adds results, each with its lease; one whose lease has expired is late."""
        newest, newest_event, _ = self.positions()
        rows = [
            ResultRow(
                position=newest + number,
                ordinal=lease.ordinal,
                event_position=newest_event + number,
                incarnation=lease.incarnation,
                outcome=result.outcome,
                frames=result.frames,
                failed=result.failed,
                failure=result.failure,
                finished_at=result.finished_at,
                received_at=received_at,
                late=lease.lease_state == "expired",
                step0=result.seats[0].step_start,
                step1=result.seats[1].step_start,
                end_step0=result.seats[0].step_end,
                end_step1=result.seats[1].step_end,
                stats_json=_encoded([seat.stats for seat in result.seats]),
                match_id=lease.match_id,
                seat0=lease.seat0,
                seat1=lease.seat1,
                book=lease.book,
                category=lease.category,
            )
            for number, (result, lease) in enumerate(accepted, start=1)
        ]
        self._insert("results", [row[:_RESULT_COLUMNS] for row in rows])
        return rows

    def lose_results(self, player: str, after: int, by: int) -> int:
        """Marks a player's train results that `by`'s worker reported after a position as lost."""
        cursor = self._db.execute(
            "INSERT INTO lost_results SELECT r.position, ? FROM results r "
            "JOIN assignments a USING (ordinal) JOIN incarnations i ON i.number = r.incarnation "
            "LEFT JOIN lost_results l ON l.position = r.position "
            "WHERE r.position > ? AND i.player = ? AND a.book = 'train' AND l.position IS NULL "
            "AND i.worker = (SELECT worker FROM incarnations WHERE number = ?)",
            [by, after, player, by],
        )
        return cursor.rowcount

    def add_event(self, at: float, kind: str, text: str, data_json: str) -> Event:
        """Numbers the event, after all others and all results."""
        position = self.positions()[1] + 1
        self._insert("events", [(position, at, kind, text, data_json)])
        return Event(position=position, at=at, kind=kind, text=text, data_json=data_json)

    def add_fold(self, row: FoldRow, keep: int) -> None:
        """Stores a fold and drops all but the `keep` newest."""
        self._db.table("folds").upsert(row._asdict(), pk="log_position")
        newest = "SELECT log_position FROM folds ORDER BY log_position DESC LIMIT ?"
        self._db.execute(f"DELETE FROM folds WHERE log_position NOT IN ({newest})", [keep])

    def drop_folds(self, after: int) -> None:
        """Drops the folds of results after a position."""
        self._db.execute("DELETE FROM folds WHERE log_position > ?", [after])

    def reply(self, request_id: str) -> tuple[str, str, bytes] | None:
        """Method, fingerprint and reply of a request that took effect before."""
        query = "SELECT method, fingerprint, reply FROM requests WHERE request_id = ?"
        row = self._row(tuple, query, request_id)
        return row and (row[0], row[1], zlib.decompress(row[2]))

    def add_reply(
        self, request_id: str, method: str, fingerprint: str, reply: bytes, at: float
    ) -> None:
        values = request_id, method, fingerprint, zlib.compress(reply, 1), at
        self._insert("requests", [values])

    def forget_requests(self, before: float) -> int:
        """Drops the replies of before a time; returns how many."""
        return self._db.execute("DELETE FROM requests WHERE at < ?", [before]).rowcount


def _first(row: Sequence[Any]) -> Any:
    return row[0]


def _player(row: Sequence[Any]) -> Player:
    values = dict(zip(_PLAYER_FIELDS, row, strict=True))
    values |= {"kind": PlayerKind(values["kind"]), "role": Role(values["role"])}
    values |= {name: bool(values[name]) for name in ("held_out", "milestone")}
    return Player(**values | {"state": PlayerState(values["state"])})


def _assignment(row: Sequence[Any]) -> AssignmentRow:
    return AssignmentRow._make((*row[:_BOOK], _BOOKS[row[_BOOK]], *row[_BOOK + 1 :]))


def _result(row: Sequence[Any]) -> ResultRow:
    return ResultRow._make((*row[:-3], _BOOKS[row[-3]], *row[-2:]))


def _event(row: Sequence[Any]) -> Event:
    return Event(**dict(zip(_EVENT_FIELDS, row, strict=True)))
