"""Lets other people's agents (rivals) play seats. Their Python code runs in separate processes.

The seats of a rival share at most `PROCESSES` processes (`SLOW_PROCESSES` if matches wait for the
rival), and each process plays several seats. Rivals get their observations before the networks
start to compute, so that rivals and networks decide at the same time. Rivals decide in every frame,
even in frames in which the networks repeat their keys.

Shape suffixes: S seats, O observation, A keys.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from league.agent.rival_bundles import (
    LOOK_SECONDS,
    TOO_MUCH,
    bundles,
    holds_too_much,
    is_trusted,
    remove,
    unpack,
)
from league.agent.rival_worker import FILE, REASON, REQUEST
from league.errors import InvalidInput, LeagueError, plain
from league.games.registry import game_spec
from league.runs.blobs import BlobFolder

PROCESSES = 2
"""Largest number of processes of a rival while no match waits for the rival's decisions."""
SLOW_PROCESSES = max(3, (os.cpu_count() or 1) // 2)
"""Largest number of processes of a rival while matches wait for the rival's decisions."""
IDLE_PROCESSES = 4
"""Largest number of idle processes to keep for later matches."""
BROKEN = 4
"""If a rival fails in this many frames without finishing a match in between, the rival is not
started again for `REST_SECONDS`. During this time, its matches fail at once.
"""
REST_SECONDS = 600.0
MOST_REASON = 400
WORKER = (sys.executable, "-I", "-B", "-m", "league.agent.rival_worker")
LINK = (*WORKER[:-1], "league.agent.player_link")
PREFIX = "kumite-rival-"
LEFT_SECONDS = 86_400.0
"""Age in seconds at which a folder is removed if the process that made it has ended."""
NONSENSE = "its process sent no keys"
KEYS = 10
ANSWER = np.dtype(
    [("number", "u4"), ("keys", "u1", (KEYS,)), ("failed", "u1"), ("reason", f"S{REASON}")]
)
"""The layout of `rival_worker.ANSWER`."""
SEAT = np.dtype(
    [
        ("number", "u4"),  # unique over all matches
        ("process", "i8"),  # the number of the seat's process
        ("plays", "?"),  # the seat has a process, and has not failed
        ("asked", "?"),  # an answer is pending
        ("stale", "?"),  # the pending answer is for an older observation
        ("decided", "?"),  # `keys` are for the newest observation
        ("late", "i8"),  # number of decisions in the match that came too late
        ("keys", "u1", (KEYS,)),
    ]
)
"""The state of a rival in a match. Zeros mean an empty seat."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits the time and memory of a rival's process.

    Attributes:
        decision_seconds: time for a decision. After this time, the game continues, and the rival's
            seats repeat their last keys until the rival answers.
        hang_seconds: after this time without an answer, the rival's matches fail.
        start_seconds: time for starting a process and beginning its matches.
        memory_bytes: address space of a process.
    """

    decision_seconds: float = 0.5
    hang_seconds: float = 5.0
    start_seconds: float = 60.0
    memory_bytes: int = 8 << 30


LIMITS = Limits()


# --- processes


class _Process:
    """Starts and controls a process that runs a rival's agents for some seats.

    Attributes:
        number: unique number of the process.
        is_elsewhere: whether the process only connects to a player that runs elsewhere. Such a
            player gets the game's own observations.
        begin: the seats whose matches begin with the next request.
        end: the numbers of the matches that end with the next request. A seat has a new, unique
            number in each match.
        asked: the seats of the newest request that have not answered, in the order in which they
            will answer.
        begins: whether the newest request begins matches.
        since: the time at which the newest request was sent, or at which its latest answer came.
    """

    def __init__(self, number: int, digest: str, bundle: bytes, limits: Limits) -> None:
        self.number, self.digest = number, digest
        self.begin, self.end = list[int](), list[int]()
        self.asked, self.begins, self.since = np.zeros(0, np.int64), False, 0.0
        self._numbers = np.zeros(0, np.uint32)  # unique numbers of the seats in `asked`
        self._look_at = 0.0
        self._limits, self._buffer = limits, b""
        self._folder = _new_folder()
        try:
            unpack(bundle, Path(self._folder))
            self.is_elsewhere = not (Path(self._folder) / FILE).is_file()
            self.socket, theirs = socket.socketpair()
            with theirs:
                self._popen = subprocess.Popen(
                    [
                        *(*(LINK if self.is_elsewhere else WORKER), str(os.getpid())),
                        *(str(theirs.fileno()), str(limits.memory_bytes)),
                    ],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd=self._folder,
                    env={
                        **{"HOME": self._folder, "TMPDIR": self._folder, "LANG": "C.UTF-8"},
                        **{"PATH": os.defpath, "OMP_NUM_THREADS": "1"},
                        **{"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
                    },
                    start_new_session=True,
                )
        except BaseException:
            remove(self._folder)
            raise
        self.socket.settimeout(1.0)
        self._finalizer = weakref.finalize(self, _end, self._popen, self.socket, self._folder)

    @property
    def waits_until(self) -> float:
        """The time from which the next answer is late."""
        limits = self._limits
        return self.since + (limits.start_seconds if self.begins else limits.decision_seconds)

    @property
    def lost_at(self) -> float:
        """The time at which the process's matches fail unless an answer has come."""
        limits = self._limits
        return self.since + (limits.start_seconds if self.begins else limits.hang_seconds)

    def wrote_too_much(self) -> bool:
        """Returns whether the process has written too much to its folder. It checks this at most
        once in `LOOK_SECONDS`.
        """
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + LOOK_SECONDS
        return holds_too_much(self._folder)

    def ask(
        self, seats: NDArray[np.int64], numbers: NDArray[np.uint32], seen_SO: NDArray[np.float64]
    ) -> None:
        """Asks seats for keys, or lets them begin their matches.

        Args:
            seats: the seats. If `begin` is not empty, they must be the seats in `begin`.
            numbers: the unique numbers that these seats have in their present matches.
            seen_SO: the observations of these seats. It has no rows for seats that begin.
        """
        self.begins, self.since = bool(self.begin), time.monotonic()
        self.asked, self._numbers = seats, numbers
        begun, see = (len(seats), 0) if self.begins else (0, len(seats))
        head = REQUEST.pack(len(self.end), begun, see, seen_SO.shape[1])
        parts = np.array(self.end, np.uint32), numbers, seen_SO
        self.begin, self.end = [], []
        try:
            self.socket.sendall(head + b"".join(part.tobytes() for part in parts))
        except OSError:  # the process has ended or doesn't read, so make `read` fail
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)

    def read(self) -> tuple[NDArray[np.int64], NDArray[np.void]]:
        """Waits until some answers have come. Returns their seats and the answers.

        Raises:
            InvalidInput: the process has ended, or sent anything but answers.
        """
        try:
            part = self.socket.recv(1 << 16)
        except OSError:
            part = b""
        if not part:
            raise InvalidInput(f"its process {self._ending()}")
        self._buffer += part
        answers = np.frombuffer(self._buffer, ANSWER, len(self._buffer) // ANSWER.itemsize)
        self._buffer, count = self._buffer[answers.nbytes :], len(answers)
        # Comparing bytes is faster than comparing such small arrays.
        numbers, other_keys = answers["number"].tobytes(), answers["keys"].tobytes().strip(b"\0\1")
        if count > len(self.asked) or numbers != self._numbers[:count].tobytes() or other_keys:
            raise InvalidInput(NONSENSE)
        if count:
            self.since = time.monotonic()
        seats, self.asked = self.asked[:count], self.asked[count:]
        self._numbers = self._numbers[count:]
        return seats, answers

    def _ending(self) -> str:
        try:
            status = self._popen.wait(1.0)
        except subprocess.TimeoutExpired:
            return "closed its connection"
        return f"exited {status}" if status >= 0 else f"was killed by {_signal(-status)}"

    def close(self) -> None:
        """Ends the process and removes its folder."""
        self._finalizer()


def _new_folder() -> str:
    """Makes a folder, and removes old folders that killed processes have left."""
    for old in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        pid = old.name.removeprefix(PREFIX).partition("-")[0]
        with contextlib.suppress(OSError, ValueError):
            if time.time() - old.stat().st_mtime > LEFT_SECONDS:
                try:
                    os.kill(int(pid), 0)
                except ProcessLookupError:
                    remove(str(old))
    return tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _end(popen: subprocess.Popen[bytes], connection: socket.socket, folder: str) -> None:
    connection.close()
    with contextlib.suppress(OSError):
        os.killpg(popen.pid, signal.SIGKILL)
    popen.kill()
    popen.wait()
    remove(folder)


# --- seats


class RivalSeats:
    """Plays the seats in which rivals sit. Call `ask`, then `answer`, for every frame.

    A call of `answer` may leave out seats whose rivals have not decided, so that a slow rival does
    not stop the other matches. The matches of these seats must pause until their rivals decide.

    Each match gets a new object of the rival's class. A process can't be saved, so after a restart
    a match continues with a new object.

    Args:
        blobs: blobs of the run, with the bundles.
        limits: limits of each process.
        is_trusted: returns whether the bundle with a given digest may run. If it may not, the
            rival's matches fail.

    Attributes:
        digests: the digests of the rivals by seat.
        late: number of decisions so far that came too late. In the frames of these decisions, the
            seats repeated their last keys.
        waiting: seats that the last call of `answer` left out.
        unstarted: seats whose matches failed because their rivals did not start in time.
    """

    def __init__(
        self,
        blobs: BlobFolder,
        limits: Limits = LIMITS,
        is_trusted: Callable[[str], bool] = is_trusted,
    ) -> None:
        self._bundles, self._limits, self._is_trusted = bundles(blobs), limits, is_trusted
        self.digests: dict[int, str] = {}
        self._seats_S = np.zeros(0, SEAT)
        self._unplaced = set[int]()  # seats without a process
        self._processes: dict[int, _Process] = {}
        self._selector = selectors.DefaultSelector()
        self._seated = self._started = 0  # counts of seated rivals and started processes
        self._failures: Counter[str] = Counter()
        self._resting: dict[str, tuple[float, str, bool]] = {}  # end of rest, reason, unstarted
        self.unstarted = set[int]()
        # The current frame.
        self._failed: dict[int, str] = {}
        self._rests_S: NDArray[np.bool_] | None = None
        self._observations_SO = np.zeros((0, 0), np.float32)
        self._starter: ThreadPoolExecutor | None = None
        self.late, self.waiting = 0, np.zeros(0, np.int64)

    def has(self, digest: str) -> bool:
        """Returns whether the run has a rival's bundle with this digest."""
        return self._bundles.has(digest)

    def late_in(self, index: int) -> int:
        """Returns how many decisions of a seat's rival came late in its match so far, 0 without a
        rival.
        """
        return int(self._seats_S["late"][index]) if index in self.digests else 0

    def seat(self, index: int, digest: str) -> None:
        """Gives a seat to a rival, for a new match."""
        self.vacate(index)
        if (missing := index + 1 - len(self._seats_S)) > 0:
            self._seats_S = np.concatenate([self._seats_S, np.zeros(missing, SEAT)])
        self._seated += 1
        self._seats_S["number"][index] = self._seated
        self.digests[index] = digest
        self._unplaced.add(index)
        self.unstarted.discard(index)

    def vacate(self, index: int) -> None:
        """Empties a seat after its match."""
        digest = self.digests.get(index)
        if digest is not None and self._leave(index):
            self._failures.pop(digest, None)

    def clear(self) -> None:
        """Empties all seats."""
        for index in list(self.digests):
            self.vacate(index)

    def close(self) -> None:
        """Empties all seats and ends all processes. It is safe to call again."""
        self.clear()
        for process in list(self._processes.values()):
            self._end(process)
        self._selector.close()
        if self._starter is not None:
            self._starter.shutdown()
            self._starter = None

    def ask(
        self, observations_SO: NDArray[np.float32], rests_S: NDArray[np.bool_] | None = None
    ) -> None:
        """Asks the rivals for their keys. Rivals in the seats marked in `rests_S` are not asked in
        this frame.

        It is safe to call this again for the same frame. Until the next call, the rows of
        `observations_SO` must not change for seats that have not decided.
        """
        self._observations_SO, self._rests_S = observations_SO, rests_S
        for index in self._unplaced:
            self._place(index)
        self._unplaced.clear()
        self._ask_idle()

    def begin(self, observations_SO: NDArray[np.float32]) -> None:
        """Waits until the matches of all seats have begun. The call is optional, because `answer`
        also waits.
        """
        self.ask(observations_SO, np.ones(len(self._seats_S), np.bool_))
        while starting := [
            one for one in self._processes.values() if one.begins and len(one.asked)
        ]:
            left = min(one.waits_until for one in starting) - time.monotonic()
            if left <= 0.0:
                return
            self._read(left)

    def answer(self, actions_SA: NDArray[np.uint8], may_wait: int = 0) -> dict[int, str]:
        """Writes the rivals' keys into the rows of their seats, except for the seats in `rests_S`.

        Args:
            actions_SA: the actions of a frame.
            may_wait: largest number of seats that may be left out. The call waits until all other
                seats have answered or are late.

        Returns:
            The reason for each seat whose match has failed. These seats are empty afterwards.
        """
        self._read(0.0)
        while len(waiting := self._waiting()) > may_wait:
            numbers = set(self._seats_S["process"][waiting].tolist())
            ends = [self._processes[number].waits_until for number in numbers]
            self._read(max(0.0, min(ends) - time.monotonic()))
        now = time.monotonic()
        for process in list(self._processes.values()):
            if len(process.asked) and now >= process.lost_at:
                took = f"it took over {process.lost_at - process.since:g} s"
                if process.begins:
                    self.unstarted.update(process.asked.tolist())
                    took += " to start"
                self._lose(process, took)
            elif process.wrote_too_much():
                self._lose(process, TOO_MUCH)
        seats_S, due_S = self._seats_S, self._awake()
        self.waiting = waiting[due_S[waiting]] if self._failed else waiting
        due_S[self.waiting] = False
        due = due_S.nonzero()[0]
        if len(late := due[~seats_S["decided"][due]]):
            self.late += len(late)
            seats_S["late"][late] += 1
            seats_S["stale"][late] = seats_S["asked"][late]
        if len(due):  # without rivals, actions may differ in width from `keys`
            seats_S["decided"][due], actions_SA[due] = False, seats_S["keys"][due]
        return {index: f"the rival failed: {reason}" for index, reason in self._settled().items()}

    # --- a frame, in parts

    def _awake(self) -> NDArray[np.bool_]:
        """Returns the seats whose rivals decide in this frame."""
        plays_S = self._seats_S["plays"]
        return plays_S.copy() if self._rests_S is None else plays_S > self._rests_S[: len(plays_S)]

    def _waiting(self) -> NDArray[np.int64]:
        """Returns the seats whose rivals have not decided but still have time."""
        wanted_S, now = self._awake() > self._seats_S["decided"], time.monotonic()
        for process in self._processes.values():
            if now >= process.waits_until:
                wanted_S &= self._seats_S["process"] != process.number
        return wanted_S.nonzero()[0]

    def _place(self, index: int) -> None:
        """Finds a process for a new seat."""
        digest = self.digests[index]
        until, reason, is_unstarted = self._resting.get(digest, (0.0, "", False))
        if time.monotonic() < until:
            self.unstarted.update([index] * is_unstarted)
            self._failed[index] = f"it failed {BROKEN} times in a row, last because {reason}"
            return
        try:
            process = self._process(digest)
        except (LeagueError, OSError) as error:
            self._failed[index] = str(error)
            return
        self._seats_S["process"][index], self._seats_S["plays"][index] = process.number, True
        process.begin.append(index)

    def _process(self, digest: str) -> _Process:
        """Returns the rival's process with the fewest seats, or starts another process."""
        places_S = self._seats_S["process"]
        seats_of = {
            process.number: int((places_S == process.number).sum())
            for process in self._processes.values()
            if process.digest == digest
        }
        waited_for = set(places_S[self.waiting].tolist()) & seats_of.keys()
        is_slow = any(not self._processes[number].begins for number in waited_for)
        most = SLOW_PROCESSES if is_slow else PROCESSES
        if seats_of:
            least = min(seats_of, key=lambda number: seats_of[number])
            if not seats_of[least] or len(seats_of) >= most:
                return self._processes[least]
        bundle = self._bundles.get(digest)
        if not self._is_trusted(digest):
            raise InvalidInput(
                f"this user has not agreed to run {self._bundles.path(digest)}: unzip and read it, "
                "then name the folder in bin/league add --trust"
            )
        if self._starter is None:
            # Workers are started in a permanent thread, because Linux ends a worker as soon as the
            # thread that started it ends.
            self._starter = ThreadPoolExecutor(1, "rivals")
        self._started += 1
        process = self._starter.submit(
            _Process, self._started, digest, bundle, self._limits
        ).result()
        self._selector.register(process.socket, selectors.EVENT_READ, process)
        self._processes[process.number] = process
        return process

    def _ask_idle(self) -> None:
        """Sends requests to the processes without pending answers."""
        idle = [process for process in self._processes.values() if not len(process.asked)]
        if not idle:
            return
        seats_S = self._seats_S
        wanted = (self._awake() > seats_S["decided"]).nonzero()[0]
        if not (len(wanted) or any(one.begin or one.end for one in idle)):
            return
        raw_SO = self._observations_SO[wanted]
        original_SO = _original(raw_SO)
        for process in idle:
            seen_SO = raw_SO.astype(np.float64) if process.is_elsewhere else original_SO
            if process.begin:
                seats, own_SO = np.array(process.begin), seen_SO[:0]
            else:
                own = seats_S["process"][wanted] == process.number
                seats, own_SO = wanted[own], seen_SO[own]
                seats_S["asked"][seats] = True
            if len(seats) or process.end:
                process.ask(seats, seats_S["number"][seats], own_SO)

    def _read(self, seconds: float) -> None:
        """Waits up to `seconds` for answers, and reads them. Then sends requests to processes
        without pending answers.
        """
        seats_S = self._seats_S
        for key, _ in self._selector.select(seconds):
            process: _Process = key.data
            try:
                seats, answers = process.read()
            except InvalidInput as error:
                self._lose(process, str(error))
                continue
            are_here = seats_S["number"][seats] == answers["number"]
            if not are_here.all():  # drops answers for matches that have ended
                seats, answers = seats[are_here], answers[are_here]
            for number in answers["failed"].nonzero()[0].tolist():
                self._fail(int(seats[number]), answers["reason"][number].decode(errors="replace"))
            if not process.begins:
                seats_S["keys"][seats] = answers["keys"]
                seats_S["decided"][seats] = ~seats_S["stale"][seats]
                seats_S["asked"][seats] = seats_S["stale"][seats] = False
            if not len(process.asked):
                self._ask_idle()

    def _fail(self, index: int, reason: str) -> None:
        self._failed[index], self._seats_S["plays"][index] = reason, False

    def _lose(self, process: _Process, reason: str) -> None:
        """Ends a process. All of its matches fail."""
        for index in np.flatnonzero(self._seats_S["process"] == process.number).tolist():
            self._fail(index, reason)
        self._end(process)

    def _end(self, process: _Process) -> None:
        self._selector.unregister(process.socket)
        process.close()
        del self._processes[process.number]

    def _settled(self) -> dict[int, str]:
        """Empties the failed seats, and returns the reasons by seat. A rival that fails repeatedly
        (`BROKEN`) is not started for `REST_SECONDS`.
        """
        if not (self._failed or self._resting):
            return {}
        now = time.monotonic()
        for digest, (until, *_) in list(self._resting.items()):
            if now >= until:
                del self._resting[digest], self._failures[digest]
        failed = {index: plain(reason)[:MOST_REASON] for index, reason in self._failed.items()}
        self._failed = {}
        last = {self.digests[index]: index for index in failed}
        for digest, index in last.items():
            if digest in self._resting:
                continue
            self._failures[digest] += 1
            if self._failures[digest] >= BROKEN:
                reason, is_unstarted = failed[index][: MOST_REASON // 2], index in self.unstarted
                self._resting[digest] = now + REST_SECONDS, reason, is_unstarted
                _log.warning(
                    "the rival %s rests after %d failures: %s", digest[:12], BROKEN, reason
                )
        for index in failed:
            self._leave(index)
        return failed

    def _leave(self, index: int) -> bool:
        """Removes a rival from its seat. Returns whether its process has been asked to begin the
        match.
        """
        del self.digests[index]
        self._failed.pop(index, None)
        self._unplaced.discard(index)
        number = int(self._seats_S["number"][index])
        process = self._processes.get(int(self._seats_S["process"][index]))
        self._seats_S[index] = np.zeros((), SEAT)
        if process is None:
            return False
        if index in process.begin:
            process.begin.remove(index)
            return False
        process.end.append(number)
        used = set(self._seats_S["process"].tolist())
        idle = [one for one in self._processes.values() if one.number not in used]
        for one in idle[: max(0, len(idle) - IDLE_PROCESSES)]:
            self._end(one)
        return True


def _original(seen_SO: NDArray[np.float32]) -> NDArray[np.float64]:
    from league.agent.export.ai2_check import original  # this loads numba

    return original(seen_SO)


def barred() -> list[str]:
    """Returns the things that the kernel of this machine denies to rivals."""
    with tempfile.TemporaryDirectory() as folder:
        tried = subprocess.run(
            [*WORKER, str(os.getpid())],
            stdin=subprocess.DEVNULL, capture_output=True, cwd=folder, check=False,
        )  # fmt: skip
    return list(json.loads(tried.stdout or "[]"))


def check(bundle: bytes, limits: Limits = LIMITS) -> float:
    """Asks a rival for a few decisions. Raises `InvalidInput` with the reason if the rival fails.

    Returns:
        The time of the fastest decision, in seconds. The first decision does not count.
    """
    numbers, took = game_spec("brawl").observation_size, list[float]()
    with tempfile.TemporaryDirectory() as folder:
        blobs = BlobFolder(folder)
        patient = replace(limits, decision_seconds=limits.hang_seconds)
        seats = RivalSeats(blobs, patient, lambda digest: True)
        try:
            seats.seat(0, bundles(blobs).put(bundle))
            for _ in range(4):
                began = time.monotonic()
                seats.ask(np.full((1, numbers), 0.5, np.float32))
                if reasons := seats.answer(np.zeros((1, KEYS), np.uint8)):
                    raise InvalidInput(reasons[0])
                took.append(time.monotonic() - began)
            return min(took[1:])
        finally:
            seats.close()
