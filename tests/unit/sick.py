"""Set-ups that are broken on purpose, each in one place, for the tests of `league doctor`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from league.agent.network import AgentNetwork
from league.agent.pooling import Pooled
from league.config import resolve
from league.games.brawl.game import BrawlGame
from learner.doctor.setup import SetUp, set_up_of
from learner.rollout.league_vec_env import LeagueVecEnv

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


class Frozen(Watched):
    """Nobody ever sees anything new."""

    def spoil(self):
        self.observations_N2O[:] = 0.25


class Blindfold(Watched):
    """The opponent's half shows nothing."""

    def spoil(self):
        self.observations_N2O[..., self.spec.own_size :] = 0.0


class NotANumber(Watched):
    """One number of one match is none."""

    def spoil(self):
        self.observations_N2O[0, :, 3] = np.nan


class Deaf(BrawlGame):
    """No key reaches the game."""

    def step(self, actions_N2A, frames=1):
        super().step(np.zeros_like(actions_N2A), frames)


class OneKeyDead(BrawlGame):
    """One key, the jump, does not reach the game."""

    def step(self, actions_N2A, frames=1):
        passed = actions_N2A.copy()
        passed[..., self.spec.action_names.index("space")] = 0
        super().step(passed, frames)


class Unseeded(BrawlGame):
    """Every match begins somewhere else, whatever its seed."""

    def reset(self, seeds, where=None):
        super().reset(np.random.default_rng().integers(2**62, size=len(seeds)).astype(np.uint64), where)


class Inflation(Watched):
    """Every step pays more than the one before."""

    factor = 1.0

    def spoil(self):
        type(self).factor *= 1.02
        self.reward_terms_N2K *= np.float32(self.factor)


class Detached(AgentNetwork):
    """The encoder's outputs leave the graph."""

    def _inputs(self, obs, pooled):
        return super()._inputs(obs, Pooled(*(part.detach() for part in pooled)))


class Loud(AgentNetwork):
    """A critic whose last layer begins a thousand times too large."""

    def __init__(self, config):
        super().__init__(config)
        with torch.no_grad():
            self.critic.last.weight.mul_(1000.0)


class Remembering(AgentNetwork):
    """Never told that an episode starts."""

    def step(self, obs_BO, starts_B, state, time_left_B):
        return super().step(obs_BO, torch.zeros_like(starts_B), state, time_left_B)

    def unroll(self, obs_XBO, starts_XB, h_BH, c_BH, time_left_TB, prefix):
        return super().unroll(obs_XBO, torch.zeros_like(starts_XB), h_BH, c_BH, time_left_TB, prefix)


class Clipping(LeagueVecEnv):
    """Rewards are clipped on their way, as a normalising wrapper does."""

    def _advance(self):
        rewards_N, ended_N = super()._advance()
        return np.clip(rewards_N, -1.0, 1.0), ended_N


class Endless(LeagueVecEnv):
    """The learner never hears that a match has ended."""

    def step_arrays(self, actions_NA):
        observations, rewards_N, ended_N = super().step_arrays(actions_NA)
        return observations, rewards_N, np.zeros_like(ended_N)
