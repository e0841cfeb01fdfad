"""How a process lets others on the same cores go first, and whether it waits for a core."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def step_back(nice: int) -> None:
    """Gives the calling thread and its new threads a nice value of `nice`, or leaves a higher one
    that it was started with; outside Linux, the whole process.

    Linux shares a core among sessions before it compares their threads (sched(7), "autogroup"), and
    under `bin/start-league` this process leads a session: that becomes nice as a whole, until it is
    called with another value.
    """
    os.nice(max(0, nice - os.nice(0)))
    if os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError):  # another system, or a kernel without autogroups
            Path("/proc/self/autogroup").write_text(str(nice))


def seconds_without_core() -> float:
    """How long the calling thread was ready in all and had no core; 0 where the system can't say
    (anywhere but on Linux).
    """
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0
