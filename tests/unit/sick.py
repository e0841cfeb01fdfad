"""Set-ups that are broken on purpose, each in one place, for the tests of `league doctor`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from league.agent.network import AgentNetwork
from league.agent.pooling import Pooled
from league.config import resolve
from league.games.base import BatchedGame
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
    """The same in a game whose arrays, actions or seeds are changed on their way, whichever game it is."""

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


# -- not used when thresholds were set ------------------------------------------------------------------


def any_seed(seeds_N):
    return np.random.default_rng().integers(2**62, size=len(seeds_N)).astype(np.uint64)


def idle(game, actions_N2A):
    return game.idle_actions()


def first_seat_deaf(game, actions_N2A):
    actions_N2A = actions_N2A.copy()
    actions_N2A[:, 0] = 0
    return actions_N2A


def all_keys_down(game, actions_N2A):
    return np.ones_like(actions_N2A)


def nothing_seen(game):
    game.observations_N2O[:] = 0.0


def whisper(game):
    """What changes is too small to see."""
    game.observations_N2O[:] = 0.5 + 1e-7 * game.observations_N2O


class Stale:
    """Views are renewed once in 60 decisions."""

    def __init__(self):
        self.held = {}

    def __call__(self, game):
        count, view = self.held.get(id(game), (0, None))
        view = game.observations_N2O.copy() if count % 60 == 0 else view
        self.held[id(game)] = (count + 1, view)
        game.observations_N2O[:] = view


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


def grey_opponent(game):
    game.observations_N2O[..., game.spec.own_size :] = 0.5


def mirror(game):
    """The opponent's half shows oneself."""
    half = game.spec.own_size
    game.observations_N2O[..., half:] = game.observations_N2O[..., :half]


def late_infinity(game):
    """After a while one number overflows."""
    if int(game.frames_N.max()) > 100:
        game.observations_N2O[1, 0, -1] = np.inf


def last_not_a_number(game):
    game.observations_N2O[..., -1] = np.nan


def unscaled(game):
    game.observations_N2O[..., :10] *= 200.0


def unpaid(game):
    game.reward_terms_N2K[:] = 0.0


def paid_to_the_other(game):
    game.reward_terms_N2K[:] = game.reward_terms_N2K[:, ::-1]


def paid_alike(game):
    game.reward_terms_N2K[:] = 0.0
    game.reward_terms_N2K[game.ended_N] = 1.0


def bots_give_up(game):
    """A bot loses against whoever is no bot."""
    for n in np.flatnonzero(game.ended_N):
        for seat in range(2):
            if game.bots_N2[n, seat] >= 0 > game.bots_N2[n, 1 - seat]:
                game.outcomes_N[n] = float(seat)
                game.reward_terms_N2K[n, seat], game.reward_terms_N2K[n, 1 - seat] = -1.0, 1.0


def parts(change: Callable[[AgentNetwork], None]) -> type[AgentNetwork]:
    """An agent whose weights are changed when it is made."""

    class Changed(AgentNetwork):
        def __init__(self, config):
            super().__init__(config)
            with torch.no_grad():
                change(self)

    return Changed


def zero_inputs(network):
    for name, parameter in network.named_parameters():
        if "observation" in name or name.startswith("encoder.embed"):
            parameter.zero_()


def faint(network):
    for parameter in network.parameters():
        parameter.mul_(1e-3)


def frozen_critic(network):
    network.critic.requires_grad_(False)


def loud_everywhere(network):
    for parameter in network.parameters():
        parameter.mul_(6.0)


def louder_critic(network):
    network.critic.last.weight.mul_(100.0)


def decided(network):
    network.actor.last.bias[1] += 15.0


class ForgetfulUnroll(AgentNetwork):
    """The learner is not told that an episode starts; the actor is."""

    def unroll(self, obs_XBO, starts_XB, h_BH, c_BH, time_left_TB, prefix):
        return super().unroll(obs_XBO, torch.zeros_like(starts_XB), h_BH, c_BH, time_left_TB, prefix)


class ForgetfulStep(AgentNetwork):
    """The actor is not told that an episode starts; the learner is."""

    def step(self, obs_BO, starts_B, state, time_left_B):
        return super().step(obs_BO, torch.zeros_like(starts_B), state, time_left_B)


class NoisyValue(AgentNetwork):
    """What the actor notes of values is half noise."""

    def step(self, obs_BO, starts_B, state, time_left_B):
        out = super().step(obs_BO, starts_B, state, time_left_B)
        return out._replace(value_B=out.value_B + 5.0 * torch.randn_like(out.value_B))


class ContraryValue(AgentNetwork):
    """What the actor notes of values has the wrong sign."""

    def step(self, obs_BO, starts_B, state, time_left_B):
        out = super().step(obs_BO, starts_B, state, time_left_B)
        return out._replace(value_B=-3.0 * out.value_B)


class ClippingTight(LeagueVecEnv):
    def _advance(self):
        rewards_N, ended_N = super()._advance()
        return np.clip(rewards_N, -0.02, 0.02), ended_N


class LosingTheLast(LeagueVecEnv):
    """What the last step of a match pays never arrives."""

    def _advance(self):
        rewards_N, ended_N = super()._advance()
        return np.where(ended_N, 0.0, rewards_N).astype(rewards_N.dtype), ended_N


class LateEnds(LeagueVecEnv):
    """The learner hears of a match's end one step too late."""

    def step_arrays(self, actions_NA):
        observations, rewards_N, ended_N = super().step_arrays(actions_NA)
        told_N = getattr(self, "_untold", np.zeros_like(ended_N))
        self._untold = ended_N.copy()
        return observations, rewards_N, told_N


class HalfTheEnds(LeagueVecEnv):
    """Every second row never hears of a match's end."""

    def step_arrays(self, actions_NA):
        observations, rewards_N, ended_N = super().step_arrays(actions_NA)
        return observations, rewards_N, ended_N & (np.arange(len(ended_N)) % 2 == 1)
