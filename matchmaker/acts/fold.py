"""Stores folds while the matchmaker serves the league.

A fold is the state that results from applying the whole log in order (`matchmaker.state.folding`).
Storing a fold takes seconds with a million results between two thousand players. If the matchmaker
stored it itself, calls would have to wait. So another process, `python -m matchmaker.acts.fold DB
SETTLED`, loads the last stored fold, applies the rest of the log, and returns the new fold. SETTLED
is the fold's attribute `settled`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from league.errors import LeagueError
from league.service import die_with_parent
from league.service.priority import step_back
from matchmaker.state import folding
from matchmaker.state.folding import Fold
from matchmaker.state.league import League
from matchmaker.store.rows import FoldRow
from matchmaker.store.sqlite import SqliteStore

NICE = 10
"""The nice value of the folding process, so that learners and calls go first."""
FAR_BEHIND = 4
"""Once the number of new results is this many times `folding.EVERY`, the matchmaker stores the fold
itself.

This happens when an update of the program or a quarantine has made the stored folds useless. The
process that usually computes the fold would then take minutes.
"""


class FoldKeeper:
    """Stores a fold of a league's log (the state after all of the log) every `folding.EVERY`
    results.
    """

    def __init__(self, league: League, db: Path) -> None:
        self._league, self._db = league, db
        self._failed_at = 0  # newest result at the last failure
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def store(self) -> None:
        """Stores a fold if a fold is due, and waits until it is stored.

        Raises:
            LeagueError: storing failed. The next attempt is due after `folding.EVERY` further
                results.
        """
        league, view = self._league, self._league.view
        with view.lock:
            fold, settled, newest = view.fold, view.fold.settled, view.log_position
        if newest - max(league.fold_position, self._failed_at) < folding.EVERY:
            return
        try:
            if newest - league.fold_position >= FAR_BEHIND * folding.EVERY:
                league.store_fold(folding.EVERY)
            elif written := self._folded_apart(settled):
                league.add_fold(fold, _read(written, league.clock.now()))
        except (LeagueError, OSError) as error:
            self._failed_at = newest
            raise LeagueError(f"a fold was not stored, so a start takes longer: {error}") from error

    def _folded_apart(self, settled: int) -> bytes:
        """Runs the folding process. Returns its output, or b"" if the matchmaker stops first."""
        program = [sys.executable, "-m", __name__, str(self._db), str(settled)]
        with subprocess.Popen(
            [sys.executable, die_with_parent.__file__, str(os.getpid()), *program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        ) as self._process:
            if self._stopped:
                self._process.kill()
            written, _ = self._process.communicate()
        if self._stopped:
            return b""
        if self._process.returncode:
            raise LeagueError(
                f"the process that folds {self._db} ended with code {self._process.returncode}"
            )
        return written

    def stop(self) -> None:
        """Kills the folding process if it is running. The fold that it computes is then lost."""
        self._stopped = True
        if self._process is not None:
            self._process.kill()


def _read(written: bytes, at: float) -> FoldRow:
    positions, body = written.split(b"\n", 1)
    log_position, event_position, version = json.loads(positions)
    return FoldRow(log_position, event_position, version, at, body)


def main() -> None:
    """Folds the whole log. Writes a line with the fold's log positions and version to standard
    output, and then the fold itself.
    """
    # Ctrl-C stops the matchmaker, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    step_back(NICE)
    db, settled = sys.argv[1:]
    with closing(SqliteStore(Path(db), read_only=True)) as store, store.read() as reader:
        fold = Fold.current(reader)
    fold.settled = int(settled)
    row = fold.row(0.0)
    positions = json.dumps([row.log_position, row.event_position, row.version]).encode()
    sys.stdout.buffer.write(positions + b"\n" + row.body)


if __name__ == "__main__":
    main()
