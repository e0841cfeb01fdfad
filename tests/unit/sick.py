"""Set-ups for the tests of `league doctor`, to be broken on purpose each in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from league.games.base import BatchedGame
from league.settings.base import resolve
from learner.doctor.setup import SetUp, set_up_of

WEIGHTED = ("toward_opponent", "damage", "combo", "knockout", "win")
"""Terms with a weight in the preset `laptop`."""


def set_up(*assignments: str) -> SetUp:
    """The preset `smoke` (matches of six seconds), with settings changed."""
    return set_up_of(resolve("smoke", assignments=assignments, environment={}))


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
) -> SetUp:
    """The same in a game whose arrays or actions are changed on their way, whichever game it is."""

    def make(matches: int) -> BatchedGame:
        game = made.game(matches)
        step, reset = game.step, game.reset

        def spoiled_step(actions_N2A, frames=1):
            step(before(game, actions_N2A), frames)
            after(game)

        def spoiled_reset(seeds_N, where_N=None):
            reset(seeds_N, where_N)
            after(game)

        game.step, game.reset = spoiled_step, spoiled_reset
        return game

    return replace(made, game=make)


def first_seat_deaf(game, actions_N2A):
    actions_N2A = actions_N2A.copy()
    actions_N2A[:, 0] = 0
    return actions_N2A


def jump_dead(game, actions_N2A):
    actions_N2A = actions_N2A.copy()
    actions_N2A[..., game.spec.action_names.index("space")] = 0
    return actions_N2A


def whisper(game):
    """What changes is too small to see."""
    game.observations_N2O[:] = 0.5 + 1e-7 * game.observations_N2O


def neighbour_shows(game):
    """A number comes from the match in the row above."""
    game.observations_N2O[1:, 0, 5] = game.observations_N2O[:-1, 0, 5]


def mirror(game):
    """The opponent's half shows oneself."""
    half = game.spec.own_size
    game.observations_N2O[..., half : 2 * half] = game.observations_N2O[..., :half]


def late_infinity(game):
    """After a while one number overflows."""
    if int(game.frames_N.max()) > 100:
        game.observations_N2O[1, 0, -1] = np.inf


def unpaid(game):
    game.reward_terms_N2K[:] = 0.0


def paid_to_the_other(game):
    game.reward_terms_N2K[:] = game.reward_terms_N2K[:, ::-1]


def bots_give_up(game):
    """A bot loses against every player that is no bot."""
    for n in np.flatnonzero(game.ended_N):
        for seat in range(2):
            if game.bots_N2[n, seat] >= 0 > game.bots_N2[n, 1 - seat]:
                game.outcomes_N[n] = float(seat)
                game.reward_terms_N2K[n, seat], game.reward_terms_N2K[n, 1 - seat] = -1.0, 1.0
