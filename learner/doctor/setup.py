"""Describes the game, agent and settings that the doctor examines, and builds a learner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from league.agent.config import AgentConfig
from league.agent.network import AgentNetwork
from league.exploiters import EXPLOITING
from league.games.base import BatchedGame, GameSpec
from league.players import Role
from league.runs.blobs import BlobFolder
from league.settings.base import Sections
from learner.exploiter.generations import settings_of
from learner.exploiter.settings import ExploiterSettings
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.mix_source import MixSource
from learner.settings import RegularisationSettings
from learner.train.build import SessionSettings, make_env, make_model, stage_rewards
from learner.train.join import live_player

BOTS_AT_MOST = 8


@dataclass(frozen=True, kw_only=True)
class SetUp:
    """Combines a game, its rewards, an agent, and the settings by which the agent learns.

    Attributes:
        settings: the sections that a learner reads.
        mix: weights of the stage's opponent mix.
        game: makes a batch of N matches, usually `settings.game.make`.
        network: makes a new network of the agent, with fresh weights or with a run's weights.
        stage: index of the curriculum's stage.
    """

    settings: SessionSettings
    mix: dict[str, float]
    game: Callable[[int], BatchedGame]
    network: Callable[[AgentConfig], AgentNetwork] = AgentNetwork
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
    def bots(self) -> tuple[str, ...]:
        """At most `BOTS_AT_MOST` bots that training may meet. The bots of the mix come first."""
        free = [bot.name for bot in self.spec.bots if not bot.held_out]
        return tuple(sorted(free, key=lambda name: self.mix.get(name, 0.0) <= 0.0)[:BOTS_AT_MOST])

    @property
    def opponents(self) -> tuple[str, ...]:
        """The bots of the stage's mix, or all bots if the mix has no bots."""
        return tuple(name for name in self.bots if self.mix.get(name, 0.0) > 0.0) or self.bots


def set_up_of(sections: Sections, stage: int = 0, role: Role = Role.MAIN) -> SetUp:
    """Makes the set-up for a stage of the curriculum from resolved settings. An exploiter has a
    single stage.
    """
    settings = SessionSettings.of(sections)
    if role in EXPLOITING:
        settings = settings_of(settings, sections.of(ExploiterSettings), role)
    # Regularisation is off, because references take effect only after many updates.
    settings = replace(settings, regularisation=RegularisationSettings(alpha=0.0))
    mix = sections["matchmaker"]["mixes"].get(settings.curriculum.stages[stage].mix, {})
    return SetUp(settings=settings, mix=mix, game=settings.game.make, stage=stage)


def smaller(set_up: SetUp) -> SessionSettings:
    """Returns settings with fewer matches and steps, and the same number of minibatches if
    possible."""
    learner = set_up.settings.learner
    tiny = set_up.settings.agent.size == "tiny"
    matches = min(learner.matches, 64 if tiny else 8)
    steps = min(learner.n_steps, 32 if tiny else 16)
    minibatches = max(1, learner.matches * learner.n_steps // learner.batch_size)
    changed = {
        "matches": matches,
        "n_steps": steps,
        "batch_size": max(1, matches // min(minibatches, matches)) * steps,
        "n_epochs": learner.n_epochs if tiny else min(learner.n_epochs, 2),
    }
    return replace(set_up.settings, learner=learner.model_copy(update=changed))


def build_model(set_up: SetUp, settings: SessionSettings, folder: Path) -> LeaguePPO:
    """Builds a learner with the set-up's game and network. Its opponents are the bots of the
    set-up's mix.

    Args:
        set_up: the game and the agent.
        settings: settings of the training.
        folder: folder of the log.
    """
    game, device = set_up.game(settings.learner.matches), torch.device("cpu")
    live, stage = live_player("main", game), settings.curriculum.stages[set_up.stage]
    mix = dict.fromkeys(set_up.opponents, 1.0)
    source = MixSource(mix, game.spec, live, (), settings.learner.seed)
    env = make_env(settings, game, source, BlobFolder(folder), stage, device, live)
    return make_model(settings, set_up.agent, env, folder, device, lambda: False, set_up.network)
