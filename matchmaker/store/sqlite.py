"""A league's log in one SQLite file: WAL, every commit synced, one writer, readers beside it."""

from __future__ import annotations

import copy
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from league.errors import InvalidInput, NotFound, Refused, Unavailable, VersionMismatch
from matchmaker.store.base import Reader, Store, T, Transaction
from matchmaker.store.faults import as_league_errors
from matchmaker.store.group import Group, Request
from matchmaker.store.opening import (
    back_up,
    check_migrations,
    check_owner,
    has_room,
    lock,
    lock_path,
    quoted,
)
from matchmaker.store.reader import SqliteReader
from matchmaker.store.schema import APPLICATION_ID, known_migrations, migrations
from matchmaker.store.seat_stats import StatNames
from matchmaker.store.transaction import SqliteTransaction
from matchmaker.store.wal import WalMover

BUSY_SECONDS = 20.0
_log = logging.getLogger(__name__)


class SqliteStore(Store):
    """Opens (and creates or migrates) the file at `path`.

    Raises:
        Refused: another process writes it.
        VersionMismatch: a newer version made it, or it needs a migration and is opened for reading.
        DataCorrupt: it is no league's file.
        NotFound: it is not there and was to be read only.
        StorageFull: no space to create it.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()  # the writer's
        self._readers_lock = threading.Lock()
        self._group = Group(self._commit_together)
        self._mover = WalMover(
            lambda: self._connect(f"file:{quoted(self.path)}?mode=rw"), self._lock
        )
        self._readers: list[sqlite3.Connection] = []
        self._idle_readers: list[sqlite3.Connection] = []
        self._lock_file: int | None = None
        self._writer: sqlite3.Connection | None = None
        self._closed = False
        self._rebuild: Callable[[], None] = _nothing_to_rebuild
        self._held: AbstractContextManager[Any] = nullcontext()
        self._told: Callable[[], None] = lambda: None
        self._is_behind = False  # memory, which an effect failed to move on
        with as_league_errors(self.path):
            if read_only:
                self._open_read_only()
            else:
                self._open_for_writing()

    def _open_read_only(self) -> None:
        if not self.path.is_file():
            raise NotFound(
                f"there is no league at {self.path}: check the path, or start a run there"
            )
        with self.read():
            connection = self._readers[0]
            check_owner(connection, self.path)
            pending = set(known_migrations()) - set(check_migrations(connection, self.path))
        if pending:
            self.close()
            raise VersionMismatch(
                f"{self.path} was written by an older version (it lacks {', '.join(sorted(pending))}): "
                f"start a matchmaker on it once without --read-only, which migrates it"
            )

    def _open_for_writing(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        was_there = self.path.exists(), lock_path(self.path).exists()
        self._lock_file = lock(self.path)
        try:
            self._writer = self._connect(f"file:{quoted(self.path)}?mode=rwc")
            check_owner(self._writer, self.path)
            self._writer.execute("PRAGMA journal_mode = WAL")
            self._writer.execute("PRAGMA synchronous = FULL")
            back_up(self._writer, self.path, check_migrations(self._writer, self.path))
            migrations.apply(Database(self._writer))
            self._stat_names = StatNames(self._writer)
            self._writer.execute("PRAGMA wal_autocheckpoint = 0")  # the mover's
            self._writer.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        except BaseException:
            if was_there == (True, False):  # somebody's file, and no league's
                lock_path(self.path).unlink(missing_ok=True)
            self.close()
            raise

    def _connect(self, uri: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            uri,
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_SECONDS,
            cached_statements=256,  # of inserts there is one for each number of rows
        )
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with self._lock, as_league_errors(self.path):
            transaction = self._begun()
            try:
                yield transaction
                self._commit(transaction)
            except BaseException:
                transaction.roll_back()
                raise
            self._finish(transaction)

    def submit(self, effect: Callable[[Transaction], T]) -> T:
        return self._group.submit(effect)

    def _commit_together(self, group: Sequence[Request]) -> None:
        """Alone where the disk is nearly full: a commit that fails then leaves memory as it was."""
        left = list(group)
        while left:
            try:
                with self._lock, as_league_errors(self.path), ExitStack() as memory:
                    done = self._run(left if has_room(self.path) else left[:1], memory)
            except BaseException as error:
                for request in left:
                    request.error = request.error or copy.copy(error)
                return
            del left[:done]

    def _run(self, group: Sequence[Request], memory: ExitStack) -> int:
        """Commits requests together, each in a savepoint of its own; returns how many.

        Each finds memory as the one before left it. Until all are on disk nobody else sees it:
        `memory` is held. One whose memory can't follow is the last of its commit.
        """
        expected = [request.request_id for request in group if request.request_id]
        transaction, is_ahead, done = self._begun(expected), False, 0
        try:
            for request in group:
                if transaction.effects and not is_ahead:
                    memory.enter_context(self._held)
                    is_ahead = True
                self._move_memory(transaction.effects)
                if self._is_behind:
                    break
                self._attempt(transaction, request)
                done += 1
            self._commit(transaction)
        except BaseException:
            transaction.roll_back()
            self._is_behind = self._is_behind or is_ahead
            with suppress(Unavailable):
                self._catch_up()
            raise
        self._finish(transaction)
        return done

    def _commit(self, transaction: SqliteTransaction) -> None:
        began = time.perf_counter()
        transaction.commit()
        self.on_commit(time.perf_counter() - began)

    def _finish(self, transaction: SqliteTransaction) -> None:
        """Behind a commit: brings memory up to it, and says so."""
        self._move_memory(transaction.effects)
        self._catch_up()
        self._told()
        self._mover.look(transaction.changes)

    def _attempt(self, transaction: SqliteTransaction, request: Request) -> None:
        """Leaves nothing of a request that fails; raises when SQLite gave up the whole
        transaction.
        """
        transaction.begin_part()
        try:
            with as_league_errors(self.path):
                request.result = request.effect(transaction)
        except BaseException as error:
            if not transaction.is_open:
                raise
            transaction.undo_part()
            request.error = error
        else:
            transaction.keep_part()

    def _begun(self, expected: Sequence[str] = ()) -> SqliteTransaction:
        writer = self._usable_writer()
        self._catch_up()
        return SqliteTransaction(writer, self._stat_names, expected)

    def _move_memory(self, effects: list[Callable[[], None]]) -> None:
        """Runs and forgets the effects; one that fails leaves memory behind."""
        try:
            while effects:
                effects.pop(0)()
        except Exception:
            _log.exception("memory could not follow a commit: it is built anew from the log")
            effects.clear()
            self._is_behind = True

    def follow(
        self,
        rebuild: Callable[[], None],
        held: AbstractContextManager[Any],
        told: Callable[[], None],
    ) -> None:
        self._rebuild, self._held, self._told = rebuild, held, told

    def _catch_up(self) -> None:
        if not self._is_behind:
            return
        try:
            self._rebuild()
        except Exception as error:
            _log.exception("memory could not be built anew from the log: the next call tries again")
            raise Unavailable(
                f"the matchmaker can't read its log {self.path} ({error}): all that was acknowledged is on "
                "disk; ask again, or start it again"
            ) from error
        self._is_behind = False

    def _usable_writer(self) -> sqlite3.Connection:
        if self._closed:
            raise Refused("the matchmaker is closing: start it again")
        if self._writer is None:
            raise Refused(
                "this matchmaker only reads: start one without --read-only to change the league"
            )
        return self._writer

    def once(
        self,
        request_id: str,
        method: str,
        fingerprint: str,
        at: float,
        effect: Callable[[Transaction], bytes],
    ) -> bytes:
        def once(transaction: Transaction) -> tuple[str, str, bytes]:
            assert isinstance(transaction, SqliteTransaction)
            kept = transaction.kept_reply(request_id)
            if kept is None:
                kept = method, fingerprint, effect(transaction)
                transaction.keep_reply(request_id, *kept, at)
            return kept

        *bound, reply = self._group.submit(once, request_id)
        if bound != [method, fingerprint]:
            raise InvalidInput(
                f"request_id {request_id!r} was used for another request: use a fresh one"
            )
        return reply

    @contextmanager
    def read(self) -> Iterator[Reader]:
        with self._readers_lock:
            if self._closed:
                raise Refused("the matchmaker is closing: start it again")
            connection = self._idle_readers.pop() if self._idle_readers else self._new_reader()
        try:
            with as_league_errors(self.path):
                connection.execute("BEGIN")
                try:
                    yield SqliteReader(connection)
                finally:
                    connection.execute("ROLLBACK")
        finally:
            with self._readers_lock:
                if self._closed:
                    connection.close()
                else:
                    self._idle_readers.append(connection)

    def _new_reader(self) -> sqlite3.Connection:
        with as_league_errors(self.path):
            connection = self._connect(f"file:{quoted(self.path)}?mode=ro")
        self._readers.append(connection)
        return connection

    def close(self) -> None:
        self._mover.close()
        with self._lock, self._readers_lock:
            if self._closed:
                return
            self._closed = True
            for reader in self._idle_readers:
                reader.close()
            if self._writer is not None:
                self._writer.close()
            if self._lock_file is not None:
                os.close(self._lock_file)


def _nothing_to_rebuild() -> None:
    raise NotImplementedError("an effect failed and nobody follows this store")
