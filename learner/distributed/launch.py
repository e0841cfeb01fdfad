"""Starts a learner's ranks as processes, and ends with them.

`torchrun` ends every failure with exit code 1 and every stop with an error. A learner's exit codes
say which faults a restart can't cure, so this launcher passes them on. It doesn't load torch, which
takes 100 MB.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from league.errors import LeagueError, RankGone
from league.service import die_with_parent

RANK_GONE = 75
"""Exit code of a rank that failed only because another rank had ended."""
RENDEZVOUS = "KUMITE_RENDEZVOUS"
"""Environment variable with the URL where the ranks meet. Without it, `env://`, as in torchrun."""
_ERROR_FILE = "KUMITE_ERROR_FILE"
_STOPPED = (-signal.SIGTERM, -signal.SIGINT)
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


def launch(words: Sequence[str], count: int, program: Sequence[str] = ("-m", "learner")) -> int:
    """Runs ranks of a Python program until they end.

    SIGTERM and Ctrl-C are passed on, and the ranks agree on a step to stop at. When a rank fails or
    is killed, the others are ended, since they can't continue alone.

    Args:
        words: flags of the program.
        count: number of ranks.
        program: the program as Python's arguments.

    Returns:
        The exit code of the rank that failed first, 0 if all succeeded.
    """
    stops: list[int] = []
    with tempfile.TemporaryDirectory(prefix="kumite-ranks-") as folder:  # private to this user
        # The wrapper makes the kernel end a rank with this process, also after kill -9.
        tie = [sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid())]
        common = os.environ | {
            "WORLD_SIZE": str(count),
            RENDEZVOUS: f"file://{folder}/rendezvous",
        }
        error_files = [Path(folder) / f"error-{rank}" for rank in range(count)]
        ranks: list[subprocess.Popen[bytes]] = []

        def stop(number: int, _: object) -> None:
            stops.append(number)
            for rank in ranks:
                rank.terminate()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        with _ended(ranks):
            for rank, error_file in enumerate(error_files):
                own = {"RANK": str(rank), _ERROR_FILE: str(error_file)}
                command = [*tie, sys.executable, *program, *words]
                # in a session of its own, so that Ctrl-C reaches it as a signal of ours only
                ranks.append(subprocess.Popen(command, env=common | own, start_new_session=True))
                if stops:  # it came between two starts
                    ranks[-1].terminate()
            failed = _wait(ranks)
        if not failed or (stops and any(ranks[rank].returncode in _STOPPED for rank in failed)):
            return 0
        cause = next((rank for rank in failed if ranks[rank].returncode != RANK_GONE), failed[0])
        return _explain(cause, ranks[cause], error_files[cause])


def _wait(ranks: Sequence[subprocess.Popen[bytes]]) -> list[int]:
    """Waits until all ranks have succeeded or some have failed. Returns the numbers of these."""
    while True:
        codes = [rank.poll() for rank in ranks]
        if failed := [rank for rank, code in enumerate(codes) if code]:
            return failed
        if None not in codes:
            return []
        time.sleep(_POLL_SECONDS)


@contextlib.contextmanager
def _ended(ranks: Sequence[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Ends the ranks that still run when the block is left."""
    try:
        yield
    finally:
        for rank in ranks:
            rank.terminate()
        end = time.monotonic() + _PATIENCE_SECONDS
        for rank in ranks:
            try:
                rank.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                rank.kill()
                rank.wait()


def _explain(number: int, cause: subprocess.Popen[bytes], error_file: Path) -> int:
    """Prints why the learner ends, in a sentence, and returns its exit code."""
    code = cause.returncode
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
