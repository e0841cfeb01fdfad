"""Plays the learner's decisions frame by frame against rivals, which decide in every frame.

Rivals are agents in separate processes, so their decisions may take longer than a step of the
learner. A row is one of the matches that are played at once.

Shape suffixes: N matches, 2 seats, A actions, O observation, K reward terms.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from league.games.base import BatchedGame


class Decisions:
    """Plays the learner's decision in each match frame by frame, and adds up the results of the
    frames.

    A decision of the learner lasts several frames. While the rival of a match computes, the
    learner's decision stays open, and may continue in a later step. Until the decision is over, the
    learner's actions and its observation stay the same.

    Args:
        game: the game. While some of its rows (matches) play, the other rows rest.
        frame_skip: frames of a decision.

    Attributes:
        done_N: number of frames of the row's decision that are played so far. 0 if the learner
            decides next.
        open_N: true in rows whose decision is not yet over.
    """

    def __init__(self, game: BatchedGame, frame_skip: int) -> None:
        self._game, self._frame_skip = game, frame_skip
        self.done_N = np.zeros(game.num_matches, np.int32)
        self.open_N = np.ones(game.num_matches, np.bool_)
        self._seen_N2O = np.zeros_like(game.observations_N2O)
        self._terms_N2K = np.zeros_like(game.reward_terms_N2K)
        self._ended_N = np.zeros(game.num_matches, np.bool_)
        self._failures: dict[int, str] = {}

    @property
    def held_N(self) -> NDArray[np.bool_]:
        """True in rows (matches) whose decision has begun, so that the learner's action can't
        change.
        """
        return self.done_N > 0

    @property
    def over_N(self) -> NDArray[np.bool_]:
        """True in rows (matches) whose decision has ended in this step."""
        return ~self.open_N

    def seen_NO(self, seat_N: NDArray[np.int64]) -> NDArray[np.float32]:
        """Copies the observations `[N, O]` of these seats. In rows (matches) whose decision has
        begun, the copy is the observation from before the decision.
        """
        seen_NO = self._game.observations_N2O[np.arange(len(seat_N)), seat_N]
        held = np.flatnonzero(self.held_N)
        seen_NO[held] = self._seen_N2O[held, seat_N[held]]
        return seen_NO

    def begin(self) -> None:
        """Begins a step: all decisions are open."""
        self.open_N[:], self._ended_N[:], self._failures = True, False, {}

    def play(
        self,
        actions_N2A: NDArray[np.uint8],
        where_N: NDArray[np.bool_],
        frames: int,
        failures: Mapping[int, str],
    ) -> None:
        """Plays frames.

        Args:
            actions_N2A: the actions of all rows.
            where_N: true in rows that play. Their decisions must be open.
            frames: number of frames to play.
            failures: the reasons why matches fail in these frames, by row.
        """
        if not where_N.any() and not failures:
            return
        failures = {row: why for row, why in failures.items() if not self._ended_N[row]}
        game, first_N = self._game, where_N & ~self.held_N
        self._terms_N2K[first_N] = 0.0
        if frames < self._frame_skip:  # a decision may stay open
            self._seen_N2O[first_N] = game.observations_N2O[first_N]
        game.idle_N[:] = ~where_N
        game.step(actions_N2A, frames)
        game.fail(failures)
        self._terms_N2K[where_N] += game.reward_terms_N2K[where_N]
        self._terms_N2K[[*failures]] = 0.0
        self.done_N[where_N] += frames
        self._failures |= game.failures
        self._ended_N |= game.ended_N
        self.open_N &= (self.done_N < self._frame_skip) & ~self._ended_N

    def finish(self) -> None:
        """Ends a step. Afterwards the game's arrays look as if a single call of `step` had played
        all decisions that are over, and had left out the rows with open decisions.
        """
        game = self._game
        game.reward_terms_N2K[:] = np.where(self.open_N[:, None, None], 0.0, self._terms_N2K)
        game.ended_N[:], game.failures = self._ended_N, self._failures
        game.idle_N[:] = self.open_N
        self.done_N[~self.open_N] = 0

    def state(self) -> dict[str, NDArray]:
        """Returns the arrays (not copies) that hold the state of the open decisions, except the
        actions.
        """
        return {"done": self.done_N, "seen": self._seen_N2O, "terms": self._terms_N2K}
