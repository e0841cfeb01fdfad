"""One learner's run: from its first step or its newest checkpoint to its last step."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch
from stable_baselines3.common.callbacks import BaseCallback

from league.agent.config import AgentConfig
from league.agent.network import AgentNetwork
from league.agent.snapshot import SnapshotCard
from league.errors import LeagueError, NothingPlayable, StorageFull
from league.exploiters import Generation
from league.rpc.channel import Reminders
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from league.stages import Place
from learner.distributed.rank_group import RankGroup
from learner.rollout.source import AHEAD, MatchBroker
from learner.train.build import SessionSettings, make_env, make_game, make_model
from learner.train.checkpoint import (
    CheckpointFolder,
    Values,
    algorithm_state,
    environment_state,
    load_weights,
    rank_state,
)
from learner.train.curriculum import Curriculum, StageRunner
from learner.train.join import (
    Joined,
    continuing_parts,
    fits_log,
    join_league,
    live_player,
    restore,
    snapshot_checkpoint,
)
from learner.train.memory import is_out_of_memory, release, too_little
from learner.train.metrics import Reporter
from learner.train.snapshots import SnapshotPublisher

CHECKPOINT_SECONDS = 120.0
"""Longest time between checkpoints; one is also written with every snapshot."""
SPACE_SECONDS = 1.0
"""Between attempts to write to a full disk."""
T = TypeVar("T")
log = logging.getLogger(__name__)


class Session:
    """Trains one learner in a league.

    As one of several ranks it plays its share of the matches; only the leader decides, writes
    files and publishes. All ranks call the methods in the same order.

    Args:
        settings: all sections.
        client: of the league's matchmaker.
        run_dir: folder of the run.
        device: to train on.
        name: of the player that learns.
        should_stop: asked often; True ends the run with a snapshot.
        initial: weights (and more) to start from when there is no checkpoint.
        parent: the member that `initial` belongs to.
        generation: an exploiter's generation; None for a main.
        generation_steps: steps after which an exploiter is frozen at the latest.
        publisher: freezes snapshots; an exploiter's makes candidates.
    """

    def __init__(
        self,
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
    ) -> None:
        self.settings, self.client, self.group = settings, client, RankGroup()
        self.generation, self.generation_steps = generation, generation_steps
        self.over = self.reset = False
        self.activity = ""
        folder, blobs = run_dir / f"learner-{name}", BlobFolder(run_dir / "blobs")
        place = folder if generation is None else folder / f"generation-{generation.number}"
        self.checkpoints = CheckpointFolder(place / "checkpoints")
        game = make_game(settings)
        self.live = live_player(name, game, generation)
        saved = self.checkpoints.read_newest(partial(fits_log, client))
        parts = continuing_parts(saved, settings, game, self.group)
        if saved is None and self.checkpoints.unfit and generation is None:
            saved = snapshot_checkpoint(client, blobs, self.live)
        joined = join_league(self.group, client, self.live, game, saved, parts)
        self.incarnation = joined.incarnation
        self.curriculum = Curriculum(
            settings.curriculum, name, Place(**saved["curriculum"]) if saved else None
        )
        self.stages = StageRunner(
            settings,
            client,
            self.group,
            self.curriculum,
            joined.incarnation,
            saved["algorithm"]["num_timesteps"] if saved else 0,
            reports=generation is None,
        )
        self.broker = MatchBroker(
            client,
            joined.incarnation,
            self.curriculum.stage.mix,
            ahead=AHEAD[game.spec.action_kind],
            ready=joined.ready,
            log_position=saved["log_position"] if saved else 0,
            is_leader=self.group.is_leader,
        )
        try:
            stage = self.curriculum.stage
            self.env = make_env(settings, game, self.broker, blobs, stage, device, self.live)
            config = AgentConfig.of(settings.agent, game.spec)
            self.model = make_model(settings, config, self.env, folder, device, should_stop)
            if generation is not None:
                self.model.schedule_span = (generation.since_step, 2 * generation_steps)
            card = SnapshotCard(
                agent=config,
                game=game.spec.name,
                game_version=game.spec.version,
                frame_skip=settings.game.frame_skip,
                parent=parent,
                role=self.live.role.value,
                seed=settings.learner.seed,
                reward_preset=settings.game.reward,
                config_hash=settings.hash(),
            )
            self.publisher = publisher(client, blobs, card, self.live, self.incarnation)
            self._connect_references()
            if saved is not None:
                self._restore(saved, parts, joined)
            else:
                self._begin(initial)
            self.group.broadcast_weights(self.model.policy)
            self.stages.set_rewards(self.model)
            self.reporter = Reporter(folder, settings.learner, self.model, self.broker, self.group)
        except BaseException:
            self.broker.close("the learner could not start")
            raise
        self._checkpoint_at, self._remind = time.monotonic(), Reminders(log.warning)

    def _begin(self, initial: Values | None) -> None:
        """Starts at step 0, or an exploiter's generation at the step where it begins."""
        if initial is not None:
            load_weights(self.model, initial)
        if self.generation is not None:
            begun = self.generation.since_step
            self.model.num_timesteps = self.env.learner_step = self.publisher.last_step = begun

    def _connect_references(self) -> None:
        """Makes each reference a member of the league."""
        references, group, publisher = self.model.references, self.group, self.publisher
        if references is None:
            return

        def register(network: AgentNetwork, step: int) -> str:
            name = ""
            if group.is_leader:
                name = self._with_space(lambda: publisher.publish_reference(network, step))
            return group.broadcast(name)

        references.register = register
        if group.is_leader:
            references.ratings = publisher.reference_scores
            references.keep = publisher.keep_references

    # -- restoring and saving -------------------------------------------------------------------

    def _restore(self, saved: Values, parts: Sequence[Values], joined: Joined) -> None:
        self.publisher.parent, self.publisher.last_step = saved["publisher"]
        self.over, self.reset = saved["over"], saved["reset"]
        restore(self.model, self.client, self.group, saved, parts, joined)
        if self.model.references is not None and self.model.references.members:
            self.model.references.keep_members()
        if saved["pending"] is not None and self.group.is_leader:
            card_json, milestone = saved["pending"]
            card = SnapshotCard.from_json(card_json)
            self.publisher.publish(self.model.policy.network, card, milestone)
        log.info("continues from step %d", self.model.num_timesteps)

    def save_checkpoint(self, pending: SnapshotCard | None = None, milestone: bool = False) -> None:
        """Writes a checkpoint after the last result is acknowledged.

        Args:
            pending: card of the snapshot that is published next.
            milestone: whether that snapshot is a milestone.
        """
        model = self.model
        self.group.check_weights(model.policy)
        # No rank continues before all have this position: results after it count as lost.
        position = self.group.max(self.broker.flush(timeout=2.0 if model.should_stop() else 30.0))
        ready = [assignment.match_id for assignment in self.broker.ready()]
        own = {} if self.group.is_leader else rank_state(model, self.env, ready)
        others = self.group.gather(own)[1:]
        if self.group.is_leader:
            values = {
                "algorithm": algorithm_state(model),
                "environment": environment_state(self.env),
                "ready": ready,
                "ranks": others,
                "log_position": position,
                "curriculum": vars(self.curriculum.place),
                "publisher": [self.publisher.parent, self.publisher.last_step],
                "pending": None if pending is None else [pending.to_json(), milestone],
                "over": self.over,
                "reset": self.reset,
                "frame_skip": self.settings.game.frame_skip,
                "game_version": self.env.game.spec.version,
            }
            self._with_space(lambda: self.checkpoints.write(model.num_timesteps, values))
        self._checkpoint_at = time.monotonic()

    def publish(self, milestone: bool = False) -> None:
        """Writes a checkpoint, then the snapshot, so that no snapshot is newer than both."""
        model = self.model
        card = self.publisher.card(
            model.num_timesteps, model.return_scale.scale, self.reporter.metrics
        )
        self.save_checkpoint(card, milestone)
        if self.group.is_leader:
            self._with_space(lambda: self.publisher.publish(model.policy.network, card, milestone))

    def _with_space(self, write: Callable[[], T]) -> T:
        """Calls `write` until the disk has room for it: an end would lose what came since the last
        checkpoint. Asked to stop, it gives up.
        """
        while True:
            try:
                return write()
            except StorageFull as error:
                if self.model.should_stop():
                    raise
                self._remind(f"waiting for space on the disk: {error}")
                self.reporter.beat("waiting for space on the disk")
                time.sleep(SPACE_SECONDS)

    # -- between updates ------------------------------------------------------------------------

    def after_update(self) -> None:
        """Does everything that is due: metrics, curriculum, snapshots and checkpoints.

        Raises:
            GenerationOver: an exploiter was frozen.
        """
        self.reporter.update(self.curriculum.place.index)
        self.stages.follow(self.model, self.broker)
        due = self.group.broadcast(self._due() if self.group.is_leader else None)
        if due["snapshot"]:
            self.over, self.reset = due["over"], due["reset"]
            self.publish()
        elif due["checkpoint"]:
            self.save_checkpoint()
        if self.over:
            raise GenerationOver
        self.reporter.beat("rollout")

    def _due(self) -> dict[str, bool]:
        """What is due by the league's rules for the role, and by the time since a checkpoint."""
        step, last = self.model.num_timesteps, self.publisher.last_step
        late = time.monotonic() - self._checkpoint_at > CHECKPOINT_SECONDS
        due = {"snapshot": False, "over": False, "reset": False, "checkpoint": late}
        if self.generation is None:
            interval = self.stages.snapshot_interval
            intervals = step // interval - last // interval
            if intervals > 0:  # by its role the matchmaker may want it to win more first
                standing = self.client.standing(self.live.name, intervals * interval, interval)
                due["snapshot"] = standing.due
            return due
        standing = self.client.standing(self.live.name, step - last, self.generation_steps)
        self.reporter.metrics |= {
            "exploiter/generation": float(self.generation.number),
            "exploiter/steps": float(step - self.generation.since_step),
            "exploiter/least_chance": min(one.chance for one in standing.victims),
        }
        over = standing.due and step < self.settings.learner.steps
        return due | {"snapshot": standing.due, "over": over, "reset": standing.reset}

    # -- the run --------------------------------------------------------------------------------

    def run(self) -> None:
        """Trains to the last step or until asked to stop; both leave a snapshot."""
        model, steps = self.model, self.settings.learner.steps
        if model.num_timesteps >= steps:
            log.info(
                "%s has made all its %d steps: to train on, give a larger --steps",
                self.live.name,
                steps,
            )
        try:
            if model.num_timesteps < steps and not self.over:
                self.stages.begin(model, self.broker)
                with contextlib.suppress(GenerationOver):
                    model.learn(
                        steps - model.num_timesteps,  # the parent adds those already done
                        callback=LeagueCallback(self),
                        reset_num_timesteps=False,
                        tb_log_name="learner",
                    )
            self._finish()
        except NothingPlayable as error:
            raise NothingPlayable(f"{error} ({self._rescue(error)})") from error
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            activity, kept = self.activity, self._rescue(error)
            raise too_little(self.settings, model.device, kept, activity) from error
        finally:
            try:
                self.reporter.close()
                model.logger.close()
            finally:
                self.broker.close()

    def _rescue(self, error: BaseException) -> str:
        """Saves the weights, without the matches, when no further step can be made.

        Returns:
            What is saved, in words.
        """
        self.model.policy.optimizer.zero_grad(set_to_none=True)
        release(error)
        newest = "it continues from its newest checkpoint"
        if not self.group.is_leader:
            return newest
        self.group = RankGroup(alone=True)  # the other ranks end with this one
        try:
            # Some matches may be half a step ahead of the others.
            self.env.assignments = [None] * self.env.num_envs
            if self.model.num_timesteps > self.publisher.last_step:
                self.publish()
        except (MemoryError, RuntimeError, LeagueError) as another:
            log.warning("no snapshot could be saved either (%s)", another)
            return newest
        parent = self.publisher.parent
        return f"it continues from {parent}" if parent else "nothing was lost"

    def _finish(self) -> None:
        model = self.model
        self.reporter.update(self.curriculum.place.index)
        done = model.num_timesteps >= self.settings.learner.steps
        unsaved = model.num_timesteps > self.publisher.last_step
        if self.generation is not None and not done:
            if not self.over:  # half a generation is not a candidate
                self.save_checkpoint()
        elif self.group.broadcast(unsaved):
            self.publish(milestone=done and self.generation is None)
        elif done and self.group.is_leader and self.generation is None:
            self.publisher.promote()
        self.reporter.beat("done" if done else "starts again" if self.over else "stopped")
        self.leave()

    def leave(self) -> None:
        """Leaves the league; the leader, the last to go, hands back what was not played."""
        if not self.group.is_leader:
            self.broker.close()
        self.group.max(0)
        self.broker.close()


class GenerationOver(Exception):
    """An exploiter has been frozen: its session need not continue."""


class LeagueCallback(BaseCallback):
    """Runs the session's work between one update and the next rollout."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._updated = False

    def _on_rollout_start(self) -> None:
        if self._updated:
            self._session.after_update()
        self._session.activity = "rollout"
        self._updated = True

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self._session.activity = "update"
        self._session.reporter.beat("update")
