"""Waits for a learner's ranks.

The launcher replaces itself by this program after it has forked the ranks. A process that only
waits does not need the 200 MB that the ranks share, so this file imports nothing large.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time

from league.errors import RankGone

WATCHED = "KUMITE_WATCHED"
"""Environment variable that holds the process ids of the ranks, then a colon, and then the folder
of the ranks' error files.
"""
SIGNALS = (signal.SIGTERM, signal.SIGINT)
ERROR_FILE = "error-{rank}"
"""Name of the file to which a rank writes the error message when it fails."""
_POLL_SECONDS = 0.05
_PATIENCE_SECONDS = 30.0
"""Time for the other ranks to end after a rank has failed, before they are killed."""


def watch() -> int:
    """Waits until all ranks have ended. When a rank fails, the other ranks are ended, too.

    The ranks are children of this process. The folder of their error files is removed at the end.

    Returns:
        The exit code of the rank that failed first, or 1 if that rank left no error file. 0 if all
        ranks succeeded, or if a signal asked this process to stop.
    """
    pids, _, folder = os.environ[WATCHED].partition(":")
    ranks = [int(pid) for pid in pids.split()]
    codes: dict[int, int] = {}
    stops: list[int] = []

    def send(number: int) -> None:
        for rank in ranks:
            if rank not in codes:
                os.kill(rank, number)

    def stop(number: int, _: object) -> None:
        stops.append(number)
        send(signal.SIGTERM)

    def look() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # a handler must not signal a reaped rank
        for rank in ranks:
            if rank not in codes:
                ended, status = os.waitpid(rank, os.WNOHANG)
                if ended:
                    codes[rank] = os.waitstatus_to_exitcode(status)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    for number in SIGNALS:
        signal.signal(number, stop)
    look()
    while len(codes) < len(ranks) and not any(codes.values()):
        time.sleep(_POLL_SECONDS)
        look()
    failed = [rank for rank in ranks if codes.get(rank)]
    send(signal.SIGTERM)
    end = time.monotonic() + _PATIENCE_SECONDS
    while len(codes) < len(ranks):
        time.sleep(_POLL_SECONDS)
        look()
        if time.monotonic() > end:
            send(signal.SIGKILL)
    causes = [rank for rank in failed if codes[rank] != RankGone.exit_code] or failed
    cause = causes[0] if causes else 0
    is_stopped = stops and any(-codes[rank] in SIGNALS for rank in failed)
    code = 0 if not failed or is_stopped else _explain(folder, ranks.index(cause), cause, codes)
    shutil.rmtree(folder, ignore_errors=True)
    return code


def _explain(folder: str, number: int, cause: int, codes: dict[int, int]) -> int:
    """Prints why the learner ends, and returns this program's exit code."""
    code, error_file = codes[cause], os.path.join(folder, ERROR_FILE.format(rank=number))
    if os.path.isfile(error_file):
        with open(error_file, encoding="utf-8") as file:
            print(f"learner: {file.read()}", file=sys.stderr, flush=True)
        return 1 if code == RankGone.exit_code else code
    how = (
        f"was ended by signal {-code}"
        if code < 0
        else f"failed (exit code {code}), its last words are above"
    )
    print(
        f"learner: rank {number} (process {cause}) {how}: the others end with it; "
        "start again, and all continue from the newest checkpoint",
        file=sys.stderr,
        flush=True,
    )
    return 1
