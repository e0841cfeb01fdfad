"""Stores folds while the league is served.

Of a million results between two thousand players a fold takes seconds to write. Another process
does it, from the log, so that no call waits: `python -m matchmaker.acts.fold DB SETTLED`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from league.errors import LeagueError
from matchmaker.state import folding
from matchmaker.state.folding import Fold
from matchmaker.state.league import League
from matchmaker.store.rows import FoldRow
from matchmaker.store.sqlite import SqliteStore

NICE = 10
"""The other process steps back this far: nothing waits for a fold."""


class FoldKeeper:
    """Stores a fold of a league's log every `folding.EVERY` results."""

    def __init__(self, league: League, db: Path) -> None:
        self._league, self._db = league, db
        self._failed_at = 0  # the newest result then
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def store(self) -> None:
        """Stores a fold if one is due, and waits for it.

        Raises:
            LeagueError: The other process failed. The next try comes `folding.EVERY` results later.
        """
        league, view = self._league, self._league.view
        with view.lock:
            fold, settled, newest = view.fold, view.fold.settled, view.log_position
        if newest - max(league.fold_position, self._failed_at) < folding.EVERY:
            return
        command = [sys.executable, "-m", __name__, str(self._db), str(settled)]
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the matchmaker, which kills it
        ) as self._process:
            if self._stopped:
                self._process.kill()
            written, _ = self._process.communicate()
        if self._stopped:
            return
        if self._process.returncode:
            self._failed_at = newest
            raise LeagueError(
                f"the process that folds {self._db} ended with code {self._process.returncode}: "
                "until another one succeeds, a start takes longer"
            )
        league.add_fold(fold, _read(written, league.clock.now()))

    def stop(self) -> None:
        """Ends the other process; what it was at is lost."""
        self._stopped = True
        if self._process is not None:
            self._process.kill()


def _read(written: bytes, at: float) -> FoldRow:
    positions, body = written.split(b"\n", 1)
    log_position, event_position = json.loads(positions)
    return FoldRow(log_position, event_position, folding.VERSION, at, body)


def main() -> None:
    """Writes the fold of the whole log to standard output, after a line with its positions."""
    db, settled = sys.argv[1:]
    os.nice(NICE)
    with closing(SqliteStore(Path(db), read_only=True)) as store, store.read() as reader:
        fold = Fold.current(reader)
    fold.settled = int(settled)
    row = fold.row(0.0)
    positions = json.dumps([row.log_position, row.event_position]).encode()
    sys.stdout.buffer.write(positions + b"\n" + row.body)


if __name__ == "__main__":
    main()
