"""Runs a command that dies with its parent: ``python die_with_parent.py PARENT_PID COMMAND…``.
Processes of a pool with the initializer `end_with_parent` also die with their parent, and so do
forks that call `tie_to`.

Callers run this file as a program. A function that runs between fork and exec would work as well.
But forking is not safe in a process whose gRPC threads have started.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Ends this process of a pool when its parent ends, instead of waiting for work forever."""
    import multiprocessing
    import threading

    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def tie_to(parent: int) -> None:
    """Asks the Linux kernel to send this process SIGKILL when its parent dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died before the request
            os._exit(1)


def main(arguments: list[str]) -> None:
    """Ties this process to its parent, then becomes the command."""
    parent, command = int(arguments[0]), arguments[1:]
    tie_to(parent)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
