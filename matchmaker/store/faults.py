"""Translates SQLite's and the system's errors into `league.errors`."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from league.errors import (
    DataCorrupt,
    LeagueError,
    Refused,
    StorageFull,
    StorageReadOnly,
    is_full,
)

_FULL = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_IOERR_SHMSIZE,
)
_BROKEN = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)


@contextmanager
def as_league_errors(path: Path) -> Iterator[None]:
    """Turns errors of SQLite and the system in the `with` block into errors of the league. Messages
    name `path`.
    """
    full = f"no space left to write {path}: free some; nothing acknowledged is lost"
    try:
        yield
    except LeagueError:
        raise
    except sqlite3.OperationalError as error:
        # Python's own error for undecodable text has no code. A missing table gives SQLITE_ERROR.
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) == sqlite3.SQLITE_ERROR:
            raise DataCorrupt(f"{path} is damaged ({error}): restore a backup") from error
        if _is_another_users(error, path):
            raise _forbidden(path) from error
        if _is_read_only(error, path):
            raise _read_only(path, str(error)) from error
        if error.sqlite_errorcode in _FULL:
            raise StorageFull(full) from error
        raise Refused(f"{path} can't be used: {error}") from error
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _BROKEN:
            raise DataCorrupt(f"{path} is a broken SQLite file ({error}): restore it") from error
        raise
    except UnicodeDecodeError as error:  # SQLite's error message quotes undecodable text
        raise DataCorrupt(f"{path} is a broken SQLite file ({error}): restore it") from error
    except OSError as error:
        if is_full(error):
            raise StorageFull(full) from error
        if error.errno == errno.EROFS:
            raise _read_only(path, error.strerror or str(error)) from error
        if isinstance(error, PermissionError):
            raise _forbidden(path) from error
        raise Refused(f"{path} can't be opened: {error.strerror}") from error


def _forbidden(path: Path) -> Refused:
    return Refused(
        f"{path} can't be opened by this user, who must read it and make files in its folder, as "
        "SQLite does also to read it: ask its owner, or copy it to a folder of your own"
    )


def _is_another_users(error: sqlite3.OperationalError, path: Path) -> bool:
    may = os.access(path.parent, os.R_OK | os.W_OK | os.X_OK)
    code = error.sqlite_errorcode & 0xFF
    is_about_files = code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
    return is_about_files and not may and not _is_mounted_read_only(path)


def _read_only(path: Path, reason: str) -> StorageReadOnly:
    return StorageReadOnly(
        f"the disk of {path} takes no writes ({reason}): mount it for writing or move the run; "
        "nothing acknowledged is lost"
    )


def _is_read_only(error: sqlite3.OperationalError, path: Path) -> bool:
    code = error.sqlite_errorcode & 0xFF  # the primary part of an extended code
    # SQLite creates files next to the log even for reading, so a read-only disk may also cause
    # these errors.
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        return _is_mounted_read_only(path)
    return code == sqlite3.SQLITE_READONLY


def _is_mounted_read_only(path: Path) -> bool:
    try:
        return bool(os.statvfs(path.parent).f_flag & os.ST_RDONLY)
    except OSError:
        return False
