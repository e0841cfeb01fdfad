"""Games that are broken on purpose, and changes that break any game, for the tests of `league
doctor`.
"""

from __future__ import annotations

import numpy as np

from league.games.brawl.game import BrawlGame


class Watched(BrawlGame):
    """A game whose arrays are changed by `spoil` after every reset and step."""

    def reset(self, seeds, where=None):
        super().reset(seeds, where)
        self.spoil()

    def step(self, actions_N2A, frames=1):
        super().step(actions_N2A, frames)
        self.spoil()

    def spoil(self):
        raise NotImplementedError


class OneKeyDead(BrawlGame):
    """One key, the jump, does not reach the game."""

    def step(self, actions_N2A, frames=1):
        passed = actions_N2A.copy()
        passed[..., self.spec.action_names.index("space")] = 0
        super().step(passed, frames)


class Inflation(Watched):
    """Every step pays more than the one before."""

    factor = 1.0

    def spoil(self):
        type(self).factor *= 1.02
        self.reward_terms_N2K *= np.float32(self.factor)


def idle(game, actions_N2A):
    return game.idle_actions()


def first_seat_deaf(game, actions_N2A):
    actions_N2A = actions_N2A.copy()
    actions_N2A[:, 0] = 0
    return actions_N2A


def whisper(game):
    """What changes is too small to see."""
    game.observations_N2O[:] = 0.5 + 1e-7 * game.observations_N2O


class Noise:
    """Luck that no seed governs, in what is paid or seen."""

    def __init__(self, array):
        self.array, self.rng = array, np.random.default_rng(3)

    def __call__(self, game):
        values = getattr(game, self.array)
        noise = self.rng.normal(0.0, 0.02, values.shape).astype(np.float32)
        values[:] = np.clip(values + noise, -1.0, 1.0)


def neighbour_shows(game):
    """A number comes from the match in the row above."""
    game.observations_N2O[1:, 0, 5] = game.observations_N2O[:-1, 0, 5]


def mirror(game):
    """The opponent's half shows oneself."""
    half = game.spec.own_size
    game.observations_N2O[..., half:] = game.observations_N2O[..., :half]


def late_infinity(game):
    """After a while one number overflows."""
    if int(game.frames_N.max()) > 100:
        game.observations_N2O[1, 0, -1] = np.inf


def unscaled(game):
    game.observations_N2O[..., :10] *= 200.0


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
