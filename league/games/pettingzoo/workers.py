"""Runs a worker process, which plays a part of the game's matches and answers requests.

Shape suffixes: R rows of a request, 2 seats, A action width, V width of a seat's view.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.games.base import CHOICE
from league.games.hosted import serve_process
from league.games.pettingzoo.environment import Face, Seats, board_text, build, reason
from league.games.seen import match_seed, seen_type

Answer = tuple[bytes, dict[int, str]]
"""A record of `seen_type` for each row (match), and for each failed row the reason. The records of
failed rows must be ignored.
"""

Seen = dict[str, NDArray[Any]]
"""The fields of an array of `seen_type`. Indexing fields is faster than indexing records."""


class Worker:
    """Holds an environment for each match that this process plays. A match is identified by its row
    in the game's arrays. If a call of an environment takes longer than `step_seconds`, SIGALRM ends
    the process. A `step_seconds` of 0 means no limit.
    """

    def __init__(self, argument: str, options: Mapping[str, Any], step_seconds: float) -> None:
        self._make, self._step_seconds = partial(build, argument, options), step_seconds
        self._spare: Any = self._make()
        self._face = Face(self._spare, argument)
        self._type = seen_type(self._face.view_size, self._face.action_size)
        self._seats: dict[int, Seats] = {}
        self._legal_2A: dict[int, NDArray[np.bool_]] = {}

    def begin(self, rows: list[int], seeds: list[int], played: list[bytes]) -> Answer:
        """Begins matches. To continue a saved match, its earlier actions are played again."""

        def begin_one(row: int, index: int, seen: Seen) -> None:
            if row not in self._seats:
                env = self._make() if self._spare is None else self._spare
                self._spare, self._seats[row] = None, Seats.of(env)
            seats = self._seats[row]
            seats.reset(match_seed(seeds[index]))
            for actions_2A in self._actions(played[index]):
                self._limit_call()
                seats.step(self._decoded(actions_2A))
            if not any(seats.acting):
                raise RuntimeError("no agent can act when the match begins")
            self._see(row, seen, index)

        return self._each(rows, begin_one)

    def step(self, rows: list[int], actions: bytes, is_last: list[bool]) -> Answer:
        """Plays a frame of each match."""
        actions_R2A = self._actions(actions)

        def step_one(row: int, index: int, seen: Seen) -> None:
            seats, legal_2A = self._seats[row], self._legal_2A[row]
            actions_2A = actions_R2A[index]
            illegal = [
                self._face.kind == CHOICE and acts and not legal_2A[seat, actions_2A[seat].argmax()]
                for seat, acts in enumerate(seats.acting)
            ]
            over = True
            if any(illegal):
                lead = float(illegal[1]) - float(illegal[0])
                seen["illegal"][index], seen["rewards"][index, :, 0] = illegal, (lead, -lead)
            else:
                seats.step(self._decoded(actions_2A))
                lead, seen["rewards"][index, :, 0] = seats.lead(), seats.rewards
                over = not any(seats.acting) or is_last[index]
            seen["ended"][index], seen["lead"][index] = over, lead
            if over:
                self._write_views(seats, seen["views"][index])
            else:
                self._see(row, seen, index)

        return self._each(rows, step_one)

    def text(self, rows: list[int]) -> str:
        """Returns the match of the first row as text."""
        self._limit_call()
        try:
            return board_text(self._seats[rows[0]])
        except Exception as error:  # whatever an environment may raise
            return f"the environment raised {reason(error)}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    def clipped(self, rows: list[int]) -> dict[str, int]:
        """Returns the counts of `Face.clipped`, which cover all rows of this worker."""
        return self._face.clipped()

    def close(self) -> None:
        """Closes the environments."""
        for seats in self._seats.values():
            with contextlib.suppress(Exception):  # whatever an environment may raise
                seats.env.close()

    def _each(self, rows: list[int], play: Callable[[int, int, Seen], None]) -> Answer:
        """Calls `play(row, index, seen)` for each row. If a call raises an error, the row's match
        fails.
        """
        seen_R, failed = np.zeros(len(rows), self._type), {}
        seen = {name: seen_R[name] for name in self._type.names or ()}
        for index, row in enumerate(rows):
            self._limit_call()
            try:
                play(row, index, seen)
            except Exception as error:  # whatever an environment may raise
                failed[row] = f"the environment raised {reason(error)}"
                if row in self._seats:  # the row's next match gets a new environment
                    with contextlib.suppress(Exception):
                        self._seats.pop(row).env.close()
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        return seen_R.tobytes(), failed

    def _actions(self, content: bytes) -> NDArray[np.uint8]:
        return np.frombuffer(content, np.uint8).reshape(-1, 2, self._face.action_size)

    def _limit_call(self) -> None:
        """Gives an environment `step_seconds` from now. After this, SIGALRM ends the process."""
        signal.setitimer(signal.ITIMER_REAL, self._step_seconds)

    def _decoded(self, actions_2A: NDArray[np.uint8]) -> list[Any]:
        return [self._face.action(seat, row_A) for seat, row_A in enumerate(actions_2A)]

    def _see(self, row: int, seen: Seen, index: int) -> None:
        """Writes the seats' views and legal choices."""
        seats, legal_2A = self._seats[row], seen["legal"][index]
        for seat, acts in enumerate(seats.acting):
            if self._face.kind == CHOICE and acts:
                legal_2A[seat] = self._face.legal(seat, seats.observations[seat], seats.infos[seat])
            else:
                legal_2A[seat, 0] = True
        seen["acting"][index] = seats.acting
        self._legal_2A[row] = legal_2A
        self._write_views(seats, seen["views"][index])

    def _write_views(self, seats: Seats, views_2V: NDArray[np.float32]) -> None:
        for seat, observation in enumerate(seats.observations):
            if observation is not None:
                self._face.write(seat, observation, views_2V[seat])


if __name__ == "__main__":
    serve_process(Worker)
