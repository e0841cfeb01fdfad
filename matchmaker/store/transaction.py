"""Reads a league's log, and writes it in the writer's transaction."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple, fields, replace
from itertools import chain
from typing import Any

from sqlite_utils import Database

from league.errors import DataCorrupt
from league.players import (
    Book,
    Event,
    MatchLine,
    MatchResult,
    Player,
    PlayerKind,
    PlayerState,
    Role,
)
from matchmaker.store.rows import (
    AssignmentRow,
    BeatRow,
    DrawRow,
    FoldRow,
    IncarnationRow,
    ResultRow,
    as_stored,
    checksum,
    sealed,
)

_END = (1 << 63) - 1
_EVENT_FIELDS = tuple(field.name for field in fields(Event))
_LEASE = AssignmentRow._fields.index("lease_state")
_RESULT_COLUMNS = ResultRow._fields.index("match_id")
_PLAYER_COLUMNS = ("ordinal", *(field.name for field in fields(Player)), "crc")
_SELECT = {
    "players": f"SELECT {', '.join(_PLAYER_COLUMNS)} FROM players",
    "results": f"""
SELECT {", ".join(f"r.{name}" for name in ResultRow._fields[:_RESULT_COLUMNS])},
a.match_id, a.seat0, a.seat1, a.book, a.category, l.incarnation, r.crc
FROM results r JOIN assignments a USING (ordinal) LEFT JOIN lost_results l USING (position)
""",
}
"""Queries for the tables whose columns differ from the columns of the row type. A result also has
columns of its match.
"""
_COVERED = {"assignments": _LEASE, "results": ResultRow._fields.index("lost_by")}
"""Number of columns that a row's checksum covers, in tables where the checksum does not cover every
column.
"""
TABLES = (
    *("meta", "players", "incarnations", "heartbeats", "policies", "draws", "assignments"),
    *("results", "lost_results", "events", "requests", "folds"),
)
_GATE_MATCHES = (
    "INDEXED BY gate_matches WHERE category = 'gate' AND ordinal > ? "
    "AND ((seat0 = ? AND seat1 = ?) OR (seat1 = ? AND seat0 = ?)) ORDER BY ordinal"
)
_BOOKS = {book.value: book for book in Book}
_BOOK = AssignmentRow._fields.index("book")
_encoded = json.JSONEncoder(separators=(",", ":")).encode


class Reader:
    """Queries the log in a transaction that the store begins and ends.

    A query raises `DataCorrupt` if a row's checksum is wrong. So all returned rows are as they were
    written.
    """

    def __init__(self, db: Database, *, verifies: bool = True) -> None:
        self._db = db
        self._verifies = verifies

    def unverified(self) -> Reader:
        """Returns a reader that also returns damaged rows, so that these rows can be listed."""
        self._db.conn.text_factory = lambda text: text.decode(errors="backslashreplace")
        return Reader(self._db, verifies=False)

    def interrupt(self) -> None:
        """Interrupts a query that is running in another thread."""
        with suppress(sqlite3.ProgrammingError):  # the query has ended
            self._db.conn.interrupt()

    def select(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """Returns the rows of any query, in which ``:name`` stands for the value `name`."""
        return self._db.execute(sql, values).fetchall()

    def _rows(self, table: str, where: str = "", *values: Any) -> Iterator[tuple[Any, ...]]:
        """Yields rows of a table without their checksums."""
        covered, select = _COVERED.get(table, -1), _SELECT.get(table, f"SELECT * FROM {table}")
        for row in self._db.execute(f"{select} {where}", values):
            if self._verifies and checksum(row[:covered]) != row[-1]:
                raise DataCorrupt(
                    f"row {row[0]!s:.80} of {table} in the league's log is damaged: restore a "
                    "backup (bin/league fsck names all that is damaged)"
                )
            yield row[:-1]

    def verify(self, table: str) -> None:
        """Checks all rows of a table, even rows with damaged keys, which queries by key don't
        find.
        """
        for _ in self._rows(table):
            pass

    def damaged_rows(self) -> Iterator[str]:
        """Names every row whose checksum is wrong."""
        for table in TABLES:
            covered, select = _COVERED.get(table, -1), _SELECT.get(table, f"SELECT * FROM {table}")
            for row in self._db.execute(select):
                if checksum(row[:covered]) != row[-1]:
                    yield f"{table} {row[0]!s:.80}"

    def meta(self, key: str) -> str | None:
        return next((value for _, value in self._rows("meta", "WHERE key = ?", key)), None)

    def players(self) -> list[Player]:
        """Returns all players in order of registration."""
        return [_player(row) for row in self._rows("players", "ORDER BY ordinal")]

    def _incarnations(self, where: str, *values: Any) -> list[IncarnationRow]:
        return [IncarnationRow._make(row) for row in self._rows("incarnations", where, *values)]

    def incarnations(self, until: int = _END) -> list[IncarnationRow]:
        """Returns the incarnations (starts of workers) up to a log position, in order."""
        return self._incarnations("WHERE event_position <= ? ORDER BY number", until)

    def incarnations_of(self, worker: str) -> list[IncarnationRow]:
        return self._incarnations("WHERE worker = ? ORDER BY number", worker)

    def incarnation(self, number: int) -> IncarnationRow | None:
        return next(iter(self._incarnations("WHERE number = ?", number)), None)

    def newest_incarnations(self) -> list[IncarnationRow]:
        """Returns the newest incarnation of each worker."""
        newest = "SELECT max(number) FROM incarnations GROUP BY worker"
        return self._incarnations(f"WHERE number IN ({newest}) ORDER BY number")

    def beat(self, incarnation: int) -> BeatRow | None:
        """Returns the newest heartbeat of an incarnation (start of a worker)."""
        rows = self._rows("heartbeats", "WHERE incarnation = ?", incarnation)
        return next(map(BeatRow._make, rows), None)

    def last_mix(self, incarnation: int) -> str:
        """Returns the mix from which an incarnation (start of a worker) last drew opponents, "" if
        it never drew opponents.
        """
        newest = "WHERE incarnation = ? AND mix != '' ORDER BY ordinal DESC LIMIT 1"
        return next((row.mix for row in self._assignments(newest, incarnation)), "")

    def last_step(self, incarnation: IncarnationRow) -> int:
        """Returns the learner's step in the newest result of an incarnation (start of a worker), or
        without a result, in the incarnation's checkpoint.
        """
        newest = (
            "WHERE r.event_position > ? AND r.incarnation = ? AND a.learner_seat >= 0 "
            "ORDER BY r.event_position DESC LIMIT 1"
        )
        for row in self._rows("results", newest, incarnation.event_position, incarnation.number):
            result = _result(row)
            lease = self.assignments([result.match_id])[result.match_id]
            return result.end_step1 if lease.learner_seat else result.end_step0
        return incarnation.checkpoint_step

    def assignment(self, match_id: str) -> AssignmentRow | None:
        return self.assignments([match_id]).get(match_id)

    def assignments(self, match_ids: Collection[str]) -> dict[str, AssignmentRow]:
        """Returns the assignments with these ids. Unknown ids are left out."""
        where = "WHERE match_id IN (SELECT value FROM json_each(?))"
        return {row.match_id: row for row in self._assignments(where, json.dumps([*match_ids]))}

    def _assignments(self, where: str, *values: Any) -> Iterator[AssignmentRow]:
        return map(_assignment, self._rows("assignments", where, *values))

    def matches_with_prefix(self, prefix: str, limit: int) -> list[AssignmentRow]:
        """Returns the first `limit` assignments whose match id begins with `prefix`."""
        where = "WHERE match_id >= ? AND match_id < ? ORDER BY match_id LIMIT ?"
        return list(self._assignments(where, prefix, f"{prefix}\x7f", limit))

    def all_assignments(self, after: int = 0, until: int = _END) -> Iterator[AssignmentRow]:
        """Yields assignments with ordinals above `after` and up to `until`, in order."""
        where = "WHERE ordinal > ? AND ordinal <= ? ORDER BY ordinal"
        return self._assignments(where, after, until)

    def drawn_assignments(self, after: int = 0, until: int = _END) -> Iterator[AssignmentRow]:
        """Yields assignments that were drawn from a mix and not carried over a restart."""
        return (row for row in self.all_assignments(after, until) if row.mix and not row.replaces)

    def open_assignments(
        self, incarnation: int | None = None, until: float = float("inf")
    ) -> list[AssignmentRow]:
        """Returns the open leases of an incarnation, or of all incarnations (None), in order of
        assignment. Leases with a deadline after `until`, in Unix seconds, are left out.
        """
        # Without the hint SQLite scans all closed rows to avoid sorting.
        where = "INDEXED BY open_leases WHERE lease_state = 'open' AND lease_deadline <= ?"
        if incarnation is not None:
            where += f" AND incarnation = {incarnation:d}"
        return list(self._assignments(f"{where} ORDER BY ordinal", until))

    def open_leases(self, incarnation: int) -> tuple[int, float | None]:
        """Returns the number of an incarnation's open leases, and their earliest deadline (None
        without leases).
        """
        query = "SELECT count(*), min(lease_deadline) FROM assignments"
        return self.select(
            f"{query} WHERE lease_state = 'open' AND incarnation = :number", number=incarnation
        )[0]

    def closed_without_result(self) -> list[tuple[str, str, float, str]]:
        """Returns the match id, lease state, closing time and reason of each lease that was closed
        without a result.
        """
        return self.select(
            "SELECT match_id, lease_state, closed_at, close_reason FROM assignments "
            "LEFT JOIN results r USING (ordinal) WHERE lease_state != 'open' AND r.position IS NULL"
        )

    def seats_since(self, since: float) -> list[tuple[str, str]]:
        """Returns the pairs of players that have a match whose lease is open or was closed at
        `since` or later.
        """
        played = "WHERE closed_at IS NULL OR closed_at >= :since"
        return self.select(f"SELECT DISTINCT seat0, seat1 FROM assignments {played}", since=since)

    def open_counts(self) -> dict[int, int]:
        """Returns the number of open leases by incarnation. Incarnations without open leases are
        left out.
        """
        where = "FROM assignments WHERE lease_state = 'open'"
        return dict(self.select(f"SELECT incarnation, count(*) {where} GROUP BY 1"))

    def gate_matches(
        self, after: int, candidate: str, victim: str
    ) -> list[tuple[AssignmentRow, ResultRow | None]]:
        """Returns the matches of a gate (a candidate's test) against a victim, in order of
        assignment, each with its result or None. Only matches with ordinals above `after` are
        returned.
        """
        leases = list(self._assignments(_GATE_MATCHES, after, *(candidate, victim) * 2))
        ordinals = json.dumps([lease.ordinal for lease in leases])
        rows = self._rows(
            "results", "WHERE r.ordinal IN (SELECT value FROM json_each(?))", ordinals
        )
        results = {row.ordinal: row for row in map(_result, rows)}
        return [(lease, results.get(lease.ordinal)) for lease in leases]

    def gate_match_count(self, after: int, candidate: str, victim: str) -> int:
        """Returns how many matches a gate (a candidate's test) has against a victim. Only matches
        with ordinals above `after` count.
        """
        count = f"SELECT count(*) FROM assignments {_GATE_MATCHES}"
        return int(self._db.execute(count, (after, *(candidate, victim) * 2)).fetchone()[0])

    def draw(self, number: int) -> DrawRow | None:
        row = next(map(DrawRow._make, self._rows("draws", "WHERE number = ?", number)), None)
        return row and row._replace(body_json=zlib.decompress(row.body_json).decode())  # pyrefly: ignore[bad-argument-type]

    def draw_positions(self) -> list[tuple[int, int]]:
        """Returns (event position, number) of every draw, sorted by position."""
        return self.select("SELECT event_position, number FROM draws ORDER BY 1, 2")

    def policy_json(self) -> str | None:
        """Returns the sampling settings that were used last."""
        newest = "SELECT policy_hash FROM draws ORDER BY number DESC LIMIT 1"
        rows = self._rows("policies", f"ORDER BY hash = ({newest}) DESC, at DESC LIMIT 1")
        return next((body_json for _, body_json, _ in rows), None)

    def result(self, ordinal: int) -> ResultRow | None:
        """Returns the result of the match with this ordinal (number of the assignment), or None."""
        return next(map(_result, self._rows("results", "WHERE r.ordinal = ?", ordinal)), None)

    def match_lines(
        self,
        player: str,
        opponent: str,
        book: Book | None,
        category: str,
        since: int,
        until: int,
        limit: int,
    ) -> list[MatchLine]:
        """Returns the newest results that pass all filters, newest first.

        Args:
            player, opponent, category: filters, "" for any.
            book: filter by kind of match, None for any.
            since: smallest log position of a result.
            until: results at this log position and later are left out.
            limit: largest number of results.
        """
        rows = self.select(
            "SELECT r.position, a.match_id, a.seat0, a.seat1, a.book, a.category, r.outcome, "
            "r.frames, r.failed, r.received_at "
            "FROM results r JOIN assignments a ON a.ordinal = r.ordinal "
            "WHERE r.position >= :since AND r.position < :until "
            "AND (:book = '' OR a.book = :book) AND (:category = '' OR a.category = :category) "
            "AND (:player = '' "
            "OR (a.seat0 = :player AND (:opponent = '' OR a.seat1 = :opponent)) "
            "OR (a.seat1 = :player AND (:opponent = '' OR a.seat0 = :opponent))) "
            "ORDER BY r.position DESC LIMIT :limit",
            player=player,
            opponent=opponent,
            book=book.value if book else "",
            category=category,
            since=since,
            until=until,
            limit=limit,
        )
        return [
            MatchLine(
                position=position,
                match_id=match_id,
                seats=(seat0, seat1),
                book=Book(listed),
                category=kind,
                outcome=outcome,
                frames=frames,
                failed=bool(failed),
                received_at=at,
            )
            for position, match_id, seat0, seat1, listed, kind, outcome, frames, failed, at in rows
        ]

    def results(self, after: int = 0, until: int = _END) -> Iterator[ResultRow]:
        """Yields results with log positions above `after` and up to `until`, in commit order. A
        missing result raises `DataCorrupt`.
        """
        self.verify("lost_results")
        where = "WHERE r.position > ? AND r.position <= ? ORDER BY r.position"
        for wanted, row in enumerate(self._rows("results", where, after, until), after + 1):
            if row[0] != wanted and self._verifies:
                raise DataCorrupt(
                    f"result {wanted} of the league's log is missing: restore a backup"
                )
            yield _result(row)

    def clean_results(self) -> Iterator[ResultRow]:
        """Yields results of matches in which both players are frozen, in commit order."""
        return map(_result, self._rows("results", "WHERE a.book != 'train' ORDER BY r.position"))

    def events(self, after: int, limit: int) -> list[Event]:
        """Returns the first `limit` events after a position, results included."""
        where = "WHERE position > ? ORDER BY position LIMIT ?"
        others = map(_event, self._rows("events", where, after, limit))
        where = "WHERE r.event_position > ? ORDER BY r.event_position LIMIT ?"
        results = map(_event_of, map(_result, self._rows("results", where, after, limit)))
        return sorted([*others, *results], key=lambda event: event.position)[:limit]

    def events_of(self, *kinds: str, after: int = 0) -> list[Event]:
        """Returns all events of these kinds after a position, in order, without results."""
        rows = self._rows("events", "WHERE position > ? ORDER BY position", after)
        return [event for event in map(_event, rows) if event.kind in kinds]

    def category_counts(self, after: int = 0, until: int = _END) -> Counter[tuple[str, str, str]]:
        """Counts the drawn matches with ordinals above `after` and up to `until`, by (player, mix,
        category). A match that was leased again after its worker's restart counts once.
        """
        players = {row.number: row.player for row in self.incarnations()}
        return Counter(
            (players[row.incarnation], row.mix, row.category)
            for row in self.drawn_assignments(after, until)
            if row.incarnation
            in players  # a copy by `copy_as_of` may lack an incarnation from its last second
        )

    def counts(self) -> dict[str, int]:
        """Returns the number of players, assignments, results and lost results."""
        tables = ("players", "assignments", "results", "lost_results")
        return {table: self._db.table(table).count for table in tables}

    def lease_counts(self) -> dict[str, int]:
        """Counts assignments by the state of their lease, and (as "late") results that came after
        their lease had expired.
        """
        states = ("open", "reported", "expired", "abandoned", "released")
        counts = self.select("SELECT lease_state, count(*) FROM assignments GROUP BY 1")
        late = self._db.table("results").count_where("late")
        return dict.fromkeys(states, 0) | dict(counts) | {"late": late}

    def folds(self) -> list[FoldRow]:
        """Returns stored folds (states of the league), newest first."""
        return [FoldRow._make(row) for row in self._rows("folds", "ORDER BY log_position DESC")]

    def positions(self) -> tuple[int, int, int]:
        """Returns the positions of the newest result and event, and the newest assignment's
        ordinal.
        """
        ((result, of_result, event, ordinal),) = self.select(
            "SELECT (SELECT max(position) FROM results), (SELECT max(event_position) FROM results),"
            " (SELECT max(position) FROM events), (SELECT max(ordinal) FROM assignments)"
        )
        return result or 0, max(of_result or 0, event or 0), ordinal or 0


class Transaction(Reader):
    """Writes the log as its only writer. Its queries see its own changes."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.effects: list[Callable[[], None]] = []

    def after_commit(self, effect: Callable[[], None]) -> None:
        """Adds a function that updates memory. Readers of memory see the update once the
        transaction is on disk.

        If requests share a commit, the function runs before the next request begins, and readers
        of memory wait until the commit has ended.
        """
        self.effects.append(effect)

    def _insert(self, table: str, rows: Sequence[Sequence[Any]], verb: str = "INSERT INTO") -> None:
        """Inserts 16 rows per statement, because each statement releases Python's interpreter lock
        to other threads.

        64 assignments take 0.4 ms. With `insert_all` of sqlite-utils they take 1.2 ms.
        """
        for first in range(0, len(rows), 16):
            batch = rows[first : first + 16]
            places = ", ".join([f"({', '.join('?' * len(batch[0]))})"] * len(batch))
            values = [*chain.from_iterable(batch)]
            self._db.conn.execute(f"{verb} {table} VALUES {places}", values)

    def _put(self, table: str, row: Sequence[Any]) -> None:
        """Inserts a row, or replaces the row with the same key."""
        self._insert(table, [sealed(row)], "INSERT OR REPLACE INTO")

    def _next(self, table: str, column: str) -> int:
        newest = self.select(f"SELECT max({column}) FROM {table}")[0][0]
        return (newest or 0) + 1

    def set_meta(self, key: str, value: str) -> None:
        self._put("meta", (key, value))

    def add_player(self, player: Player) -> None:
        self._insert("players", [sealed((self._next("players", "ordinal"), *astuple(player)))])

    def update_player(self, player: Player) -> None:
        """Writes the player's state and whether it is a milestone. No other field of a player ever
        changes.
        """
        for row in self._rows("players", "WHERE name = ?", player.name):
            changed = replace(_player(row), state=player.state, milestone=player.milestone)
            *_, crc = sealed((row[0], *astuple(changed)))
            self._db.execute(
                "UPDATE players SET state = ?, milestone = ?, crc = ? WHERE ordinal = ?",
                [player.state, player.milestone, crc, row[0]],
            )

    def add_incarnation(self, row: IncarnationRow) -> int:
        """Stores an incarnation and returns its number. If `row.number` is 0, it gets the next
        number.
        """
        row = row._replace(number=row.number or self._next("incarnations", "number"))
        self._insert("incarnations", [sealed(row)])
        return row.number

    def fence(self, worker: str, by: int) -> list[int]:
        """Marks a worker's incarnations before `by` as fenced, so that their calls are refused.
        Returns the numbers of incarnations that were not fenced before.
        """
        where = "WHERE worker = ? AND number < ? AND fenced_by IS NULL ORDER BY number"
        rows = self._incarnations(where, worker, by)
        for row in rows:
            *_, crc = sealed(row._replace(fenced_by=by))
            update = "UPDATE incarnations SET fenced_by = ?, crc = ? WHERE number = ?"
            self._db.execute(update, [by, crc, row.number])
        return [row.number for row in rows]

    def set_beat(self, row: BeatRow) -> None:
        self._put("heartbeats", row)

    def add_policy(self, policy_hash: str, body_json: str, at: float) -> bool:
        """Stores a policy (the settings on which draws depend), and returns whether it is new."""
        if policy_hash in [stored for stored, *_ in self._rows("policies")]:
            return False
        self._insert("policies", [sealed((policy_hash, body_json, at))])
        return True

    def add_draw(self, row: DrawRow) -> int:
        """Stores a draw, and returns its number."""
        number = self._next("draws", "number")
        body = zlib.compress(row.body_json.encode(), 1)
        self._insert("draws", [sealed((number, *row[1:-1], body))])
        return number

    def add_assignments(self, rows: Sequence[AssignmentRow]) -> None:
        # these values already have their stored form
        self._insert("assignments", [(*row, checksum(row[:_LEASE])) for row in rows])

    def close_leases(self, ordinals: Iterable[int], state: str, at: float, reason: str) -> None:
        """Closes leases with a state and a reason. `at` is in Unix seconds."""
        self._db.conn.executemany(
            "UPDATE assignments SET lease_state = ?, closed_at = ?, close_reason = ? "
            "WHERE ordinal = ?",
            [(state, at, reason, ordinal) for ordinal in ordinals],
        )

    def extend_leases(self, incarnation: int, deadline: float) -> None:
        """Extends the deadlines of an incarnation's open leases, up to each lease's limit."""
        self._db.execute(
            "UPDATE assignments SET lease_deadline = min(max(lease_deadline, ?), lease_limit) "
            "WHERE lease_state = 'open' AND incarnation = ?",
            [deadline, incarnation],
        )

    def renew_leases(self, deadline: float, limit: float, incarnation: int | None = None) -> None:
        """Sets the deadlines and limits of an incarnation's open leases, or of all open leases
        (None). Deadlines and limits may become earlier than before.
        """
        self._db.execute(
            "UPDATE assignments SET lease_deadline = ?, lease_limit = ? "
            "WHERE lease_state = 'open' AND incarnation = coalesce(?, incarnation)",
            [deadline, limit, incarnation],
        )

    def add_results(
        self, accepted: Sequence[tuple[MatchResult, AssignmentRow]], received_at: float
    ) -> list[ResultRow]:
        """Adds results, each given with its lease. A result is marked as late if its lease has
        expired.

        `received_at` is in Unix seconds.
        """
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
        covered = _COVERED["results"]
        self._insert(
            "results",
            [(*row[:_RESULT_COLUMNS], checksum(as_stored(row[:covered]))) for row in rows],
        )
        return rows

    def lose_results(self, player: str, after: int, by: int) -> int:
        """Marks a player's training results after a position as lost if an earlier incarnation of
        the same worker reported them.

        Args:
            player: the live player.
            after: log position of the checkpoint.
            by: the new incarnation of the player's worker.

        Returns:
            How many results were marked.
        """
        positions = self.select(
            "SELECT r.position FROM results r "
            "JOIN assignments a USING (ordinal) JOIN incarnations i ON i.number = r.incarnation "
            "LEFT JOIN lost_results l ON l.position = r.position "
            "WHERE r.position > :after AND i.player = :player AND a.book = 'train' "
            "AND l.position IS NULL "
            "AND i.worker = (SELECT worker FROM incarnations WHERE number = :by)",
            after=after,
            player=player,
            by=by,
        )
        self._insert("lost_results", [sealed((position, by)) for (position,) in positions])
        return len(positions)

    def add_event(self, at: float, kind: str, text: str, data_json: str) -> Event:
        """Adds an event, whose position follows all other events and results.

        Args:
            at: Unix seconds.
            kind: one of `EVENT_KINDS`.
            text: a sentence for people.
            data_json: further fields.
        """
        position = self.positions()[1] + 1
        self._insert("events", [sealed((position, at, kind, text, data_json))])
        return Event(position=position, at=at, kind=kind, text=text, data_json=data_json)

    def add_fold(self, row: FoldRow, keep: int) -> None:
        """Stores a fold (state of the league) and drops all but the `keep` newest folds."""
        self._put("folds", row)
        newest = "SELECT log_position FROM folds ORDER BY log_position DESC LIMIT ?"
        self._db.execute(f"DELETE FROM folds WHERE log_position NOT IN ({newest})", [keep])

    def drop_folds(self, after: int) -> None:
        """Drops the folds (stored states of the league) that include results after a position."""
        self._db.execute("DELETE FROM folds WHERE log_position > ?", [after])

    def reply(self, request_id: str) -> tuple[str, str, bytes] | None:
        """Returns the method, fingerprint and reply of a request that has already taken effect,
        None for a new request.
        """
        for _, method, fingerprint, reply, _ in self._rows(
            "requests", "WHERE request_id = ?", request_id
        ):
            return method, fingerprint, zlib.decompress(reply)
        return None

    def add_reply(
        self, request_id: str, method: str, fingerprint: str, reply: bytes, at: float
    ) -> None:
        """Stores the reply of a request that took effect."""
        values = request_id, method, fingerprint, zlib.compress(reply, 1), at
        self._insert("requests", [sealed(values)])

    def forget_requests(self, before: float) -> int:
        """Drops the replies to requests before a time, and returns how many were dropped."""
        return self._db.execute("DELETE FROM requests WHERE at < ?", [before]).rowcount


def _player(row: Sequence[Any]) -> Player:
    values = dict(zip(_PLAYER_COLUMNS, row, strict=False))
    values |= {"kind": PlayerKind(values["kind"]), "role": Role(values["role"])}
    values |= {name: bool(values[name]) for name in ("held_out", "milestone")}
    del values["ordinal"]
    return Player(**values | {"state": PlayerState(values["state"])})


def _assignment(row: Sequence[Any]) -> AssignmentRow:
    return AssignmentRow._make((*row[:_BOOK], _BOOKS[row[_BOOK]], *row[_BOOK + 1 :]))


def _result(row: Sequence[Any]) -> ResultRow:
    return ResultRow._make((*row[:-3], _BOOKS[row[-3]], *row[-2:]))


def _event(row: Sequence[Any]) -> Event:
    return Event(**dict(zip(_EVENT_FIELDS, row, strict=True)))


def _event_of(row: ResultRow) -> Event:
    how = {1.0: "beats", 0.0: "loses to"}.get(row.outcome, "draws with")
    text = f"{row.seat0} {how} {row.seat1}"
    if row.failed:
        text = f"{row.seat0} against {row.seat1} failed: {row.failure or 'no reason given'}"
    data = {
        "match_id": row.match_id,
        "position": row.position,
        "book": row.book,
        "outcome": row.outcome,
    }
    return Event(
        position=row.event_position,
        at=row.received_at,
        kind="result",
        text=text,
        data_json=_encoded(data),
    )
