"""Opening a league's file: whose it is, who holds it, and which version wrote it."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from league.errors import DataCorrupt, Refused, VersionMismatch
from matchmaker.store.schema import APPLICATION_ID, known_migrations, migrations

ROOM_BYTES = 256 << 20
_log = logging.getLogger(__name__)


def has_room(path: Path) -> bool:
    """Whether what calls write at once fits on the disk by far."""
    found = os.statvfs(path.parent)
    return found.f_bavail * found.f_frsize >= ROOM_BYTES


def quoted(path: Path) -> str:
    return quote(str(path.resolve()))


def lock_path(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def lock(path: Path) -> int:
    """Holds `path`.lock for this process; the kernel lets go of it when the process dies."""
    descriptor = os.open(lock_path(path), os.O_CREAT | os.O_RDWR, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise Refused(
            f"another matchmaker has {path} open: stop it first, or use its address"
        ) from None
    return descriptor


def check_owner(connection: sqlite3.Connection, path: Path) -> None:
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if owner != APPLICATION_ID and tables and not _half_made(connection):
        raise DataCorrupt(f"{path} is a SQLite file but no league's: name another path")


def _half_made(connection: sqlite3.Connection) -> bool:
    """Whether a matchmaker was killed while it created the file."""
    names = {
        row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    return "_sqlite_migrations" in names and (
        len(names - {"sqlite_sequence"}) == 1 or "assignments" in names
    )


def back_up(connection: sqlite3.Connection, path: Path, applied: Sequence[str]) -> None:
    """Copies a league that is about to be migrated, whole or not at all, to
    `path`.before-MIGRATION.
    """
    pending = [name for name in known_migrations() if name not in applied]
    if not applied or not pending:
        return
    copy = path.with_name(f"{path.name}.before-{pending[0]}")
    draft = copy.with_name(f".{copy.name}.{os.getpid()}")
    try:
        with contextlib.closing(sqlite3.connect(draft)) as target:
            connection.backup(target)
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(copy)
    finally:
        draft.unlink(missing_ok=True)
    _log.info("%s is brought to this version; as it was, it is kept in %s", path, copy)


def check_migrations(connection: sqlite3.Connection, path: Path) -> list[str]:
    """Names of the applied ones; raises `VersionMismatch` when one is unknown."""
    if not connection.execute(
        "SELECT 1 FROM sqlite_master WHERE name = '_sqlite_migrations'"
    ).fetchone():
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
