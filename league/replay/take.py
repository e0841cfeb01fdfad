"""Records a match while it is played. Shape suffixes: T frames, 2 seats, A action width."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.errors import DataCorrupt, InvalidInput
from league.games.base import EXTERNAL, BatchedGame
from league.replay.match import Contender, Recipe, Replay, final_digest


@dataclass
class Take:
    """One match while it is recorded: what the caller's seats did, decision by decision."""

    recipe: Recipe
    seats: tuple[Contender, Contender]
    bots: tuple[int, int]  # as in `BatchedGame.bots_N2`
    seed: int
    match_id: str = ""
    _decisions: list[tuple[NDArray[np.uint8], int]] = field(default_factory=list)

    def note(self, actions_2A: NDArray[np.uint8], frames: int = 1) -> None:
        """What the seats are about to hold for `frames` frames."""
        self._decisions.append((np.packbits(actions_2A), frames))

    def finish(self, outcome: float, final: str) -> Replay:
        """The match as a replay, played again to write down what bots did; `final` as of
        `final_digest`.

        Raises `DataCorrupt` when it does not end as it did, `InvalidInput` when it does not end at
        all.
        """
        game = self.recipe.make()
        try:
            actions_T2A, told = self._play(game)
            same = (float(game.outcomes_N[0]), final_digest(game, 0)) == (outcome, final)
        finally:
            game.close()
        if not same:
            raise DataCorrupt(
                f"match {self.match_id or self.seed} can't be recorded: it ends otherwise"
            )
        bots = ["" if told or bot == EXTERNAL else game.spec.bots[bot].name for bot in self.bots]
        seats = tuple(
            Contender(name=seat.name, digest=seat.digest, bot=bot)
            for seat, bot in zip(self.seats, bots, strict=True)
        )
        return Replay(
            recipe=self.recipe,
            seats=(seats[0], seats[1]),
            seed=self.seed,
            actions_T2A=actions_T2A,
            outcome=outcome,
            final=final,
            match_id=self.match_id,
        )

    def _play(self, game: BatchedGame) -> tuple[NDArray[np.uint8], bool]:
        """Both seats' actions frame by frame, and whether the game told of its bots'."""
        shape, told = (2, game.spec.action_size), True
        game.bots_N2[0] = self.bots
        game.reset(np.array([self.seed], np.uint64))
        played: list[NDArray[np.uint8]] = []
        for packed, frames in self._decisions:
            held = np.unpackbits(packed, count=shape[0] * shape[1]).reshape(shape)
            for _ in range(frames):
                game.step(held[None])
                done_N2A = game.played_N2A()
                told = done_N2A is not None
                played.append(held if done_N2A is None else done_N2A[0])
                if game.ended_N[0]:
                    return np.stack(played), told
        raise InvalidInput(f"match {self.match_id or self.seed} was not recorded to its end")
