"""A process that holds the environments of some matches and plays them on command.

It gets lists of `Task` and answers each with a list of `Done`. An environment that raises is
reported and discarded; `pool.py` ends this process when one hangs, which it sees by two numbers in
shared memory. Shape suffixes: 2 seats, A action width, V width of what the environment shows.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import select
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.games.base import CHOICE
from league.games.choice_game import mixed
from league.games.pettingzoo.environment import Seats, board_text, build, seats_of
from league.games.pettingzoo.spaces import face, mask

NOT_REPEATED = "the environment doesn't repeat a match by its seed: its replay went another way"


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a worker does for one row, in this order; each part is optional.

    Attributes:
        seed: begin the match of this seed, play `played` in it, and compare what the seats then see
            with `expected_2V`.
        actions_2A: play one frame; `is_last` ends the match with it.
        draws: answer with the match as text.
    """

    row: int
    seed: int | None = None
    played: list[NDArray[np.uint8]] = field(default_factory=list)
    expected_2V: NDArray[np.float32] | None = None
    actions_2A: NDArray[np.uint8] | None = None
    is_last: bool = False
    draws: bool = False


@dataclass(frozen=True, kw_only=True)
class Done:
    """A row after its task. `error` says in words why it failed; then nothing else counts."""

    row: int
    error: str = ""
    views_2V: NDArray[np.float32] | None = None
    acting_2: tuple[bool, bool] = (False, False)
    legal_2A: NDArray[np.bool_] | None = None
    rewards_2: tuple[float, float] = (0.0, 0.0)
    illegal_2: tuple[bool, bool] = (False, False)
    ended: bool = False
    text: str = ""


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
        self._seats: dict[int, Seats] = {}
        self._legal_2A: dict[int, NDArray[np.bool_]] = {}

    def answer(self, tasks: Sequence[Task]) -> list[Done]:
        """Does the tasks in turn."""
        answers = []
        for task in tasks:
            self._progress_2[0] = task.row
            answers.append(self.do(task))
        self._progress_2[0] = -1
        return answers

    def do(self, task: Task) -> Done:
        """Does the task; a row whose environment raises loses it."""
        self._progress_2[1] += 1
        try:
            return self._do(task)
        except NotRepeatedError:
            self.discard(task.row)
            return Done(row=task.row, error=NOT_REPEATED)
        except Exception as error:  # whatever an environment may raise
            self.discard(task.row)
            said = str(error).strip().splitlines()
            words = f": {said[0][:200]}" if said else ""
            reason = f"the environment raised {type(error).__name__}{words}"
            return Done(row=task.row, error=reason)

    def discard(self, row: int) -> None:
        """Closes the row's environment; the next match gets a new one."""
        if row in self._seats:
            self._seats.pop(row).close()

    def _do(self, task: Task) -> Done:
        if task.seed is not None:
            self._begin(task)
        seats = self._seats[task.row]
        if task.draws:
            return Done(row=task.row, text=board_text(seats))
        if task.actions_2A is not None:
            return self._step(task, seats)
        return self._seen(task.row)

    def _begin(self, task: Task) -> None:
        if task.row not in self._seats:
            env = self._spare if self._spare is not None else build(self._argument, self._options)
            self._spare, self._seats[task.row] = None, seats_of(env)
        seats = self._seats[task.row]
        seats.reset(environment_seed(task.seed or 0))
        self._progress_2[1] += 1
        for actions_2A in task.played:
            if seats.over:
                raise NotRepeatedError
            seats.step(self._decoded(actions_2A))
            self._progress_2[1] += 1
        self._seen(task.row)
        expected_2V = task.expected_2V
        if expected_2V is not None and not np.array_equal(self._views(seats), expected_2V):
            raise NotRepeatedError

    def _decoded(self, actions_2A: NDArray[np.uint8]) -> list[Any]:
        return [form.decode(actions_2A[seat]) for seat, form in enumerate(self._face.actions)]

    def _step(self, task: Task, seats: Seats) -> Done:
        assert task.actions_2A is not None
        is_choice, legal_2A = self._face.kind == CHOICE, self._legal_2A[task.row]
        first, second = (
            is_choice and seats.acting[s] and not legal_2A[s, task.actions_2A[s].argmax()]
            for s in (0, 1)
        )
        illegal_2 = (bool(first), bool(second))
        if any(illegal_2):
            lead = float(illegal_2[1]) - float(illegal_2[0])
            seen = Done(row=task.row, views_2V=self._views(seats))
            rewards_2, over = (lead, -lead), True
        else:
            seats.step(self._decoded(task.actions_2A))
            rewards_2, over = (seats.rewards[0], seats.rewards[1]), seats.over
            if not np.isfinite(rewards_2).all():
                raise ValueError(f"a reward is {list(rewards_2)}")
            if over or task.is_last:
                seen = Done(row=task.row, views_2V=self._views(seats))
            else:
                seen = self._seen(task.row)
        return Done(
            row=task.row,
            views_2V=seen.views_2V,
            acting_2=seen.acting_2,
            legal_2A=seen.legal_2A,
            rewards_2=rewards_2,
            illegal_2=illegal_2,
            ended=over or task.is_last,
        )

    def _seen(self, row: int) -> Done:
        """What the seats see and may do now."""
        seats = self._seats[row]
        legal_2A = np.zeros((2, self._face.action_size), np.bool_)
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
        self._legal_2A[row] = legal_2A
        acting_2 = (seats.acting[0], seats.acting[1])
        return Done(row=row, views_2V=self._views(seats), acting_2=acting_2, legal_2A=legal_2A)

    def _views(self, seats: Seats) -> NDArray[np.float32]:
        views_2V = np.zeros((2, self._face.view_size), np.float32)
        for seat, form in enumerate(self._face.encoders):
            if seats.observations[seat] is not None:
                form.write(seats.observations[seat], views_2V[seat, : form.width])
        if not np.isfinite(views_2V).all():
            raise ValueError("an observation holds NaN or infinity")
        return np.clip(views_2V, -1.0, 1.0, out=views_2V)


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
