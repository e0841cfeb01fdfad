"""Builds a learner's parts from its settings, and finds the weights that it starts from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from league.agent.batched_policy import BatchedPolicy
from league.agent.config import AgentConfig, AgentSettings
from league.agent.network import AgentNetwork
from league.agent.rivals import RivalSeats
from league.agent.snapshot import load_snapshot
from league.errors import ConfigError, DataCorrupt, nearest
from league.games.base import BatchedGame
from league.games.brawl import rewards
from league.games.registry import family, reward_weights
from league.games.settings import GameSettings
from league.players import CATEGORIES, Player
from league.runs.blobs import BlobFolder
from league.security.credentials import Credentials
from league.settings.base import Sections, sections_hash
from learner.distributed.rank_group import RankGroup
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.rollout.source import OpponentSource
from learner.settings import (
    CurriculumSettings,
    LearnerSettings,
    RegularisationSettings,
    StageSettings,
)
from learner.train.checkpoint import Values, read_checkpoint, snapshot_values
from learner.train.loggers import make_logger

RESIDENT_BYTES = 4096 << 20
"""Largest size in bytes of the opponents' weights that a process keeps in memory. The least
recently used weights are dropped.
"""


@dataclass(frozen=True, kw_only=True)
class SessionSettings:
    """Holds all sections of the settings that a learner reads."""

    game: GameSettings
    agent: AgentSettings
    learner: LearnerSettings
    curriculum: CurriculumSettings
    regularisation: RegularisationSettings = field(default_factory=RegularisationSettings)

    @classmethod
    def of(cls, sections: Sections) -> SessionSettings:
        """Selects the sections that a learner reads from a run's settings.

        Raises:
            ConfigError: the settings ask for a forecast head, but the agent has no encoder.
        """
        settings = cls(
            game=sections.of(GameSettings),
            agent=sections.of(AgentSettings),
            learner=sections.of(LearnerSettings),
            curriculum=sections.of(CurriculumSettings),
            regularisation=sections.of(RegularisationSettings),
        )
        weight = settings.learner.forecast_coef
        if weight > 0 and settings.agent.encoder == "none":
            raise ConfigError(
                f"learner.forecast_coef is {weight}, but agent.encoder = 'none' leaves no latent "
                "to forecast from: set the one to 0 or the other to 'streaming'"
            )
        return settings

    @property
    def share(self) -> LearnerSettings:
        """Returns the settings [learner] for this process. If the learner has several ranks, each
        rank gets an equal share of the matches.
        """
        return self.learner.share(RankGroup().size)

    def hash(self) -> str:
        """Returns the hash of all sections, for the cards (descriptions) of snapshots."""
        return sections_hash(
            {name: getattr(self, name).model_dump(mode="json") for name in vars(self)}
        )


def make_game(settings: SessionSettings, credentials: Credentials | None = None) -> BatchedGame:
    """Makes the batched game of the settings, as learners play it. `credentials` are shown to game
    workers on other machines.
    """
    matches = settings.share.matches
    return settings.game.make(matches, training=True, credentials=credentials)


def stage_rewards(
    settings: SessionSettings, stage: StageSettings, step: int = 0
) -> NDArray[np.float32]:
    """Returns the weight of each reward term in a stage at `step`, `[K]`."""
    game = settings.game
    preset = stage.reward or game.reward
    weights = reward_weights(game.spec(), preset, game.reward_weights)
    if game.name == "brawl" and preset in rewards.ANNEALED:
        return rewards.annealed_weights(preset, step, settings.learner.steps, game.reward_weights)
    return weights


def annealed_share(settings: SessionSettings, stage: StageSettings, step: int) -> float | None:
    """Returns how far the reward weights have moved from their first values (0) to their final
    values (1), or None if they don't change.
    """
    preset = stage.reward or settings.game.reward
    if settings.game.name != "brawl" or preset not in rewards.ANNEALED:
        return None
    return rewards.annealed_share(step, settings.learner.steps)


def check_stages(
    settings: SessionSettings, mixes: Mapping[str, Collection[str]], rivals: Collection[str] = ()
) -> None:
    """Raises an error for settings that would make the run fail later.

    Args:
        settings: all sections.
        mixes: the categories in each opponent mix, by the mix's name.
        rivals: names of the league's rivals.

    Raises:
        ConfigError: a stage or a mix can't be played. The message names the stage or mix.
    """
    game = settings.game.spec()
    bots = [bot.name for bot in game.bots if not bot.held_out]
    held_out = {bot.name for bot in game.all_bots if bot.held_out}
    for name, mix in mixes.items():
        for bot in sorted(held_out & set(mix)):
            raise ConfigError(
                f"mix {name!r} names the bot {bot}, which is held out for the evaluator and never "
                "trained against: take it out of [matchmaker.mixes]"
            )
    for stage in settings.curriculum.stages:
        stage_rewards(settings, stage)
        if stage.mix not in mixes:
            raise ConfigError(
                f"stage {stage.name} plays the mix {stage.mix!r}, which [matchmaker.mixes] lacks: "
                f"it has {', '.join(sorted(mixes))}"
            )
        categories = [*bots, *CATEGORIES, *rivals]
        for category in mixes[stage.mix]:  # an unknown category would silently never be drawn
            if category not in categories:
                hint = nearest(category, categories) or f"there are {', '.join(categories)}"
                raise ConfigError(
                    f"[matchmaker.mixes] {stage.mix} plays {category!r}, which "
                    f"{settings.game.name} does not have: {hint}"
                )
        opponent = stage.until_opponent
        if opponent and opponent not in bots:
            raise ConfigError(
                f"stage {stage.name} waits for wins against {opponent!r}, which is not a bot to "
                f"train with: there are {', '.join(bots)}"
            )


def make_env(
    settings: SessionSettings,
    game: BatchedGame,
    source: OpponentSource,
    blobs: BlobFolder,
    stage: StageSettings,
    device: torch.device,
    live: Player,
) -> LeagueVecEnv:
    """Makes the environment in which `live` learns. The opponents compute on `device`."""
    learner, group = settings.share, RankGroup()
    batched_policy = BatchedPolicy(
        learner.matches,
        lambda digest: load_snapshot(blobs, digest, device)[0],
        seed=group.seed(learner.seed + 1),
        max_bytes=RESIDENT_BYTES,
        action_size=game.spec.action_size,
        action_kind=game.spec.action_kind,
        device=device,
        rivals=RivalSeats(blobs),
    )
    return LeagueVecEnv(
        game,
        source,
        batched_policy,
        frame_skip=settings.game.frame_skip,
        reward_weights=stage_rewards(settings, stage),
        live_player=live.name,
        ranks=group.size,
    )


def make_model(
    settings: SessionSettings,
    config: AgentConfig,
    env: LeagueVecEnv,
    folder: Path,
    device: torch.device,
    should_stop: Callable[[], bool],
    make_network: Callable[[AgentConfig], AgentNetwork] = AgentNetwork,
) -> LeaguePPO:
    """Makes the algorithm that learns in `env`. In self-play, its network also plays the opponents.

    Args:
        folder: folder of the log.
        device: device to train on.
        should_stop: called often. True ends the training.
        make_network: makes the network.
    """
    model = LeaguePPO(
        "LeaguePolicy",
        env,
        settings.share,
        regularisation=settings.regularisation,
        policy_kwargs={"agent": config, "make_network": make_network},
        device=device,
        should_stop=should_stop,
    )
    sections = {name: section.model_dump(mode="json") for name, section in vars(settings).items()}
    model.set_logger(make_logger(settings.learner.wandb, folder, sections, RankGroup().is_leader))
    env.opponent_policy.set_live(model.policy.network)
    return model


def initial_values(
    source: str, blobs: BlobFolder, players: Sequence[Player], game: str
) -> tuple[Values, str]:
    """Reads the weights to start from, and other parts of the learner's state if `source` has them.

    Args:
        source: a snapshot's name in this league, a snapshot file or a checkpoint file.
        game: game that the snapshot must play.

    Returns:
        The values, and the name of the member that they belong to, "" if there is no such member.

    Raises:
        ConfigError: `source` is neither a snapshot nor a checkpoint, or it is of another game.
        DataCorrupt: the file holds no weights of a learner.
    """
    for player in players:
        if player.name == source:
            if not player.digest:
                raise ConfigError(f"--from {source}: it has no weights; name a snapshot or a file")
            if not blobs.has(player.digest):
                raise ConfigError(
                    f"--from {source}: its weights are not in {blobs.root}: --run-dir must be the "
                    "league's folder, or name the snapshot's file"
                )
            return _snapshot_values(source, blobs, player.digest, game), player.name
    path = Path(source)
    if not path.is_file():
        raise ConfigError(f"--from {source}: neither a member of this league nor a file")
    if path.suffix == ".pt":
        algorithm = read_checkpoint(path).get("algorithm")
        if not isinstance(algorithm, dict) or not isinstance(algorithm.get("network"), dict):
            raise DataCorrupt(f"--from {source}: it holds no weights of a learner")
        return algorithm, ""
    return _snapshot_values(source, BlobFolder(path.parent), path.stem, game), ""


def _snapshot_values(source: str, blobs: BlobFolder, digest: str, game: str) -> Values:
    network, card = load_snapshot(blobs, digest)
    if family(card.game) != family(game):
        raise ConfigError(
            f"--from {source}: it plays {card.game}, this run plays {game}: name a snapshot of it"
        )
    return snapshot_values(network, card)
