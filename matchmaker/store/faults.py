"""SQLite's and the system's words for a full disk or a broken file in our own."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from league.errors import DataCorrupt, LeagueError, Refused, StorageFull, StorageReadOnly


@contextmanager
def as_league_errors(path: Path) -> Iterator[None]:
    """What goes wrong inside is raised as `StorageFull`, `StorageReadOnly`, `DataCorrupt` or
    `Refused`.
    """
    try:
        yield
    except LeagueError:
        raise
    except sqlite3.OperationalError as error:
        if _is_read_only(error, path):
            raise _read_only(path, str(error)) from error
        if _is_full(error):
            raise StorageFull(
                f"no space left to write {path}: free some; nothing acknowledged is lost"
            ) from error
        raise Refused(f"{path} can't be used: {error}") from error
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise DataCorrupt(
                f"{path} is no whole SQLite file ({error}): restore a copy of it"
            ) from error
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(f"no space left to write {path}: free some") from error
        if error.errno == errno.EROFS:
            raise _read_only(path, error.strerror or str(error)) from error
        raise Refused(f"{path} can't be opened: {error.strerror}") from error


def _read_only(path: Path, reason: str) -> StorageReadOnly:
    return StorageReadOnly(
        f"the disk of {path} takes no more writes ({reason}): mount it for writing, or move the run; "
        f"nothing acknowledged is lost"
    )


def _is_read_only(error: sqlite3.OperationalError, path: Path) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without what makes it an extended one
    # it makes files beside the log even to read
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        try:
            return bool(os.statvfs(path.parent).f_flag & os.ST_RDONLY)
        except OSError:
            return False
    return code == sqlite3.SQLITE_READONLY


def _is_full(error: sqlite3.OperationalError) -> bool:
    code = getattr(error, "sqlite_errorcode", 0)
    return code in (
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_SHMSIZE,
    )
