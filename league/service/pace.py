"""Tells a worker that hangs from one that is slow."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

from league.status import STALLED, at_rest

LEAST_SECONDS = 10.0
"""Nobody hangs who made progress so recently."""
TIMES = 5.0
"""A worker hangs that needs so many times as long as its second slowest recent step: the slowest
may have compiled for minutes, and says nothing of the next ones.
"""
RECENT = 20
_LOOK_SECONDS = 5.0  # that a look counts for at most: the machine may have slept meanwhile


class Pace:
    """A worker's time from one sign of progress to the next.

    The work calls `moved` and `rests`; the thread that sends heartbeats calls `judged` each time.
    The time while that thread waits for the matchmaker does not count, for the work waits too.
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
        """Notes that the work waits for something else, as long as this is called."""
        with self._lock:
            self._look()
            self._seconds = 0.0

    def judged(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        """The metrics of a worker that moves; of one that hangs its rates are 0, and `STALLED`
        says for how many seconds.
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
