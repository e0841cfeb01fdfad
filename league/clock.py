"""Time as a value that is passed in: services take a `Clock`, tests pass one that they move."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Unix seconds."""
        ...


class SystemClock:
    """Unix seconds that never jump: the wall clock read once, then the monotonic one.

    A lease must not expire because the machine's clock is set.
    """

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        return self._offset + time.monotonic()


class ManualClock:
    """A clock that tests move."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds
