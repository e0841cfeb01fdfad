"""Keeps the evaluator's share of the processor down, so that a learner beside it keeps its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

LEAST_REST_SECONDS = 0.002
"""Shorter rests wait until they are worth a system call."""
MEMORY_SECONDS = 2.0
"""How long ago a rest still counts: nobody who was idle for an hour may work twice as hard for
the next.
"""


OWN_GROUP = Path("/proc/self/autogroup")
"""Where Linux keeps the priority of all processes of this one's session together (sched(7),
autogroup).
"""


def step_back(nice: int) -> None:
    """Lets processes go first that are less nice: on a busy core this one gets what they leave.

    Linux shares a core among sessions before it looks at processes, so a session that this process
    leads (as under `bin/start-league`) becomes nice as a whole; nobody else's does.
    """
    os.nice(max(0, nice - os.nice(0)))  # who was started nicer stays so
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # another system, or a kernel without such groups
            OWN_GROUP.write_text(str(nice))


class Pace:
    """Holds this process's work at `share` of one core; 1: as much as it gets.

    Call `rest` between pieces of work. `processor` and `clock` give seconds, of all threads
    together and of the wall.
    """

    def __init__(
        self,
        share: float,
        *,
        processor: Callable[[], float] = time.process_time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._share, self._processor, self._clock = share, processor, clock
        self._worked_at, self._rested_at = processor(), clock()

    def rest(self, wait: Callable[[float], object]) -> None:
        """Waits, by `wait(seconds)`, until the work since the last call is no larger a share
        than asked.
        """
        if self._share >= 1.0:
            return
        worked, now = self._processor(), self._clock()
        due = self._rested_at + (worked - self._worked_at) / self._share
        if due - now >= LEAST_REST_SECONDS:
            wait(due - now)
        if due - now >= LEAST_REST_SECONDS or now - due > MEMORY_SECONDS:
            self._worked_at, self._rested_at = worked, max(due, now - MEMORY_SECONDS)
