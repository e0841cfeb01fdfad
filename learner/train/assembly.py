"""Builds a learner's parts from its settings, or from a checkpoint, and joins the league with
them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.logger import Logger, configure

from league.agent.batched_policy import BatchedPolicy
from league.agent.config import AgentConfig, AgentSettings
from league.agent.network import AgentNetwork
from league.agent.snapshot import SnapshotCard, load_snapshot
from league.errors import ConfigError, nearest
from league.games.base import BatchedGame
from league.games.brawl.rewards import ANNEALED, annealed_weights
from league.games.registry import reward_weights
from league.games.settings import GameSettings
from league.players import CATEGORIES, Player
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from league.settings.base import sections_hash
from learner.distributed.ranks import Ranks
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.rollout.source import OpponentSource
from learner.settings import (
    CurriculumSettings,
    LearnerSettings,
    RegularisationSettings,
    StageSettings,
)
from learner.train.checkpoint import Values, read_checkpoint
from learner.train.publisher import Publisher


@dataclass(frozen=True, kw_only=True)
class SessionSettings:
    """All sections that a learner reads."""

    game: GameSettings
    agent: AgentSettings
    learner: LearnerSettings
    curriculum: CurriculumSettings
    regularisation: RegularisationSettings = field(default_factory=RegularisationSettings)

    @property
    def share(self) -> LearnerSettings:
        """What this process does of `learner`: all, or as one of several ranks an even share of
        it.
        """
        return self.learner.share(Ranks().count)

    def hash(self) -> str:
        """Hash of all of them, for cards."""
        return sections_hash(
            {name: getattr(self, name).model_dump(mode="json") for name in vars(self)}
        )


def make_game(settings: SessionSettings) -> BatchedGame:
    """The batched game of the settings; raises `ConfigError` when the history does not fit it."""
    game, agent = settings.game, settings.agent
    if agent.history_stride != game.frame_skip:
        raise ConfigError(
            f"agent.history_stride is {agent.history_stride} and game.frame_skip {game.frame_skip}: "
            "the history gets one entry a decision, so set both to the same number of frames"
        )
    return game.make(settings.share.matches)


def stage_rewards(
    settings: SessionSettings, stage: StageSettings, step: int = 0
) -> NDArray[np.float32]:
    """Weight of each reward term in a stage of the curriculum, at training step `step`."""
    game = settings.game
    preset = stage.reward or game.reward
    weights = reward_weights(game.spec(), preset, game.reward_weights)
    if game.name == "brawl" and preset in ANNEALED:
        return annealed_weights(preset, step, settings.learner.steps, game.reward_weights)
    return weights


def annealed_share(settings: SessionSettings, stage: StageSettings, step: int) -> float | None:
    """How far the stage's rewards have turned into those they end with; None when they don't
    change.
    """
    preset = stage.reward or settings.game.reward
    if settings.game.name != "brawl" or preset not in ANNEALED:
        return None
    return ANNEALED[preset].share(step, settings.learner.steps)


def _refuse_strangers(settings: SessionSettings, mix: str, categories: Collection[str]) -> None:
    """A name that nobody bears would be left out of every draw, and nothing would tell."""
    bots = [bot.name for bot in settings.game.spec().bots if not bot.held_out]
    for category in categories:
        if category not in bots and category not in CATEGORIES:
            known, game = [*bots, *CATEGORIES], settings.game.name
            hint = nearest(category, known) or f"there are {', '.join(known)}"
            raise ConfigError(
                f"[matchmaker.mixes] {mix} plays {category!r}, whom {game} does not have: {hint}"
            )


def _refuse_held_out(settings: SessionSettings, mixes: Mapping[str, Collection[str]]) -> None:
    held_out = {bot.name for bot in settings.game.spec().bots if bot.held_out}
    for name, mix in mixes.items():
        named = sorted(held_out & set(mix))
        if named:
            raise ConfigError(
                f"mix {name!r} names the bot {named[0]}, which is held out for the evaluator and never "
                "trained against: take it out of [matchmaker.mixes]"
            )


def check_stages(
    settings: SessionSettings,
    mixes: Mapping[str, Collection[str]],
    clean_matches: Callable[[str], int],
) -> None:
    """Raises `ConfigError` now for what would otherwise stop the run, or a stage's end, in the
    middle.

    `clean_matches` says how many the evaluator plays of a snapshot against an opponent.
    """
    bots = [bot.name for bot in settings.game.spec().bots if not bot.held_out]
    _refuse_held_out(settings, mixes)
    for stage in settings.curriculum.stages:
        stage_rewards(settings, stage)
        if stage.mix not in mixes:
            raise ConfigError(
                f"stage {stage.name} plays the mix {stage.mix!r}, which [matchmaker.mixes] lacks: "
                f"it has {', '.join(sorted(mixes))}"
            )
        _refuse_strangers(settings, stage.mix, mixes[stage.mix])
        if stage.until_opponent and stage.until_opponent not in bots:
            raise ConfigError(
                f"stage {stage.name} waits for wins against {stage.until_opponent!r}, which is no bot to "
                f"train with: there are {', '.join(bots)}"
            )
        if stage.until_opponent and stage.min_matches > clean_matches(stage.until_opponent):
            raise ConfigError(
                f"stage {stage.name} wants {stage.min_matches} clean matches, and the evaluator plays "
                f"{clean_matches(stage.until_opponent)} against {stage.until_opponent}: lower min_matches or "
                f"raise evaluator.matches_per_opponent"
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
    """The matches of a learner, their opponents loaded from `blobs`."""
    learner, ranks = settings.share, Ranks()
    batched_policy = BatchedPolicy(
        learner.matches,
        lambda digest: load_snapshot(blobs, digest, device)[0],
        seed=ranks.seed(learner.seed + 1),
        max_bytes=learner.resident_mib << 20,
        action_size=game.spec.action_size,
        action_kind=game.spec.action_kind,
        device=device,
    )
    return LeagueVecEnv(
        game,
        source,
        batched_policy,
        frame_skip=settings.game.frame_skip,
        reward_weights=stage_rewards(settings, stage),
        live_player=live.name,
        ranks=ranks.count,
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
    """The algorithm on `env`, logging to TensorBoard in `folder`; it plays the batched policy's live
    seats.
    """
    learner = settings.share
    model = LeaguePPO(
        "LeaguePolicy",
        env,
        policy_kwargs={"agent": config, "make_network": make_network},
        learning_rate=learner.learning_rate_at,
        n_steps=learner.n_steps,
        batch_size=learner.batch_size,
        n_epochs=learner.n_epochs,
        gamma=learner.gamma,
        gae_lambda=learner.gae_lambda,
        clip_range=learner.clip_range_at,
        ent_schedule=learner.ent_coef_at,
        desired_kl=learner.desired_kl,
        vf_coef=learner.vf_coef,
        max_grad_norm=learner.max_grad_norm,
        target_kl=learner.target_kl,
        normalize_returns=learner.normalize_returns,
        regularisation=settings.regularisation,
        parts=learner.gradient_parts,
        precision=learner.precision,
        compiled=learner.compile,
        forecast_coef=learner.forecast_coef,
        seed=learner.seed,
        device=device,
        should_stop=should_stop,
    )
    model.set_logger(make_logger(settings, folder, Ranks().leads))
    env.opponent_policy.set_live(model.policy.network)
    return model


def make_logger(settings: SessionSettings, folder: Path, leads: bool) -> Logger:
    """To TensorBoard, and Weights & Biases if asked; of several ranks only the leading one
    writes.
    """
    if not leads:
        return Logger(None, [])
    logger = configure(str(folder / "tensorboard"), ["tensorboard"])
    if settings.learner.wandb != "off":
        from learner.train.wandb_log import WandbWriter

        sections = {
            name: section.model_dump(mode="json") for name, section in vars(settings).items()
        }
        logger.output_formats.append(WandbWriter(folder, settings.learner, sections))
    return logger


def make_publisher(
    settings: SessionSettings,
    client: MatchmakerClient,
    blobs: BlobFolder,
    model: LeaguePPO,
    live: Player,
    incarnation: int,
    parent: str,
    kind: type[Publisher] = Publisher,
) -> Publisher:
    """Freezes `model` under the live player's name; `parent` is what its first snapshot comes
    from.
    """
    spec = model.env.game.spec
    card = SnapshotCard(
        agent=model.agent,
        game=spec.name,
        game_version=spec.version,
        frame_skip=settings.game.frame_skip,
        parent=parent,
        role=live.role.value,
        seed=settings.learner.seed,
        reward_preset=settings.game.reward,
        config_hash=settings.hash(),
    )
    return kind(client, blobs, card, live, incarnation)


def initial_values(
    source: str, blobs: BlobFolder, players: Sequence[Player], game: str
) -> tuple[Values, str]:
    """Weights to start from, and the member's name when they are one's.

    `source` is a snapshot's name in this league, a snapshot file or a checkpoint file. Raises
    `ConfigError` when it is none of them, or a snapshot of another game than `game`.
    """
    for player in players:
        if player.name == source:
            if not player.digest:
                raise ConfigError(f"--from {source}: it has no weights; name a snapshot or a file")
            if not blobs.has(player.digest):
                raise ConfigError(
                    f"--from {source}: its weights are not in {blobs.root}: --run-dir must be the "
                    "league's own folder, or name the snapshot's file"
                )
            return _snapshot_values(source, blobs, player.digest, game), player.name
    path = Path(source)
    if not path.is_file():
        raise ConfigError(f"--from {source}: neither a member of this league nor a file")
    if path.suffix == ".pt":
        return dict(read_checkpoint(path)["algorithm"]), ""
    return _snapshot_values(source, BlobFolder(path.parent), path.stem, game), ""


def _snapshot_values(source: str, blobs: BlobFolder, digest: str, game: str) -> Values:
    network, card = load_snapshot(blobs, digest)
    if card.game != game:
        raise ConfigError(
            f"--from {source}: it plays {card.game}, this run plays {game}: name a snapshot of it"
        )
    return {"network": network.state_dict()}
