"""Runs a learner's training to its last step."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from typing import TypeVar

from stable_baselines3.common.callbacks import BaseCallback

from league.agent.network import AgentNetwork
from league.agent.snapshot import SnapshotCard
from league.errors import LeagueError, NothingPlayable, StorageFull
from league.rpc.channel import Reminders
from learner.distributed.rank_group import RankGroup
from learner.rollout.source import HOLD_SECONDS
from learner.train.checkpoint import algorithm_state, environment_state, rank_state
from learner.train.memory import is_out_of_memory, release, too_little
from learner.train.parts import SessionParts
from learner.train.population import PopulationMember

CHECKPOINT_SECONDS = 120.0
"""Time between checkpoints. A checkpoint is also written with every snapshot."""
SPACE_SECONDS = 1.0
"""Time between attempts to write to a full disk."""
T = TypeVar("T")
log = logging.getLogger(__name__)


class Session:
    """Trains a learner in a league.

    If the learner has several ranks, each rank has a session, which plays its share of the matches.
    Only the leader (rank 0) decides, writes files and publishes. All ranks call the methods in the
    same order.

    Attributes:
        over: whether an exploiter's generation has ended.
        reset: whether the next generation begins with new weights.
        activity: the current work, to name in an error if memory runs out.
    """

    def __init__(self, parts: SessionParts) -> None:
        self.parts, self.group = parts, parts.group
        self.stages, self.broker, self.model = parts.stages, parts.broker, parts.model
        self.publisher, self.reporter = parts.publisher, parts.reporter
        self.over, self.reset, self.activity = parts.over, parts.reset, ""
        self.member = PopulationMember(parts)
        self._checkpoint_at, self._remind = time.monotonic(), Reminders(log.warning)
        if self.model.references is not None:
            self.model.references.register = self._register_reference

    # -- the run --------------------------------------------------------------------------------

    def run(self) -> None:
        """Trains to the last step or until asked to stop, and then publishes a snapshot.

        An exploiter that is asked to stop before its generation has ended publishes no snapshot. It
        writes a checkpoint instead.

        Raises:
            NothingPlayable: no assigned match can be played.
            DeviceError: memory ran out.
        """
        model, steps, name = self.model, self.parts.settings.learner.steps, self.parts.live.name
        if model.num_timesteps >= steps:
            log.info(
                "%s has made all its %d steps: to train on, give a larger --steps", name, steps
            )
        try:
            if model.num_timesteps < steps and not self.over:
                self.stages.begin(model, self.broker)
                self._hold()
                with contextlib.suppress(GenerationOver):
                    model.learn(
                        steps - model.num_timesteps,  # the parent class adds the steps already made
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
            activity, rescue = self.activity, self._rescue(error)
            raise too_little(self.parts.settings, model.device, rescue, activity) from error
        finally:
            try:
                self.reporter.close()
                model.logger.close()
            finally:
                self.broker.close()
                self.parts.checkpoints.close()

    # -- between updates ------------------------------------------------------------------------

    def after_update(self) -> None:
        """Does the work between two updates: renews the metrics, moves on in the curriculum, and
        writes a snapshot or a checkpoint when it is due.

        Raises:
            GenerationOver: an exploiter was frozen.
        """
        self.reporter.update(self.stages.curriculum.place.index)
        self.stages.follow(self.model, self.broker)
        due = self.group.broadcast(self._due() if self.group.is_leader else None)
        if due["snapshot"]:
            self.over, self.reset = due["over"], due["reset"]
            self.publish()
            if due["compare"] and self.member.follow():
                self.save_checkpoint()
        elif due["checkpoint"]:
            self.save_checkpoint()
        if self.over:
            raise GenerationOver
        self._hold()
        self.reporter.beat("rollout")

    def _hold(self) -> None:
        """Waits between two rollouts while an operator has paused the learners."""
        leads, stops = self.group.is_leader, self.model.should_stop
        while self.group.broadcast(leads and self.broker.paused() and not stops()):
            self.reporter.rest()
            time.sleep(HOLD_SECONDS)

    def _due(self) -> dict[str, bool]:
        """Returns whether a snapshot and a checkpoint are due. For exploiters, it also returns
        whether the generation is over, and whether the next generation begins with new weights.

        A checkpoint is also due at the start of a pause, so that nothing is lost if the process is
        killed during the pause.
        """
        parts, step, last = self.parts, self.model.num_timesteps, self.publisher.last_step
        late = time.monotonic() - self._checkpoint_at > CHECKPOINT_SECONDS or self.broker.paused()
        due = dict.fromkeys(("snapshot", "compare", "over", "reset"), False) | {"checkpoint": late}
        ask, name, generation = parts.client.standing, parts.live.name, parts.generation
        if generation is None:
            interval = self.stages.snapshot_interval
            intervals = step // interval - last // interval
            if intervals > 0:  # the matchmaker may decide that a snapshot needs more wins first
                standing = ask(name, intervals * interval, interval)
                due |= {"snapshot": standing.due, "compare": standing.compare}
            return due
        standing = ask(name, step - last, parts.generation_steps)
        self.reporter.metrics |= {
            "exploiter/generation": float(generation.number),
            "exploiter/steps": float(step - generation.since_step),
            "exploiter/least_chance": min(victim.chance for victim in standing.victims),
        }
        over = standing.due and step < parts.settings.learner.steps
        return due | {"snapshot": standing.due, "over": over, "reset": standing.reset}

    # -- checkpoints and snapshots --------------------------------------------------------------

    def save_checkpoint(self, pending: SnapshotCard | None = None, milestone: bool = False) -> None:
        """Waits until all results are acknowledged, and writes a checkpoint. If a snapshot follows,
        `pending` is the snapshot's card (its description), and `milestone` whether the snapshot is
        a milestone.
        """
        model, env = self.model, self.model.env
        self.group.check_weights(model.policy)
        # A resumed run counts results after this log position as lost. So all ranks agree on the
        # position before any of them continues.
        position = self.group.max(self.broker.flush(timeout=2.0 if model.should_stop() else 30.0))
        ready = [assignment.match_id for assignment in self.broker.ready()]
        state = {} if self.group.is_leader else rank_state(model, env, ready)
        others = self.group.gather(state)[1:]
        if self.group.is_leader:
            values = {
                "algorithm": algorithm_state(model),
                "environment": environment_state(env),
                "ready": ready,
                "ranks": others,
                "log_position": position,
                "curriculum": vars(self.stages.curriculum.place),
                "publisher": [self.publisher.parent, self.publisher.last_step],
                "pending": None if pending is None else [pending.to_json(), milestone],
                "broke": self.reporter.broke,
                "over": self.over,
                "reset": self.reset,
                "population": self.member.state(),
                "frame_skip": self.parts.settings.game.frame_skip,
                "game_version": env.game.spec.version,
            }
            self._with_space(lambda: self.parts.checkpoints.write(model.num_timesteps, values))
        self._checkpoint_at = time.monotonic()

    def publish(self, milestone: bool = False) -> None:
        """Writes a checkpoint and then a snapshot, so that no snapshot is newer than the newest
        checkpoint.
        """
        model = self.model
        card = self.publisher.card(
            model.num_timesteps, model.return_scale.scale, self.reporter.metrics
        )
        self.save_checkpoint(card, milestone)
        if self.group.is_leader:
            self._with_space(lambda: self.publisher.publish(model.policy.network, card, milestone))

    def _with_space(self, write: Callable[[], T]) -> T:
        """Calls `write`, and tries again while the disk is full. Gives up when asked to stop.

        If the run ended instead, all steps since the last checkpoint would be lost.
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

    def _register_reference(self, network: AgentNetwork, step: int) -> str:
        """Makes a reference (a frozen copy of the learner) a member of the league and returns its
        name there.
        """
        name = ""
        if self.group.is_leader:
            name = self._with_space(lambda: self.publisher.publish_reference(network, step))
        return self.group.broadcast(name)

    # -- the end --------------------------------------------------------------------------------

    def _rescue(self, error: BaseException) -> str:
        """Saves the weights, but not the matches, after an error that ends the run.

        Returns:
            A clause for the error message that says how the run continues.
        """
        self.model.policy.optimizer.zero_grad(set_to_none=True)
        release(error)
        newest = "it continues from its newest checkpoint"
        if not self.group.is_leader:
            return newest
        self.group = RankGroup(alone=True)  # the other ranks end when this rank ends
        try:
            # The matches are dropped, because the error may have interrupted a step halfway.
            self.model.env.assignments = [None] * self.model.env.num_envs
            if self.model.num_timesteps > self.publisher.last_step:
                self.publish()
        except (MemoryError, RuntimeError, LeagueError) as another:
            log.warning("no snapshot could be saved either (%s)", another)
            return newest
        parent = self.publisher.parent
        return f"it continues from {parent}" if parent else "nothing was lost"

    def _finish(self) -> None:
        step, is_main = self.model.num_timesteps, self.parts.generation is None
        self.reporter.update(self.stages.curriculum.place.index)
        done = step >= self.parts.settings.learner.steps
        if not is_main and not done:
            if not self.over:  # an unfinished generation is not a candidate
                self.save_checkpoint()
        elif self.group.broadcast(step > self.publisher.last_step):
            self.publish(milestone=done and is_main)
        elif done and self.group.is_leader and is_main:
            self.publisher.promote()
        self.reporter.beat("done" if done else "starts again" if self.over else "stopped")
        self.leave()

    def leave(self) -> None:
        """Leaves the league. The leader (rank 0) leaves last, and hands back the matches that were
        not played.
        """
        if not self.group.is_leader:
            self.broker.close()
        self.group.max(0)
        self.broker.close()


class GenerationOver(Exception):
    """Ends the session of an exploiter that has been frozen."""


class LeagueCallback(BaseCallback):
    """Runs the session's work between an update and the next rollout."""

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
