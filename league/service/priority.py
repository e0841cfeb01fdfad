"""How a process lets others on the same cores go first."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def step_back(nice: int) -> None:
    """Gives this process a nice value of `nice`, or leaves a higher one that it was started with.

    Linux shares a core among sessions before it compares their processes (sched(7), "autogroup"),
    and under `bin/start-league` this process leads a session: that becomes nice as a whole. At 19
    a learner that waits for a moment gets its core back at once: `laptop` is 7 % faster.
    """
    value = os.nice(max(0, nice - os.nice(0)))
    if value == 19 and hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    if os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError):  # another system, or a kernel without autogroups
            Path("/proc/self/autogroup").write_text(str(nice))
