"""Builds the parts of a learner's run, from the beginning or from its newest checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from league.agent.config import AgentConfig
from league.agent.snapshot import SnapshotCard
from league.exploiters import Generation
from league.games.hosted import WORKER_WAIT_SECONDS, HostedGame
from league.games.workers.game import WorkerGame
from league.players import Player
from league.rpc.blobs import blobs_of
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from league.runs.store import store_of
from league.stages import Place
from learner.distributed.rank_group import RankGroup
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.source import AHEAD, MatchBroker
from learner.train.build import SessionSettings, make_env, make_game, make_model
from learner.train.checkpoint import CheckpointFolder, Values, load_weights
from learner.train.curriculum import Curriculum, StageRunner
from learner.train.join import (
    continuing_parts,
    fits_log,
    join_league,
    live_player,
    restore,
    snapshot_checkpoint,
)
from learner.train.metrics import Reporter
from learner.train.snapshots import SnapshotPublisher
from learner.train.stored_checkpoints import StoredCheckpoints

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class SessionParts:
    """Holds the parts that a `Session` runs.

    Attributes:
        live: the player that learns.
        generation: an exploiter's generation, None for other learners.
        generation_steps: steps after which an exploiter is frozen at the latest.
        over: whether the exploiter's generation had already ended when the checkpoint was written.
        reset: if `over`, whether the next generation begins with new weights.
        population: the checkpoint's state of `PopulationMember`.
    """

    settings: SessionSettings
    client: MatchmakerClient
    blobs: BlobFolder
    group: RankGroup
    live: Player
    generation: Generation | None
    generation_steps: int
    incarnation: int
    checkpoints: CheckpointFolder
    stages: StageRunner
    broker: MatchBroker
    model: LeaguePPO
    publisher: SnapshotPublisher
    reporter: Reporter
    over: bool
    reset: bool
    population: Values


def checkpoints_of(
    run_dir: Path, folder: Path, should_stop: Callable[[], bool] = lambda: False
) -> CheckpointFolder:
    """Returns the checkpoints in a folder of a run, and in the run's store if it has one."""
    store = store_of(run_dir)
    if store is None:
        return CheckpointFolder(folder)
    place = folder.relative_to(run_dir).as_posix()
    return StoredCheckpoints(folder, store, place, should_stop=should_stop)


def build_parts(
    settings: SessionSettings,
    client: MatchmakerClient,
    run_dir: Path,
    device: torch.device,
    *,
    name: str = "main",
    should_stop: Callable[[], bool] = lambda: False,
    initial: Values | None = None,
    parent: str = "",
    generation: Generation | None = None,
    generation_steps: int = 0,
    publisher: type[SnapshotPublisher] = SnapshotPublisher,
) -> SessionParts:
    """Joins the league and builds the parts. All ranks call it together.

    Args:
        name: name of the player that learns.
        should_stop: called often. If it returns True, the run ends with a snapshot.
        initial: the weights and other values to start from if there is no checkpoint
            (`initial_values`).
        parent: the member that `initial` belongs to.
        generation: an exploiter's generation, None for other learners.
        generation_steps: steps after which an exploiter is frozen at the latest.
        publisher: class that freezes snapshots. An exploiter's class freezes candidates instead.

    Returns:
        The parts at step 0, at the generation's first step, or at the checkpoint's step.
    """
    group, blobs = RankGroup(), blobs_of(run_dir, client)
    folder = run_dir / f"learner-{name}"
    home = folder if generation is None else folder / f"generation-{generation.number}"
    checkpoints = checkpoints_of(run_dir, home / "checkpoints", should_stop)
    game = make_game(settings, client.credentials)
    if isinstance(game, HostedGame | WorkerGame):
        game.host.should_stop, game.host.wait_seconds = should_stop, WORKER_WAIT_SECONDS
    live = live_player(name, game, generation)
    saved = checkpoints.read_newest(partial(fits_log, client))
    rank_parts = continuing_parts(saved, settings, game, group)
    config = AgentConfig.of(settings.agent, game.spec)
    if saved is None and generation is None and (initial is None or checkpoints.unfit):
        saved = snapshot_checkpoint(client, blobs, live, config)
        if saved is None and checkpoints.unfit:
            log.warning(
                "no checkpoint and no snapshot fits the league's log: training begins at step 0"
            )
    joined = join_league(group, client, live, game, saved, rank_parts)
    place = Place(**saved["curriculum"]) if saved else None
    curriculum = Curriculum(settings.curriculum, name, place)
    stages = StageRunner(
        settings,
        client,
        group,
        curriculum,
        joined.incarnation,
        saved["algorithm"]["num_timesteps"] if saved else 0,
        reports=generation is None,
    )
    broker = MatchBroker(
        client,
        joined.incarnation,
        curriculum.stage.mix,
        ahead=max(AHEAD[game.spec.action_kind], game.num_matches // 4),
        ready=joined.ready,
        log_position=saved["log_position"] if saved else 0,
        is_leader=group.is_leader,
    )
    try:
        env = make_env(settings, game, broker, blobs, curriculum.stage, device, live)
        model = make_model(settings, config, env, folder, device, should_stop)
        card = SnapshotCard(
            agent=config,
            game=game.spec.name,
            game_version=game.spec.version,
            frame_skip=settings.game.frame_skip,
            parent=parent,
            role=live.role.value,
            seed=settings.learner.seed,
            reward_preset=settings.game.reward,
            config_hash=settings.hash(),
        )
        snapshots = publisher(client, blobs, card, live, joined.incarnation)
        if model.references is not None and group.is_leader:
            model.references.ratings = snapshots.reference_scores
            model.references.keep = snapshots.keep_references
        if generation is not None:
            model.schedule_span = (generation.since_step, 2 * generation_steps)
        if saved is not None:
            snapshots.parent, snapshots.last_step = saved["publisher"]
            restore(model, client, group, saved, rank_parts, joined)
            if model.references is not None and model.references.members:
                model.references.keep_members()
            if saved["pending"] is not None and group.is_leader:
                card_json, milestone = saved["pending"]
                frozen = SnapshotCard.from_json(card_json)
                snapshots.publish(model.policy.network, frozen, milestone)
            log.info("continues from step %d", model.num_timesteps)
        else:
            if initial is not None:
                load_weights(model, initial)
            if generation is not None:
                begun = generation.since_step
                model.num_timesteps = env.learner_step = snapshots.last_step = begun
        group.broadcast_weights(model.policy)
        stages.set_rewards(model)
        reporter = Reporter(
            folder, settings.learner, model, broker, group, (saved or {}).get("broke", 0.0)
        )
        if isinstance(game, HostedGame | WorkerGame):
            game.host.on_wait = reporter.wait
    except BaseException:
        broker.close("the learner could not start")
        raise
    return SessionParts(
        settings=settings,
        client=client,
        blobs=blobs,
        group=group,
        live=live,
        generation=generation,
        generation_steps=generation_steps,
        incarnation=joined.incarnation,
        checkpoints=checkpoints,
        stages=stages,
        broker=broker,
        model=model,
        publisher=snapshots,
        reporter=reporter,
        over=saved is not None and saved["over"],
        reset=saved is not None and saved["reset"],
        population=(saved or {}).get("population", {}),
    )
