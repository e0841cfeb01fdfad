"""A process that holds the environments of some matches and plays them on command.

It gets a `Batch` and answers with one array for all its rows. An environment that raises is
reported and discarded; `pool.py` ends this process when one hangs, which it sees by two numbers in
shared memory. Shape suffixes: R rows of a batch, T frames, 2 seats, A action width, V width of what
the environment shows.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import mmap
import os
import select
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.games.base import CHOICE
from league.games.choice_game import mixed
from league.games.pettingzoo.environment import Seats, board_text, build, seats_of
from league.games.pettingzoo.spaces import Face, face, mask

NOT_REPEATED = "the environment doesn't repeat a match by its seed: its replay went another way"


@dataclass(frozen=True, kw_only=True)
class Begin:
    """Begin the match of `seed`, play what was `played` in it, and compare what the seats then see
    with `expected_2V` (None: it is a new match).
    """

    seed: int
    played: list[NDArray[np.uint8]]
    expected_2V: NDArray[np.float32] | None


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What a worker does for `rows`: those in `begins` begin; then all play one frame, if there
    are actions (`is_last_R` ends the match with it), or the first one is `drawn` as text.
    """

    rows: list[int]
    begins: dict[int, Begin] = field(default_factory=dict)
    actions_R2A: NDArray[np.uint8] | None = None
    is_last_R: NDArray[np.bool_] | None = None
    drawn: bool = False


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A record of `seen_type` for each row of a batch, and why rows failed; theirs don't count."""

    seen_R: NDArray[np.void]
    failed: dict[int, str]
    text: str


def seen_type(seen: Face) -> np.dtype[np.void]:
    """What the seats of a row see and may do, and what its last frame brought."""
    return np.dtype(
        [
            ("views", np.float32, (2, seen.view_size)),
            ("acting", np.bool_, (2,)),
            ("legal", np.bool_, (2, seen.action_size)),
            ("rewards", np.float64, (2,)),
            ("illegal", np.bool_, (2,)),
            ("ended", np.bool_),
        ]
    )


Seen = dict[str, NDArray[Any]]
"""The fields of an array of `seen_type`: indexing them is faster than its records."""


class NotRepeatedError(Exception):
    """A replayed match went another way."""


class Worker:
    """The environments of some rows.

    `progress_2` holds the row that it plays (-1: none) and how often it called an environment.
    """

    def __init__(
        self, argument: str, options: Mapping[str, Any], progress_2: NDArray[np.int64]
    ) -> None:
        self._argument, self._options, self._progress_2 = argument, options, progress_2
        self._spare: Any = build(argument, options)
        self._face = face(self._spare, argument)
        self._type = seen_type(self._face)
        self._seats: dict[int, Seats] = {}
        self._legal_2A: dict[int, NDArray[np.bool_]] = {}

    def answer(self, batch: Batch) -> Answer:
        """Does the batch row by row; a row whose environment raises loses it."""
        seen_R, failed, text = np.zeros(len(batch.rows), self._type), {}, ""
        seen = {name: seen_R[name] for name in self._type.names or ()}
        for place, row in enumerate(batch.rows):
            self._progress_2[:] = row, self._progress_2[1] + 1
            try:
                if row in batch.begins:
                    self._begin(row, batch.begins[row])
                if batch.drawn:
                    text = board_text(self._seats[row])
                elif batch.actions_R2A is None or batch.is_last_R is None:
                    self._see(row, seen, place)
                else:
                    is_last = bool(batch.is_last_R[place])
                    self._step(row, batch.actions_R2A[place], is_last, seen, place)
            except Exception as error:  # whatever an environment may raise
                failed[row] = _reason(error)
                if row in self._seats:  # its next match gets a new environment
                    self._seats.pop(row).close()
        self._progress_2[0] = -1
        return Answer(seen_R=seen_R, failed=failed, text=text)

    def _begin(self, row: int, begin: Begin) -> None:
        if row not in self._seats:
            env = self._spare if self._spare is not None else build(self._argument, self._options)
            self._spare, self._seats[row] = None, seats_of(env)
        seats = self._seats[row]
        seats.reset(environment_seed(begin.seed))
        self._progress_2[1] += 1
        for actions_2A in begin.played:
            if seats.over:
                raise NotRepeatedError
            seats.step(self._decoded(actions_2A))
            self._progress_2[1] += 1
        seen_1 = np.zeros(1, self._type)
        self._see(row, {name: seen_1[name] for name in self._type.names or ()}, 0)
        expected_2V = begin.expected_2V
        if expected_2V is not None and not np.array_equal(seen_1["views"][0], expected_2V):
            raise NotRepeatedError

    def _decoded(self, actions_2A: NDArray[np.uint8]) -> list[Any]:
        return [form.decode(actions_2A[seat]) for seat, form in enumerate(self._face.actions)]

    def _step(
        self, row: int, actions_2A: NDArray[np.uint8], is_last: bool, seen: Seen, place: int
    ) -> None:
        seats, legal_2A = self._seats[row], self._legal_2A[row]
        illegal = [
            self._face.kind == CHOICE and acts and not legal_2A[seat, actions_2A[seat].argmax()]
            for seat, acts in enumerate(seats.acting)
        ]
        if any(illegal):
            lead = float(illegal[1]) - float(illegal[0])
            seen["illegal"][place], seen["rewards"][place] = illegal, (lead, -lead)
            over = True
        else:
            seats.step(self._decoded(actions_2A))
            if not all(map(math.isfinite, seats.rewards)):
                raise ValueError(f"a reward is {seats.rewards}")
            seen["rewards"][place], over = seats.rewards, seats.over or is_last
        seen["ended"][place] = over
        if over:
            self._write_views(seats, seen["views"][place])
        else:
            self._see(row, seen, place)

    def _see(self, row: int, seen: Seen, place: int) -> None:
        """Writes what the seats see and may do now."""
        seats, legal_2A = self._seats[row], seen["legal"][place]
        for seat, acts in enumerate(seats.acting):
            size = self._face.actions[seat].size
            if self._face.kind != CHOICE or not acts:
                legal_2A[seat, 0] = True
                continue
            allowed_A = mask(seats.observations[seat], seats.infos[seat], size)
            legal_2A[seat, :size] = True if allowed_A is None else allowed_A
            if not legal_2A[seat].any():
                agent = seats.agents[seat]
                raise RuntimeError(f"{agent} is to act and its action mask allows nothing")
        seen["acting"][place] = seats.acting
        self._legal_2A[row] = legal_2A
        self._write_views(seats, seen["views"][place])

    def _write_views(self, seats: Seats, views_2V: NDArray[np.float32]) -> None:
        for seat, form in enumerate(self._face.encoders):
            if seats.observations[seat] is not None:
                form.write(seats.observations[seat], views_2V[seat, : form.width])
        if not np.isfinite(views_2V).all():
            raise ValueError("an observation holds NaN or infinity")
        np.clip(views_2V, -1.0, 1.0, out=views_2V)


def _reason(error: Exception) -> str:
    if isinstance(error, NotRepeatedError):
        return NOT_REPEATED
    said = str(error).strip().splitlines()
    words = f": {said[0][:200]}" if said else ""
    return f"the environment raised {type(error).__name__}{words}"


def environment_seed(seed: int) -> int:
    """The environment's seed for a match's: below 2^31, as NumPy's older generators demand."""
    return int(mixed(np.array([seed], np.uint64))[0] >> np.uint64(33))


def shared_progress(descriptor: int) -> NDArray[np.int64]:
    """The two numbers of `Worker.progress_2` in an open file of 16 bytes, shared by both sides."""
    return np.ndarray(2, np.int64, buffer=mmap.mmap(descriptor, 16))


def _end_with(lifeline: int) -> None:
    """Makes the kernel end this process (SIGIO) with the game's, even in the middle of a step.

    Linux does so; elsewhere this process ends when it next waits for a command.
    """
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
        if select.select([lifeline], [], [], 0)[0]:  # the game's process has ended already
            os._exit(1)


def main(start: Mapping[str, Any]) -> None:
    """Serves until the game closes its end; an interrupt is for the game's process to answer.

    The first message is "" or why no environment can be made.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _end_with(start["lifeline"])
    connection = Connection(start["connection"])
    try:
        worker = Worker(start["argument"], start["options"], shared_progress(start["progress"]))
    except Exception as error:
        connection.send(str(error) or type(error).__name__)
        return
    connection.send("")
    with contextlib.suppress(EOFError, OSError):
        while True:
            connection.send(worker.answer(connection.recv()))
