"""A league's log in one SQLite file: WAL, every commit synced, one writer, readers beside it."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from sqlite_utils import Database

from league.errors import (
    DataCorrupt,
    InvalidInput,
    LeagueError,
    NotFound,
    Refused,
    StorageFull,
    Unavailable,
    VersionMismatch,
)
from matchmaker.store.base import Reader, Store, Transaction
from matchmaker.store.reader import SqliteReader
from matchmaker.store.schema import APPLICATION_ID, known_migrations, migrations
from matchmaker.store.transaction import SqliteTransaction

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
        self._lock = threading.RLock()
        self._readers: list[sqlite3.Connection] = []
        self._idle_readers: list[sqlite3.Connection] = []
        self._lock_file: int | None = None
        self._writer: sqlite3.Connection | None = None
        self._closed = False
        self._rebuild: Callable[[], None] = _nothing_to_rebuild
        self._is_behind = False  # memory, which an effect failed to move on
        with as_league_errors(self.path):
            if read_only:
                self._open_read_only()
            else:
                self._open_for_writing()

    def _open_read_only(self) -> None:
        if not self.path.is_file():
            raise NotFound(f"there is no league at {self.path}: check the path, or start a run there")
        with self.read():
            connection = self._readers[0]
            _check_owner(connection, self.path)
            pending = set(known_migrations()) - set(_check_migrations(connection, self.path))
        if pending:
            self.close()
            raise VersionMismatch(
                f"{self.path} was written by an older version (it lacks {', '.join(sorted(pending))}): "
                f"start a matchmaker on it once without --read-only, which migrates it"
            )

    def _open_for_writing(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        was_there = self.path.exists(), _lock_path(self.path).exists()
        self._lock_file = _lock(self.path)
        try:
            self._writer = self._connect(f"file:{_quoted(self.path)}?mode=rwc")
            _check_owner(self._writer, self.path)
            self._writer.execute("PRAGMA journal_mode = WAL")
            self._writer.execute("PRAGMA synchronous = FULL")
            _check_migrations(self._writer, self.path)
            migrations.apply(Database(self._writer))
            self._writer.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        except BaseException:
            if was_there == (True, False):  # somebody's file, and no league's
                _lock_path(self.path).unlink(missing_ok=True)
            self.close()
            raise

    def _connect(self, uri: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS
        )
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with self._lock, as_league_errors(self.path):
            writer = self._usable_writer()
            self._catch_up()
            writer.execute("BEGIN IMMEDIATE")
            transaction = SqliteTransaction(writer)
            try:
                yield transaction
                writer.execute("COMMIT")
            except BaseException:
                if writer.in_transaction:
                    writer.execute("ROLLBACK")
                raise
            try:
                for effect in transaction.effects:
                    effect()
            except Exception:
                _log.exception("memory could not follow a commit: it is built anew from the log")
                self._is_behind = True
                self._catch_up()

    def follow(self, rebuild: Callable[[], None]) -> None:
        self._rebuild = rebuild

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
            raise Refused("this matchmaker only reads: start one without --read-only to change the league")
        return self._writer

    def once(
        self,
        request_id: str,
        method: str,
        fingerprint: str,
        at: float,
        effect: Callable[[Transaction], bytes],
    ) -> bytes:
        with self.write() as transaction:
            assert isinstance(transaction, SqliteTransaction)
            kept = transaction.kept_reply(request_id)
            if kept is None:
                reply = effect(transaction)
                transaction.keep_reply(request_id, method, fingerprint, reply, at)
                return reply
        if kept[:2] != (method, fingerprint):
            raise InvalidInput(f"request_id {request_id!r} was used for another request: use a fresh one")
        return kept[2]

    @contextmanager
    def read(self) -> Iterator[Reader]:
        with self._lock:
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
            with self._lock:
                if self._closed:
                    connection.close()
                else:
                    self._idle_readers.append(connection)

    def _new_reader(self) -> sqlite3.Connection:
        with as_league_errors(self.path):
            connection = self._connect(f"file:{_quoted(self.path)}?mode=ro")
        self._readers.append(connection)
        return connection

    def close(self) -> None:
        with self._lock:
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


def _quoted(path: Path) -> str:
    return quote(str(path.resolve()))


def _lock_path(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _lock(path: Path) -> int:
    """Holds `path`.lock for this process; the kernel lets go of it when the process dies."""
    descriptor = os.open(_lock_path(path), os.O_CREAT | os.O_RDWR, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise Refused(f"another matchmaker has {path} open: stop it first, or use its address") from None
    return descriptor


def _check_owner(connection: sqlite3.Connection, path: Path) -> None:
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if owner != APPLICATION_ID and tables and not _half_made(connection):
        raise DataCorrupt(f"{path} is a SQLite file but no league's: name another path")


def _half_made(connection: sqlite3.Connection) -> bool:
    """Whether a matchmaker was killed while it created the file."""
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return "_sqlite_migrations" in names and (len(names - {"sqlite_sequence"}) == 1 or "assignments" in names)


def _check_migrations(connection: sqlite3.Connection, path: Path) -> list[str]:
    """Names of the applied ones; raises `VersionMismatch` when one is unknown."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = '_sqlite_migrations'").fetchone():
        return []
    rows = connection.execute(
        "SELECT name FROM _sqlite_migrations WHERE migration_set = ?", (migrations.name,)
    )
    applied = [row[0] for row in rows]
    unknown = [name for name in applied if name not in known_migrations()]
    if unknown:
        raise VersionMismatch(
            f"{path} was written by a newer version (it holds {', '.join(unknown)}): update this one"
        )
    return applied


@contextmanager
def as_league_errors(path: Path) -> Iterator[None]:
    """SQLite's and the system's words for a full disk or a broken file in our own."""
    try:
        yield
    except LeagueError:
        raise
    except sqlite3.OperationalError as error:
        if _is_full(error):
            raise StorageFull(
                f"no space left to write {path}: free some; nothing acknowledged is lost"
            ) from error
        raise Refused(f"{path} can't be used: {error}") from error
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise DataCorrupt(f"{path} is no whole SQLite file ({error}): restore a copy of it") from error
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(f"no space left to write {path}: free some") from error
        raise Refused(f"{path} can't be opened: {error.strerror}") from error


def _is_full(error: sqlite3.OperationalError) -> bool:
    code = getattr(error, "sqlite_errorcode", 0)
    return code in (
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_SHMSIZE,
    )
