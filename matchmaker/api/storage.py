"""Health of the disk under the log: not serving while it can't be written, serving again once it
can.
"""

from __future__ import annotations

import os
from pathlib import Path

from league.errors import LeagueError, StorageFull, StorageReadOnly
from league.service.health import Health
from matchmaker.store.base import Store

PROBE_KEY = "storage_probe"
PROBE_BYTES = 64 * 1024


class StorageHealth:
    """Hears of failed writes, and looks at the disk whenever it is told to.

    A disk that refused a write is tried with a write of its own until it takes one: what is missing
    may be space, the right to write, or the disk.

    Args:
        db: the league's file.
        least_free: bytes below which the disk counts as full before it is.
    """

    def __init__(self, store: Store, db: Path, least_free: float, health: Health) -> None:
        self._store, self._db, self._least, self._health = store, db, least_free, health
        self._trouble = ""

    def failed(self, error: LeagueError) -> None:
        """Somebody's write failed; other errors are no business of the disk."""
        if isinstance(error, (StorageFull, StorageReadOnly)):
            self._trouble = str(error)
            self._health.set(self._trouble)

    def look(self) -> None:
        """Tries the disk again if it had refused a write, and measures what is free."""
        if self._trouble:
            self._trouble = self._probe()
        self._health.set(self._trouble or self._shortage())

    def _probe(self) -> str:
        """Why the log still can't be written, "" when it can."""
        try:
            for content in ("x" * PROBE_BYTES, ""):
                with self._store.write() as tx:
                    tx.set_meta(PROBE_KEY, content)
        except LeagueError as error:
            return str(error)
        return ""

    def _shortage(self) -> str:
        free = free_bytes(self._db)
        if free is None or free >= self._least:
            return ""
        return (
            f"{free / 1e6:.0f} MB are left on the disk of {self._db}, less than "
            f"operations.least_free_megabytes = {self._least / 1e6:g}: free some"
        )


def free_bytes(path: Path) -> int | None:
    """What this user may still write to the disk of `path`; None where the system does not tell."""
    try:
        state = os.statvfs(path.parent)
    except OSError:
        return None
    return state.f_bavail * state.f_frsize


def file_bytes(path: Path) -> int:
    """Size of a file, 0 when it is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
