"""A process that holds the environments of some matches and plays them as it is told.

It shares arrays with the game (`memory.py`) and answers each command with JSON; an environment that
raises is reported and thrown away, one that hangs is ended with this process by `pool.py`.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from league.games.base import CHOICE
from league.games.pettingzoo.draws import environment_seed
from league.games.pettingzoo.environment import Seats, build, seats_of
from league.games.pettingzoo.memory import STEP, TEXT, Memory, Sizes
from league.games.pettingzoo.spaces import mask
from league.games.pettingzoo.spec import face
from league.games.pettingzoo.text import drawn


class Worker:
    """Rows `first` to `last` (excluded) of the shared arrays, each with an environment."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.memory = Memory(Sizes(**task["sizes"]), task["memory"])
        self.index, self.rows = task["index"], range(task["first"], task["last"])
        self.argument, self.options = task["argument"], task["options"]
        self.own = self.memory.sizes.own
        spare = build(self.argument, self.options)
        self.face = face(spare, self.argument)
        self.spare: Any = spare
        self.seats: dict[int, Seats] = {}

    def answer(self, command: bytes) -> dict[str, Any]:
        """Does what `command` says for the active rows; the reply holds the reason of each that
        failed.
        """
        if command.startswith(TEXT):
            return {"text": self._text(int(command.split()[1]))}
        do = self._step if command == STEP else self._reset
        failed = {}
        for row in self.rows:
            if self.memory.active_N[row]:
                self.memory.row_W[self.index] = row
                try:
                    do(row)
                except Exception as error:  # whatever an environment may raise
                    failed[str(row)] = _reason(error)
                    self.discard(row)
        self.memory.row_W[self.index] = -1
        return {"failed": failed}

    def _called(self) -> None:
        self.memory.calls_W[self.index] += 1

    def _text(self, row: int) -> str:
        return drawn(self.seats[row]) if row in self.seats else ""

    def discard(self, row: int) -> None:
        """Closes the row's environment; the next match gets a new one."""
        if row in self.seats:
            self.seats.pop(row).close()

    def _begun(self, row: int, seed: int) -> None:
        """The row's environment at the start of the match of `seed`, and seen."""
        self._called()
        if row not in self.seats:
            env = self.spare if self.spare is not None else build(self.argument, self.options)
            self.spare, self.seats[row] = None, seats_of(env)
        self.seats[row].reset(environment_seed(seed))
        self._called()
        self._see(row)

    def _reset(self, row: int) -> None:
        self._begun(row, int(self.memory.seeds_N[row]))
        self.memory.done_N[row] = True

    def _step(self, row: int) -> None:
        memory, seats = self.memory, self.seats[row]
        illegal = [self._is_illegal(row, seat) for seat in (0, 1)]
        if any(illegal):
            memory.rewards_N2[row] = [float(illegal[1]) - float(illegal[0])] * 2
            memory.rewards_N2[row, 1] *= -1
            over = True
        else:
            acts = [
                form.decode(memory.actions_N2A[row, s]) for s, form in enumerate(self.face.actions)
            ]
            self._called()
            seats.step(acts)
            self._called()
            memory.rewards_N2[row] = seats.rewards
            if not np.isfinite(memory.rewards_N2[row]).all():
                raise ValueError(f"a reward is {seats.rewards}")
            over = seats.over
        memory.illegal_N2[row] = illegal
        ended = bool(over or memory.last_N[row])
        memory.ended_N[row] = ended
        if not ended:
            self._see(row)
            memory.done_N[row] = True
            return
        self._encode(row, memory.final_observations_N2O[row])
        memory.done_N[row] = True  # what fails from here on is the next match
        self._begun(row, int(memory.next_seeds_N[row]))

    def _is_illegal(self, row: int, seat: int) -> bool:
        if self.face.kind != CHOICE or not self.seats[row].acting[seat]:
            return False
        return not self.memory.legal_N2A[row, seat, self.memory.actions_N2A[row, seat].argmax()]

    def _see(self, row: int) -> None:
        """Writes what the seats see and may do now."""
        memory, seats = self.memory, self.seats[row]
        self._encode(row, memory.observations_N2O[row])
        memory.acting_N2[row] = seats.acting
        if self.face.kind == CHOICE:
            for seat, acting in enumerate(seats.acting):
                memory.legal_N2A[row, seat] = False
                if acting:
                    self._allow(row, seat)
                else:
                    memory.legal_N2A[row, seat, 0] = True

    def _allow(self, row: int, seat: int) -> None:
        seats, size = self.seats[row], self.face.actions[seat].size
        allowed_A = mask(seats.observations[seat], seats.infos[seat], size)
        self.memory.legal_N2A[row, seat, :size] = True if allowed_A is None else allowed_A
        if not self.memory.legal_N2A[row, seat].any():
            raise RuntimeError(f"{seats.agents[seat]} is to act and its action mask allows nothing")

    def _encode(self, row: int, out_2O: np.ndarray) -> None:
        seats = self.seats[row]
        for seat, form in enumerate(self.face.encoders):
            seen, view = seats.observations[seat], out_2O[seat, self.own : self.own + form.width]
            if seen is None:
                view[:] = 0.0
                continue
            form.write(seen, view)
            if not np.isfinite(view).all():
                raise ValueError("an observation holds NaN or infinity")
            np.clip(view, -1.0, 1.0, out=view)


def _reason(error: Exception) -> str:
    told = str(error).strip().splitlines()
    return f"the environment raised {type(error).__name__}" + (f": {told[0][:200]}" if told else "")


def _end_with(lifeline: int) -> None:
    """Lets the kernel end this process (SIGIO) when the game's does, even in the middle of a step.

    Linux does so; elsewhere it ends when it next waits for a command.
    """
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
        if select.select([lifeline], [], [], 0)[0]:  # it ended before we asked
            os._exit(1)


def main(task: dict[str, Any]) -> None:
    """Serves until the game closes its end. An interrupt is the game's to answer, not ours."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _end_with(task["lifeline"])
    connection = Connection(task["connection"])
    try:
        worker = Worker(task)
    except Exception as error:
        connection.send_bytes(json.dumps({"error": str(error)}).encode())
        return
    connection.send_bytes(json.dumps({"ready": True}).encode())
    while True:
        try:
            command = connection.recv_bytes()
        except (EOFError, ConnectionResetError):
            break
        connection.send_bytes(json.dumps(worker.answer(command)).encode())
    for row in worker.rows:
        worker.discard(row)
