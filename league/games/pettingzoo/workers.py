"""Worker processes that hold the environments of some matches and play them on command.

gymnasium's `AsyncVectorEnv` holds one environment a process, so 128 matches would take 128
interpreters, and a process that dies takes the whole vector with it. Here each process holds many
matches. An environment that raises costs its match; one that hangs or crashes costs the matches of
its process, which is started again. Shape suffixes: R rows of a request, 2 seats, A action width,
V width of what the environment shows.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import Unavailable
from league.games.base import CHOICE
from league.games.choice_game import mixed
from league.games.pettingzoo.environment import Face, Seats, board_text, build, reason
from league.settings.device_flags import cores

START_SECONDS = 120.0
"""Longest time that a worker may take to import an environment and make the first one."""

_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "PYGAME_HIDE_SUPPORT_PROMPT": "hide",
    "SDL_AUDIODRIVER": "dummy",
    "SDL_VIDEODRIVER": "dummy",
}

Answer = tuple[NDArray[np.void], dict[int, str]]
"""A record of `seen_type` for each row, and why rows failed; their records don't count."""


def seen_type(face: Face) -> np.dtype[np.void]:
    """What the seats of a row see and may do, and what its last frame brought."""
    return np.dtype(
        [
            ("views", np.float32, (2, face.view_size)),
            ("acting", np.bool_, (2,)),
            ("legal", np.bool_, (2, face.action_size)),
            ("rewards", np.float64, (2,)),
            ("illegal", np.bool_, (2,)),
            ("ended", np.bool_),
        ]
    )


Seen = dict[str, NDArray[Any]]
"""The fields of an array of `seen_type`: indexing them is faster than its records."""


class Worker:
    """The environments of some rows.

    A call of an environment that takes longer than `step_seconds` (0: any time) ends the process.
    """

    def __init__(self, argument: str, options: Mapping[str, Any], step_seconds: float) -> None:
        self._make, self._step_seconds = partial(build, argument, options), step_seconds
        self._spare: Any = self._make()
        self._face = Face(self._spare, argument)
        self._type = seen_type(self._face)
        self._seats: dict[int, Seats] = {}
        self._legal_2A: dict[int, NDArray[np.bool_]] = {}

    def begin(
        self, rows: list[int], seeds_R: NDArray[np.uint64], played: list[list[NDArray[np.uint8]]]
    ) -> Answer:
        """Begins the matches of `seeds_R` and plays what was `played` in them."""

        def begin_one(row: int, place: int, seen: Seen) -> None:
            if row not in self._seats:
                env = self._make() if self._spare is None else self._spare
                self._spare, self._seats[row] = None, Seats.of(env)
            seats = self._seats[row]
            seats.reset(environment_seed(int(seeds_R[place])))
            for actions_2A in played[place]:
                self._limit_call()
                seats.step(self._decoded(actions_2A))
            if not any(seats.acting):
                raise RuntimeError("no agent can act when the match begins")
            self._see(row, seen, place)

        return self._each(rows, begin_one)

    def step(
        self, rows: list[int], actions_R2A: NDArray[np.uint8], is_last_R: NDArray[np.bool_]
    ) -> Answer:
        """Plays one frame of each match, which ends it where `is_last_R`."""

        def step_one(row: int, place: int, seen: Seen) -> None:
            seats, legal_2A = self._seats[row], self._legal_2A[row]
            actions_2A = actions_R2A[place]
            illegal = [
                self._face.kind == CHOICE and acts and not legal_2A[seat, actions_2A[seat].argmax()]
                for seat, acts in enumerate(seats.acting)
            ]
            over = True
            if any(illegal):
                lead = float(illegal[1]) - float(illegal[0])
                seen["illegal"][place], seen["rewards"][place] = illegal, (lead, -lead)
            else:
                seats.step(self._decoded(actions_2A))
                if not all(map(math.isfinite, seats.rewards)):
                    raise ValueError(f"a reward is {seats.rewards}")
                seen["rewards"][place] = seats.rewards
                over = not any(seats.acting) or bool(is_last_R[place])
            seen["ended"][place] = over
            if over:
                self._write_views(seats, seen["views"][place])
            else:
                self._see(row, seen, place)

        return self._each(rows, step_one)

    def text(self, rows: list[int]) -> str:
        """The first match as text."""
        self._limit_call()
        try:
            return board_text(self._seats[rows[0]])
        except Exception as error:  # whatever an environment may raise
            return f"the environment raised {reason(error)}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    def _each(self, rows: list[int], play: Callable[[int, int, Seen], None]) -> Answer:
        """Calls `play(row, place, seen)`; a row whose environment raises loses it."""
        seen_R, failed = np.zeros(len(rows), self._type), {}
        seen = {name: seen_R[name] for name in self._type.names or ()}
        for place, row in enumerate(rows):
            self._limit_call()
            try:
                play(row, place, seen)
            except Exception as error:  # whatever an environment may raise
                failed[row] = f"the environment raised {reason(error)}"
                if row in self._seats:  # its next match gets a new environment
                    with contextlib.suppress(Exception):
                        self._seats.pop(row).env.close()
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        return seen_R, failed

    def _limit_call(self) -> None:
        """From now on an environment has `step_seconds`: then SIGALRM ends the process, whatever
        it does.
        """
        signal.setitimer(signal.ITIMER_REAL, self._step_seconds)

    def _decoded(self, actions_2A: NDArray[np.uint8]) -> list[Any]:
        return [self._face.action(seat, row_A) for seat, row_A in enumerate(actions_2A)]

    def _see(self, row: int, seen: Seen, place: int) -> None:
        """Writes what the seats see and may do now."""
        seats, legal_2A = self._seats[row], seen["legal"][place]
        for seat, acts in enumerate(seats.acting):
            if self._face.kind == CHOICE and acts:
                legal_2A[seat] = self._face.legal(seat, seats.observations[seat], seats.infos[seat])
            else:
                legal_2A[seat, 0] = True
        seen["acting"][place] = seats.acting
        self._legal_2A[row] = legal_2A
        self._write_views(seats, seen["views"][place])

    def _write_views(self, seats: Seats, views_2V: NDArray[np.float32]) -> None:
        for seat, observation in enumerate(seats.observations):
            if observation is not None:
                self._face.write(seat, observation, views_2V[seat])


def environment_seed(seed: int) -> int:
    """The environment's seed for a match's: below 2^31, as NumPy's older generators demand."""
    return int(mixed(np.array([seed], np.uint64))[0] >> np.uint64(33))


class _Process:
    """One worker: a fresh interpreter, never a fork of this process and its threads."""

    def __init__(self, start: dict[str, Any], rows: range) -> None:
        self.rows = rows
        ours, theirs = socket.socketpair()
        with theirs:
            words = json.dumps({**start, "connection": theirs.fileno()})
            path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
            self.popen = subprocess.Popen(
                [sys.executable, "-m", __name__, words],
                pass_fds=[theirs.fileno()],
                env={**_ENVIRONMENT, **os.environ, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=2,  # environments print; our standard output is for answers
            )
        self.connection = Connection(ours.detach())

    def end(self) -> int | None:
        """Ends it; its exit status, None if it had to be killed."""
        self.connection.close()  # which ends a worker that waits for a request
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(1.0)
        status = self.popen.poll()
        self.popen.kill()
        self.popen.wait()
        return status


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
        self._start = {"argument": argument, "options": options, "step_seconds": step_seconds}
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
            self._workers = [_Process(self._start, rows) for rows in self._shares]
            for worker in self._workers:
                self._wait_until_ready(worker)

    def _wait_until_ready(self, worker: _Process) -> None:
        problem = "it took too long"
        if worker.connection.poll(START_SECONDS):
            try:
                problem = worker.connection.recv()
            except (EOFError, OSError):
                problem = f"its process {self._ending(worker)}"
            if not problem:
                return
        self.close()
        raise Unavailable(f"no process could make {self._start['argument']}: {problem}")

    def run(
        self, verb: str, rows: Sequence[int], arguments: Callable[[list[int]], tuple[Any, ...]]
    ) -> tuple[list[tuple[list[int], Any]], dict[int, str]]:
        """Has each worker do `verb`, a method of `Worker`, for those of `rows` that it holds.

        Returns:
            The answers with their rows; and why rows lost their environment, in words: all those of
            a worker that died, which runs again. A row in neither is not to be found.
        """
        asked = []
        for worker in self._workers:
            if own := [row for row in rows if row in worker.rows]:
                asked.append((worker, own))
                with contextlib.suppress(OSError):  # it died: so says its missing answer
                    worker.connection.send((verb, own, *arguments(own)))
        answers, failed = [], {}
        for worker, own in asked:
            try:
                answers.append((own, worker.connection.recv()))
            except (EOFError, OSError):
                ending = f"the environment's process {self._ending(worker)}"
                failed.update(dict.fromkeys(worker.rows, ending))
                place = self._workers.index(worker)
                self._workers[place] = _Process(self._start, worker.rows)
                self._wait_until_ready(self._workers[place])
        return answers, failed

    def _ending(self, worker: _Process) -> str:
        status = worker.end()
        if status == -signal.SIGALRM:
            return f"took over {self._start['step_seconds']:g} s for a step"
        if status is None:
            return "was ended"
        return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"exited {status}"

    def close(self) -> None:
        """Ends the workers; safe to call again, and `start` starts new ones."""
        for worker in self._workers:
            worker.connection.close()
        for worker in self._workers:
            worker.end()
        self._workers.clear()


def worker_count(matches: int, wanted: int) -> int:
    """Workers for `matches`: `wanted`, or by the cores if that is 0; at most one a match."""
    return min(matches, wanted or max(1, min(cores(), matches // 4)))


def main() -> None:
    """Serves until the game closes its end; an interrupt is for the game's process to answer.

    The first message is "" or why no environment can be made.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    start = json.loads(sys.argv[1])
    connection = Connection(start.pop("connection"))
    try:
        worker = Worker(**start)
    except Exception as error:
        connection.send(str(error) or type(error).__name__)
        return
    connection.send("")
    with contextlib.suppress(EOFError, OSError):
        while True:
            verb, *arguments = connection.recv()
            connection.send(getattr(worker, verb)(*arguments))


if __name__ == "__main__":
    main()
