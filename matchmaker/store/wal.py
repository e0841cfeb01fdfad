"""Moves the write-ahead log into the file, beside the writer instead of in its commits.

Left to itself SQLite does so in the commit that makes the log a thousand pages long, and whoever
waits for that one waits ten times as long.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from typing import Any

CHANGES = 5_000
"""Rows written since the last move that make the next one due: commits wait for the disk while
it moves, and of a thousand clients the slowest hundredth are those. Fewer at a time cost
everybody more.
"""
LONG_PAGES = 32_768
"""A log of so many pages, 128 MiB, is moved to its end while the writer waits. It starts anew
only when all of it was moved, which a busy writer would put off for ever.
"""
_log = logging.getLogger(__name__)


class WalMover:
    """A thread that begins with the first move that is due.

    Args:
        connect: opens a connection that may write.
        writers: held to keep the writer out.
    """

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], writers: AbstractContextManager[Any]
    ) -> None:
        self._connect, self._writers = connect, writers
        self._due = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._moved_at = 0

    def look(self, changes: int) -> None:
        """Called behind a commit with how many rows its connection has changed in all."""
        if changes - self._moved_at < CHANGES or self._due.is_set() or self._closing:
            return
        self._moved_at = changes
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="wal-mover", daemon=True)
            self._thread.start()
        self._due.set()

    def _run(self) -> None:
        while True:
            self._due.wait()
            self._due.clear()  # before what follows, so that nothing set meanwhile is lost
            if self._closing:
                return
            try:
                with closing(self._connect()) as connection:
                    if _move(connection) >= LONG_PAGES:
                        with self._writers:
                            _move(connection)
            except sqlite3.Error as error:  # a full disk: commits say so too, and lose nothing
                _log.warning("the write-ahead log could not be moved: %s", error)

    def close(self) -> None:
        """Waits for a move that is on; twice is fine."""
        self._closing = True
        self._due.set()
        if self._thread is not None:
            self._thread.join()


def _move(connection: sqlite3.Connection) -> int:
    """Pages that the log has, moved or not."""
    _, pages, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return int(pages)
