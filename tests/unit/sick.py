"""Set-ups for the tests of `league doctor`, to be broken on purpose each in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from league.games.base import BatchedGame
from league.games.brawl.game import BrawlGame
from league.settings.base import resolve
from learner.doctor.setup import SetUp, set_up_of

WEIGHTED = ("toward_opponent", "damage", "combo", "knockout", "win")
"""Terms with a weight in the preset `laptop`."""


def set_up(*assignments: str) -> SetUp:
    """The preset `smoke` (matches of six seconds), with settings changed."""
    return set_up_of(resolve("smoke", assignments=assignments, environment={}))


def playing(game: type[BrawlGame], *assignments: str) -> SetUp:
    """The same in a broken game."""
    made = set_up(*assignments)
    limit = made.settings.game.max_frames
    return replace(made, game=lambda matches: game(matches, max_frames=limit))


def weights(**changed: float) -> list[str]:
    """Flags that give every weighted term a weight, 0 where none is named."""
    return [f"game.reward_weights.{term}={changed.get(term, 0.0)!r}" for term in WEIGHTED]


def board(game: str, *assignments: str) -> SetUp:
    """The preset `board` with a game of choices, on few matches."""
    small = ["learner.matches=16", "learner.n_steps=16", "learner.batch_size=64"]
    flags = [f"game.name={game}", *small, *assignments]
    return set_up_of(resolve("board", assignments=flags, environment={}))


def spoiled(
    made: SetUp,
    after: Callable[[BatchedGame], None] = lambda game: None,
    before: Callable[[BatchedGame, np.ndarray], np.ndarray] = lambda game, actions_N2A: actions_N2A,
    seeds: Callable[[np.ndarray], np.ndarray] = lambda seeds_N: seeds_N,
) -> SetUp:
    """The same in a game whose arrays, actions or seeds are changed on their way, whichever game
    it is.
    """

    def make(matches: int) -> BatchedGame:
        game = made.game(matches)
        step, reset = game.step, game.reset

        def spoiled_step(actions_N2A, frames=1):
            step(before(game, actions_N2A), frames)
            after(game)

        def spoiled_reset(seeds_N, where_N=None):
            reset(seeds(seeds_N), where_N)
            after(game)

        game.step, game.reset = spoiled_step, spoiled_reset
        return game

    return replace(made, game=make)
