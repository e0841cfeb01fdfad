"""The worker processes of a game: started, given tasks all at once, and replaced when they hang.

gymnasium's `AsyncVectorEnv` holds one environment a process, so 128 matches would take 128
interpreters, and a process that hangs or dies takes the whole vector with it. Here each process
holds many matches, and a failure costs one of them.
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
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import connection
from typing import Any

import numpy as np

from league.errors import Unavailable
from league.games.pettingzoo.worker import Answer, Batch, shared_progress

START_SECONDS = 120.0
"""Longest time that a worker may take to import an environment and make the first one."""

_PROGRAM = (
    "import json, sys; start = json.loads(sys.argv[1]); sys.path[:] = start['path'];"
    "from league.games.pettingzoo.worker import main; main(start)"
)
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "PYGAME_HIDE_SUPPORT_PROMPT": "hide",
    "SDL_AUDIODRIVER": "dummy",
    "SDL_VIDEODRIVER": "dummy",
}


class _Process:
    """One worker: a fresh interpreter, never a fork of this process and its threads."""

    def __init__(self, argument: str, options: Mapping[str, Any], rows: range) -> None:
        self.rows = rows
        ours, theirs = socket.socketpair()
        lifeline, self._alive = os.pipe()  # closes with this process, whatever ends it
        with tempfile.TemporaryFile() as file:
            file.truncate(16)
            progress = os.dup(file.fileno())
        self.progress_2 = shared_progress(progress)
        self.progress_2[0] = -1
        start = {
            "progress": progress,
            "argument": argument,
            "options": options,
            "connection": theirs.fileno(),
            "lifeline": lifeline,
            "path": [entry or os.getcwd() for entry in sys.path],
        }
        try:
            self.popen = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, json.dumps(start)],
                pass_fds=[theirs.fileno(), lifeline, progress],
                env={**_ENVIRONMENT, **os.environ},
                stdin=subprocess.DEVNULL,
                stdout=sys.__stderr__,  # environments print; our standard output is for answers
            )
        finally:
            theirs.close()
            os.close(lifeline)
            os.close(progress)
        self.connection = connection.Connection(ours.detach())

    def end(self, patience: float) -> str:
        """Ends it after at most `patience` seconds, and says how it ended; safe to call again."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(patience)
        status = self.popen.poll()
        self.popen.kill()
        self.popen.wait()
        self.connection.close()
        if self._alive >= 0:
            os.close(self._alive)
            self._alive = -1
        if status is None:
            return "was ended"
        if status < 0:
            return f"was killed by {signal.Signals(-status).name}"
        return f"exited with {status}"


class _Watch:
    """Notices when a worker makes no progress for longer than one call may take."""

    def __init__(self, worker: _Process) -> None:
        self.worker = worker
        self._seen, self._since = worker.progress_2.tolist(), time.monotonic()

    def seconds(self) -> float:
        """How long the worker has been in its present call."""
        now = self.worker.progress_2.tolist()
        if now != self._seen:
            self._seen, self._since = now, time.monotonic()
        return time.monotonic() - self._since


class Pool:
    """Workers over `matches` rows, in contiguous and nearly equal shares."""

    def __init__(
        self,
        argument: str,
        options: Mapping[str, Any],
        *,
        matches: int,
        workers: int,
        step_seconds: float,
    ) -> None:
        self._argument, self._options, self._step_seconds = argument, dict(options), step_seconds
        edges = np.linspace(0, matches, worker_count(matches, workers) + 1).astype(int).tolist()
        self._shares = [range(first, last) for first, last in itertools.pairwise(edges)]
        self._workers: list[_Process] = []

    @property
    def pids(self) -> list[int]:
        """The process ids of the running workers."""
        return [worker.popen.pid for worker in self._workers]

    def start(self) -> None:
        """Starts the workers unless they run; raises `Unavailable` if they can't play."""
        if not self._workers:
            self._workers = [_Process(self._argument, self._options, rows) for rows in self._shares]
            for worker in self._workers:
                self._wait_until_ready(worker)

    def _wait_until_ready(self, worker: _Process) -> None:
        problem = "it took too long"
        if worker.connection.poll(START_SECONDS):
            try:
                problem = worker.connection.recv()
            except (EOFError, OSError):
                problem = f"its process {worker.end(1.0)}"
            if not problem:
                return
        self.close()
        raise Unavailable(f"no process could make {self._argument}: {problem}")

    def run(
        self, rows: Sequence[int], batch_of: Callable[[list[int]], Batch]
    ) -> tuple[list[tuple[list[int], Answer]], dict[int, str], set[int]]:
        """Gives each worker the batch of those of `rows` that it holds.

        Returns:
            The answers with their rows; why rows took their process down, in words; and the rows
            that lost their environment with their process. A row in none of the first two is still
            to do.
        """
        answers: list[tuple[list[int], Answer]] = []
        failed: dict[int, str] = {}
        lost: set[int] = set()
        waiting: dict[Any, tuple[_Watch, list[int]]] = {}
        for worker in list(self._workers):
            own = [row for row in rows if row in worker.rows]
            if own:
                try:
                    worker.connection.send(batch_of(own))
                    waiting[worker.connection] = _Watch(worker), own
                except OSError:
                    lost |= self._replace(worker, failed)
        while waiting:
            for ready in connection.wait(list(waiting), min(0.5, self._step_seconds / 4)):
                watch, own = waiting.pop(ready)
                try:
                    answers.append((own, watch.worker.connection.recv()))
                except (EOFError, OSError):
                    lost |= self._replace(watch.worker, failed)
            for key, (watch, _) in list(waiting.items()):
                if watch.seconds() > self._step_seconds:
                    reason = f"the environment took over {self._step_seconds:g} s for a step"
                    lost |= self._replace(watch.worker, failed, reason)
                    del waiting[key]
        return answers, failed, lost

    def _replace(self, worker: _Process, failed: dict[int, str], reason: str = "") -> set[int]:
        """Ends a worker and starts another one; returns its rows, of which one may have failed."""
        ending = worker.end(0.0 if reason else 1.0)
        row = int(worker.progress_2[0])
        if row >= 0:
            failed[row] = reason or f"the environment's process {ending}"
        place = self._workers.index(worker)
        self._workers[place] = _Process(self._argument, self._options, worker.rows)
        self._wait_until_ready(self._workers[place])
        return set(worker.rows)

    def close(self) -> None:
        """Ends the workers; safe to call again, and `start` starts new ones."""
        for worker in self._workers:
            worker.connection.close()  # which ends a worker that waits for tasks
        for worker in self._workers:
            worker.end(1.0)
        self._workers.clear()


def worker_count(matches: int, wanted: int) -> int:
    """Workers for `matches`: `wanted`, or by the cores if that is 0; at most one a match."""
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return min(matches, wanted or max(1, min(cores, matches // 4)))
