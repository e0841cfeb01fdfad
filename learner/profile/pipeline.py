"""The learner's own pipeline, run in bursts: rollouts of a `LeagueVecEnv`, updates of a
`LeaguePPO`.

What is measured are the counters that the learner logs. A burst is as many whole updates as fit its
time; where not even one does, it is the beginning of a rollout and of its update, scaled up to the
whole.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from stable_baselines3.common.callbacks import BaseCallback

from league.agent.config import AgentConfig
from league.players import Player
from league.runs.blobs import BlobFolder
from learner.profile.opponents import MixSource
from learner.train.assembly import SessionSettings, make_env, make_game, make_model
from learner.train.membership import live_player
from learner.train.progress import busy_seconds

OTHER = "other"
UNUSED = ("waiting", "references")
"""Left out where they took no time: there is no matchmaker here; references may be switched off."""
PATIENCE = 4.0
"""A burst that takes this many times its seconds is cut short after all: the machine got busy."""
WHOLE_UNTIL = 1.5
"""An update that takes less than this many times the burst's seconds is played whole."""


@dataclass(frozen=True, kw_only=True)
class Burst:
    """What one burst took, for the whole updates that it stands for."""

    steps: int
    """Steps of the learner, all matches together."""
    seconds: float
    """Wall clock for them."""
    parts: dict[str, float]
    """Seconds of it by kind of work; they add up to `seconds`, `other` being what no counter
    claims.
    """
    cpu_seconds: float
    """CPU time of the process for them, all its threads together."""
    measured_seconds: float
    """Wall clock that was really spent."""
    whole: bool
    """False: scaled up from the beginning of an update."""
    matches_ended: int

    @property
    def steps_per_second(self) -> float:
        return self.steps / self.seconds


@dataclass(frozen=True)
class _Phase:
    """A rollout or an update: its wall clock, CPU time and the learner's counters."""

    wall: float
    cpu: float
    busy: dict[str, float]

    def __sub__(self, other: _Phase) -> _Phase:
        busy = {kind: seconds - other.busy[kind] for kind, seconds in self.busy.items()}
        return _Phase(self.wall - other.wall, self.cpu - other.cpu, busy)

    def __add__(self, other: _Phase) -> _Phase:
        busy = {kind: seconds + other.busy[kind] for kind, seconds in self.busy.items()}
        return _Phase(self.wall + other.wall, self.cpu + other.cpu, busy)

    def times(self, factor: float) -> _Phase:
        busy = {kind: seconds * factor for kind, seconds in self.busy.items()}
        return _Phase(self.wall * factor, self.cpu * factor, busy)


class _Quiet(BaseCallback):
    """Between updates a profile does nothing."""

    def _on_step(self) -> bool:
        return True


class Pipeline:
    """The parts of a learner of `settings`, without a league around it.

    Args:
        mix: weight of each category of opponents.
        snapshots: frozen players whose weights lie in `blobs`.
        folder: where the algorithm's log goes.
        matches_per_draw: matches in a row against one drawn opponent.
    """

    def __init__(
        self,
        settings: SessionSettings,
        mix: Mapping[str, float],
        snapshots: Sequence[Player],
        blobs: Path,
        folder: Path,
        device: torch.device,
        matches_per_draw: int = 1,
    ) -> None:
        game = make_game(settings)
        live = live_player("main", game)
        stage = settings.curriculum.stages[-1]
        self.source = MixSource(
            mix,
            game.spec,
            live,
            snapshots,
            settings.learner.seed,
            matches_per_draw=matches_per_draw,
        )
        self.env = make_env(settings, game, self.source, BlobFolder(blobs), stage, device, live)
        config = AgentConfig.of(settings.agent, game.spec)
        self.model = make_model(settings, config, self.env, folder, device, self._time_is_up)
        self._device = device
        self._limit, self._cut, self._cut_at = math.inf, False, 0.0
        # What `learn` would set up: counters and the callback, without a limit on steps.
        _, self._callback = self.model._setup_learn(settings.learner.steps, _Quiet())
        self.update_seconds = math.inf
        """What a whole update takes, as far as is known."""

    def warm_up(self, seconds: float) -> None:
        """Plays and learns twice, for about `seconds` each: cold, and to know what an update
        takes.
        """
        for _ in range(2):
            self._update(seconds / 2, seconds / 2)

    def burst(self, seconds: float) -> Burst:
        """Measures for about `seconds`."""
        if self.update_seconds > WHOLE_UNTIL * seconds:
            return self._update(seconds / 2, seconds / 2)
        count = max(1, round(seconds / self.update_seconds))
        return _together(
            [self._update(PATIENCE * seconds, PATIENCE * seconds) for _ in range(count)]
        )

    def one_update(self, seconds: float) -> Burst:
        """A single update, cut short when it takes longer than about `seconds`."""
        return self._update(seconds / 2, seconds / 2)

    def close(self) -> None:
        """Ends what the game may have running."""
        self.env.game.close()

    # -- one update -----------------------------------------------------------------------------

    def _update(self, rollout_seconds: float, learning_seconds: float) -> Burst:
        """One rollout and the passes over it, each cut short after its seconds and scaled up
        then.
        """
        model = self.model
        ended, steps = self.source.ended, model.num_timesteps
        first = self._now()
        self._limit, self._cut = time.perf_counter() + rollout_seconds, False
        model.collect_rollouts(self.env, self._callback, model.rollout_buffer, model.n_steps)
        rollout, cut = self._now() - first, self._cut
        if cut and model.references is not None:  # they saw the rows played; the update wants all
            model.references.play_along(model.buffer, model.n_steps)
        self.env.finished = []
        whole_steps = model.n_steps * self.env.num_envs
        measured = rollout.wall
        rollout = rollout.times(whole_steps / (model.num_timesteps - steps) if cut else 1.0)
        model._update_current_progress_remaining(model.num_timesteps, model._total_timesteps)
        updates, first = model._n_updates, self._now()
        self._limit, self._cut = time.perf_counter() + learning_seconds, False
        model.train()
        learning = self._now() - first
        measured += learning.wall
        if self._cut:  # what follows the minibatches comes once an update
            minibatches = (self._cut_at - first.wall) / learning.wall
            factor = self._minibatches_share(model._n_updates - updates)
            learning = learning.times(minibatches * factor + 1 - minibatches)
        spent = rollout + learning
        self.update_seconds = spent.wall
        return Burst(
            steps=whole_steps,
            seconds=spent.wall,
            parts=_parts(spent),
            cpu_seconds=spent.cpu,
            measured_seconds=measured,
            whole=not (cut or self._cut),
            matches_ended=self.source.ended - ended,
        )

    def _minibatches_share(self, done: int) -> float:
        """By what a cut update's seconds are multiplied: sequences of a whole one over those
        seen.
        """
        sequences, matches = self.model.sequences, self.env.num_envs
        passes, rest = divmod(done, math.ceil(matches / sequences))
        return self.model.n_epochs * matches / (passes * matches + rest * sequences)

    def _time_is_up(self) -> bool:
        if not self._cut and time.perf_counter() > self._limit:
            self._cut, self._cut_at = True, time.perf_counter()
        return self._cut

    def _now(self) -> _Phase:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        model = self.model
        references = 0.0 if model.references is None else model.references.seconds
        busy = busy_seconds(
            self.env, model.inference_seconds, model.learning_seconds, 0.0, references
        )
        return _Phase(time.perf_counter(), time.process_time(), busy)


def _parts(spent: _Phase) -> dict[str, float]:
    """The counters, and what none of them claims."""
    parts = {kind: seconds for kind, seconds in spent.busy.items() if kind not in UNUSED or seconds}
    return {**parts, OTHER: max(0.0, spent.wall - sum(parts.values()))}


def _together(bursts: Sequence[Burst]) -> Burst:
    """Several updates as one burst."""
    return Burst(
        steps=sum(burst.steps for burst in bursts),
        seconds=sum(burst.seconds for burst in bursts),
        parts={kind: sum(burst.parts[kind] for burst in bursts) for kind in bursts[0].parts},
        cpu_seconds=sum(burst.cpu_seconds for burst in bursts),
        measured_seconds=sum(burst.measured_seconds for burst in bursts),
        whole=all(burst.whole for burst in bursts),
        matches_ended=sum(burst.matches_ended for burst in bursts),
    )
