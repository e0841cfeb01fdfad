"""What the doctor examines, and the parts of a learner that it builds from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from league.agent.batched_policy import BatchedPolicy
from league.agent.config import AgentConfig
from league.agent.network import AgentNetwork
from league.errors import LeagueError
from league.exploiters import EXPLOITING
from league.games.base import BatchedGame, GameSpec
from league.players import Role
from league.settings.base import Sections
from learner.exploiter.generations import settings_of
from learner.exploiter.settings import ExploiterSettings
from learner.ppo.league_ppo import LeaguePPO
from learner.profile.opponents import MixSource
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.settings import RegularisationSettings
from learner.train.build import SessionSettings, make_model, stage_rewards
from learner.train.join import live_player

BOTS_AT_MOST = 8


@dataclass(frozen=True, kw_only=True)
class SetUp:
    """A game, its rewards, an agent and the settings that it would learn with.

    Attributes:
        settings: the sections that a learner reads.
        mix: weights of the opponent mix of the stage.
        game: makes N matches; the settings' game, or one in its place.
        network: makes the agent, fresh or with a run's weights, each time that it is called.
        environment: the vector environment, or one in its place.
        stage: index of the curriculum's stage.
    """

    settings: SessionSettings
    mix: dict[str, float]
    game: Callable[[int], BatchedGame]
    network: Callable[[AgentConfig], AgentNetwork] = AgentNetwork
    environment: type[LeagueVecEnv] = LeagueVecEnv
    stage: int = 0

    @property
    def spec(self) -> GameSpec:
        return self.settings.game.spec()

    @property
    def agent(self) -> AgentConfig:
        return AgentConfig.of(self.settings.agent, self.spec)

    @property
    def weights_K(self) -> NDArray[np.float32]:
        """Weight of each reward term in the stage."""
        return stage_rewards(self.settings, self.settings.curriculum.stages[self.stage])

    @property
    def reach(self) -> float:
        """Decisions over which the discount still counts: 1 / (1 - gamma)."""
        gamma = self.settings.learner.gamma
        return float("inf") if gamma >= 1.0 else 1.0 / (1.0 - gamma)

    @property
    def bots(self) -> tuple[str, ...]:
        """Bots that may be met in training, the mix's first, at most `BOTS_AT_MOST`."""
        free = [bot.name for bot in self.spec.bots if not bot.held_out]
        return tuple(sorted(free, key=lambda name: self.mix.get(name, 0.0) <= 0.0)[:BOTS_AT_MOST])

    @property
    def opponents(self) -> tuple[str, ...]:
        """Bots of the stage's mix; all bots when it has none (snapshots come later)."""
        return tuple(name for name in self.bots if self.mix.get(name, 0.0) > 0.0) or self.bots


def set_up_of(sections: Sections, stage: int = 0, role: Role = Role.MAIN) -> SetUp:
    """The set-up that resolved sections describe, in one stage; an exploiter has its own stage.

    Raises:
        ConfigError: a section holds a value that can't be used.
    """
    settings = SessionSettings.of(sections)
    if role in EXPLOITING:
        settings = settings_of(settings, sections.of(ExploiterSettings), role)
    # references take effect after more updates than the doctor makes
    settings = replace(settings, regularisation=RegularisationSettings(alpha=0.0))
    mix = sections["matchmaker"]["mixes"].get(settings.curriculum.stages[stage].mix, {})
    return SetUp(settings=settings, mix=mix, game=settings.game.make, stage=stage)


def build_model(set_up: SetUp, settings: SessionSettings, folder: Path) -> LeaguePPO:
    """The main job's algorithm on its own environment, with the set-up's game and network."""
    env = make_environment(set_up, settings.learner.matches, settings.learner.seed)
    device = torch.device("cpu")
    return make_model(settings, set_up.agent, env, folder, device, lambda: False, set_up.network)


def make_environment(set_up: SetUp, matches: int, seed: int) -> LeagueVecEnv:
    """Matches against the set-up's bots, without any against itself.

    Set the live network before the learner meets itself.
    """
    game = set_up.game(matches)
    spec, live = game.spec, live_player("main", game)
    policy = BatchedPolicy(
        matches,
        _no_snapshot,
        seed=seed + 1,
        action_size=spec.action_size,
        action_kind=spec.action_kind,
    )
    return set_up.environment(
        game,
        MixSource(dict.fromkeys(set_up.opponents, 1.0), spec, live, (), seed),
        policy,
        frame_skip=set_up.settings.game.frame_skip,
        reward_weights=set_up.weights_K,
        live_player=live.name,
    )


def _no_snapshot(digest: str) -> AgentNetwork:
    raise LeagueError(f"the doctor's matches have no snapshots, and {digest} was asked for")
