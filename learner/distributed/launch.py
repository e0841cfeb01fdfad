"""Starts a learner's ranks, one process each, and lives and ends with them.

One rank can't go on without the others: when one fails, or is killed, the rest is killed with it,
and whoever started the learner starts all of them again. `torchrun` does the like, but ends every
failure by exit code 1 and a stop by an error, where a learner's exit codes tell a supervisor what a
restart can't cure.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from league.service import die_with_parent
from learner.distributed.meeting import meeting_place
from learner.distributed.team import LastWord

_TICK_SECONDS = 0.05
_CAUSE_SECONDS = 5.0
"""How long the cause is waited for, once a rank has ended because another one was gone."""
_STOPPED = (-signal.SIGTERM, -signal.SIGINT)


def launch(words: Sequence[str], count: int) -> int:
    """Runs `count` ranks with the learner's flags `words` to their end. Returns the exit code.

    SIGTERM and Ctrl-C are handed on: the ranks agree on a step to stop at.
    """
    with meeting_place() as meeting:
        ranks = [_start(meeting, rank, count, words) for rank in range(count)]
        try:
            with _handed_on(ranks) as asked:
                return _tend(meeting, ranks, asked)
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()


def _start(meeting: Path, rank: int, count: int, words: Sequence[str]) -> subprocess.Popen[bytes]:
    """A rank that ends, on Linux, with this process however that ends."""
    command = [
        sys.executable,
        "-m",
        "learner.distributed.team",
        str(meeting),
        str(rank),
        str(count),
        *words,
    ]
    return subprocess.Popen(
        [sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid()), *command]
    )


@contextmanager
def _handed_on(ranks: Sequence[subprocess.Popen[bytes]]) -> Iterator[list[int]]:
    """Hands the signals to stop on to all ranks; yields those that came."""
    asked: list[int] = []

    def hand_on(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        for rank in ranks:
            if rank.returncode is None:
                rank.send_signal(signal.SIGTERM)

    before = {number: signal.signal(number, hand_on) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tend(meeting: Path, ranks: Sequence[subprocess.Popen[bytes]], asked: Sequence[int]) -> int:
    """Waits until all have ended well, or one has not."""
    give_up_at = None
    while True:
        codes = {
            number: code for number, rank in enumerate(ranks) if (code := rank.poll()) is not None
        }
        failed = {number: code for number, code in codes.items() if code}
        if not failed and len(codes) == len(ranks):
            return 0
        if asked and any(code in _STOPPED for code in failed.values()):
            return 0  # asked to stop before it had begun
        if failed:
            give_up_at = give_up_at or time.monotonic() + _CAUSE_SECONDS
            words = {number: LastWord.read(meeting, number) for number in failed}
            cause = _cause(words)
            if cause is not None or time.monotonic() > give_up_at or len(codes) == len(ranks):
                first = min(failed) if cause is None else cause
                return _tell(first, ranks[first].pid, failed[first], words[first])
        time.sleep(_TICK_SECONDS)


def _cause(words: Mapping[int, LastWord | None]) -> int | None:
    """The first of the failed ranks that did not only miss another."""
    return next(
        (rank for rank, word in sorted(words.items()) if word is None or not word.is_gone), None
    )


def _tell(rank: int, process: int, code: int, word: LastWord | None) -> int:
    """Says in one last sentence why the learner ends; returns its exit code."""
    if word is not None:
        print(f"learner: {word.sentence}", file=sys.stderr, flush=True)
        return word.exit_code
    how = (
        f"was ended by signal {-code}"
        if code < 0
        else f"broke (exit code {code}), its last words are above"
    )
    print(
        f"learner: rank {rank} (process {process}) {how}: the others end with it; started again, they all go "
        "on from the newest checkpoint",
        file=sys.stderr,
        flush=True,
    )
    return 1
