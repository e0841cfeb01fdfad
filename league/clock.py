"""Provides clocks. Services read the time from a `Clock`, and tests pass a `ManualClock`."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Returns Unix seconds."""
        ...


class SystemClock:
    """Counts Unix seconds without jumps: it reads the wall clock once, then the monotonic clock.

    With the wall clock alone, a lease could expire because somebody sets the machine's clock.
    """

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        return self._offset + time.monotonic()


class ManualClock:
    """Stands still until a test moves it."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds
