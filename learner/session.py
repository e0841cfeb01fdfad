"""One learner's run: takes up where its checkpoint was, trains, and leaves everything whole.

`LeagueCallback` does the league's work between updates; `Session` owns the parts.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from stable_baselines3.common.callbacks import BaseCallback

from league.agent.config import AgentConfig
from league.agent.snapshot import SnapshotCard
from league.blobs import BlobFolder
from league.client import MatchmakerClient
from league.errors import LeagueError, NothingPlayable
from league.players import Book, Incarnation, PayoffCell
from league.stages import Place, StageRequest, newest_evaluated
from learner.assembly import (
    SessionSettings,
    annealed_share,
    fits_matches,
    join_league,
    live_player,
    make_env,
    make_game,
    make_model,
    make_publisher,
    stage_rewards,
)
from learner.checkpoint import (
    CheckpointFolder,
    Values,
    algorithm_state,
    environment_state,
    load_algorithm_state,
    load_environment_state,
    load_references,
    load_weights,
)
from learner.curriculum import Curriculum, StageChange
from learner.memory import is_out_of_memory, release, too_little
from learner.monitor import MatchMonitor
from learner.progress import Progress, busy_seconds
from learner.reference_members import ReferenceMembers
from learner.rollout.league_vec_env import UNPLAYABLE, FinishedMatch
from learner.rollout.source import MatchBroker
from learner.watch import RunWatch

log = logging.getLogger(__name__)


class Session:
    """A learner from its first step, or its newest checkpoint, to its last."""

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
    ) -> None:
        self.settings, self.client = settings, client
        self._told: Place | None = None  # of the curriculum, to the league
        folder, blobs, learner = run_dir / f"learner-{name}", BlobFolder(run_dir / "blobs"), settings.learner
        self.checkpoints = CheckpointFolder(folder / "checkpoints", learner.keep_checkpoints)
        game = make_game(settings)
        self.live = live_player(name, game)
        saved = self.checkpoints.read_newest()
        carries = saved is not None and fits_matches(saved, settings, game)
        incarnation = join_league(client, self.live, game, saved, carries)
        self.curriculum = Curriculum(settings.curriculum, **(saved["curriculum"] if saved else {}))
        self._incarnation = incarnation.number
        self._asked = self._tell_stage(saved["algorithm"]["num_timesteps"] if saved else 0)
        self.broker = MatchBroker(
            client,
            incarnation.number,
            self.curriculum.stage.mix,
            ahead=learner.matches_ahead,
            ready=incarnation.carried[learner.matches :],
            log_position=saved["log_position"] if saved else 0,
        )
        try:
            self.env = make_env(settings, game, self.broker, blobs, self.curriculum.stage, device, self.live)
            config = AgentConfig.of(settings.agent, game.spec)
            self.model = make_model(settings, config, self.env, folder, device, should_stop)
            self.publisher = make_publisher(
                settings, client, blobs, self.model, self.live, incarnation.number, parent
            )
            self._make_references_members(blobs, incarnation)
            if saved is not None:
                self._restore(saved, incarnation, carries)
            elif initial is not None:
                load_weights(self.model, initial)
            self._follow_schedule(self.model.num_timesteps)
            self.monitor = MatchMonitor(folder, game.spec, self.model.num_timesteps)
        except BaseException:
            self.broker.close("the learner could not start")
            raise
        self.progress = Progress(learner.steps, game.spec.frames_per_second)
        self.watch = RunWatch(learner, game.spec)
        self._alarms: dict[str, float] = {}
        self._updates_told = self.model._n_updates
        self.metrics: dict[str, float] = {}
        self.activity = ""
        self._checkpoint_at = time.monotonic()

    def _make_references_members(self, blobs: BlobFolder, incarnation: Incarnation) -> None:
        references = self.model.references
        if references is not None:
            members = ReferenceMembers(self.client, blobs, self.publisher, self.live, incarnation.number)
            references.register, references.ratings = members.register, members.scores
            references.keep = members.keep

    # -- restoring and saving -------------------------------------------------------------------

    def _restore(self, saved: Values, incarnation: Incarnation, carries: bool) -> None:
        """Goes on from a checkpoint: with its matches, or (`carries` False) with its weights in new ones."""
        self.publisher.parent, self.publisher.last_step = saved["publisher"]
        algorithm = saved["algorithm"]
        if carries and self._restore_matches(saved, incarnation):
            load_algorithm_state(self.model, algorithm)
            self.model.last_obs_NO = self.env.observations()
        else:
            load_weights(self.model, algorithm)
            self.model.num_timesteps = self.env.learner_step = algorithm["num_timesteps"]
            self.model._n_updates = algorithm["updates"]
            load_references(self.model, algorithm)
            if self.model.references is not None:
                self.model.references.forget_matches()
            self.env.frames_played = saved["environment"]["frames_played"]
        if self.model.references is not None and self.model.references.members:
            self.model.references.tell()
        if saved["pending"] is not None:
            card_json, milestone = saved["pending"]
            self.publisher.publish(self.model.policy.network, SnapshotCard.from_json(card_json), milestone)
        log.info("goes on from step %d", self.model.num_timesteps)

    def _restore_matches(self, saved: Values, incarnation: Incarnation) -> bool:
        """Puts the checkpoint's matches back in progress; False when one of them can't be played on."""
        held = list(incarnation.carried[: self.env.num_envs])
        try:
            load_environment_state(self.env, saved["environment"], held)
        except (*UNPLAYABLE, ValueError) as error:
            log.warning("the matches in progress can't be played on, new ones begin: %s", error)
            names = [assignment.match_id for assignment in held]
            self.client.release_matches(incarnation.number, names, reason="they can't be played on")
            self.env.assignments = [None] * self.env.num_envs
            for seat in range(self.env.num_envs):
                self.env.crowd.vacate(seat)
            return False
        return True

    def save_checkpoint(self, pending: SnapshotCard | None = None, milestone: bool = False) -> None:
        """Writes a checkpoint behind the last acknowledged result.

        `pending` is the card of the snapshot that is published next.
        """
        position = self.broker.flush(timeout=2.0 if self.model.should_stop() else 30.0)
        self.checkpoints.write(
            self.model.num_timesteps,
            {
                "algorithm": algorithm_state(self.model),
                "environment": environment_state(self.env),
                "ready": [assignment.match_id for assignment in self.broker.ready()],
                "log_position": position,
                "curriculum": self.curriculum.state(),
                "publisher": [self.publisher.parent, self.publisher.last_step],
                "pending": None if pending is None else [pending.to_json(), milestone],
                "frame_skip": self.settings.game.frame_skip,
                "game_version": self.env.game.spec.version,
            },
        )
        self._checkpoint_at = time.monotonic()

    def publish(self, milestone: bool = False) -> None:
        """A checkpoint first, the snapshot after: no snapshot is newer than the newest checkpoint."""
        model = self.model
        card = self.publisher.card(model.num_timesteps, model.return_scale.scale, self.metrics)
        self.save_checkpoint(card, milestone)
        self.publisher.publish(model.policy.network, card, milestone)

    # -- between updates ------------------------------------------------------------------------

    def after_update(self) -> None:
        """Accounts, curriculum, snapshots and checkpoints: everything that is due."""
        self._take_stock()
        step, learner = self.model.num_timesteps, self.settings.learner
        self._follow_curriculum(step)
        if step // learner.snapshot_interval > self.publisher.last_step // learner.snapshot_interval:
            self.publish()
        elif time.monotonic() - self._checkpoint_at > learner.checkpoint_seconds:
            self.save_checkpoint()
        self.beat("rollout")

    def _take_stock(self) -> None:
        """Writes down the matches that ended, and renews the metrics."""
        matches, self.env.finished = self.env.finished, []
        self.progress.add(matches)
        self.monitor.write(matches, self.model.num_timesteps)
        self.progress.mark(self.model.num_timesteps, self.env.frames_played, self._busy())
        self._collect_metrics(matches)

    def _busy(self) -> dict[str, float]:
        model = self.model
        return busy_seconds(
            self.env,
            model.inference_seconds,
            model.learning_seconds,
            self.broker.waiting_seconds,
            0.0 if model.references is None else model.references.seconds,
        )

    def _collect_metrics(self, matches: Sequence[FinishedMatch]) -> None:
        names = self.model.logger.name_to_value
        learning = {name: float(value) for name, value in names.items() if isinstance(value, int | float)}
        own = {**self.progress.metrics(), "curriculum/stage": float(self.curriculum.index)}
        for name, value in own.items():
            self.model.logger.record(name, value)
        step, weights_K = self.model.num_timesteps, self.env.reward_weights_K
        self.metrics = {**learning, **own}
        if self.model._n_updates > self._updates_told:  # a stop takes stock without an update
            self._updates_told = self.model._n_updates
            self.monitor.write_strategy(learning, step)
            self._alarms = self.watch.look(step, self.metrics, matches, weights_K)
        self.metrics |= self._alarms

    def beat(self, activity: str) -> None:
        """Tells the matchmaker how far it is."""
        self.broker.beat(self.env.frames_played, self.model.num_timesteps, activity, self.metrics)

    def _follow_curriculum(self, step: int) -> None:
        change = self.curriculum.obey(self.broker.asked(), step)
        self._enter(change or self.curriculum.advance(step, self._clean_matches), step)

    def _enter(self, change: StageChange | None, step: int) -> None:
        if change is not None:
            log.info("stage %s ends at step %d: %s", change.ended.name, step, change.reason)
            self.broker.change_mix(change.begins.mix)
        self._follow_schedule(step)
        self._tell_stage(step, "" if change is None else change.reason)

    def _tell_stage(self, step: int, reason: str = "") -> StageRequest | None:
        """Says where in its curriculum it is, if that has changed; returns what it is asked to enter."""
        place = self.curriculum.place()
        if place == self._told:
            return None
        self._told = place
        return self.client.enter_stage(self._incarnation, step, self.curriculum.as_told(), place, reason)

    def _follow_schedule(self, step: int) -> None:
        """Weighs rewards as the stage and the step want it: nothing of it needs a checkpoint."""
        stage = self.curriculum.stage
        self.env.reward_weights_K = stage_rewards(self.settings, stage, step)
        share = annealed_share(self.settings, stage, step)
        if share is not None:
            self.model.logger.record("reward/annealed_share", share)

    def _clean_matches(self, opponent: str, after: int) -> PayoffCell | None:
        """Counts of the newest evaluated snapshot of this learner in the clean book, frozen behind a step."""
        cells = self.client.payoff(Book.EVAL, columns=[opponent])
        return newest_evaluated(cells, self.live.name, after)

    # -- the run --------------------------------------------------------------------------------

    def run(self) -> None:
        """Trains to the last step or until asked to stop; both leave a snapshot and a checkpoint."""
        learner = self.settings.learner
        try:
            if self.model.num_timesteps < learner.steps:
                step = self.model.num_timesteps
                self._enter(self.curriculum.obey(self._asked, step), step)  # asked for while it was away
                self.model.learn(
                    learner.steps - self.model.num_timesteps,  # the parent adds those already done
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
                self.monitor.close()
                self.model.logger.close()
            finally:
                self.broker.close()

    def _keep(self, error: BaseException) -> str:
        """When no further step can be made: saves the weights, without the matches, and says what is kept."""
        self.model.policy.optimizer.zero_grad(set_to_none=True)
        release(error)
        try:
            self.env.assignments = [None] * self.env.num_envs  # some may be half a step ahead of the others
            if self.model.num_timesteps > self.publisher.last_step:
                self.publish()
        except (MemoryError, RuntimeError, LeagueError) as another:
            log.warning("no snapshot could be saved either (%s)", another)
            return "it goes on from its newest checkpoint"
        return f"it goes on from {self.publisher.parent}" if self.publisher.parent else "nothing was lost"

    def _finish(self) -> None:
        self._take_stock()
        done = self.model.num_timesteps >= self.settings.learner.steps
        if self.model.num_timesteps > self.publisher.last_step:
            self.publish(milestone=done)
        elif done:
            self.publisher.promote()
        self.beat("done" if done else "stopped")


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
        self._session.beat("update")
