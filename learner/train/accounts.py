"""A learner's accounts: the matches that ended since the last update, in files, metrics and
alarms.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from learner.distributed.ranks import Ranks
from learner.distributed.stock import of_all_ranks
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.finished import FinishedMatch
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.rollout.source import MatchBroker
from learner.settings import LearnerSettings
from learner.train.monitor import MatchMonitor
from learner.train.progress import Progress, busy_seconds
from learner.train.watch import RunWatch


class Accounts:
    """Every rank keeps them; the leading one alone writes files and has metrics.

    `metrics` are the newest ones, by name: of the update, the run's progress and the alarms.
    """

    def __init__(
        self,
        folder: Path,
        settings: LearnerSettings,
        model: LeaguePPO,
        env: LeagueVecEnv,
        broker: MatchBroker,
        ranks: Ranks,
    ) -> None:
        spec = env.game.spec
        self._model, self._env, self._broker, self._ranks = model, env, broker, ranks
        self._monitor = MatchMonitor(folder, spec, model.num_timesteps) if ranks.leads else None
        self._progress = Progress(settings.steps, spec.frames_per_second)
        self._watch = RunWatch(settings, spec)
        self._alarms: dict[str, float] = {}
        self._updates_told = model._n_updates
        self._frames_elsewhere = 0
        self.metrics: dict[str, float] = {}

    def take_stock(self, stage: int) -> None:
        """Writes down the matches that ended on all ranks, and renews the metrics.

        All ranks at the same time; `stage` is the number of the curriculum's.
        """
        matches, frames = of_all_ranks(self._ranks, self._env.finished, self._env.frames_played)
        self._env.finished = []
        if self._monitor is None:
            return
        self._frames_elsewhere = frames - self._env.frames_played
        self._progress.add(matches)
        self._monitor.write(matches, self._model.num_timesteps)
        self._progress.mark(self._model.num_timesteps, frames, self._busy())
        self._collect_metrics(matches, stage, self._monitor)

    def _busy(self) -> dict[str, float]:
        model = self._model
        return busy_seconds(
            self._env,
            model.inference_seconds,
            model.learning_seconds,
            self._broker.waiting_seconds,
            0.0 if model.references is None else model.references.seconds,
        )

    def _collect_metrics(
        self, matches: Sequence[FinishedMatch], stage: int, monitor: MatchMonitor
    ) -> None:
        model = self._model
        names = model.logger.name_to_value
        learning = {
            name: float(value) for name, value in names.items() if isinstance(value, int | float)
        }
        own = {**self._progress.metrics(), "curriculum/stage": float(stage)}
        for name, value in own.items():
            model.logger.record(name, value)
        step, weights_K = model.num_timesteps, self._env.reward_weights_K
        self.metrics = {**learning, **own}
        if model._n_updates > self._updates_told:  # a stop takes stock without an update
            self._updates_told = model._n_updates
            monitor.write_strategy(learning, step)
            self._alarms = self._watch.look(step, self.metrics, matches, weights_K)
        self.metrics |= self._alarms

    def beat(self, activity: str) -> None:
        """Tells the matchmaker how far it is."""
        frames = self._frames_elsewhere + self._env.frames_played
        self._broker.beat(frames, self._model.num_timesteps, activity, self.metrics)

    def close(self) -> None:
        """Closes the files."""
        if self._monitor is not None:
            self._monitor.close()
