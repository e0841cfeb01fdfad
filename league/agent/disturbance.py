"""Small mistakes in a recorded player's stead, so that the record shows how it gets out of them.

Who learns from a record alone sees only situations that the recorded player gets into, and is lost
after its first mistake. Demonstrations with noise in them, and the noise left out of what is
learnt, cure that (DART, arXiv 1703.09327). The noise here is what the player itself did at another
moment: the right keys at a wrong time, which is the mistake that a clone makes.

Shape suffixes: N rows, 2 seats, A action width, P remembered actions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.errors import InvalidInput
from league.games.base import EXTERNAL, BatchedGame

SHORTEST, LONGEST = 2, 12
"""Frames that a mistake lasts."""
_REMEMBERED = 4096


class Disturbance:
    """Takes some seats of `game` over for a few frames at a time, for the share `share` of all
    frames.
    """

    def __init__(self, game: BatchedGame, share: float, seed: int) -> None:
        self._game = game
        mean = (SHORTEST + LONGEST) / 2
        # of a frame to begin one, when none is going on
        self._chance = share / (mean * (1.0 - share))
        self._rng = np.random.default_rng([seed, 2])
        self._left_N2 = np.zeros((game.num_matches, 2), np.int64)
        self._on_N2 = np.zeros((game.num_matches, 2), np.bool_)
        self._keys_N2A = np.zeros((game.num_matches, 2, game.spec.action_size), np.uint8)
        self._memory_PA = np.zeros((_REMEMBERED, game.spec.action_size), np.uint8)
        self._remembered = 0
        self._spans: list[list[tuple[int, int, int]]] = [[] for _ in range(game.num_matches)]

    def begin(self, row: int, seats: tuple[bool, bool]) -> None:
        """A match begins in `row`; `seats` says who is disturbed. Raises `InvalidInput` when it
        can't be.
        """
        if any(seats) and self._game.played_N2A() is None:
            raise InvalidInput(
                f"{self._game.spec.name} does not tell what its players do, so mistakes could not "
                "be told apart: leave out --disturb"
            )
        self._left_N2[row], self._spans[row] = 0, []
        self._on_N2[row] = seats

    def spans(self, row: int) -> tuple[tuple[int, int, int], ...]:
        """What was disturbed in the row's match: (seat, first frame, frames)."""
        return tuple(self._spans[row])

    def before(self, actions_N2A: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The actions of the frame to be played, with the mistakes put in; bots that err don't
        play in it.
        """
        game = self._game
        drawn_N2 = self._rng.random(self._left_N2.shape) < self._chance
        begins_N2 = drawn_N2 & self._on_N2 & (self._left_N2 == 0)
        lasts_N2 = self._rng.integers(SHORTEST, LONGEST + 1, self._left_N2.shape)
        for row, seat in np.argwhere(begins_N2) if self._remembered else ():
            self._left_N2[row, seat] = lasts_N2[row, seat]
            place = self._rng.integers(min(self._remembered, _REMEMBERED))
            self._keys_N2A[row, seat] = self._memory_PA[place]
            self._spans[row].append((int(seat), int(game.frames_N[row]), int(lasts_N2[row, seat])))
        taken_N2 = self._left_N2 > 0
        game.bots_N2[taken_N2] = EXTERNAL
        return np.where(taken_N2[..., None], self._keys_N2A, actions_N2A)

    def after(self, actions_N2A: NDArray[np.uint8]) -> None:
        """The frame was played: `actions_N2A` by those who play themselves."""
        done_N2A = self._game.played_N2A()
        done_N2A = actions_N2A if done_N2A is None else done_N2A
        for row, seat in np.argwhere(self._on_N2 & (self._left_N2 == 0))[:8]:
            self._memory_PA[self._remembered % _REMEMBERED] = done_N2A[row, seat]
            self._remembered += 1
        self._left_N2 = np.maximum(self._left_N2 - 1, 0)
