"""Records the matches of a batched game while they are played.

Shape suffixes: N rows (matches at once), T frames, 2 seats, A action width, B bytes of packed
actions.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.games.base import EXTERNAL, BatchedGame
from league.replay.match import Contender, Recipe, Replay, final_digest


@dataclass(frozen=True, kw_only=True)
class Bout:
    """A match to be played: who sits where (`bots` as in `BatchedGame.bots_N2`), and its seed."""

    seats: tuple[Contender, Contender]
    bots: tuple[int, int] = (EXTERNAL, EXTERNAL)
    seed: int
    pupil: str = ""
    """Player that the recorder slows down or disturbs (`league.agent.recorded_matches`), "" for none."""

    def match_id(self, recipe: Recipe) -> str:
        """32 hexadecimal digits: the same for the same players, game and seed."""
        text = f"{recipe} {self}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]


class BatchTake:
    """What all rows of `game` do, kept in one array from each match's first frame on.

    Tell it of every single frame (`note`); `finish` gives the match that ended in a row.
    """

    def __init__(self, game: BatchedGame, recipe: Recipe) -> None:
        self._game, self._recipe = game, recipe
        self._width = 2 * game.spec.action_size
        self._rows = np.arange(game.num_matches)
        self._told = True
        packed = -(-self._width // 8)
        self._played_NTB = np.zeros((game.num_matches, game.spec.max_frames, packed), np.uint8)

    def note(self, actions_N2A: NDArray[np.uint8]) -> None:
        """The frame just played, in which the caller's seats did `actions_N2A`."""
        game = self._game
        done_N2A = game.played_N2A()
        self._told = done_N2A is not None
        flat = (actions_N2A if done_N2A is None else done_N2A).reshape(len(self._rows), -1)
        now_N = np.where(game.ended_N, game.final_frames_N, game.frames_N) - 1
        self._played_NTB[self._rows, now_N] = np.packbits(flat, axis=1)

    def finish(
        self, row: int, bout: Bout, disturbed: tuple[tuple[int, int, int], ...] = ()
    ) -> Replay:
        """The match that ended in `row` in the frame noted last; `disturbed` as in `Replay`.

        A bot whose actions the game does not tell is named, so that whoever plays it again lets it
        play anew.
        """
        game = self._game
        frames = int(game.final_frames_N[row])
        actions = np.unpackbits(self._played_NTB[row, :frames], axis=1, count=self._width)
        bots = [
            "" if self._told or bot == EXTERNAL else game.spec.bots[bot].name for bot in bout.bots
        ]
        first, second = (
            Contender(name=seat.name, digest=seat.digest, bot=bot)
            for seat, bot in zip(bout.seats, bots, strict=True)
        )
        return Replay(
            recipe=self._recipe,
            seats=(first, second),
            seed=bout.seed,
            actions_T2A=actions.reshape(frames, 2, -1),
            outcome=float(game.outcomes_N[row]),
            final=final_digest(game, row),
            match_id=bout.match_id(self._recipe),
            disturbed=tuple((seat, at, min(count, frames - at)) for seat, at, count in disturbed),
        )
