"""Starts a learner's ranks (processes that train together), and waits for them.

A learner's exit code tells whether a restart can cure the fault, so this launcher exits with the
code of the rank that failed. `torchrun` would exit with code 1 after every failure, and with an
error when it is asked to stop.

On Linux the ranks are forks of a process that has loaded torch. So they share 150 MB of memory, and
start a second earlier.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

from league.cluster.engine import RENDEZVOUS
from league.errors import LeagueError
from league.service.die_with_parent import tie_to
from learner.distributed.shared_sum import SharedSum
from learner.distributed.watch import ERROR_FILE, SIGNALS, WATCHED

_ERROR_FILE = "KUMITE_ERROR_FILE"


def is_rank() -> bool:
    """Returns whether this process is one of several ranks."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def rank_here() -> int:
    """Returns this rank's number among the ranks of its machine, which is the number of its
    device.
    """
    return int(os.environ.get("LOCAL_RANK", os.environ["RANK"]))


def report_failure(error: LeagueError) -> int:
    """Passes a rank's error to the launcher, which prints it. Returns the rank's exit code."""
    if _ERROR_FILE not in os.environ:  # started by another launcher
        print(f"learner: {error}", file=sys.stderr)
    else:
        Path(os.environ[_ERROR_FILE]).write_text(str(error), encoding="utf-8")
    return error.exit_code


def launch(program: Callable[[], int], count: int) -> NoReturn:
    """Runs ranks of a program until they end. On Linux, call it before any thread is started.

    SIGTERM and Ctrl-C are passed on to the ranks, which agree on the step at which they stop. When
    a rank fails or is killed, the other ranks are ended, since they can't continue alone. This
    process replaces itself by the program that waits for the ranks (`watch.py`). That program exits
    with the code of the rank that failed first, or with 0 if all succeeded.

    Args:
        program: the function that each rank runs. It returns the rank's exit code.
        count: number of ranks.
    """
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    shared = SharedSum(count) if sys.platform == "linux" else None
    folder = tempfile.mkdtemp(prefix="kumite-ranks-")  # private to this user
    # Signals are blocked until all ranks have started. A signal from this time is then delivered,
    # and reaches every rank.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    common = {"WORLD_SIZE": str(count), RENDEZVOUS: f"file://{folder}/rendezvous"}
    pids = []
    for rank in range(count):
        error_file = os.path.join(folder, ERROR_FILE.format(rank=rank))
        environment = {"RANK": str(rank), _ERROR_FILE: error_file, **common}
        process = context.Process(
            target=_run_rank, args=(program, os.getpid(), environment, shared)
        )
        process.start()
        pids.append(str(process.pid))
    sys.stdout.flush()
    os.environ[WATCHED] = f"{' '.join(pids)}:{folder}"
    os.execv(sys.executable, [sys.executable, "-m", "learner", *sys.argv[1:]])


def _run_rank(
    program: Callable[[], int],
    launcher: int,
    environment: Mapping[str, str],
    shared: SharedSum | None,
) -> None:
    """Runs the program in the process of a rank."""
    os.setsid()  # Ctrl-C reaches the launcher only
    tie_to(launcher)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    os.environ.update(environment)
    if shared is not None:
        shared.enter(int(environment["RANK"]))
    sys.exit(program())
