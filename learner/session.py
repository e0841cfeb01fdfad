"""One learner's run: builds the parts, restores them, trains, and leaves everything whole.

`LeagueCallback` does the league's work between updates; `Session` owns the parts.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure

from league.agent.config import AgentConfig
from league.agent.crowd import Crowd
from league.agent.settings import AgentSettings
from league.agent.snapshot import SnapshotCard, load_snapshot
from league.blobs import BlobFolder
from league.client import MatchmakerClient
from league.config import sections_hash
from league.errors import ConfigError
from league.games.base import BatchedGame
from league.games.registry import make_batched, reward_weights
from league.games.settings import GameSettings
from league.players import Book, Incarnation, PayoffCell, Player, PlayerKind, Role
from learner.checkpoint import (
    CheckpointFolder,
    Values,
    algorithm_state,
    environment_state,
    load_algorithm_state,
    load_environment_state,
    load_weights,
    read_checkpoint,
)
from learner.curriculum import Curriculum
from learner.monitor import MatchMonitor
from learner.ppo.league_ppo import LeaguePPO
from learner.progress import Progress, busy_seconds
from learner.publisher import Publisher
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.rollout.source import MatchBroker
from learner.settings import CurriculumSettings, LearnerSettings

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class SessionSettings:
    """All sections that a learner reads."""

    game: GameSettings
    agent: AgentSettings
    learner: LearnerSettings
    curriculum: CurriculumSettings


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
        self.settings, self.client, self.should_stop = settings, client, should_stop
        self.folder = run_dir / f"learner-{name}"
        self.blobs = BlobFolder(run_dir / "blobs")
        self.checkpoints = CheckpointFolder(self.folder / "checkpoints", settings.learner.keep_checkpoints)
        self.game = self._make_game()
        self.config = AgentConfig.of(settings.agent, self.game.spec)
        self.live = Player(
            name=name,
            game=self.game.spec.name,
            kind=PlayerKind.LIVE,
            role=Role.MAIN,
            creator=f"learner-{name}",
        )
        saved = self.checkpoints.read_newest()
        self.incarnation = self._join(saved)
        self.curriculum = Curriculum(settings.curriculum, **(saved["curriculum"] if saved else {}))
        self.broker = self._make_broker(saved)
        self.env = self._make_env(device)
        self.model = self._make_model(device)
        self.publisher = self._make_publisher(parent)
        self._restore(saved, initial)
        step = self.model.num_timesteps
        self.monitor = MatchMonitor(self.folder, self.game.spec, step)
        self.progress = Progress(settings.learner.steps, self.game.spec.frames_per_second)
        self.metrics: dict[str, float] = {}
        self._checkpoint_at = time.monotonic()

    # -- building -------------------------------------------------------------------------------

    def _make_game(self) -> BatchedGame:
        game, agent = self.settings.game, self.settings.agent
        if agent.history_stride != game.frame_skip:
            raise ConfigError(
                f"agent.history_stride is {agent.history_stride} and game.frame_skip {game.frame_skip}: "
                "the history gets one entry a decision, so set both to the same number of frames"
            )
        return make_batched(
            game.name,
            self.settings.learner.matches,
            stage=game.stage,
            max_frames=game.max_frames,
        )

    def _join(self, saved: Values | None) -> Incarnation:
        """Registers the bots and this player, and opens an incarnation that carries matches on."""
        bots = [
            Player(name=bot.name, game=self.game.spec.name, kind=PlayerKind.BOT, held_out=bot.held_out)
            for bot in self.game.spec.bots
        ]
        self.client.register_players([*bots, self.live])
        carried: list[str] = []
        if saved and self._same_matches(saved):
            carried = saved["environment"]["matches"] + saved["ready"]
        return self.client.open_incarnation(
            self.live.creator,
            self.live.name,
            checkpoint_step=saved["algorithm"]["num_timesteps"] if saved else 0,
            checkpoint_log_position=saved["log_position"] if saved else 0,
            carried_matches=carried,
        )

    def _same_matches(self, saved: Values) -> bool:
        return (
            len(saved["environment"]["matches"]) == self.settings.learner.matches
            and saved["frame_skip"] == self.settings.game.frame_skip
            and saved["game_version"] == self.game.spec.version
        )

    def _make_broker(self, saved: Values | None) -> MatchBroker:
        matches = self.settings.learner.matches
        return MatchBroker(
            self.client,
            self.incarnation.number,
            self.curriculum.stage.mix,
            ahead=self.settings.learner.matches_ahead,
            ready=self.incarnation.carried[matches:],
        )

    def _make_env(self, device: torch.device) -> LeagueVecEnv:
        learner = self.settings.learner
        crowd = Crowd(
            learner.matches,
            lambda digest: load_snapshot(self.blobs, digest, device)[0],
            seed=learner.seed + 1,
            max_resident=learner.resident_snapshots,
            action_size=self.game.spec.action_size,
            device=device,
        )
        return LeagueVecEnv(
            self.game,
            self.broker,
            crowd,
            frame_skip=self.settings.game.frame_skip,
            reward_weights=self._stage_rewards(),
            live_player=self.live.name,
        )

    def _stage_rewards(self) -> Any:
        game = self.settings.game
        return reward_weights(game.name, self.curriculum.stage.reward or game.reward, game.reward_weights)

    def _make_model(self, device: torch.device) -> LeaguePPO:
        learner = self.settings.learner
        model = LeaguePPO(
            self.env,
            self.config,
            learning_rate=learner.learning_rate_at,
            n_steps=learner.n_steps,
            batch_size=learner.batch_size,
            n_epochs=learner.n_epochs,
            gamma=learner.gamma,
            gae_lambda=learner.gae_lambda,
            clip_range=learner.clip_range,
            ent_schedule=learner.ent_coef_at,
            vf_coef=learner.vf_coef,
            max_grad_norm=learner.max_grad_norm,
            target_kl=learner.target_kl,
            normalize_returns=learner.normalize_returns,
            seed=learner.seed,
            device=device,
            should_stop=self.should_stop,
        )
        model.set_logger(configure(str(self.folder / "tensorboard"), ["tensorboard"]))
        self.env.crowd.set_live(model.policy.network)
        return model

    def _make_publisher(self, parent: str) -> Publisher:
        settings = self.settings
        sections = {name: getattr(settings, name).model_dump(mode="json") for name in vars(settings)}
        card = SnapshotCard(
            agent=self.config,
            game=self.game.spec.name,
            game_version=self.game.spec.version,
            frame_skip=settings.game.frame_skip,
            parent=parent,
            role=self.live.role.value,
            seed=settings.learner.seed,
            reward_preset=settings.game.reward,
            config_hash=sections_hash(sections),
        )
        return Publisher(self.client, self.blobs, card, self.live, self.incarnation.number)

    # -- restoring and saving -------------------------------------------------------------------

    def _restore(self, saved: Values | None, initial: Values | None) -> None:
        if saved is None:
            if initial is not None:
                load_weights(self.model, initial)
            return
        self.publisher.parent, self.publisher.last_step = saved["publisher"]
        algorithm = saved["algorithm"]
        if self._same_matches(saved):
            load_algorithm_state(self.model, algorithm)
            load_environment_state(
                self.env, saved["environment"], list(self.incarnation.carried[: self.env.num_envs])
            )
            self.model.last_obs_NO = self.env.observations()
        else:
            load_weights(self.model, algorithm)
            self.model.num_timesteps = self.env.learner_step = algorithm["num_timesteps"]
        if saved["pending"] is not None:
            card_json, milestone = saved["pending"]
            self.publisher.publish(self.model.policy.network, SnapshotCard.from_json(card_json), milestone)
        log.info("goes on from step %d", self.model.num_timesteps)

    def save_checkpoint(self, pending: SnapshotCard | None = None, milestone: bool = False) -> None:
        """Writes a checkpoint behind the last acknowledged result.

        `pending` is the card of the snapshot that is published next.
        """
        position = self.broker.flush()
        self.checkpoints.write(
            self.model.num_timesteps,
            {
                "algorithm": algorithm_state(self.model),
                "environment": environment_state(self.env),
                "ready": [assignment.match_id for assignment in self.broker.ready()],
                "log_position": position,
                "curriculum": {"index": self.curriculum.index, "stage_start": self.curriculum.stage_start},
                "publisher": [self.publisher.parent, self.publisher.last_step],
                "pending": None if pending is None else [pending.to_json(), milestone],
                "frame_skip": self.settings.game.frame_skip,
                "game_version": self.game.spec.version,
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
        self._collect_metrics()

    def _busy(self) -> dict[str, float]:
        model = self.model
        return busy_seconds(
            self.env, model.inference_seconds, model.learning_seconds, self.broker.waiting_seconds
        )

    def _collect_metrics(self) -> None:
        names = self.model.logger.name_to_value
        learning = {name: float(value) for name, value in names.items() if isinstance(value, int | float)}
        own = self.progress.metrics()
        for name, value in own.items():
            self.model.logger.record(name, value)
        self.metrics = {**learning, **own, "learning/rate": self.model.policy.optimizer.param_groups[0]["lr"]}

    def beat(self, activity: str) -> None:
        """Tells the matchmaker how far it is."""
        self.broker.beat(self.env.frames_played, self.model.num_timesteps, activity, self.metrics)

    def _follow_curriculum(self, step: int) -> None:
        change = self.curriculum.advance(step, self._clean_matches)
        if change is not None:
            log.info("stage %s ends at step %d: %s", change.ended.name, step, change.reason)
            self.broker.change_mix(change.begins.mix)
            self.env.reward_weights_K = self._stage_rewards()

    def _clean_matches(self, opponent: str) -> PayoffCell | None:
        """Counts of the newest evaluated snapshot of this learner in the clean book."""
        cells = self.client.payoff(Book.EVAL, columns=[opponent])
        own = [cell for cell in cells if cell.row.startswith((f"{self.live.name}@", f"{self.live.name}."))]
        return max(own, key=lambda cell: int(cell.row.rpartition("@")[2]), default=None)

    # -- the run --------------------------------------------------------------------------------

    def run(self) -> None:
        """Trains to the last step or until asked to stop; both leave a snapshot and a checkpoint."""
        learner = self.settings.learner
        try:
            if self.model.num_timesteps < learner.steps:
                self.model.learn(
                    learner.steps,
                    callback=LeagueCallback(self),
                    reset_num_timesteps=False,
                    tb_log_name="learner",
                )
            self._finish()
        finally:
            self.monitor.close()
            self.broker.close()

    def _finish(self) -> None:
        self._take_stock()
        done = self.model.num_timesteps >= self.settings.learner.steps
        if done or self.model.num_timesteps > self.publisher.last_step:
            self.publish(milestone=done)
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
        self._updated = True

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self._session.beat("update")


def initial_values(source: str, blobs: BlobFolder, players: Sequence[Player]) -> tuple[Values, str]:
    """Weights to start from, and the member's name when they are one's.

    `source` is a snapshot's name in this league, a snapshot file or a checkpoint file.
    """
    for player in players:
        if player.name == source:
            if not player.digest:
                raise ConfigError(f"--from {source}: it has no weights; name a snapshot or a file")
            network, _ = load_snapshot(blobs, player.digest)
            return {"network": network.state_dict()}, player.name
    path = Path(source)
    if not path.is_file():
        raise ConfigError(f"--from {source}: neither a member of this league nor a file")
    if path.suffix == ".pt":
        return dict(read_checkpoint(path)["algorithm"]), ""
    network, _ = load_snapshot(BlobFolder(path.parent), path.stem)
    return {"network": network.state_dict()}, ""
