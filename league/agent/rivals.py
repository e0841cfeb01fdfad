"""Plays seats by other people's agents. Their Python runs in separate processes.

A rival is a bundle: a zip file with `my_agent.py`, as participants of the AI² tournament write it,
and its data files. All seats of a rival share at most `PROCESSES` processes, and each process plays
several seats. Rivals are asked before the networks compute, and answer while these compute. They
decide about every frame, also while the networks hold their keys.

Shape suffixes: S seats, O observation, A keys.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
import zipfile
from collections import Counter, deque
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing.connection import wait
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.agent.rival_worker import FILE
from league.errors import DataCorrupt, InvalidInput, LeagueError, plain
from league.ids import checked_digest
from league.runs.blobs import BlobFolder, BlobKind

MODELS = (".zip", ".onnx")
"""Endings of models that `rival_model.py` plays."""
MOST_FILES, MOST_BYTES = 1000, 64 << 20
"""Largest number and total size of a bundle's files."""
PROCESSES = 2
"""Most processes of a rival, as long as no match waits for it."""
SLOW_PROCESSES = max(3, (os.cpu_count() or 1) // 2)
"""Most processes of a rival for which matches wait."""
IDLE_PROCESSES = 4
"""Most processes that are kept for a later match."""
BROKEN = 4
"""After this many steps with failures, without a finished match in between, a rival is not started
again for `REST_SECONDS`. Its matches then fail at once.
"""
REST_SECONDS = 600.0
LOOK_SECONDS = 2.0
"""Time between two looks at what a process has written."""
ANSWER_BYTES = 1 << 20
MOST_REASON = 400
WORKER = (sys.executable, "-I", "-B", "-m", "league.agent.rival_worker")
PREFIX = "kumite-rival-"
LEFT_SECONDS = 86_400.0
"""Age of a folder that may be removed once the process that made it has ended."""
NONSENSE = "its process sent no keys"
KEYS = 10
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds what a rival's process may take.

    Attributes:
        decision_seconds: after this time the game continues, and the rival's seats repeat their
            keys until it answers.
        hang_seconds: after this time without an answer the rival's matches fail.
        start_seconds: time for a new process and for the beginning of a match.
        memory_bytes: address space of a process.
    """

    decision_seconds: float = 0.5
    hang_seconds: float = 5.0
    start_seconds: float = 60.0
    memory_bytes: int = 8 << 30


LIMITS = Limits()


# --- bundles


def pack(path: Path) -> bytes:
    """Makes a rival's bundle. Equal files give equal bytes.

    Hidden files and `__pycache__` are left out.

    Args:
        path: a Python file, a folder or its zip file with `my_agent.py`, or a model of
            Stable-Baselines3 (.zip) or ONNX.

    Raises:
        InvalidInput: there is no such file, or the folder is too large or lacks `my_agent.py`.
        DataCorrupt: the zip file is damaged, or too large.
    """
    if path.is_dir():
        found = {
            inner.relative_to(path).as_posix(): inner
            for inner in sorted(path.rglob("*"))
            if not any(
                part.startswith(".") or part == "__pycache__"
                for part in inner.relative_to(path).parts
            )
            and not (inner.is_dir() and not inner.is_symlink())
        }
        if FILE not in found:
            raise InvalidInput(f"{path} has no {FILE}: name the folder that holds the agent's file")
    elif path.suffix in MODELS:
        if zipfile.is_zipfile(path) and FILE in zipfile.ZipFile(path).namelist():
            with tempfile.TemporaryDirectory() as folder:
                unpack(path.read_bytes(), Path(folder))
                return pack(Path(folder))
        player = Path(__file__).with_name("rival_model.py")
        found = {FILE: player, f"model{path.suffix}": path}
        if (weights := path.with_name(f"{path.name}.data")).is_file():  # of a large ONNX model
            found[weights.name] = weights
    else:
        found = {FILE: path}
    if len(found) > MOST_FILES:
        raise InvalidInput(f"{path} has {len(found):,} files: {MOST_FILES:,} are the most")
    left, content = MOST_BYTES, io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as bundle:
        for name, inner in found.items():
            if inner.is_symlink() or not inner.is_file():
                raise InvalidInput(f"{inner} is no file: a rival is files and folders only")
            left -= inner.stat().st_size
            if left < 0:
                raise InvalidInput(f"{path} has over {MOST_BYTES:,} bytes: take files away")
            entry = zipfile.ZipInfo(name)  # with the same date always
            entry.external_attr = 0o644 << 16
            bundle.writestr(entry, inner.read_bytes())
    return content.getvalue()


def unpack(bundle: bytes, folder: Path) -> None:
    """Writes a bundle's files into `folder`. A bundle that `pack` did not make raises
    `DataCorrupt`.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(bundle)) as files:
            entries = files.infolist()
            places = [PurePosixPath(entry.filename) for entry in entries]
            if (
                len(entries) > MOST_FILES
                or sum(entry.file_size for entry in entries) > MOST_BYTES
                or any(place.is_absolute() or ".." in place.parts for place in places)
                or FILE not in files.namelist()
            ):
                raise DataCorrupt("the bundle is no rival's: add the rival again")
            for entry, place in zip(entries, places, strict=True):
                (folder / place).parent.mkdir(parents=True, exist_ok=True)
                (folder / place).write_bytes(files.read(entry))
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, NotImplementedError) as error:
        raise DataCorrupt(f"the bundle can't be opened ({error}): add the rival again") from None


def trust(digest: str) -> None:
    """Notes that this user agrees to run a bundle on this machine.

    Raises:
        InvalidInput: the note can't be written.
    """
    if is_trusted(digest):
        return
    file = _trusted()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file.open("a", encoding="ascii") as notes:
            notes.write(f"{checked_digest(digest)}\n")
    except OSError as error:
        raise InvalidInput(
            f"{file}, which lists the rivals that you trust, can't be written ({error.strerror}): "
            "name a folder that can be written by XDG_STATE_HOME"
        ) from None


def is_trusted(digest: str) -> bool:
    """Returns whether this user has agreed to run a bundle on this machine.

    The notes are not in the run's folder, because a folder from another person could bring its own.
    """
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return digest in _trusted().read_text("ascii").split()
    return False


def _trusted() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "kumite" / "trusted-rivals"


def bundles(blobs: BlobFolder) -> BlobFolder:
    """Returns the rivals' bundles among the blobs of a run."""
    return blobs.of(BlobKind.RIVAL)


# --- processes


@dataclass(eq=False)
class _Seat:
    """A rival in a match. `number` differs from all other seats', also from those of the past.

    Attributes:
        has_decided: whether its keys answer the newest observation.
        is_late: whether the answer that it owes is to an older observation.
        late: decisions of the match that came too late.
    """

    index: int
    digest: str
    number: int
    keys: list[int] = field(default_factory=lambda: [0] * KEYS)
    has_decided: bool = False
    is_late: bool = False
    late: int = 0
    process: _Process | None = None


class _Process:
    """Runs a rival's agents in some seats.

    Attributes:
        seats: its seats by number.
        begin, end: numbers of the seats that the next request begins and ends.
        awaited: seats of the newest request that have not answered, in the order of their answers.
        begins: whether the newest request begins matches.
        since: when the newest request was sent or its newest answer came.
    """

    def __init__(self, digest: str, bundle: bytes, limits: Limits) -> None:
        self.digest, self.seats = digest, dict[int, _Seat]()
        self.begin, self.end = list[int](), list[int]()
        self.awaited, self.begins, self.since = deque[int](), False, 0.0
        self._look_at = 0.0
        self._limits, self._buffer = limits, b""
        self._folder = _new_folder()
        try:
            unpack(bundle, Path(self._folder))
            self.socket, theirs = socket.socketpair()
            with theirs:
                self._popen = subprocess.Popen(
                    [
                        *(*WORKER, str(os.getpid())),
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
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self.socket.settimeout(1.0)
        self._finalizer = weakref.finalize(self, _end, self._popen, self.socket, self._folder)

    @property
    def waits_until(self) -> float:
        """When its next answer is late."""
        limits = self._limits
        return self.since + (limits.start_seconds if self.begins else limits.decision_seconds)

    @property
    def lost_at(self) -> float:
        """When its matches fail without its next answer."""
        limits = self._limits
        return self.since + (limits.start_seconds if self.begins else limits.hang_seconds)

    def wrote_too_much(self) -> bool:
        """Returns whether its folder has twice as many files or bytes as a bundle may have. It
        looks only once in `LOOK_SECONDS`.
        """
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + LOOK_SECONDS
        files = size = 0
        for place, _, names in os.walk(self._folder):
            files += 1 + len(names)
            for name in names[: 2 * MOST_FILES]:
                with contextlib.suppress(OSError):  # it is gone
                    size += os.lstat(os.path.join(place, name)).st_size
            if files > 2 * MOST_FILES or size > 2 * MOST_BYTES:
                return True
        return False

    def ask(self, see: dict[int, list[float]]) -> None:
        """Asks seats for keys. If matches begin, it only begins them."""
        self.begins, self.since = bool(self.begin), time.monotonic()
        see = {} if self.begins else see
        self.awaited.extend(self.begin or see)
        request = {"end": self.end, "begin": self.begin, "see": see}
        self.begin, self.end = [], []
        try:
            self.socket.sendall(json.dumps(request).encode() + b"\n")
        except OSError:  # it has ended or does not read: `read` finds no answer
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)

    def read(self) -> list[tuple[int, list[int], str]]:
        """Reads answers: a seat's number, its keys (none if its match begins) and why it failed.

        Raises:
            InvalidInput: the process has ended, or sent something else.
        """
        try:
            part = self.socket.recv(1 << 16)
        except OSError:
            part = b""
        if not part:
            raise InvalidInput(f"its process {self._ending()}")
        *lines, self._buffer = (self._buffer + part).split(b"\n")
        if len(lines) > len(self.awaited) or len(self._buffer) > ANSWER_BYTES:
            raise InvalidInput(NONSENSE)
        self.since = time.monotonic()
        return [self._answer(line, self.awaited.popleft()) for line in lines]

    def _answer(self, line: bytes, wanted: int) -> tuple[int, list[int], str]:
        try:
            number, keys, reason = json.loads(line)
            is_wrong = number != wanted or not {0, 1}.issuperset(keys)
            is_wrong |= len(keys) != (0 if self.begins or reason else KEYS)
        except (ValueError, TypeError, RecursionError):
            is_wrong = True
        if is_wrong:
            raise InvalidInput(NONSENSE)
        return wanted, [int(key) for key in keys], str(reason)

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
    """Makes a folder, and removes the folders of processes that were killed."""
    for old in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        pid = old.name.removeprefix(PREFIX).partition("-")[0]
        with contextlib.suppress(OSError, ValueError):
            if time.time() - old.stat().st_mtime > LEFT_SECONDS:
                try:
                    os.kill(int(pid), 0)
                except ProcessLookupError:
                    shutil.rmtree(old, ignore_errors=True)
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
    shutil.rmtree(folder, ignore_errors=True)


# --- seats


class RivalSeats:
    """Plays the seats in which rivals sit. Call `ask`, then `answer`, for every frame.

    A call may leave some seats out whose rivals have not decided, so that a slow rival does not
    stop the other matches. Nothing may change in the matches of these seats until they answer.

    A new match gets a new object of the rival's class. A process can't be saved: after a restart
    the rival's object is new in the middle of the match.

    Args:
        blobs: blobs of the run, with the bundles.
        limits: bounds of a process.
        is_trusted: whether a bundle of this digest may run. The others fail their matches.

    Attributes:
        late: decisions that came too late so far. The seats repeated their keys.
        waiting: seats that the newest call of `answer` leaves out.
    """

    def __init__(
        self,
        blobs: BlobFolder,
        limits: Limits = LIMITS,
        is_trusted: Callable[[str], bool] = is_trusted,
    ) -> None:
        self._bundles, self._limits, self._is_trusted = bundles(blobs), limits, is_trusted
        self._seats: dict[int, _Seat] = {}
        self._number = 0
        self._processes: list[_Process] = []
        self._failures: Counter[str] = Counter()
        self._resting: dict[str, tuple[float, str]] = {}  # until when, and why
        # Of this frame.
        self._failed: dict[int, str] = {}
        self._rests: frozenset[int] = frozenset()
        self._observations_SO = np.zeros((0, 0), np.float32)
        self._starter: ThreadPoolExecutor | None = None
        self.late, self.waiting = 0, list[int]()

    @property
    def digests(self) -> dict[int, str]:
        """The digests of the rivals by seat."""
        return {index: seat.digest for index, seat in self._seats.items()}

    def has(self, digest: str) -> bool:
        """Returns whether a digest is a rival's bundle here."""
        return self._bundles.has(digest)

    def late_in(self, index: int) -> int:
        """Counts the late decisions of a seat's match so far, 0 if no rival sits there."""
        return self._seats[index].late if index in self._seats else 0

    def seat(self, index: int, digest: str) -> None:
        """Gives a seat to a rival, for a new match."""
        self.vacate(index)
        self._number += 1
        self._seats[index] = _Seat(index, digest, self._number)

    def vacate(self, index: int) -> None:
        """Empties a seat after its match."""
        seat = self._seats.get(index)
        if seat is not None and self._leave(seat):
            self._failures.pop(seat.digest, None)

    def clear(self) -> None:
        """Empties all seats."""
        for index in list(self._seats):
            self.vacate(index)

    def close(self) -> None:
        """Empties all seats and ends all processes. It is safe to call again."""
        self.clear()
        for process in self._processes:
            process.close()
        self._processes = []
        if self._starter is not None:
            self._starter.shutdown()
            self._starter = None

    def ask(self, observations_SO: NDArray[np.float32], rests: Collection[int] = ()) -> None:
        """Asks every rival for its keys, except those in the seats `rests`, which do not decide
        before the next call. Asking again for the same frame does no harm.
        """
        self._observations_SO, self._rests = observations_SO, frozenset(rests)
        for seat in list(self._seats.values()):
            if seat.process is None and seat.index not in self._failed:
                self._place(seat)
        self._read_all(0.0)
        for process in self._processes:
            if not process.awaited:
                self._ask(process)

    def answer(self, actions_SA: NDArray[np.uint8], may_wait: int = 0) -> dict[int, str]:
        """Writes the keys into the rows of the rivals' seats, except those that rest.

        Args:
            actions_SA: the actions of a frame.
            may_wait: most seats that may be left out. The others' answers are waited for.

        Returns:
            The reason for each seat whose match has failed. These seats are empty now.
        """
        self._read_all(0.0)
        while len(waiting := self._undecided(time.monotonic())) > may_wait:
            ends = [seat.process.waits_until for seat in waiting if seat.process is not None]
            self._read_all(max(0.0, min(ends) - time.monotonic()))
        for process in list(self._processes):
            if process.awaited and time.monotonic() >= process.lost_at:
                self._lose(process, f"it took over {process.lost_at - process.since:g} s")
            elif process.wrote_too_much():
                self._lose(
                    process, f"it wrote over {2 * MOST_FILES:,} files or {2 * MOST_BYTES:,} bytes"
                )
        self.waiting = [seat.index for seat in waiting if seat.index not in self._failed]
        for index in self._seats.keys() - set(self.waiting) - self._failed.keys() - self._rests:
            seat = self._seats[index]
            if not seat.has_decided:
                self.late += 1
                seat.late += 1
                seat.is_late = seat.process is not None and seat.number in seat.process.awaited
            seat.has_decided, actions_SA[index] = False, seat.keys
        return {index: f"the rival failed: {reason}" for index, reason in self._settled().items()}

    def _undecided(self, now: float) -> list[_Seat]:
        """Returns the seats whose rivals still have time to decide."""
        return [
            seat
            for seat in self._seats.values()
            if not seat.has_decided
            and seat.index not in self._failed
            and seat.index not in self._rests
            and seat.process is not None
            and now < seat.process.waits_until
        ]

    # --- a step, in parts

    def _place(self, seat: _Seat) -> None:
        """Finds a process for a new seat."""
        until, reason = self._resting.get(seat.digest, (0.0, ""))
        if time.monotonic() < until:
            self._failed[seat.index] = f"it failed {BROKEN} times in a row, last because {reason}"
            return
        try:
            seat.process = self._process(seat.digest)
        except (LeagueError, OSError) as error:
            self._failed[seat.index] = str(error)
            return
        seat.process.seats[seat.number] = seat
        seat.process.begin.append(seat.number)

    def _process(self, digest: str) -> _Process:
        """Returns the rival's process with the fewest seats, or starts another process."""
        own = [process for process in self._processes if process.digest == digest]
        least = min(own, key=lambda process: len(process.seats), default=None)
        waiting = [self._seats[index].process for index in self.waiting if index in self._seats]
        is_slow = any(one in own and not one.begins for one in waiting if one is not None)
        if least is not None and (
            not least.seats or len(own) >= (SLOW_PROCESSES if is_slow else PROCESSES)
        ):
            return least
        bundle = self._bundles.get(digest)
        if not self._is_trusted(digest):
            raise InvalidInput(
                f"this user has not agreed to run {self._bundles.path(digest)}: unzip and read it, "
                "then name the folder in bin/league add --trust"
            )
        if self._starter is None:
            # Linux ends a worker with the thread that started it, and not only with the process.
            self._starter = ThreadPoolExecutor(1, "rivals")
        process = self._starter.submit(_Process, digest, bundle, self._limits).result()
        self._processes.append(process)
        return process

    def _ask(self, process: _Process) -> None:
        asked = [
            seat
            for seat in process.seats.values()
            if not seat.has_decided
            and seat.index not in self._failed
            and seat.index not in self._rests
        ]
        seen = _original(self._observations_SO[[seat.index for seat in asked]]) if asked else []
        see = {seat.number: numbers for seat, numbers in zip(asked, seen, strict=True)}
        if see or process.begin or process.end:
            process.ask(see)

    def _read_all(self, seconds: float) -> None:
        """Reads answers for at most this time, or until some have come."""
        asked: dict[Any, _Process] = {
            process.socket: process for process in self._processes if process.awaited
        }
        for ready in wait(list(asked), seconds):
            process = asked[ready]
            try:
                answers = process.read()
            except InvalidInput as error:
                self._lose(process, str(error))
                continue
            for number, keys, reason in answers:
                seat = process.seats.get(number)  # None: its match has ended
                if seat is not None and reason:
                    self._failed[seat.index] = reason
                elif seat is not None and keys:
                    seat.keys, seat.has_decided, seat.is_late = keys, not seat.is_late, False
            if not process.awaited:
                self._ask(process)

    def _lose(self, process: _Process, reason: str) -> None:
        """Ends a process. All of its matches fail."""
        self._failed.update({seat.index: reason for seat in process.seats.values()})
        process.close()
        self._processes.remove(process)

    def _settled(self) -> dict[int, str]:
        """Empties the failed seats, and lets rivals rest that fail again and again. Returns the
        reasons.
        """
        now = time.monotonic()
        for digest, (until, _) in list(self._resting.items()):
            if now >= until:
                del self._resting[digest], self._failures[digest]
        failed = {index: plain(reason)[:MOST_REASON] for index, reason in self._failed.items()}
        self._failed = {}
        lost = [(self._seats[index], reason) for index, reason in failed.items()]
        last = {seat.digest: reason for seat, reason in lost if seat.digest not in self._resting}
        for digest, reason in last.items():
            self._failures[digest] += 1
            if self._failures[digest] >= BROKEN:
                self._resting[digest] = now + REST_SECONDS, reason[: MOST_REASON // 2]
                _log.warning(
                    "the rival %s rests after %d failures: %s", digest[:12], BROKEN, reason
                )
        for seat, _ in lost:
            self._leave(seat)
        return failed

    def _leave(self, seat: _Seat) -> bool:
        """Takes a rival from its seat. Returns whether it had been asked to play."""
        del self._seats[seat.index]
        self._failed.pop(seat.index, None)
        process = seat.process
        if process is None:
            return False
        del process.seats[seat.number]
        if seat.number in process.begin:
            process.begin.remove(seat.number)
            return False
        process.end.append(seat.number)
        idle = [process for process in self._processes if not process.seats]
        for process in idle[: max(0, len(idle) - IDLE_PROCESSES)]:
            process.close()
            self._processes.remove(process)
        return True


def _original(seen_SO: NDArray[np.float32]) -> list[list[float]]:
    from league.agent.export.ai2_check import original  # it loads the compiler

    numbers: list[list[float]] = original(seen_SO).tolist()
    return numbers


def barred() -> list[str]:
    """Returns what the kernel of this machine keeps from rivals, in words."""
    with tempfile.TemporaryDirectory() as folder:
        tried = subprocess.run(
            [*WORKER, str(os.getpid())],
            stdin=subprocess.DEVNULL, capture_output=True, cwd=folder, check=False,
        )  # fmt: skip
    return list(json.loads(tried.stdout or "[]"))


def check(bundle: bytes, limits: Limits = LIMITS) -> None:
    """Asks a rival for a few decisions. Raises `InvalidInput` with the reason if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        blobs = BlobFolder(folder)
        patient = replace(limits, decision_seconds=limits.hang_seconds)
        seats = RivalSeats(blobs, patient, lambda digest: True)
        try:
            seats.seat(0, bundles(blobs).put(bundle))
            for _ in range(4):
                seats.ask(np.full((1, 64), 0.5, np.float32))
                if reasons := seats.answer(np.zeros((1, KEYS), np.uint8)):
                    raise InvalidInput(reasons[0])
        finally:
            seats.close()
