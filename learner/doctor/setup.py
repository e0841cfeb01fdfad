"""What the doctor examines, and the parts of a learner that it builds from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from league.agent.batched_policy import BatchedPolicy
from league.agent.config import AgentConfig, AgentSettings
from league.agent.network import AgentNetwork
from league.errors import LeagueError
from league.exploiters import EXPLOITING
from league.games.base import BatchedGame, GameSpec
from league.games.settings import GameSettings
from league.players import Assignment, Book, MatchResult, Player, PlayerKind, Role
from league.settings.base import Sections, build
from learner.exploiter.generations import settings_of
from learner.exploiter.settings import ExploiterSettings
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.settings import CurriculumSettings, LearnerSettings, RegularisationSettings
from learner.train.build import SessionSettings, make_model, stage_rewards

BOTS_AT_MOST = 8
LIVE = "main"


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
    def bots(self) -> tuple[str, ...]:
        """Bots that may be met in training, the mix's first, at most `BOTS_AT_MOST`."""
        free = [bot.name for bot in self.spec.bots if not bot.held_out]
        met = [name for name in free if self.mix.get(name, 0.0) > 0.0]
        return tuple([*met, *(name for name in free if name not in met)][:BOTS_AT_MOST])

    @property
    def opponents(self) -> tuple[str, ...]:
        """Bots of the stage's mix; all bots when it has none (snapshots come later)."""
        return tuple(name for name in self.bots if self.mix.get(name, 0.0) > 0.0) or self.bots


def set_up_of(sections: Sections, stage: int = 0, role: Role = Role.MAIN) -> SetUp:
    """The set-up that resolved sections describe, in one stage; an exploiter has its own stage.

    Raises:
        ConfigError: a section holds a value that can't be used.
    """
    settings = SessionSettings(
        game=build(GameSettings, "game", sections["game"]),
        agent=build(AgentSettings, "agent", sections["agent"]),
        learner=build(LearnerSettings, "learner", sections["learner"]),
        curriculum=build(CurriculumSettings, "curriculum", sections["curriculum"]),
        # references take effect after more updates than the doctor makes
        regularisation=RegularisationSettings(alpha=0.0),
    )
    if role in EXPLOITING:
        own = build(ExploiterSettings, "exploiter", sections["exploiter"])
        settings = settings_of(settings, own, role)
    mix = sections["matchmaker"]["mixes"].get(settings.curriculum.stages[stage].mix, {})
    return SetUp(settings=settings, mix=mix, game=settings.game.make, stage=stage)


def build_model(set_up: SetUp, settings: SessionSettings, folder: Path) -> LeaguePPO:
    """The main job's algorithm on its own environment, with the set-up's game and network."""
    learner = settings.learner
    env = make_environment(set_up, learner.matches, learner.seed)
    device = torch.device("cpu")
    return make_model(settings, set_up.agent, env, folder, device, lambda: False, set_up.network)


def make_environment(set_up: SetUp, matches: int, seed: int) -> LeagueVecEnv:
    """Matches against the set-up's bots; set the live network before a learner meets itself."""
    game = set_up.game(matches)
    spec = game.spec
    policy = BatchedPolicy(
        matches,
        no_snapshot,
        seed=seed + 1,
        action_size=spec.action_size,
        action_kind=spec.action_kind,
    )
    return set_up.environment(
        game,
        BotMatches(spec.name, set_up.opponents, seed),
        policy,
        frame_skip=set_up.settings.game.frame_skip,
        reward_weights=set_up.weights_K,
        live_player=LIVE,
    )


def no_snapshot(digest: str) -> AgentNetwork:
    """Refuses: the doctor's matches are against bots and never ask for weights."""
    raise LeagueError(f"the doctor's matches have no snapshots, and {digest} was asked for")


class BotMatches:
    """Assigns endless matches against the named bots in turn, on either seat.

    Without bots the learner plays against itself.
    """

    def __init__(self, game: str, bots: Iterable[str], seed: int) -> None:
        self._live = Player(name=LIVE, game=game, kind=PlayerKind.LIVE, role=Role.MAIN)
        named = [Player(name=name, game=game, kind=PlayerKind.BOT) for name in bots]
        self._opponents, self._numbers, self._seed = named or [self._live], count(), seed

    def take(self) -> Assignment:
        number = next(self._numbers)
        opponent = self._opponents[number // 2 % len(self._opponents)]
        seat = number % 2
        return Assignment(
            match_id=f"doctor-{number}",
            ordinal=number,
            lease_token="",
            lease_deadline=0.0,
            seats=(self._live, opponent) if seat == 0 else (opponent, self._live),
            learner_seat=seat,
            book=Book.TRAIN,
            seed=self._seed + 31 * number,
            category=opponent.name,
        )

    def report(self, result: MatchResult) -> None:
        """The doctor reads results from the environment."""
