"""The worker processes of a game: started, commanded all at once, and ended when they hang.

Shape suffixes: N matches, W workers.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from multiprocessing import connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import Unavailable
from league.games.pettingzoo.memory import TEXT, Memory

START_SECONDS = 120.0
"""Longest time that a worker may take to import an environment and make the first one."""

_PROGRAM = (
    "import json, sys; task = json.loads(sys.argv[1]); sys.path[:] = task['path'];"
    "from league.games.pettingzoo.worker import main; main(task)"
)
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "PYGAME_HIDE_SUPPORT_PROMPT": "hide",
    "SDL_AUDIODRIVER": "dummy",
    "SDL_VIDEODRIVER": "dummy",
}


class _Process:
    """One worker: a fresh interpreter, never a fork of this process and its threads."""

    def __init__(self, memory: Memory, task: Mapping[str, Any], index: int, rows: range) -> None:
        self.index, self.rows = index, rows
        ours, theirs = socket.socketpair()
        lifeline, self._alive = os.pipe()  # closes with this process, whatever ends it
        memory.row_W[index] = -1
        given = {
            **task,
            "sizes": memory.sizes.as_dict(),
            "memory": memory.descriptor,
            "connection": theirs.fileno(),
            "lifeline": lifeline,
            "index": index,
            "first": rows.start,
            "last": rows.stop,
            "path": [entry or os.getcwd() for entry in sys.path],
        }
        try:
            self._popen = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, json.dumps(given)],
                pass_fds=[memory.descriptor, theirs.fileno(), lifeline],
                env={**_ENVIRONMENT, **os.environ},
                stdin=subprocess.DEVNULL,
                stdout=sys.__stderr__,  # environments print; our standard output is for answers
            )
        finally:
            theirs.close()
            os.close(lifeline)
        self.connection = connection.Connection(ours.detach())

    @property
    def pid(self) -> int:
        return self._popen.pid

    def dismiss(self) -> None:
        """Tells it to end: it does when it waits for a command."""
        if not self.connection.closed:
            self.connection.close()

    def end(self, patience: float) -> str:
        """Ends it after `patience` seconds at the latest; says how it ended if by itself. Twice
        is fine.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(patience)
        status = self._popen.poll()
        self._popen.kill()
        self._popen.wait()
        self.dismiss()
        if self._alive >= 0:
            os.close(self._alive)
            self._alive = -1
        if status is None:
            return "was ended"
        return (
            f"was killed by {signal.Signals(-status).name}"
            if status < 0
            else f"exited with {status}"
        )


class Pool:
    """Workers over the rows of `memory`, contiguous and nearly equal shares.

    `lost_N` marks the rows that have no environment in a match: at the start, after theirs raised,
    and after their worker had to be ended. Whoever resets a row takes the mark away.
    """

    def __init__(self, memory: Memory, task: Mapping[str, Any], step_seconds: float) -> None:
        self.memory, self._task, self._step_seconds = memory, dict(task), step_seconds
        self.lost_N = np.ones(memory.sizes.matches, np.bool_)
        self._workers: list[_Process] = []

    @property
    def pids(self) -> list[int]:
        """Of the workers that run."""
        return [worker.pid for worker in self._workers]

    def start(self) -> None:
        """Starts the workers unless they run; raises `Unavailable` when they can't make the
        environment.
        """
        if self._workers:
            return
        edges = (
            np.linspace(0, self.memory.sizes.matches, self.memory.sizes.workers + 1)
            .astype(int)
            .tolist()
        )
        for index, (first, last) in enumerate(itertools.pairwise(edges)):
            self._workers.append(_Process(self.memory, self._task, index, range(first, last)))
        for worker in self._workers:
            self._greet(worker)

    def _greet(self, worker: _Process) -> None:
        """Waits until it is ready."""
        told = "it took too long"
        if worker.connection.poll(START_SECONDS):
            try:
                answer = json.loads(worker.connection.recv_bytes())
            except (EOFError, OSError):
                answer = {"error": f"its process {worker.end(1.0)}"}
            if "ready" in answer:
                return
            told = answer["error"]
        self.close()
        raise Unavailable(f"no process could make {self._task['argument']}: {told}")

    def run(self, command: bytes, where_N: NDArray[np.bool_]) -> dict[int, str]:
        """Commands the rows in `where_N`; the reason, in words, of every row whose environment
        failed.

        Rows that did it have `memory.done_N`. A row with neither reason nor that mark was lost with
        its worker, and so were all of that worker's rows.
        """
        self.memory.active_N[:] = where_N
        self.memory.done_N[where_N] = False
        failed: dict[int, str] = {}
        asked = [w for w in self._workers if where_N[w.rows.start : w.rows.stop].any()]
        for answer in self._ask(asked, command, failed):
            failed.update({int(row): reason for row, reason in answer["failed"].items()})
        self.lost_N[list(failed)] = True
        return failed

    def text(self, row: int) -> str:
        """The match in text; empty when it can't be drawn."""
        if not self._workers:
            return ""
        worker = next(w for w in self._workers if row in w.rows)
        answers = self._ask([worker], TEXT + b" %d" % row, {})
        return answers[0]["text"] if answers else ""

    def _ask(
        self, workers: list[_Process], command: bytes, failed: dict[int, str]
    ) -> list[dict[str, Any]]:
        """The answers of those that gave one; the others are replaced, with a reason into
        `failed`.
        """
        answers = []
        waiting = {}
        for worker in workers:
            try:
                worker.connection.send_bytes(command)
                waiting[worker.connection] = worker
            except OSError:
                self._replace(worker, failed, "")
        watch = _Watch(self.memory, self._step_seconds)
        while waiting:
            for ready in connection.wait(list(waiting), watch.tick):
                worker = waiting.pop(ready)  # type: ignore[call-overload]
                try:
                    answers.append(json.loads(worker.connection.recv_bytes()))
                except (EOFError, OSError):
                    self._replace(worker, failed, "")
            for worker in [w for w in waiting.values() if watch.is_stuck(w.index)]:
                del waiting[worker.connection]
                self._replace(
                    worker, failed, f"the environment took over {self._step_seconds:g} s for a step"
                )
        return answers

    def _replace(self, worker: _Process, failed: dict[int, str], reason: str) -> None:
        """Ends a worker and starts another one; the row that it was at has failed, the others
        are lost.
        """
        ending = worker.end(0.0 if reason else 1.0)
        row = int(self.memory.row_W[worker.index])
        if row >= 0:
            failed[row] = reason or f"the environment's process {ending}"
        self.lost_N[worker.rows.start : worker.rows.stop] = True
        place = self._workers.index(worker)
        self._workers[place] = _Process(self.memory, self._task, worker.index, worker.rows)
        self._greet(self._workers[place])

    def close(self) -> None:
        """Ends the workers; twice is fine, and `start` starts anew."""
        for worker in self._workers:
            worker.dismiss()
        for worker in self._workers:
            worker.end(1.0)
        self._workers.clear()
        self.lost_N[:] = True


class _Watch:
    """Tells which workers have made no progress for longer than a step may take."""

    def __init__(self, memory: Memory, seconds: float) -> None:
        self._memory, self._seconds = memory, seconds
        self.tick = min(0.5, seconds / 4)
        self._seen: dict[int, tuple[tuple[int, int], float]] = {}

    def is_stuck(self, index: int) -> bool:
        now = time.monotonic()
        mark = (int(self._memory.row_W[index]), int(self._memory.calls_W[index]))
        before, since = self._seen.get(index, (None, now))
        if mark != before:
            self._seen[index] = (mark, now)
            return False
        return now - since > self._seconds


def worker_count(matches: int, wanted: int) -> int:
    """How many workers `matches` get when `wanted` are asked for (0: by the cores), at most one
    for each.
    """
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return min(matches, wanted or max(1, min(cores, matches // 4)))
