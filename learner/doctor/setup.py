"""What is examined: a game, its rewards, an agent and the settings it would learn with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.agent.config import AgentConfig, AgentSettings
from league.agent.network import AgentNetwork
from league.exploiters import EXPLOITING
from league.games.base import BatchedGame, GameSpec
from league.games.settings import GameSettings
from league.players import Role
from league.settings.base import Sections, build
from learner.exploiter.lives import settings_of
from learner.exploiter.settings import ExploiterSettings
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.settings import CurriculumSettings, LearnerSettings, RegularisationSettings
from learner.train.assembly import SessionSettings, stage_rewards

BOTS_AT_MOST = 8


@dataclass(frozen=True, kw_only=True)
class SetUp:
    """Everything that a learner would be made of.

    Attributes:
        settings: the sections that a learner reads. mix: weights of the opponent mix that its stage
        plays. stage: index of that stage. game: makes N matches; the settings' game, or one in its
        place. network: makes the agent; fresh, or that of a run. It is called as often as a copy is
        needed. environment: the vector environment, or one in its place.
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
    def bots(self) -> tuple[str, ...]:
        """Bots that may be met in training, the mix's first; a few, where a game has many."""
        free = [bot.name for bot in self.spec.bots if not bot.held_out]
        met = [name for name in free if self.mix.get(name, 0.0) > 0.0]
        return tuple([*met, *(name for name in free if name not in met)][:BOTS_AT_MOST])

    @property
    def opponents(self) -> tuple[str, ...]:
        """Bots of the stage's mix; all when it has none (snapshots and itself come later)."""
        return tuple(name for name in self.bots if self.mix.get(name, 0.0) > 0.0) or self.bots


def set_up_of(sections: Sections, stage: int = 0, role: Role = Role.MAIN) -> SetUp:
    """The set-up that resolved sections describe, in one stage; an exploiter's is its own one.

    Raises `ConfigError`.
    """
    settings = SessionSettings(
        game=build(GameSettings, "game", sections["game"]),
        agent=build(AgentSettings, "agent", sections["agent"]),
        learner=build(LearnerSettings, "learner", sections["learner"]),
        curriculum=build(CurriculumSettings, "curriculum", sections["curriculum"]),
        # references take hold later than the doctor looks
        regularisation=RegularisationSettings(alpha=0.0),
    )
    if role in EXPLOITING:
        own = build(ExploiterSettings, "exploiter", sections["exploiter"])
        settings = settings_of(settings, own, role)
    mix = sections["matchmaker"]["mixes"].get(settings.curriculum.stages[stage].mix, {})
    return SetUp(settings=settings, mix=mix, game=settings.game.make, stage=stage)
