"""Learners side by side on one machine make as many steps each: who is ahead waits for whoever is
behind.

The kernel shares out time, not steps, and of three busy processes on two cores not even that: a
pair may share one core for long. Every learner writes how many steps it has made into a small file
of the run, and reads the others'. One that joins, or comes back, begins at the count of whoever is
behind, so nobody waits for it to catch up. Nobody waits for one that has ended (its file is no
longer touched), or that hangs.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

SLACK_TURNS = 2.0
"""How many turns of its own a learner may be ahead."""
TOUCH_SECONDS = 1.0
GONE_SECONDS = 5.0
"""A learner whose file was not touched for so long has ended."""
HANGING_SECONDS = 300.0
"""One whose count has not changed for so long is not waited for: no update takes longer."""
POLL_SECONDS = 0.02


class Evenly:
    """One learner's side of it, as a context. `folder` is the run's, the same for all; `name` its
    own.

    Files that can't be written or read are passed over: they are no reason to end a training.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._folder, self._own = folder, folder / name
        self._should_stop, self._clock, self._sleep = should_stop, clock, sleep
        self._count: float | None = None  # None: it has not joined
        self._changed_at = 0.0
        self._steps = 0
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._live, name="evenly", daemon=True)

    def __enter__(self) -> Evenly:
        """Says from now on that it lives, from a thread of its own."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._left.set()
        self._thread.join()  # else it could write the file again
        self._own.unlink(missing_ok=True)

    def _live(self) -> None:
        while not self._left.wait(TOUCH_SECONDS):
            if self._count is not None:
                self.touch()

    def turn(self, steps: int) -> float:
        """Call it after each update with all steps so far; waits while it is ahead, returns the
        seconds.
        """
        began, made = self._clock(), max(0, steps - self._steps)
        if self._count is None:
            self._count, made = min(self._others(), default=0.0), 0
        self._steps, self._count, self._changed_at = steps, self._count + made, began
        self.touch()
        while not self._should_stop() and self._is_ahead(made):
            self._sleep(POLL_SECONDS)
        return self._clock() - began

    def touch(self) -> None:
        """Writes the count, and that it lives."""
        fresh = self._folder / f".{self._own.name}.{os.getpid()}.{threading.get_ident()}"
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            fresh.write_text(f"{self._count} {self._changed_at} {self._clock()}")
            fresh.replace(self._own)

    def _is_ahead(self, made: int) -> bool:
        assert self._count is not None
        return min(self._others(), default=self._count) < self._count - SLACK_TURNS * made

    def _others(self) -> list[float]:
        """Counts of the learners that live and move."""
        try:
            files = [file for file in self._folder.iterdir() if file.name not in (self._own.name,)]
        except OSError:
            return []
        return [count for file in files if (count := self._count_in(file)) is not None]

    def _count_in(self, file: Path) -> float | None:
        if file.name.startswith("."):  # being written
            return None
        try:
            count, changed_at, touched_at = map(float, file.read_text().split())
        except (OSError, ValueError):
            return None
        now = self._clock()
        return (
            count
            if now - touched_at <= GONE_SECONDS and now - changed_at <= HANGING_SECONDS
            else None
        )
