"""N environments in step that survive each other's failures.

An environment that raises, hangs or takes its process down fails its own match. The other matches
of that process are played anew from their seeds and actions, up to where they were. Shape suffixes:
N matches, 2 seats, A action width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.errors import Unavailable
from league.games.pettingzoo.history import History
from league.games.pettingzoo.memory import RESET, STEP, Memory
from league.games.pettingzoo.pool import Pool

NOT_THE_SAME = (
    "the environment doesn't repeat a match by its seed: played anew, it went another way"
)
END_AGAIN = "the environments' processes end again and again: see what they print"
_MOST_RESTARTS = 20


@dataclass(frozen=True, kw_only=True)
class Played:
    """One frame: rewards, who made an illegal move, which matches ended, after how many frames,
    and why some failed.
    """

    rewards_N2: NDArray[np.float64]
    illegal_N2: NDArray[np.bool_]
    ended_N: NDArray[np.bool_]
    frames_N: NDArray[np.int32]
    failures: dict[int, str]


class Matches:
    """The current match of every row: where it is, and the environments behind it.

    Attributes:
        frames_N: frames played of the current match.
        broken: rows whose match can't go on, with the reason; their next step reports it.
    """

    def __init__(self, memory: Memory, pool: Pool, history: History) -> None:
        self.memory, self.history = memory, history
        self._pool = pool
        self.frames_N = np.zeros(memory.sizes.matches, np.int32)
        self.broken: dict[int, str] = {}

    def begin(self, where_N: NDArray[np.bool_]) -> None:
        """Begins the match of `memory.seeds_N` in the rows where `where_N`."""
        self._pool.start()
        for n in np.flatnonzero(where_N).tolist():
            self.broken.pop(n, None)
        self.frames_N[where_N] = 0
        self._pool.lost_N |= where_N
        self._mend()

    def play_anew(self, broken_N: NDArray[np.bool_]) -> dict[int, str]:
        """Plays every match anew from its seed and history, but those in `broken_N`, which stay so.

        Returns why the others could not be brought to what `memory.observations_N2O` shows.
        """
        self._pool.start()
        own = self.memory.sizes.own
        views_N2O = self.memory.observations_N2O[:, :, own:].copy()
        self.broken = dict.fromkeys(
            np.flatnonzero(broken_N).tolist(), "it had failed when it was saved"
        )
        self._pool.lost_N[:] = True
        self._mend()
        same_N = (self.memory.observations_N2O[:, :, own:] == views_N2O).all(axis=(1, 2))
        for n in np.flatnonzero(~same_N & ~broken_N).tolist():
            self.broken.setdefault(n, NOT_THE_SAME)
        return {n: reason for n, reason in self.broken.items() if not broken_N[n]}

    def play(self, where_N: NDArray[np.bool_], last_N: NDArray[np.bool_]) -> Played:
        """One frame of the rows in `where_N` by `memory.actions_N2A`; matches that end begin
        anew.
        """
        memory = self.memory
        failed = self._broken_in(where_N)
        unbegun: dict[int, str] = {}
        todo_N = where_N.copy()
        todo_N[list(failed)] = False
        rows = np.flatnonzero(todo_N)
        self.history.record(rows, self.frames_N[rows], memory.actions_N2A[rows])
        for _ in self._rounds():
            memory.last_N[:] = last_N
            for n, reason in self._pool.run(STEP, todo_N).items():
                (unbegun if memory.done_N[n] else failed)[n] = reason
            todo_N[todo_N] = ~memory.done_N[todo_N]
            todo_N[list(failed)] = False
            if not todo_N.any():
                break
            self._mend(todo_N)
            failed.update(self._broken_in(todo_N))
            todo_N[list(failed)] = False
        else:
            raise Unavailable(END_AGAIN)
        played = self._counted(where_N, failed)
        for n, reason in unbegun.items():
            self._break(n, reason)
        self._mend()
        return played

    def _counted(self, where_N: NDArray[np.bool_], failed: dict[int, str]) -> Played:
        """The frame that was just played, and every row at the start of its next match if that
        ended.
        """
        memory = self.memory
        fine_N = where_N.copy()
        fine_N[list(failed)] = False
        ended_N = memory.ended_N & fine_N
        ended_N[list(failed)] = True
        self._pool.lost_N[list(failed)] = True
        memory.final_observations_N2O[list(failed)] = memory.observations_N2O[list(failed)]
        self.frames_N[fine_N] += 1
        frames_N = self.frames_N.copy()
        self.frames_N[ended_N] = 0
        memory.seeds_N[ended_N] = memory.next_seeds_N[ended_N]
        memory.next_seeds_N[ended_N] += np.uint64(1)
        return Played(
            rewards_N2=np.where(fine_N[:, None], memory.rewards_N2, 0.0),
            illegal_N2=memory.illegal_N2 & fine_N[:, None],
            ended_N=ended_N,
            frames_N=frames_N,
            failures=failed,
        )

    def _broken_in(self, where_N: NDArray[np.bool_]) -> dict[int, str]:
        return {n: self.broken.pop(n) for n in list(self.broken) if where_N[n]}

    def _break(self, n: int, reason: str) -> None:
        """Leaves row n as it is, with nobody to act, until a step reports the reason."""
        memory = self.memory
        self.broken[n] = reason
        self._pool.lost_N[n] = False
        memory.acting_N2[n] = False
        memory.legal_N2A[n] = False
        memory.legal_N2A[n, :, 0] = True
        if self.frames_N[n] == 0:
            memory.observations_N2O[n, :, memory.sizes.own :] = 0.0

    def _rounds(self) -> range:
        """Enough of them for every row to fail once with its worker, and then some."""
        return range(len(self.frames_N) + _MOST_RESTARTS)

    def _mend(self, where_N: NDArray[np.bool_] | None = None) -> None:
        """Plays lost matches (all, or those in `where_N`) anew, up to where they were."""
        for _ in self._rounds():
            lost_N = self._pool.lost_N.copy() if where_N is None else self._pool.lost_N & where_N
            lost_N[list(self.broken)] = False
            if not lost_N.any():
                return
            self._restore(lost_N)
        raise Unavailable(END_AGAIN)

    def _restore(self, where_N: NDArray[np.bool_]) -> None:
        """Tries once to play the rows in `where_N` anew; those that fail are broken, some may
        stay lost.
        """
        memory = self.memory
        views_N2O, acts_N2A = memory.observations_N2O.copy(), memory.actions_N2A.copy()
        memory.last_N[:] = False
        self._try(RESET, where_N)
        same_N = self._there(where_N)
        for frame in range(int(self.frames_N[where_N].max(initial=0))):
            playing_N = self._there(where_N) & (self.frames_N > frame)
            if not playing_N.any():
                break
            rows = np.flatnonzero(playing_N)
            memory.actions_N2A[rows] = self.history.actions(frame, rows)
            self._try(STEP, playing_N)
            same_N &= ~(playing_N & memory.ended_N)
        memory.actions_N2A[:] = acts_N2A
        begun_N = self.frames_N > 0
        there_N = self._there(where_N) & begun_N
        own = memory.sizes.own
        same_N &= (memory.observations_N2O[:, :, own:] == views_N2O[:, :, own:]).all(axis=(1, 2))
        memory.observations_N2O[where_N & begun_N] = views_N2O[where_N & begun_N]
        for n in np.flatnonzero(there_N & ~same_N).tolist():
            self._break(n, NOT_THE_SAME)

    def _there(self, where_N: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Those of `where_N` that are neither lost (again) nor broken."""
        there_N = where_N & ~self._pool.lost_N
        there_N[list(self.broken)] = False
        return there_N

    def _try(self, command: bytes, where_N: NDArray[np.bool_]) -> None:
        if command == RESET:
            self._pool.lost_N[where_N] = False
        for n, reason in self._pool.run(command, where_N).items():
            self._break(n, reason)
