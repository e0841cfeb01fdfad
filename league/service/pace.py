"""Distinguishes a worker that hangs from a slow worker."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

from league.status import STALLED, at_rest

LEAST_SECONDS = 10.0
"""A worker that made progress within this time does not hang."""
TIMES = 5.0
"""A worker hangs if its present step takes this many times as long as its second slowest recent
step. The slowest step may include minutes of compilation, so it does not predict the next steps.
"""
RECENT = 20
_LOOK_SECONDS = 5.0  # largest counted time between two calls, because the machine may have slept


class Pace:
    """Measures the time between a worker's signs of progress.

    The thread that does the work calls `moved` and `rests`. The thread that sends heartbeats calls
    `judged` before each heartbeat. If this thread waits long for the matchmaker, only the first
    `_LOOK_SECONDS` count, because the work then waits too.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._steps: deque[float] = deque(maxlen=RECENT)
        self._looked_at, self._seconds = clock(), 0.0

    def moved(self) -> None:
        """Notes progress."""
        with self._lock:
            self._look()
            self._steps.append(self._seconds)
            self._seconds = 0.0

    def rests(self) -> None:
        """Notes that the work waits for something else. Call it again while it waits."""
        with self._lock:
            self._look()
            self._seconds = 0.0

    def judged(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        """Returns the worker's metrics for a heartbeat. They are unchanged while the worker makes
        progress.

        If the worker hangs, all rates in them are 0, and the metric `STALLED` is the number of
        seconds without progress.
        """
        with self._lock:
            self._look()
            longest = sorted(self._steps)[-2] if len(self._steps) > 1 else float("inf")
            if self._seconds <= max(LEAST_SECONDS, TIMES * longest):
                return metrics
            return {**at_rest(metrics), STALLED: self._seconds}

    def _look(self) -> None:
        before, self._looked_at = self._looked_at, self._clock()
        self._seconds += min(self._looked_at - before, _LOOK_SECONDS)
