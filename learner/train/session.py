"""One learner's run: takes up where its checkpoint was, trains, and leaves everything whole.

`LeagueCallback` does the league's work between updates; `Session` owns the parts.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path

import torch
from stable_baselines3.common.callbacks import BaseCallback

from league.agent.config import AgentConfig
from league.agent.network import AgentNetwork
from league.agent.snapshot import SnapshotCard
from league.errors import LeagueError, NothingPlayable
from league.exploiters import Generation
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from learner.distributed.ranks import Ranks
from learner.exploiter.candidates import CandidatePublisher
from learner.rollout.source import MatchBroker
from learner.train.accounts import Accounts
from learner.train.assembly import SessionSettings, make_env, make_game, make_model, make_publisher
from learner.train.checkpoint import (
    CheckpointFolder,
    Values,
    algorithm_state,
    environment_state,
    load_weights,
    rank_state,
)
from learner.train.curriculum import Curriculum
from learner.train.membership import Membership, fits_matches, join_league, live_player
from learner.train.memory import is_out_of_memory, release, too_little
from learner.train.publisher import Publisher
from learner.train.reference_members import ReferenceMembers
from learner.train.restoring import go_on
from learner.train.staging import Staging

log = logging.getLogger(__name__)


class Session:
    """A learner from its first step, or its newest checkpoint, to its last.

    As one of several ranks it plays its share of the matches; the leading rank alone decides,
    writes files and publishes. What all ranks must do at the same time is told so.
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
        turn: Callable[[int], float] = lambda steps: 0.0,
    ) -> None:
        self.settings, self.client, self.ranks = settings, client, Ranks()
        self.generation, self.generation_steps = generation, generation_steps
        self.over = self.reset = False
        self.turn = turn
        folder, blobs, learner = (
            run_dir / f"learner-{name}",
            BlobFolder(run_dir / "blobs"),
            settings.learner,
        )
        place = folder if generation is None else folder / f"generation-{generation.number}"
        self.checkpoints = CheckpointFolder(place / "checkpoints", learner.keep_checkpoints)
        game = make_game(settings)
        self.live = live_player(name, game, generation)
        saved = self.checkpoints.read_newest()
        carries = saved is not None and fits_matches(saved, settings, game, self.ranks)
        membership = join_league(self.ranks, client, self.live, game, saved, carries)
        self.incarnation = membership.incarnation
        self.curriculum = Curriculum(settings.curriculum, **(saved["curriculum"] if saved else {}))
        self.staging = Staging(
            settings,
            client,
            self.ranks,
            self.curriculum,
            name,
            membership.incarnation,
            saved["algorithm"]["num_timesteps"] if saved else 0,
            tells=generation is None,
        )
        self.broker = MatchBroker(
            client,
            membership.incarnation,
            self.curriculum.stage.mix,
            ahead=learner.matches_ahead,
            ready=membership.ready,
            log_position=saved["log_position"] if saved else 0,
            leads=self.ranks.leads,
        )
        try:
            self.env = make_env(
                settings, game, self.broker, blobs, self.curriculum.stage, device, self.live
            )
            config = AgentConfig.of(settings.agent, game.spec)
            self.model = make_model(settings, config, self.env, folder, device, should_stop)
            if generation is not None:
                self.model.span = (generation.since_step, 2 * generation_steps)
            kind = Publisher if generation is None else CandidatePublisher
            self.publisher = make_publisher(
                settings, client, blobs, self.model, self.live, membership.incarnation, parent, kind
            )
            self._make_references_members(blobs, membership.incarnation)
            if saved is not None:
                self._restore(saved, membership, carries)
            else:
                self._begin(initial)
            self.ranks.share_weights(self.model.policy)
            self.staging.weigh(self.model)
            self.accounts = Accounts(folder, learner, self.model, self.env, self.broker, self.ranks)
        except BaseException:
            self.broker.close("the learner could not start")
            raise
        self.activity = ""
        self._checkpoint_at = time.monotonic()

    def _begin(self, initial: Values | None) -> None:
        """At the first step, or an exploiter's generation at its own first one."""
        if initial is not None:
            load_weights(self.model, initial)
        if self.generation is not None:
            begun = self.generation.since_step
            self.model.num_timesteps = self.env.learner_step = self.publisher.last_step = begun

    def _make_references_members(self, blobs: BlobFolder, incarnation: int) -> None:
        references = self.model.references
        if references is None:
            return
        members = ReferenceMembers(self.client, blobs, self.publisher, self.live, incarnation)

        def register(network: AgentNetwork, step: int) -> str:
            """All ranks at the same time."""
            name = members.register(network, step) if self.ranks.leads else ""
            return self.ranks.leading({"name": name})["name"]

        references.register = register
        if self.ranks.leads:
            references.ratings = members.scores
            references.keep = members.keep

    # -- restoring and saving -------------------------------------------------------------------

    def _restore(self, saved: Values, membership: Membership, carries: bool) -> None:
        self.publisher.parent, self.publisher.last_step = saved["publisher"]
        self.over, self.reset = saved.get("over", False), saved.get("reset", False)
        go_on(self.model, self.client, self.ranks, saved, membership, carries)
        if self.model.references is not None and self.model.references.members:
            self.model.references.tell()
        if saved["pending"] is not None and self.ranks.leads:
            card_json, milestone = saved["pending"]
            self.publisher.publish(
                self.model.policy.network, SnapshotCard.from_json(card_json), milestone
            )
        log.info("goes on from step %d", self.model.num_timesteps)

    def save_checkpoint(self, pending: SnapshotCard | None = None, milestone: bool = False) -> None:
        """Writes a checkpoint behind the last acknowledged result. All ranks at the same time.

        `pending` is the card of the snapshot that is published next.
        """
        model = self.model
        self.ranks.check_weights(model.policy)
        # No rank plays on before all have this position: what is reported behind it counts as lost.
        position = self.ranks.largest(
            self.broker.flush(timeout=2.0 if model.should_stop() else 30.0)
        )
        ready = [assignment.match_id for assignment in self.broker.ready()]
        others = self.ranks.gather({} if self.ranks.leads else rank_state(model, self.env, ready))[
            1:
        ]
        self._checkpoint_at = time.monotonic()
        if not self.ranks.leads:
            return
        self.checkpoints.write(
            model.num_timesteps,
            {
                "algorithm": algorithm_state(model),
                "environment": environment_state(self.env),
                "ready": ready,
                "ranks": others,
                "log_position": position,
                "curriculum": self.curriculum.state(),
                "publisher": [self.publisher.parent, self.publisher.last_step],
                "pending": None if pending is None else [pending.to_json(), milestone],
                "over": self.over,
                "reset": self.reset,
                "frame_skip": self.settings.game.frame_skip,
                "game_version": self.env.game.spec.version,
            },
        )
        self._checkpoint_at = time.monotonic()

    def publish(self, milestone: bool = False) -> None:
        """A checkpoint first, the snapshot after: no snapshot is newer than the newest checkpoint.

        All ranks at the same time.
        """
        model = self.model
        card = self.publisher.card(
            model.num_timesteps, model.return_scale.scale, self.accounts.metrics
        )
        self.save_checkpoint(card, milestone)
        if self.ranks.leads:
            self.publisher.publish(model.policy.network, card, milestone)

    # -- between updates ------------------------------------------------------------------------

    def after_update(self) -> None:
        """Accounts, curriculum, snapshots and checkpoints: everything that is due. All ranks
        together.

        Raises `GenerationOver` when an exploiter was frozen.
        """
        self.accounts.take_stock(self.curriculum.index)
        self.staging.follow(self.model, self.broker)
        due = self.ranks.leading(self._due())
        if due["snapshot"]:
            self.over, self.reset = due["over"], due["reset"]
            self.publish()
        elif due["checkpoint"]:
            self.save_checkpoint()
        if self.ranks.leads:  # a generation's last rollout is a turn like any other
            self.broker.waiting_seconds += self.turn(self.model.num_timesteps)
        if self.over:
            raise GenerationOver
        self.accounts.beat("rollout")

    def _due(self) -> dict[str, bool]:
        step, learner = self.model.num_timesteps, self.settings.learner
        late = time.monotonic() - self._checkpoint_at > learner.checkpoint_seconds
        if self.generation is not None:
            return self._standing(self.generation) | {"checkpoint": late}
        interval = learner.snapshot_interval
        intervals = step // interval - self.publisher.last_step // interval
        due = False
        # by its role the matchmaker may want it to win more first
        if intervals > 0 and self.ranks.leads:
            due = self.client.standing(self.live.name, intervals * interval, interval).due
        return {"snapshot": due, "over": False, "reset": False, "checkpoint": late}

    def _standing(self, generation: Generation) -> dict[str, bool]:
        """Whether an exploiter is to be frozen; its metrics say how it stands."""
        steps = self.model.num_timesteps - self.publisher.last_step
        standing = self.client.standing(self.live.name, steps, self.generation_steps)
        self.accounts.metrics |= {
            "exploiter/generation": float(generation.number),
            "exploiter/steps": float(self.model.num_timesteps - generation.since_step),
            "exploiter/least_chance": min(one.chance for one in standing.victims),
        }
        is_last = self.model.num_timesteps >= self.settings.learner.steps
        return {
            "snapshot": standing.due,
            "over": standing.due and not is_last,
            "reset": standing.reset,
        }

    # -- the run --------------------------------------------------------------------------------

    def run(self) -> None:
        """Trains to the last step or until asked to stop; both leave a snapshot and a
        checkpoint.
        """
        learner = self.settings.learner
        try:
            if self.model.num_timesteps < learner.steps and not self.over:
                self.staging.begin(self.model, self.broker)
                with contextlib.suppress(GenerationOver):
                    self.model.learn(
                        # the parent adds those already done
                        learner.steps - self.model.num_timesteps,
                        callback=LeagueCallback(self),
                        reset_num_timesteps=False,
                        tb_log_name="learner",
                    )
            self._finish()
        except NothingPlayable as error:
            raise NothingPlayable(f"{error} ({self._keep(error)})") from error
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            activity, kept = self.activity, self._keep(error)
            raise too_little(self.settings, self.model.device, kept, activity) from error
        finally:
            try:
                self.accounts.close()
                self.model.logger.close()
            finally:
                self.broker.close()

    def _keep(self, error: BaseException) -> str:
        """When no further step can be made: saves the weights, without the matches, and says
        what is kept.
        """
        self.model.policy.optimizer.zero_grad(set_to_none=True)
        release(error)
        newest = "it goes on from its newest checkpoint"
        if not self.ranks.leads:
            return newest
        self.ranks = Ranks(together=False)  # the others wait in vain and end with this one
        try:
            # some may be half a step ahead of the others
            self.env.assignments = [None] * self.env.num_envs
            if self.model.num_timesteps > self.publisher.last_step:
                self.publish()
        except (MemoryError, RuntimeError, LeagueError) as another:
            log.warning("no snapshot could be saved either (%s)", another)
            return newest
        return (
            f"it goes on from {self.publisher.parent}"
            if self.publisher.parent
            else "nothing was lost"
        )

    def _finish(self) -> None:
        self.accounts.take_stock(self.curriculum.index)
        done = self.model.num_timesteps >= self.settings.learner.steps
        unsaved = self.model.num_timesteps > self.publisher.last_step
        if self.generation is not None and not done:
            if not self.over:  # half a generation is no candidate
                self.save_checkpoint()
        elif self.ranks.leading({"unsaved": unsaved})["unsaved"]:
            self.publish(milestone=done and self.generation is None)
        elif done and self.ranks.leads and self.generation is None:
            self.publisher.promote()
        self.accounts.beat("done" if done else "begins anew" if self.over else "stopped")
        self.leave()

    def leave(self) -> None:
        """Ends the talk with the matchmaker. All ranks together: who leads hands back the rest."""
        if not self.ranks.leads:
            self.broker.close()
        self.ranks.largest(0)
        self.broker.close()


class GenerationOver(Exception):
    """An exploiter has been frozen: what its session plays on would be in vain."""


class LeagueCallback(BaseCallback):
    """Hooks the session's work between one update and the next rollout."""

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
        self._session.accounts.beat("update")
