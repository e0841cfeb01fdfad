"""Lets other processes on the same cores go first, and measures how long a thread lacks a core."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def step_back(nice: int, *, is_idle: bool = False) -> None:
    """Gives the calling thread and its new threads a nice value of `nice`.

    If the process was started with a higher nice value, it keeps that value. Outside Linux, the
    whole process gets the value.

    Linux first shares a core among sessions, and then among the threads of a session (sched(7),
    "autogroup"). Under `bin/start-league` this process leads its own session, so the nice value of
    its thread alone has no effect on other sessions. Therefore this function also sets the nice
    value of the session, which lasts until the next call.

    Even a thread with a nice value of 19 finishes its time slice before another thread gets the
    core. On Linux, a thread with the policy SCHED_IDLE (sched(7)) gives up the core at once.

    Args:
        nice: nice value, from 0 to 19.
        is_idle: whether the thread gets the policy SCHED_IDLE, on systems that have it.
    """
    os.nice(max(0, nice - os.nice(0)))
    if os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError):  # another system, or a kernel without autogroups
            Path("/proc/self/autogroup").write_text(str(nice))
    if is_idle and hasattr(os, "SCHED_IDLE"):
        with contextlib.suppress(OSError):  # a container may forbid it
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def seconds_without_core() -> float:
    """Returns the total time in seconds for which the calling thread was ready to run but had no
    core.

    It is 0 on systems other than Linux, which don't measure this time.
    """
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0
