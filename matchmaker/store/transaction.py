"""Queries over a league's log, and the one writer's transaction.

`db.query` of sqlite-utils reads, its tables insert and upsert. Rows that come by the thousand are
inserted with `executemany`: 64 assignments take 0.6 ms so and 4.3 ms by `insert_all`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any

from sqlite_utils import Database

from league.players import Event, MatchResult, Player, PlayerKind, PlayerState, Role
from matchmaker.store.rows import (
    AssignmentRow,
    BeatRow,
    DrawRow,
    FoldRow,
    IncarnationRow,
    ResultRow,
    book_row,
)

_END = (1 << 63) - 1
_PLAYER_FIELDS = tuple(field.name for field in fields(Player))
_PLAYER_COLUMNS = ", ".join(_PLAYER_FIELDS)
_RESULT_COLUMNS = ResultRow._fields.index("match_id")
_RESULTS = """
SELECT r.position, r.ordinal, r.event_position, a.match_id, r.incarnation, a.seat0, a.seat1, a.book,
       r.outcome, r.frames, r.failed, r.failure, r.finished_at, r.received_at, r.late, r.step0,
       r.step1, r.end_step0, r.end_step1, r.stats_json, l.incarnation AS lost_by
FROM results r JOIN assignments a USING (ordinal) LEFT JOIN lost_results l USING (position)
"""
_GATE_MATCHES = """
SELECT a.ordinal, a.lease_state, a.seat0, a.seed, r.outcome, r.failed, r.late
FROM assignments a INDEXED BY gate_matches LEFT JOIN results r USING (ordinal)
WHERE a.category = 'gate' AND a.ordinal > :after
AND ((a.seat0 = :candidate AND a.seat1 = :victim) OR (a.seat1 = :candidate AND a.seat0 = :victim))
ORDER BY a.ordinal
"""
_DRAWN_AGAINST = """
SELECT ordinal, match_id, CASE learner_seat WHEN 0 THEN seat1 ELSE seat0 END AS opponent
FROM assignments WHERE mix != '' AND replaces = '' AND category != 'victims'
AND opponent IN (SELECT value FROM json_each(:names))
"""
_OUTCOMES = {1.0: "beats", 0.5: "draws with", 0.0: "loses to"}


class Reader:
    """Queries of one connection; the store begins and ends the transaction around them."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def select(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """The rows of any query; values are named as in ``:name``."""
        return [tuple(row) for row in self._db.execute(sql, values)]

    def _rows(self, sql: str, *values: Any) -> Iterator[dict[str, Any]]:
        return self._db.query(sql, values)

    def _row(self, sql: str, *values: Any) -> dict[str, Any] | None:
        return next(iter(self._rows(sql, *values)), None)

    def meta(self, key: str) -> str | None:
        row = self._row("SELECT value FROM meta WHERE key = ?", key)
        return None if row is None else row["value"]

    def players(self) -> list[Player]:
        """All players, in order of registration."""
        rows = self._rows(f"SELECT {_PLAYER_COLUMNS} FROM players ORDER BY ordinal")
        return [_player(row) for row in rows]

    def incarnation(self, number: int) -> IncarnationRow | None:
        row = self._row("SELECT * FROM incarnations WHERE number = ?", number)
        return None if row is None else IncarnationRow(**row)

    def newest_incarnations(self) -> list[IncarnationRow]:
        """The newest incarnation of each worker."""
        newest = "SELECT max(number) FROM incarnations GROUP BY worker"
        query = f"SELECT * FROM incarnations WHERE number IN ({newest}) ORDER BY number"
        return [IncarnationRow(**row) for row in self._rows(query)]

    def beat(self, incarnation: int) -> BeatRow | None:
        """The newest heartbeat of an incarnation."""
        row = self._row("SELECT * FROM heartbeats WHERE incarnation = ?", incarnation)
        return None if row is None else BeatRow(**row)

    def last_mix(self, incarnation: int) -> str:
        """The mix that an incarnation drew from last, "" when it drew none."""
        row = self._row(
            "SELECT mix FROM assignments WHERE incarnation = ? AND mix != '' "
            "ORDER BY ordinal DESC LIMIT 1",
            incarnation,
        )
        return "" if row is None else row["mix"]

    def assignment(self, match_id: str) -> AssignmentRow | None:
        found = self._assignments("WHERE match_id = ?", match_id)
        return found[0] if found else None

    def _assignments(self, where: str, *values: Any) -> list[AssignmentRow]:
        rows = self._rows(f"SELECT * FROM assignments {where}", *values)
        return [AssignmentRow(**book_row(row)) for row in rows]

    def matches_with_prefix(self, prefix: str, limit: int) -> list[AssignmentRow]:
        """The first `limit` assignments whose match id begins with `prefix`."""
        where = "WHERE match_id >= ? AND match_id < ? ORDER BY match_id LIMIT ?"
        return self._assignments(where, prefix, f"{prefix}\x7f", limit)

    def drawn_assignments(self) -> Iterator[AssignmentRow]:
        """Assignments that were drawn from a mix, and not carried over a restart, in order."""
        query = "SELECT * FROM assignments WHERE mix != '' AND replaces = '' ORDER BY ordinal"
        for row in self._rows(query):
            yield AssignmentRow(**book_row(row))

    def open_assignments(self, incarnation: int | None = None) -> list[AssignmentRow]:
        """Open leases of one incarnation, or of all, in order of assignment."""
        if incarnation is None:
            # Without the hint SQLite walks past every closed row to avoid the sort.
            return self._assignments(
                "INDEXED BY open_leases WHERE lease_state = 'open' ORDER BY ordinal"
            )
        where = "WHERE lease_state = 'open' AND incarnation = ? ORDER BY ordinal"
        return self._assignments(where, incarnation)

    def open_leases(self, incarnation: int) -> tuple[int, float | None]:
        """How many leases an incarnation holds open, and the first of their deadlines."""
        ((count, deadline),) = self.select(
            "SELECT count(*), min(lease_deadline) FROM assignments "
            "WHERE lease_state = 'open' AND incarnation = :incarnation",
            incarnation=incarnation,
        )
        return count, deadline

    def open_counts(self) -> dict[int, int]:
        """The number of open leases by incarnation; incarnations without any are left out."""
        return dict(
            self.select(
                "SELECT incarnation, count(*) FROM assignments WHERE lease_state = 'open' GROUP BY 1"
            )
        )

    def gate_matches(self, after: int, candidate: str, victim: str) -> list[tuple[Any, ...]]:
        """A gate's matches above an ordinal, in order: ordinal, lease state, seat 0, seed, outcome,
        whether it failed, whether it came late.
        """
        return self.select(_GATE_MATCHES, after=after, candidate=candidate, victim=victim)

    def drawn_against(self, names: Iterable[str]) -> list[tuple[int, str, str]]:
        """(ordinal, match id, opponent) of matches drawn against these players; the victims that an
        operator names may be any player.
        """
        return self.select(_DRAWN_AGAINST, names=json.dumps([*names]))

    def overdue(self, now: float) -> list[AssignmentRow]:
        """Open leases whose deadline has passed."""
        where = "INDEXED BY open_leases WHERE lease_state = 'open' AND lease_deadline <= ?"
        return self._assignments(f"{where} ORDER BY ordinal", now)

    def draw(self, number: int) -> DrawRow | None:
        row = self._row("SELECT * FROM draws WHERE number = ?", number)
        if row is None:
            return None
        return DrawRow(body_json=zlib.decompress(row.pop("body")).decode(), **row)

    def policy_json(self) -> str | None:
        """The sampling settings that were used last."""
        row = self._row(
            "SELECT body_json FROM policies WHERE hash = "
            "(SELECT policy_hash FROM draws ORDER BY number DESC LIMIT 1)"
        ) or self._row("SELECT body_json FROM policies ORDER BY at DESC LIMIT 1")
        return None if row is None else row["body_json"]

    def result(self, ordinal: int) -> ResultRow | None:
        """The result of the match of an assignment."""
        row = self._row(f"{_RESULTS} WHERE r.ordinal = ?", ordinal)
        return None if row is None else ResultRow(**book_row(row))

    def results(self, after: int = 0, until: int = _END) -> Iterator[ResultRow]:
        """Results of positions above `after` up to `until`, in commit order."""
        query = f"{_RESULTS} WHERE r.position > ? AND r.position <= ? ORDER BY r.position"
        for row in self._rows(query, after, until):
            yield ResultRow(**book_row(row))

    def events(self, after: int, limit: int) -> list[Event]:
        """The first `limit` events after a position."""
        query = "SELECT * FROM events WHERE position > ? ORDER BY position LIMIT ?"
        return [Event(**row) for row in self._rows(query, after, limit)]

    def events_of(self, *kinds: str) -> list[Event]:
        """All events of these kinds, in order; results are not among them."""
        places = ", ".join("?" * len(kinds))
        query = f"SELECT * FROM events WHERE kind != 'result' AND kind IN ({places})"
        return [Event(**row) for row in self._rows(f"{query} ORDER BY position", *kinds)]

    def category_counts(self, after: int = 0, until: int = _END) -> dict[tuple[str, str, str], int]:
        """Matches drawn by (player, mix, category), of ordinals above `after` up to `until`.

        A match that was carried over a restart counts once.
        """
        rows = self.select(
            "SELECT i.player, a.mix, a.category, count(*) FROM assignments a "
            "JOIN incarnations i ON i.number = a.incarnation WHERE a.mix != '' "
            "AND a.replaces = '' AND a.ordinal > :after AND a.ordinal <= :until GROUP BY 1, 2, 3",
            after=after,
            until=until,
        )
        return {(player, mix, category): count for player, mix, category, count in rows}

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
        query = "SELECT * FROM folds ORDER BY log_position DESC"
        return [FoldRow(**row) for row in self._rows(query)]

    def positions(self) -> tuple[int, int, int]:
        """Positions of the newest result and event, and the newest assignment's ordinal."""
        ((result, event, ordinal),) = self.select(
            "SELECT (SELECT ifnull(max(position), 0) FROM results), "
            "(SELECT ifnull(max(position), 0) FROM events), "
            "(SELECT ifnull(max(ordinal), 0) FROM assignments)"
        )
        return result, event, ordinal


class Transaction(Reader):
    """The one writer's transaction; its queries see what it wrote.

    Attributes:
        effects: changes of memory that wait for the commit.
    """

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.effects: list[Callable[[], None]] = []

    def after_commit(self, effect: Callable[[], None]) -> None:
        """Changes memory by `effect` once the transaction is on disk.

        When several requests share a commit, the effects of one run before the next one begins,
        and readers of memory wait until all of them are on disk.
        """
        self.effects.append(effect)

    def _insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        places = ", ".join("?" * len(rows[0]))
        self._db.conn.executemany(f"INSERT INTO {table} VALUES ({places})", rows)

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
        return self._insert_one("incarnations", {**asdict(row), "number": None})

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
        self._db.table("heartbeats").upsert(asdict(row), pk="incarnation")

    def add_policy(self, policy_hash: str, body_json: str, at: float) -> bool:
        """Returns whether the policy is new."""
        if self._row("SELECT 1 FROM policies WHERE hash = ?", policy_hash):
            return False
        self._insert_one("policies", {"hash": policy_hash, "body_json": body_json, "at": at})
        return True

    def add_draw(self, row: DrawRow) -> int:
        """Returns the draw's number."""
        values = {**asdict(row), "number": None}
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
        self, accepted: Sequence[tuple[MatchResult, AssignmentRow, bool]], received_at: float
    ) -> list[ResultRow]:
        """Adds results, each with its lease and whether it came late, and an event for each."""
        newest, newest_event, _ = self.positions()
        rows = []
        for number, (result, lease, late) in enumerate(accepted, start=1):
            first, second = result.seats
            rows.append(
                ResultRow(
                    position=newest + number,
                    ordinal=lease.ordinal,
                    event_position=newest_event + number,
                    match_id=lease.match_id,
                    incarnation=lease.incarnation,
                    seat0=lease.seat0,
                    seat1=lease.seat1,
                    book=lease.book,
                    outcome=result.outcome,
                    frames=result.frames,
                    failed=result.failed,
                    failure=result.failure,
                    finished_at=result.finished_at,
                    received_at=received_at,
                    late=late,
                    step0=first.step_start,
                    step1=second.step_start,
                    end_step0=first.step_end,
                    end_step1=second.step_end,
                    stats_json=_json([dict(first.stats), dict(second.stats)]),
                )
            )
        self._insert("results", [row[:_RESULT_COLUMNS] for row in rows])
        self._insert("events", [_result_event(row) for row in rows])
        return rows

    def lose_results(self, player: str, after: int, by: int) -> int:
        """Marks the results that a learner reported after a position as lost.

        Only train results of the learner's player count, reported by earlier incarnations of the
        worker of the incarnation `by`. Returns how many there are.
        """
        cursor = self._db.execute(
            "INSERT INTO lost_results SELECT r.position, ? FROM results r "
            "JOIN assignments a USING (ordinal) JOIN incarnations i ON i.number = r.incarnation "
            "LEFT JOIN lost_results l ON l.position = r.position "
            "WHERE r.position > ? AND i.player = ? AND a.book = 'train' AND l.position IS NULL "
            "AND i.worker = (SELECT worker FROM incarnations WHERE number = ?)",
            [by, after, player, by],
        )
        return cursor.rowcount

    def add_events(self, events: Sequence[Event]) -> int:
        """Numbers the events; returns the position of the last one."""
        newest = self.positions()[1]
        self._insert(
            "events",
            [
                (position, event.at, event.kind, event.text, event.data_json)
                for position, event in enumerate(events, start=newest + 1)
            ],
        )
        return newest + len(events)

    def add_fold(self, row: FoldRow, keep: int) -> None:
        """Stores a fold and drops all but the `keep` newest."""
        self._db.table("folds").upsert(asdict(row), pk="log_position")
        newest = "SELECT log_position FROM folds ORDER BY log_position DESC LIMIT ?"
        self._db.execute(f"DELETE FROM folds WHERE log_position NOT IN ({newest})", [keep])

    def drop_folds(self, after: int) -> None:
        """Drops the folds of results after a position."""
        self._db.execute("DELETE FROM folds WHERE log_position > ?", [after])

    def reply(self, request_id: str) -> tuple[str, str, bytes] | None:
        """Method, fingerprint and reply of a request that took effect before."""
        row = self._row("SELECT * FROM requests WHERE request_id = ?", request_id)
        if row is None:
            return None
        return row["method"], row["fingerprint"], zlib.decompress(row["reply"])

    def add_reply(
        self, request_id: str, method: str, fingerprint: str, reply: bytes, at: float
    ) -> None:
        values = request_id, method, fingerprint, zlib.compress(reply, 1), at
        self._insert("requests", [values])

    def forget_requests(self, before: float) -> int:
        """Drops the replies of before a time; returns how many."""
        return self._db.execute("DELETE FROM requests WHERE at < ?", [before]).rowcount


def _player(row: dict[str, Any]) -> Player:
    row["kind"], row["role"] = PlayerKind(row["kind"]), Role(row["role"])
    row["state"] = PlayerState(row["state"])
    row["held_out"], row["milestone"] = bool(row["held_out"]), bool(row["milestone"])
    return Player(**row)


def _result_event(row: ResultRow) -> tuple[int, float, str, str, str]:
    text = f"{row.seat0} {_OUTCOMES[row.outcome]} {row.seat1}"
    if row.failed:
        text = f"{row.seat0} against {row.seat1} failed: {row.failure or 'no reason given'}"
    data = {
        "match_id": row.match_id,
        "position": row.position,
        "book": row.book,
        "outcome": row.outcome,
    }
    return row.event_position, row.received_at, "result", text, _json(data)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
