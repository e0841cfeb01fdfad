"""Plays games outside the league's process: in worker processes with many matches each, or on
another kind of `Host`, such as a server.

Gymnasium's `AsyncVectorEnv` has a process for each environment. With it, 128 matches would take 128
interpreters, and the death of a process would end the whole vector. Here, if an environment raises
an error, only its match is lost. If an environment hangs or crashes, the matches of its process are
lost, and the process is restarted. A match is saved as its seed and actions, and loading it plays
these actions again.

Shape suffixes: N matches, R rows of a request, 2 seats, A action width, T frames.
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
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError, DataCorrupt, InvalidInput, Unavailable
from league.games.base import BatchedGame, GameSpec, check_saved
from league.settings.device_flags import cores

MOST_SECONDS, MOST_WORKERS = 86_400, 1024
START_SECONDS = 600.0
"""Longest time for a worker to import and make its first environment. It can take minutes while a
learner keeps the cores busy.
"""
WAIT_SECONDS, WORKER_WAIT_SECONDS = 20.0, 240.0
"""Longest wait for a server that doesn't answer. Commands use `WAIT_SECONDS`, which is short
because a person is waiting. Workers of a league use `WORKER_WAIT_SECONDS`. This is shorter than the
300 s without progress after which the supervisor treats a learner as hanging.
"""
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "PYGAME_HIDE_SUPPORT_PROMPT": "hide",
    "SDL_AUDIODRIVER": "dummy",
    "SDL_VIDEODRIVER": "dummy",
}
"""Default environment variables of a worker."""


class Process:
    """Runs a worker in a fresh interpreter, not in a fork of this process, which has threads.

    The worker first sends a text: "" if it can play, and otherwise the reason why it can't. Then it
    answers requests until the connection is closed.

    Args:
        command: the command that starts the worker. The file descriptor of the worker's end of the
            connection is appended as the last argument.
    """

    def __init__(self, command: Sequence[str], rows: range, **options: Any) -> None:
        self.rows = rows
        ours, theirs = socket.socketpair()
        with theirs:
            self.popen = subprocess.Popen(
                [*command, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                **options,
            )
        self.connection = Connection(ours.detach())

    def end(self) -> int | None:
        """Ends the worker and returns its exit status, or None after a kill."""
        self.connection.close()  # which ends a worker that waits for a request
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(1.0)
        status = self.popen.poll()
        self.popen.kill()
        self.popen.wait()
        return status


class Host(ABC):
    """Plays the matches of a hosted game. A match is identified by its row in the game's arrays.

    Attributes:
        should_stop: a function that the host calls repeatedly while it waits. If it returns True,
            the host stops waiting.
        wait_seconds: longest wait for a server that doesn't answer.
        on_wait: a function that the host calls repeatedly with the reason why no match can
            continue, and with "" once matches continue.
    """

    should_stop: Callable[[], bool] = staticmethod(lambda: False)
    wait_seconds = WAIT_SECONDS
    on_wait: Callable[[str], None] = staticmethod(lambda reason: None)

    @property
    @abstractmethod
    def is_started(self) -> bool:
        """Whether the host can answer requests."""

    @property
    def pids(self) -> list[int]:
        """The process ids of the host's running workers, if there are any."""
        return []

    @abstractmethod
    def start(self) -> None:
        """Starts the host unless it is started. Raises `Unavailable` if it can't play."""

    @abstractmethod
    def run(
        self, verb: str, rows: Sequence[int], arguments: Callable[[list[int]], tuple[Any, ...]]
    ) -> tuple[list[tuple[list[int], Any]], dict[int, str]]:
        """Answers a request about the matches in `rows`. `HostedGame` describes the requests.

        Args:
            verb: the kind of request.
            rows: the rows.
            arguments: a function from rows to the request's further arguments. A host that splits
                the rows calls the function for each part.

        Returns:
            A list of pairs (rows, the answer for these rows), and the reason for each lost row.
        """

    @abstractmethod
    def close(self) -> None:
        """Ends all matches. It is safe to call again, and `start` starts again."""


class Pool(Host):
    """Splits `matches` rows into contiguous, nearly equal shares, and runs a worker for each.

    Args:
        subject: the name of the thing that the workers play, for error messages.
        workers: number of processes. 0 derives it from the numbers of matches and processor cores.
        step_seconds: longest time for an environment's step, for error messages. The worker itself
            sets the alarm that enforces this limit.
        options: options of `subprocess.Popen`.
    """

    def __init__(
        self,
        command: Sequence[str],
        subject: str,
        *,
        matches: int,
        workers: int,
        step_seconds: float,
        **options: Any,
    ) -> None:
        self._command, self._options = command, options
        self._subject, self._step_seconds = subject, step_seconds
        edges = np.linspace(0, matches, worker_count(matches, workers) + 1).astype(int).tolist()
        self._shares = [range(first, last) for first, last in itertools.pairwise(edges)]
        self._workers: list[Process] = []

    @property
    def is_started(self) -> bool:
        """Whether the workers run."""
        return bool(self._workers)

    @property
    def pids(self) -> list[int]:
        """The process ids of the running workers."""
        return [worker.popen.pid for worker in self._workers]

    def start(self) -> None:
        """Starts the workers unless they run. Raises `Unavailable` if they can't play."""
        if not self._workers:
            self._workers = [self._launched(rows) for rows in self._shares]
            for worker in self._workers:
                self._wait_until_ready(worker)

    def _launched(self, rows: range) -> Process:
        return Process(self._command, rows, **self._options)

    def _wait_until_ready(self, worker: Process) -> None:
        problem = "it took too long"
        if worker.connection.poll(START_SECONDS):
            try:
                problem = worker.connection.recv()
            except (EOFError, OSError):
                problem = f"its process {self._ending(worker)}"
            if not problem:
                return
        self.close()
        raise Unavailable(f"no process could make {self._subject}: {problem}")

    def run(
        self, verb: str, rows: Sequence[int], arguments: Callable[[list[int]], tuple[Any, ...]]
    ) -> tuple[list[tuple[list[int], Any]], dict[int, str]]:
        """Calls the method `verb` of each worker for its part of `rows`. If a worker dies, all of
        its rows are lost, and the pool restarts it.

        Raises:
            Unavailable: a worker that died can't start again.
        """
        asked = []
        for worker in self._workers:
            if worker_rows := [row for row in rows if row in worker.rows]:
                asked.append((worker, worker_rows))
                with contextlib.suppress(OSError):  # a dead worker is noticed below
                    worker.connection.send((verb, worker_rows, *arguments(worker_rows)))
        answers, failed = [], {}
        for worker, worker_rows in asked:
            try:
                answer = worker.connection.recv()
            except (EOFError, OSError):
                answer = Unavailable(f"the environment's process {self._ending(worker)}")
            if not isinstance(answer, Unavailable):
                answers.append((worker_rows, answer))
                continue
            worker.end()
            failed.update(dict.fromkeys(worker.rows, str(answer)))
            index = self._workers.index(worker)
            self._workers[index] = self._launched(worker.rows)
            self._wait_until_ready(self._workers[index])
        return answers, failed

    def _ending(self, worker: Process) -> str:
        status = worker.end()
        if status == -signal.SIGALRM:
            return f"took over {self._step_seconds:g} s for a step"
        if status is None:
            return "was ended"
        return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"exited {status}"

    def close(self) -> None:
        """Ends the workers. It is safe to call again, and `start` starts new workers."""
        for worker in self._workers:
            worker.connection.close()
        for worker in self._workers:
            worker.end()
        self._workers.clear()


def worker_count(matches: int, wanted: int) -> int:
    """Returns the number of workers."""
    return min(matches, wanted or max(1, min(cores(), matches // 4)))


def check_options(step_seconds: float, workers: int) -> None:
    """Raises `ConfigError` for a time or number of workers out of bounds."""
    if not (0 < step_seconds <= MOST_SECONDS and 0 <= workers <= MOST_WORKERS):
        raise ConfigError(
            f"step_seconds = {step_seconds}, workers = {workers}: take seconds above 0, up to "
            f"{MOST_SECONDS}, and 0 to {MOST_WORKERS} workers"
        )


def serve(worker: Any, connection: Connection) -> None:
    """Answers each request by calling a method of `worker`, until the game closes the connection.

    If a method raises `Unavailable`, the function sends this error as its last answer and returns.
    """
    with contextlib.suppress(EOFError, OSError):
        while True:
            verb, *arguments = connection.recv()
            try:
                connection.send(getattr(worker, verb)(*arguments))
            except Unavailable as error:
                connection.send(error)
                return


def serve_process(make: Callable[..., Any]) -> None:
    """Runs a worker's process: makes the worker, reports that it can play, and serves requests.

    The first argument in the command line is JSON with keyword arguments for `make`. The process
    ignores SIGINT and SIGTERM, because the game's process handles these signals.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    connection = Connection(int(sys.argv[2]))
    try:
        worker = make(**json.loads(sys.argv[1]))
    except Exception as error:  # whatever an environment may raise
        connection.send(str(error) or type(error).__name__)
        return
    connection.send("")
    with contextlib.closing(worker):
        serve(worker, connection)


class HostedGame(BatchedGame):
    """Plays N matches in a host, such as a pool of worker processes. `reset` and `load` start the
    host.

    The host answers two requests, `begin(rows, seeds, played, ...)` and `step(rows, actions,
    is_last, ...)`. An answer holds the bytes of a record for each row, and the reason for each
    failed row. `played` has the actions of saved matches, which `begin` plays again.

    Args:
        host: plays the matches.
        seen: dtype of the records, with a field `ended`.
    """

    def __init__(
        self, spec: GameSpec, num_matches: int, host: Host, seen: np.dtype[np.void]
    ) -> None:
        super().__init__(spec, num_matches)
        self.host = host
        n = num_matches
        weakref.finalize(self, host.close)
        self.seeds_N = np.zeros(n, np.uint64)
        self._actions_N2A = np.zeros((n, 2, spec.action_size), np.uint8)
        self._played: list[list[bytes]] = [[] for _ in range(n)]
        self._seen_N = np.zeros(n, seen)  # the last record of each row
        self._nothing = self._seen_N[0].copy()
        self._broken: dict[int, str] = {}  # rows that fail in their next step, with the reason

    @property
    def worker_pids(self) -> list[int]:
        """The process ids of the running workers."""
        return self.host.pids

    @abstractmethod
    def show(self, rows: NDArray[np.intp]) -> None:
        """Writes the observations and legal choices of `rows` from their last records."""

    @abstractmethod
    def count(self, rows: NDArray[np.intp]) -> None:
        """Adds the reward terms and stats of the last frame in `rows`."""

    @abstractmethod
    def end(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Writes the final observations of the matches that ended in `rows`. Returns the result of
        each for seat 0: 1 for a win, 0 for a draw, -1 for a loss.
        """

    def request(self, verb: str, rows: list[int]) -> tuple[Any, ...]:
        """Returns the arguments of a request that follow `rows`."""
        if verb == "begin":
            return self.seeds_N[rows].tolist(), [b"".join(self._played[n]) for n in rows]
        is_last_N = self.frames_N + 1 >= self.spec.max_frames
        return self._actions_N2A[rows].tobytes(), is_last_N[rows].tolist()

    def reset(self, seeds: NDArray[np.uint64], where: NDArray[np.bool_] | None = None) -> None:
        """Begins new matches, and sets `next_seeds_N` of their rows to seed + 1.

        Raises:
            InvalidInput: a wrong shape.
            Unavailable: no process can be started.
        """
        seeds_N, where_N = self.checked_seeds(seeds, where)
        self.seeds_N[where_N] = seeds_N[where_N]
        self.next_seeds_N[where_N] = seeds_N[where_N] + np.uint64(1)
        if not self.host.is_started:  # the first reset begins a match in every row
            where_N[:] = True
            self.host.start()
        self.begin(np.flatnonzero(where_N))

    def begin(self, rows: NDArray[np.intp]) -> None:
        """Begins matches in `rows` with the seeds in `seeds_N`. A match that can't begin fails in
        the next step.
        """
        self.frames_N[rows], self.stats_N2S[rows] = 0, 0.0
        for n in rows.tolist():
            self._broken.pop(n, None)
            self._played[n] = []
        self._broken |= self._run("begin", rows.tolist())
        self._seen_N[[n for n in rows.tolist() if n in self._broken]] = self._nothing
        self.show(rows)

    def _run(self, verb: str, rows: list[int]) -> dict[int, str]:
        """Sends a request to the host and stores the records. Returns the failed rows with reasons.

        If a worker died, all of its rows have failed, even those outside `rows`.
        """
        answers, failed = self.host.run(
            verb, rows, lambda worker_rows: self.request(verb, worker_rows)
        )
        for worker_rows, (seen, wrong) in answers:
            self._seen_N[worker_rows] = np.frombuffer(seen, self._seen_N.dtype)
            failed |= wrong
        return failed

    def step(self, actions_N2A: NDArray[np.uint8], frames: int = 1) -> None:
        """Plays frames with the same actions."""
        actions_N2A = self.checked_actions(actions_N2A, frames)
        if not self.host.is_started:
            raise InvalidInput(
                "no match was begun, or the game was closed: reset it, or load a saved state"
            )
        self.reward_terms_N2K[:] = 0.0
        self.ended_N[:] = False
        for _ in range(frames):
            self.play_frame(actions_N2A)

    def play_frame(self, actions_N2A: NDArray[np.uint8]) -> None:
        """Plays a frame in each row, except in idle rows and in rows whose match ended in an
        earlier frame of this step.

        If the match of a row ends, the row's next match begins.
        """
        self._actions_N2A = actions_N2A.copy()
        todo = np.flatnonzero(~self.ended_N & ~self.idle_N).tolist()
        failed = {n: self._broken.pop(n) for n in todo if n in self._broken}
        going = [n for n in todo if n not in failed]
        lost = self._run("step", going)
        failed |= {n: lost.pop(n) for n in going if n in lost}
        self._broken |= lost  # other rows of a worker that died, which fail in their next step
        self.failures = {**self.failures, **failed}
        played = np.array([n for n in todo if n not in failed], np.intp)
        self.frames_N[played] += 1
        self.count(played)
        for n in played.tolist():
            self._played[n].append(self._actions_N2A[n].tobytes())
        over = self._seen_N["ended"][played]
        self.show(played[~over])
        ended = np.concatenate([np.array(list(failed), np.intp), played[over]])
        if len(ended):
            self._end(ended)
            self.seeds_N[ended] = self.next_seeds_N[ended]
            self.next_seeds_N[ended] += np.uint64(1)
            self.begin(ended)

    def _end(self, rows: NDArray[np.intp]) -> None:
        """Ends the matches in `rows`. A failed match counts as a draw and is never rated."""
        lead_R = self.end(rows)
        failed = [n for n in rows.tolist() if n in self.failures]
        lead_R[np.isin(rows, failed)] = 0.0
        self.final_observations_N2O[failed] = self.observations_N2O[failed]
        self.ended_N[rows] = True
        self.outcomes_N[rows] = 0.5 + 0.5 * lead_R
        win = self.spec.reward_terms.index("win")
        self.reward_terms_N2K[rows, :, win] = np.stack([lead_R, 0.0 - lead_R], 1)
        self.final_frames_N[rows] = self.frames_N[rows]
        self.final_stats_N2S[rows] = self.stats_N2S[rows]

    def own_state(self) -> dict[str, NDArray]:
        """Returns the seeds of the current matches."""
        return {"seeds_N": self.seeds_N}

    def save(self) -> dict[str, NDArray]:
        """Copies the whole state: the arrays, and the seed and actions of every match."""
        broken_N = np.isin(np.arange(self.num_matches), list(self._broken))
        played = np.frombuffer(b"".join(itertools.chain(*self._played)), np.uint8)
        return super().save() | {"played": np.packbits(played), "broken_N": broken_N}

    def load(self, state: dict[str, NDArray]) -> None:
        """Continues from a state that `save` returned, by playing every match again.

        Raises:
            DataCorrupt: the state does not fit, or a match plays out differently.
            VersionMismatch: the matches were played under other rules, options or another time
                limit.
        """
        check_saved(state, "broken_N", np.zeros(self.num_matches, np.bool_))
        check_saved(state, "frames_N", self.frames_N)
        width = 2 * self.spec.action_size
        bits = int(state["frames_N"].sum()) * width
        check_saved(state, "played", np.zeros(-(-bits // 8), np.uint8))
        super().load(state)
        actions_T = np.unpackbits(state["played"], count=bits).reshape(-1, width)
        rows = np.split(actions_T, np.cumsum(self.frames_N)[:-1])
        self._played = [[actions.tobytes() for actions in row_T] for row_T in rows]
        broken = np.flatnonzero(state["broken_N"]).tolist()
        self._broken = dict.fromkeys(broken, "it had failed when it was saved")
        self.failures = {}
        self.host.start()
        good = [n for n in range(self.num_matches) if n not in self._broken]
        saved_N2O = self.observations_N2O.copy()
        failed = self._run("begin", good)
        self.show(np.array(good, np.intp))
        for n in good:
            if n in failed or not np.array_equal(self.observations_N2O[n], saved_N2O[n]):
                otherwise = "the environment doesn't repeat a match by its seed"
                raise DataCorrupt(f"saved match {n} can't be continued: {failed.get(n, otherwise)}")

    def played_N2A(self) -> NDArray[np.uint8]:
        """Returns the actions of both seats in the last frame, [N, 2, A], including bots."""
        return self._actions_N2A.copy()

    def ask(self, verb: str, match: int) -> Any:
        """Sends a request about a match, and returns the answer, or the reason why it failed."""
        return next(iter(self.ask_all(verb, [match])), self._broken.get(match))

    def ask_all(self, verb: str, rows: Sequence[int]) -> list[Any]:
        """Sends a request about `rows`, and returns the answers of their workers.

        If a worker dies, its matches fail in the next step.
        """
        answers, failed = self.host.run(verb, rows, lambda worker_rows: ())
        self._broken |= failed
        return [answer for _, answer in answers]

    def close(self) -> None:
        """Closes the host. `reset` and `load` start it again. It is safe to call twice."""
        self.host.close()


def inherited(extra: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment variables of a worker.

    Variables of this process override `ENVIRONMENT`, and `extra` overrides both.
    """
    return {**ENVIRONMENT, **os.environ, **extra}
