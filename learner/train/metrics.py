"""Reports on a learner: computes metrics after each update, writes files, and raises alarms."""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from league.players import PlayerKind
from league.runs.alarms import (
    CLIPPED,
    AlarmWatch,
    MatchFacts,
    UpdateFacts,
    largest_entropy,
)
from league.status import PAUSED, at_rest
from learner.distributed.rank_group import RankGroup
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.rollout.matches import FinishedMatch
from learner.rollout.source import MatchBroker
from learner.settings import LearnerSettings
from learner.train.monitor import MatchMonitor

RECENT = 100
"""Number of newest matches over which win rates and other means are taken."""
FORGOTTEN = 50
"""Number of updates without a new value after which a mean is no longer reported."""
FEWEST = 10
"""Fewest matches after which a snapshot can count as hardest or easiest."""
log = logging.getLogger(__name__)


class Progress:
    """Keeps recent results and times, and computes metrics from them.

    All readers of these metrics (the terminal view, TensorBoard, heartbeats) rely on the metrics'
    names.
    """

    def __init__(self, target_steps: int, frames_per_second: int) -> None:
        self._target, self._fps = target_steps, frames_per_second
        self._recent: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=RECENT))
        # For each name, the number of updates that were made when its newest value was added.
        self._added_at: dict[str, int] = {}
        self._updates = 0
        self._snapshots: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=RECENT))
        self._marks: deque[tuple[float, int, int, dict[str, float]]] = deque(maxlen=20)

    def add(self, matches: Sequence[FinishedMatch]) -> None:
        """Adds matches that ended."""
        for match in matches:
            won, opponent = float(match.score == 1.0), match.assignment.opponent
            self._add(f"winrate/{match.assignment.category}", won)
            if opponent.kind in (PlayerKind.BOT, PlayerKind.RIVAL):
                self._add(f"winrate_against/{opponent.name}", won)
            elif opponent.kind is PlayerKind.SNAPSHOT:
                self._snapshots[opponent.name].append(won)
            if "spawn_side" in match.stats:
                side = "left" if match.stats["spawn_side"] < 0 else "right"
                self._add(f"winrate_from/{side}", won)
            self._add("reward/episode_mean", match.reward)
            self._add("match/seconds_mean", match.frames / self._fps)

    def _add(self, name: str, value: float) -> None:
        self._recent[name].append(value)
        self._added_at[name] = self._updates

    def mark(self, step: int, frames: int, busy: dict[str, float]) -> None:
        """Stores the time and the counters after an update.

        Args:
            step: steps so far.
            frames: frames so far.
            busy: seconds so far per kind of work.
        """
        self._updates += 1
        self._marks.append((time.monotonic(), step, frames, busy))

    def rest(self) -> None:
        """Forgets the stored times, because the learner is paused and makes no steps."""
        self._marks.clear()

    def metrics(self) -> dict[str, float]:
        """Returns all current numbers by name."""
        values = {"progress/target_steps": float(self._target), **self._rates()}
        values |= {
            name: fmean(numbers)
            for name, numbers in self._recent.items()
            if self._updates - self._added_at[name] <= FORGOTTEN
        }
        rates = [fmean(won) for won in self._snapshots.values() if len(won) >= FEWEST]
        if rates:  # snapshots come and go, so metrics do not name them
            values["winrate_against/hardest_snapshot"] = min(rates)
            values["winrate_against/easiest_snapshot"] = max(rates)
        return values

    def _rates(self) -> dict[str, float]:
        if not self._marks:
            return {}
        last_at, last_step, last_frames, busy = self._marks[-1]
        values = {"progress/steps": float(last_step), "progress/frames": float(last_frames)}
        first_at, first_step, first_frames, busy_before = self._marks[0]
        elapsed = last_at - first_at
        if elapsed <= 0:
            return values
        rate = (last_step - first_step) / elapsed
        values["rate/steps_per_second"] = rate
        values["rate/frames_per_second"] = (last_frames - first_frames) / elapsed
        if rate > 0:
            values["progress/seconds_left"] = max(0, self._target - last_step) / rate
        for kind, seconds in busy.items():
            values[f"time/{kind}_share"] = (seconds - busy_before[kind]) / elapsed
        return values


def busy_seconds(model: LeaguePPO, waiting: float = 0.0) -> dict[str, float]:
    """Returns the total seconds so far by kind of work, for `Progress.mark`.

    Args:
        model: the algorithm.
        waiting: seconds spent waiting for the matchmaker.
    """
    env, references = model.env, model.references
    return {
        "game": env.game_seconds,
        "opponents": env.opponents_seconds,
        "inference": model.inference_seconds,
        "learning": model.learning_seconds,
        "waiting": waiting,
        "references": 0.0 if references is None else references.seconds,
    }


class Reporter:
    """Writes a learner's files, and keeps its current metrics.

    `metrics` has the metrics of the newest update, the progress and the active alarms. Every rank
    (process) has a reporter, but only the reporter of the leader (rank 0) writes files and keeps
    metrics.
    """

    def __init__(
        self,
        folder: Path,
        settings: LearnerSettings,
        model: LeaguePPO,
        broker: MatchBroker,
        group: RankGroup,
        broke: float = 0.0,
    ) -> None:
        env: LeagueVecEnv = model.env
        self._model, self._env, self._broker, self._group = model, env, broker, group
        spec = env.game.spec
        self._monitor = MatchMonitor(folder, spec, model.num_timesteps) if group.is_leader else None
        self._progress = Progress(settings.steps, spec.frames_per_second)
        self._terms = spec.reward_terms
        entropy = largest_entropy(spec.action_kind, spec.action_size)
        self._watch = AlarmWatch(entropy, settings.desired_kl, broke)
        self._alarms: dict[str, float] = {}
        self._updates_reported = model._n_updates
        self._other_frames = 0  # of the other ranks
        self.metrics: dict[str, float] = {}

    @property
    def broke(self) -> float:
        """KL divergence of the update that broke the policy (`league.runs.alarms`), or 0. A
        checkpoint keeps it.
        """
        return self._watch.broke

    def update(self, stage: int) -> None:
        """Writes the matches that ended in the newest rollout on all ranks to files, and renews
        `metrics`. Call it after each update.
        """
        env, model = self._env, self._model
        gathered = self._group.gather((env.finished, env.frames_played, env.game.clipped()))
        env.finished = []
        if self._monitor is None:
            return
        matches = [match for finished, _, _ in gathered for match in finished]
        frames = sum(played for _, played, _ in gathered)
        clipped: Counter[str] = sum((Counter(counts) for _, _, counts in gathered), Counter())
        self._other_frames = frames - env.frames_played
        self._progress.add(matches)
        self._monitor.write(matches, model.num_timesteps)
        busy = busy_seconds(model, self._broker.waiting_seconds)
        self._progress.mark(model.num_timesteps, frames, busy)
        names = model.logger.name_to_value.items()
        learning = {name: float(value) for name, value in names if isinstance(value, int | float)}
        progress = {**self._progress.metrics(), "curriculum/stage": float(stage)}
        progress |= {CLIPPED + name: float(count) for name, count in clipped.items()}
        for name, value in progress.items():
            model.logger.record(name, value)
        self.metrics = {**learning, **progress}
        if model._n_updates > self._updates_reported:  # false if a stop came before the update
            self._updates_reported = model._n_updates
            self._monitor.write_strategy(learning, model.num_timesteps)
            self._alarms = self._check(model.num_timesteps, matches)
        self.metrics |= self._alarms

    def _check(self, step: int, matches: Sequence[FinishedMatch]) -> dict[str, float]:
        """Checks for alarms, and logs alarms that begin or end. Returns the active alarms."""
        ended = [
            MatchFacts(match.assignment.category, match.score, self._by_term(match.reward_terms))
            for match in matches
        ]
        weights = self._by_term(self._env.reward_weights_K)
        facts = UpdateFacts(step=step, metrics=self.metrics, matches=ended, weights=weights)
        for change in self._watch.update(facts):
            log.warning("step %d: %s", change.step, change.sentence)
        return {key: alarm.value for key, alarm in self._watch.active.items()}

    def _by_term(self, values: NDArray[np.floating]) -> Mapping[str, float]:
        return dict(zip(self._terms, values.tolist(), strict=True))

    def beat(self, activity: str) -> None:
        """Sets the progress that the next heartbeat reports."""
        frames = self._other_frames + self._env.frames_played
        self._broker.beat(frames, self._model.num_timesteps, activity, self.metrics)

    def wait(self, reason: str) -> None:
        """Reports why the game has to wait. An empty reason means that the game continues."""
        self.beat(reason or "rollout")

    def rest(self) -> None:
        """Reports that the learner is paused."""
        self._progress.rest()
        self.metrics = at_rest(self.metrics)
        self.beat(PAUSED)

    def close(self) -> None:
        """Closes the files."""
        if self._monitor is not None:
            self._monitor.close()
