"""Starts a learner's ranks as processes, and ends when they end.

`torchrun` ends every failure with exit code 1 and every stop with an error. A learner's exit codes
say which faults a restart can't cure, so this launcher passes them on.

On Linux the ranks are forks of a process that has loaded torch, so they share 150 MB of memory and
start a second earlier.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

from league.errors import LeagueError, RankGone
from league.service.die_with_parent import tie_to
from learner.distributed.shared_sum import SharedSum

RANK_GONE = 75
"""Exit code of a rank that failed only because another rank had ended."""
RENDEZVOUS = "KUMITE_RENDEZVOUS"
"""Environment variable with the URL where the ranks meet. Default: `env://`, as in torchrun."""
_ERROR_FILE = "KUMITE_ERROR_FILE"
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_POLL_SECONDS = 0.05
_PATIENCE_SECONDS = 30.0
"""Time for the other ranks to end after a failure, before they are killed."""


def is_rank() -> bool:
    """Returns whether this process is one of several ranks."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def report_failure(error: LeagueError) -> int:
    """Leaves a rank's error for its launcher to print. Returns the rank's exit code."""
    if _ERROR_FILE not in os.environ:  # started by another launcher
        print(f"learner: {error}", file=sys.stderr)
    else:
        Path(os.environ[_ERROR_FILE]).write_text(str(error), encoding="utf-8")
    return RANK_GONE if isinstance(error, RankGone) else error.exit_code


def launch(program: Callable[[], int], count: int) -> int:
    """Runs ranks of a program until they end. On Linux, call it before any thread is started.

    SIGTERM and Ctrl-C are passed on, and the ranks agree on a step to stop at. When a rank fails or
    is killed, the others are ended, since they can't continue alone.

    Args:
        program: the function that each rank runs. It returns the rank's exit code.
        count: number of ranks.

    Returns:
        The exit code of the rank that failed first, 0 if all succeeded.
    """
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    shared = SharedSum(count) if sys.platform == "linux" else None
    stops: list[int] = []
    with tempfile.TemporaryDirectory(prefix="kumite-ranks-") as folder:  # private to this user
        common = {"WORLD_SIZE": str(count), RENDEZVOUS: f"file://{folder}/rendezvous"}
        error_files = [Path(folder) / f"error-{rank}" for rank in range(count)]
        ranks: list[BaseProcess] = [
            context.Process(
                target=_run_rank,
                args=(
                    program,
                    os.getpid(),
                    {"RANK": str(rank), _ERROR_FILE: str(file), **common},
                    shared,
                ),
            )
            for rank, file in enumerate(error_files)
        ]

        def stop(number: int, _: object) -> None:
            stops.append(number)
            for rank in ranks:
                rank.terminate()

        for number in _SIGNALS:
            signal.signal(number, stop)
        # A signal waits until all ranks have started, and then reaches each of them.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        for rank in ranks:
            rank.start()
        if shared is not None:
            shared.close()
        with _ended(ranks):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            failed = _wait(ranks)
        codes = [rank.exitcode or 0 for rank in ranks]
        if not failed or (stops and any(-codes[rank] in _SIGNALS for rank in failed)):
            return 0
        cause = next((rank for rank in failed if codes[rank] != RANK_GONE), failed[0])
        return _explain(cause, ranks[cause], error_files[cause])


def _run_rank(
    program: Callable[[], int],
    launcher: int,
    environment: Mapping[str, str],
    shared: SharedSum | None,
) -> None:
    """Runs the program in the process of a rank."""
    os.setsid()  # Ctrl-C reaches the launcher only
    tie_to(launcher)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    os.environ.update(environment)
    if shared is not None:
        shared.enter(int(environment["RANK"]))
    sys.exit(program())


def _wait(ranks: Sequence[BaseProcess]) -> list[int]:
    """Waits until all ranks have succeeded or some have failed. Returns the numbers of the
    failed ranks.
    """
    while True:
        codes = [rank.exitcode for rank in ranks]
        if failed := [rank for rank, code in enumerate(codes) if code]:
            return failed
        if None not in codes:
            return []
        time.sleep(_POLL_SECONDS)


@contextlib.contextmanager
def _ended(ranks: Sequence[BaseProcess]) -> Iterator[None]:
    """Ends the ranks that still run when the block is left."""
    try:
        yield
    finally:
        end = time.monotonic() + _PATIENCE_SECONDS
        for rank in ranks:
            rank.terminate()
        for rank in ranks:
            rank.join(max(0.0, end - time.monotonic()))
            rank.kill()
            rank.join()


def _explain(number: int, cause: BaseProcess, error_file: Path) -> int:
    """Prints why the learner ends, in a sentence, and returns its exit code."""
    code = cause.exitcode or 0
    if error_file.is_file():
        sentence = error_file.read_text(encoding="utf-8")
        print(f"learner: {sentence}", file=sys.stderr, flush=True)
        return 1 if code == RANK_GONE else code
    how = (
        f"was ended by signal {-code}"
        if code < 0
        else f"failed (exit code {code}), its last words are above"
    )
    print(
        f"learner: rank {number} (process {cause.pid}) {how}: the others end with it; "
        "start again, and all continue from the newest checkpoint",
        file=sys.stderr,
        flush=True,
    )
    return 1
