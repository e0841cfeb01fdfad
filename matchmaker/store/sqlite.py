"""Keeps a league's log in a SQLite file: WAL, every commit synced, one writer, concurrent readers.

Concurrent requests share commits, because each commit syncs the disk, which takes milliseconds even
for few rows. Each caller puts its request into a queue and waits. The writer thread takes all
waiting requests, runs each in a savepoint of the same transaction, commits, and returns the
outcomes:

    submit -> queue -> writer thread: BEGIN, savepoint by savepoint, COMMIT -> outcomes

The process also keeps a part of the log in memory. A request's effects on memory run before the
next request of the same commit begins, while readers of memory are locked out. If the commit fails,
memory is rebuilt from the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import fcntl
import logging
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote as quote_word
from typing import Any, TypeVar
from urllib.parse import quote

from sqlite_utils import Database

from league.errors import DataCorrupt, InvalidInput, NotFound, Refused, Unavailable, VersionMismatch
from league.runs.finding import lock_of
from matchmaker.store.faults import as_league_errors
from matchmaker.store.schema import APPLICATION_ID, migrations
from matchmaker.store.transaction import Reader, Transaction

BUSY_SECONDS = 20.0
CROWD, GATHER_SECONDS = 3, 0.004
"""After a commit of at least three requests, the next commit waits 4 ms, so that more requests
share its cost.
"""
T = TypeVar("T")
_log = logging.getLogger(__name__)


class _Request:
    """Holds a queued call. When `done` is called, `result` is on disk or `error` is set."""

    def __init__(self, effect: Callable[[Transaction], Any], done: Callable[[], object]) -> None:
        self.effect, self.done = effect, done
        self.result: Any = None
        self.error: BaseException | None = None

    def outcome(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.result


def once(
    request_id: str,
    method: str,
    fingerprint: str,
    at: float,
    effect: Callable[[Transaction], bytes],
) -> Callable[[Transaction], bytes]:
    """Wraps an effect so that it runs only once for each request id.

    Args:
        request_id: id of the request.
        method: name of the call.
        fingerprint: hash of the request.
        at: Unix seconds.
        effect: function that carries out the request and returns the reply.

    Returns:
        The wrapped effect. When repeated, it returns the reply of the first run. It raises
        `InvalidInput` if a different request used the same id.
    """

    def apply_once(transaction: Transaction) -> bytes:
        stored = transaction.reply(request_id)
        if stored is None:
            stored = method, fingerprint, effect(transaction)
            transaction.add_reply(request_id, *stored, at)
        *bound, reply = stored
        if bound != [method, fingerprint]:
            raise InvalidInput(f"request_id {request_id!r} was used before: use a fresh one")
        return reply

    return apply_once


@dataclass(frozen=True)
class Memory:
    """Describes the part of the log that a process keeps in memory.

    Attributes:
        lock: lock that keeps readers out while memory is ahead of the disk.
        rebuild: function that loads memory from the log again.
        committed: function that is called after every commit.
    """

    lock: AbstractContextManager[Any] = contextlib.nullcontext()  # noqa: RUF009 (it has no state)
    rebuild: Callable[[], None] = lambda: None
    committed: Callable[[], None] = lambda: None


def locked(database: Path) -> int:
    """Locks a log for its only writer, by locking a file next to the log. Returns the descriptor of
    the lock file. If another process holds the lock, `Refused` is raised. The kernel releases the
    lock when the process that holds it dies.

    The lock file is empty until `SqliteStore.announce` writes the address of the service to it.
    """
    descriptor = os.open(lock_of(database), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise Refused(
            f"another matchmaker has {database} open: stop it first, or use its address"
        ) from None
    if os.fstat(descriptor).st_size:
        os.ftruncate(descriptor, 0)
    return descriptor


class SqliteStore:
    """Opens a log. A missing log is created, and a log of an older version is migrated.

    The lock file lies next to the log's real path, so all symbolic links to a log share its lock.

    Attributes:
        on_commit: function that is called with the seconds that each commit took.
        memory: the part of the log in memory, which follows the commits.

    Raises:
        Refused: another process writes the file.
        NotFound: `read_only` is set and the file does not exist.
        VersionMismatch: another version of Kumite wrote the file.
        DataCorrupt: the file is damaged.
        StorageFull: the disk is full.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.on_commit: Callable[[float], None] = lambda seconds: None
        self.memory = Memory()
        self._stale = False  # memory lacks a commit and has to be rebuilt
        self._closing = False
        self._lock = threading.RLock()  # held by the writer
        self._queue_lock = threading.Lock()
        self._queue: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._db: Database | None = None
        self._lock_file: int | None = None
        with as_league_errors(self.path):
            if read_only:
                self._check_readable()
            else:
                self._open_for_writing()

    def _check_readable(self) -> None:
        if not self.path.is_file():
            raise NotFound(f"there is no league at {self.path}: check the path, or start a run")
        with contextlib.closing(self._connect("ro")) as db:
            self._check_file(db)
            pending = [m.name for m in migrations.pending(db)]
        if pending:
            raise VersionMismatch(
                f"{self.path} was written by an older version (it lacks {', '.join(pending)}): "
                "start a matchmaker on it once without --read-only, which migrates it"
            )

    def _open_for_writing(self) -> None:
        file = self.path.resolve()
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock_path = lock_of(self.path)
        is_foreign = file.exists() and not lock_path.exists()
        self._lock_file = locked(self.path)
        try:
            for path in (file, file.with_name(f"{file.name}-wal")):
                self._check_names(path)
            # SQLite creates its files next to the log with the log's mode.
            if not file.exists():
                os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))
            self._db = self._connect("rwc")
            self._check_file(self._db)
            self._db.enable_wal()
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            migrations.apply(self._db)
        except BaseException:
            if is_foreign:
                lock_path.unlink(missing_ok=True)
            self.close()
            raise
        self._thread = threading.Thread(target=self._serve, name="log-writer", daemon=True)
        self._thread.start()

    def _check_names(self, file: Path) -> None:
        names = file.stat().st_nlink if file.exists() else 1
        if names > 1:
            old, new = quote_word(str(file)), quote_word(f"{file}.own")
            command = f"cp {old} {new} && mv {new} {old}"
            raise Refused(
                f"{file} has {names} names (hard links), and matchmakers that serve it by two of "
                f"them overwrite each other's results: give it content of its own (`{command}`), "
                "and make copies with bin/league backup"
            )

    def _check_file(self, db: Database) -> None:
        owner = db.execute("PRAGMA application_id").fetchone()[0]
        names = set(db.table_names())
        if owner != APPLICATION_ID and names:
            raise DataCorrupt(f"{self.path} is a SQLite file of another program: name another path")
        latest = {m.name for m in migrations.pending(Database(memory=True))}
        unknown = [m.name for m in migrations.applied(db) if m.name not in latest]
        if unknown:
            raise VersionMismatch(
                f"{self.path} was written by a newer version (it holds {', '.join(unknown)}): "
                "update this one"
            )

    def _connect(self, mode: str) -> Database:
        connection = sqlite3.connect(
            f"file:{quote(str(self.path.resolve()))}?mode={mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_SECONDS,
        )
        db = Database(connection, execute_plugins=False)
        db.execute("PRAGMA foreign_keys = ON")
        return db

    def announce(self, address: str) -> None:
        """Writes the address of the service to the lock file, if this process holds the lock."""
        if self._lock_file is not None:
            os.pwrite(self._lock_file, address.encode(), 0)

    def vacuum_into(self, target: Path) -> None:
        """Writes a consistent copy of the log to a new file. The log may be written meanwhile."""
        with as_league_errors(self.path), contextlib.closing(self._connect("ro")) as db:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
            db.execute("VACUUM INTO ?", [str(target)])
            with target.open("rb") as file:
                os.fsync(file.fileno())

    @contextmanager
    def read(self) -> Iterator[Reader]:
        """Yields a reader with a consistent view of the committed log. Any thread may read."""
        self._check_open()
        with as_league_errors(self.path), contextlib.closing(self._connect("ro")) as db:
            db.begin()
            yield Reader(db)

    def _check_open(self) -> None:
        if self._closing:
            raise Refused("the matchmaker is closing: start it again")

    def _check_writable(self) -> Database:
        if self._db is None:
            raise Refused("this matchmaker only reads: start one without --read-only to change it")
        return self._db

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Yields a transaction, which commits at the end of the block and rolls back on any
        exception. If the commit succeeds but memory can't be rebuilt, `Unavailable` is raised
        although the data is on disk.
        """
        self._check_open()
        with self._lock, as_league_errors(self.path), self._transaction() as transaction:
            yield transaction

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        db = self._check_writable()
        self._rebuild_memory()
        db.execute("BEGIN IMMEDIATE")
        transaction = Transaction(db)
        try:
            yield transaction
            began = time.perf_counter()
            self._commit(db)
        except BaseException:
            db.rollback()
            raise
        self.on_commit(time.perf_counter() - began)
        self._run_effects(transaction)
        self._rebuild_memory()
        self.memory.committed()

    def _commit(self, db: Database) -> None:
        db.commit()

    def _run_effects(self, transaction: Transaction) -> None:
        try:
            while transaction.effects:
                transaction.effects.pop(0)()
        except Exception:
            _log.exception("memory could not follow a commit: it is rebuilt from the log")
            transaction.effects.clear()
            self._stale = True

    def _rebuild_memory(self) -> None:
        if not self._stale:
            return
        try:
            self.memory.rebuild()
        except Exception as error:
            _log.exception("memory could not be rebuilt from the log: the next call tries again")
            raise Unavailable(
                f"the matchmaker can't read its log {self.path} ({error}): all that was "
                "acknowledged is on disk; ask again, or start it again"
            ) from error
        self._stale = False

    def submit(self, effect: Callable[[Transaction], T]) -> T:
        """Runs an effect, waits until it is on disk, and returns its value.

        Concurrent calls share a commit, in order of arrival. An effect that raises leaves no trace
        and does not affect other calls.
        """
        pending = threading.Lock()  # faster than a Future
        pending.acquire()
        request = self._queued(effect, pending.release)
        pending.acquire()
        result: T = request.outcome()
        return result

    async def submitted(self, effect: Callable[[Transaction], T]) -> T:
        """Works like `submit`, but no thread waits for the disk."""
        loop = asyncio.get_running_loop()
        on_disk = asyncio.Event()

        def done() -> None:
            with contextlib.suppress(RuntimeError):  # the caller's loop has ended
                loop.call_soon_threadsafe(on_disk.set)

        request = self._queued(effect, done)
        await on_disk.wait()
        result: T = request.outcome()
        return result

    def _queued(self, effect: Callable[[Transaction], Any], done: Callable[[], object]) -> _Request:
        request = _Request(effect, done)
        with self._queue_lock:
            self._check_open()
            self._check_writable()
            self._queue.put(request)
        return request

    def _serve(self) -> None:
        """Commits requests in groups until the store is closed."""
        group: list[_Request | None] = []
        while None not in group:
            if len(group) >= CROWD:
                time.sleep(GATHER_SECONDS)
            group = [self._queue.get()]
            while not self._queue.empty():
                group.append(self._queue.get())
            waiting = [request for request in group if request is not None]
            while waiting:
                waiting = waiting[self._commit_together(waiting) :]

    def _commit_together(self, group: Sequence[_Request]) -> int:
        """Runs requests in a shared commit, up to a request whose update of memory fails. Returns
        how many requests ran.
        """
        done, is_ahead = 0, False  # whether memory has changes that are not on disk yet
        with self._lock, self.memory.lock:
            try:
                with as_league_errors(self.path), self._transaction() as transaction:
                    for request in group:
                        is_ahead = is_ahead or bool(transaction.effects)
                        self._run_effects(transaction)
                        if self._stale:
                            break
                        self._attempt(transaction, request)
                        done += 1
            except BaseException as error:
                self._stale = self._stale or is_ahead
                with contextlib.suppress(Unavailable):
                    self._rebuild_memory()
                done = len(group)
                for request in group:
                    request.error = request.error or copy.copy(error)
        for request in group[:done]:
            request.done()
        return done

    def _attempt(self, transaction: Transaction, request: _Request) -> None:
        """Runs a request in a savepoint, which is rolled back if the request fails."""
        assert self._db is not None
        try:
            with as_league_errors(self.path), self._db.atomic():
                request.result = request.effect(transaction)
        except BaseException as error:
            if not self._db.conn.in_transaction:  # SQLite rolled the whole transaction back
                raise
            transaction.effects.clear()  # of this request alone: the others' effects have run
            request.error = error

    def close(self) -> None:
        """Finishes queued requests and closes the file. Closing twice is fine."""
        with self._queue_lock:
            if self._closing:
                return
            self._closing = True
            self._queue.put(None)
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            if self._db is not None:
                self._db.close()
            if self._lock_file is not None:
                os.close(self._lock_file)
