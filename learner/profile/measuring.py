"""The learner's own pipeline run in short bursts, each configuration in its own process.

A burst measures the counters that the learner logs over the whole updates that fit its time; where
not even one does, it measures the beginning of a rollout and of its update and scales them
up. A fork server loads torch once; every measurement starts from there as a fresh process, so its
memory and CPU time are its own, and it may run out of memory.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback
from torch.profiler import ProfilerActivity
from torch.profiler import profile as profiled

from league.agent.config import AgentConfig
from league.agent.device import keep_memory
from league.errors import LeagueError
from league.players import Player
from league.runs.blobs import BlobFolder
from league.settings.base import build, section_classes
from learner.profile.opponents import MixSource
from learner.train.build import SessionSettings, make_env, make_game, make_model
from learner.train.join import live_player
from learner.train.memory import is_out_of_memory
from learner.train.metrics import busy_seconds

UNUSED = ("waiting", "references")
"""Left out where they took no time: there is no matchmaker here; references may be off."""
PATIENCE = 4.0
"""A burst that takes this many times its seconds is cut short: the machine got busy."""
WHOLE_UNTIL = 1.5
"""An update that takes less than this many times the burst's seconds is played whole."""
TRACED_UPDATES = 2
LONGEST = 160
"""Characters shown of another library's error."""
PRELOADED = ["learner.profile.measuring", "torch.utils.tensorboard", "league.games.brawl.game"]


@dataclass(frozen=True, kw_only=True)
class Burst:
    """What one burst took, for the whole updates that it represents.

    Attributes:
        steps: steps of the learner, all matches together.
        seconds: wall clock for them.
        parts: seconds of it by kind of work; `other` is what no counter claims.
        cpu_seconds: CPU time of the process for them, all its threads together.
        measured_seconds: wall clock that was really spent.
        whole: False when scaled up from the beginning of an update.
        matches_ended: matches that ended in it.
    """

    steps: int
    seconds: float
    parts: dict[str, float]
    cpu_seconds: float
    measured_seconds: float
    whole: bool
    matches_ended: int


@dataclass(frozen=True, kw_only=True)
class Order:
    """What one process measures.

    Attributes:
        sections: all settings, as `league.settings.base.resolve` gives them.
        mix: weight of each category of opponents.
        snapshots, blobs: frozen players, and the folder of their weights.
        seconds, bursts: length of each burst, and their number.
        trace: where a trace of two more updates goes.
    """

    sections: Mapping[str, dict[str, Any]]
    device: str
    mix: Mapping[str, float]
    snapshots: tuple[Player, ...]
    blobs: Path
    seconds: float
    bursts: int
    trace: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What came of an order: bursts, or why there are none.

    Attributes:
        memory: most bytes held, in main memory and on the GPU.
        gpu_busy_share: share of the traced time in which the GPU computed; None without a trace.
        failure, error: why there are no bursts, and the league's own error where it is one.
        out_of_memory: whether a smaller configuration may fit where this one failed.
        warning: what does not spoil the figures and should be known.
    """

    bursts: list[Burst] = field(default_factory=list)
    memory: dict[str, int] = field(default_factory=dict)
    gpu_busy_share: float | None = None
    failure: str = ""
    error: LeagueError | None = None
    out_of_memory: bool = False
    warning: str = ""


def session_settings(sections: Mapping[str, dict[str, Any]]) -> SessionSettings:
    """The sections that a learner reads, as its own type."""
    classes, names = section_classes(), [part.name for part in fields(SessionSettings)]
    values: dict[str, Any] = {name: build(classes[name], name, sections[name]) for name in names}
    return SessionSettings(**values)


@dataclass(frozen=True)
class _Clock:
    """Wall clock, CPU time and the learner's counters, at a moment or between two."""

    wall: float
    cpu: float
    busy: dict[str, float]

    def since(self, start: _Clock, factor: float = 1.0) -> _Clock:
        """The time from `start` until now, times `factor`."""
        busy = {kind: factor * (self.busy[kind] - start.busy[kind]) for kind in self.busy}
        return _Clock(factor * (self.wall - start.wall), factor * (self.cpu - start.cpu), busy)


class _Quiet(BaseCallback):
    """Does nothing between updates."""

    def _on_step(self) -> bool:
        return True


class Pipeline:
    """The parts of a learner without a league around it.

    Args:
        order: what is measured; its settings and opponents are read here.
        folder: where the algorithm's log goes.
    """

    def __init__(self, order: Order, folder: Path) -> None:
        settings, self._device = session_settings(order.sections), torch.device(order.device)
        game = make_game(settings)
        live = live_player("main", game)
        self.source = MixSource(
            order.mix,
            game.spec,
            live,
            order.snapshots,
            settings.learner.seed,
            matches_per_draw=order.sections["matchmaker"]["matches_per_draw"],
        )
        stage, blobs = settings.curriculum.stages[-1], BlobFolder(order.blobs)
        self.env = make_env(settings, game, self.source, blobs, stage, self._device, live)
        config = AgentConfig.of(settings.agent, game.spec)
        self.model = make_model(settings, config, self.env, folder, self._device, self._time_is_up)
        self._limit, self._cut_at = math.inf, math.inf
        # What `learn` would set up: counters and the callback, without a limit on steps.
        _, self._callback = self.model._setup_learn(settings.learner.steps, _Quiet())
        self._update_seconds = math.inf

    def warm_up(self, seconds: float) -> None:
        """Plays and learns twice for about `seconds` each: cold, and to time an update."""
        for _ in range(2):
            self.update(seconds)

    def burst(self, seconds: float) -> Burst:
        """Measures for about `seconds`."""
        if self._update_seconds > WHOLE_UNTIL * seconds:
            return self.update(seconds)
        count = max(1, round(seconds / self._update_seconds))
        updates = [self.update(2 * PATIENCE * seconds) for _ in range(count)]
        kinds = updates[0].parts
        return Burst(
            steps=sum(one.steps for one in updates),
            seconds=sum(one.seconds for one in updates),
            parts={kind: sum(one.parts[kind] for one in updates) for kind in kinds},
            cpu_seconds=sum(one.cpu_seconds for one in updates),
            measured_seconds=sum(one.measured_seconds for one in updates),
            whole=all(one.whole for one in updates),
            matches_ended=sum(one.matches_ended for one in updates),
        )

    def update(self, seconds: float) -> Burst:
        """One rollout and its update, each cut short after half of `seconds` and then scaled up."""
        model, ended = self.model, self.source.ended
        played, wanted = model.num_timesteps, model.n_steps * self.env.num_envs
        start = self._start_phase(seconds / 2)
        model.collect_rollouts(self.env, self._callback, model.rollout_buffer, model.n_steps)
        now, is_cut = self._now(), self._cut_at < math.inf
        measured = now.wall - start.wall
        rollout = now.since(start, wanted / (model.num_timesteps - played) if is_cut else 1.0)
        if is_cut and model.references is not None:  # they saw the rows played; all are wanted
            model.references.play(model.buffer, model.n_steps)
        self.env.finished = []
        model._update_current_progress_remaining(model.num_timesteps, model._total_timesteps)
        made = model._n_updates
        start, factor = self._start_phase(seconds / 2), 1.0
        model.train()
        now = self._now()
        if self._cut_at < math.inf:  # what follows the minibatches comes once per update
            is_cut = True
            share = (self._cut_at - start.wall) / (now.wall - start.wall)
            factor = share * self.minibatch_factor(model._n_updates - made) + 1 - share
        learning = now.since(start, factor)
        measured += now.wall - start.wall
        self._update_seconds = rollout.wall + learning.wall
        busy = {kind: rollout.busy[kind] + learning.busy[kind] for kind in rollout.busy}
        parts = {kind: time for kind, time in busy.items() if kind not in UNUSED or time}
        return Burst(
            steps=wanted,
            seconds=self._update_seconds,
            parts={**parts, "other": max(0.0, self._update_seconds - sum(parts.values()))},
            cpu_seconds=rollout.cpu + learning.cpu,
            measured_seconds=measured,
            whole=not is_cut,
            matches_ended=self.source.ended - ended,
        )

    def minibatch_factor(self, done: int) -> float:
        """Sequences of a whole update over those in the first `done` minibatches."""
        sequences, matches = self.model.sequences, self.env.num_envs
        passes, rest = divmod(done, math.ceil(matches / sequences))
        return self.model.n_epochs * matches / (passes * matches + rest * sequences)

    def trace(self, seconds: float, path: Path) -> float | None:
        """Writes a torch profiler trace of two updates, for chrome://tracing or Perfetto.

        Returns:
            The share of the time in which the GPU computed; None without one.
        """
        activities = [ProfilerActivity.CPU]
        if self._device.type == "cuda":
            activities.append(ProfilerActivity.CUDA)
        start = time.perf_counter()
        with profiled(activities=activities) as recorded:
            for _ in range(TRACED_UPDATES):
                self.update(seconds)
            elapsed = time.perf_counter() - start
        recorded.export_chrome_trace(str(path))
        if self._device.type != "cuda":
            return None
        on_gpu = sum(event.self_device_time_total for event in recorded.key_averages())
        return min(1.0, on_gpu / 1e6 / elapsed)

    def close(self) -> None:
        """Ends what the game may have running."""
        self.env.game.close()

    def _start_phase(self, seconds: float) -> _Clock:
        self._limit, self._cut_at = time.perf_counter() + seconds, math.inf
        return self._now()

    def _time_is_up(self) -> bool:
        if time.perf_counter() > self._limit:
            self._cut_at = min(self._cut_at, time.perf_counter())
        return self._cut_at < math.inf

    def _now(self) -> _Clock:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        model = self.model
        return _Clock(time.perf_counter(), time.process_time(), busy_seconds(model))


def start_server() -> None:
    """Lets the fork server load torch while something else is done; twice is fine."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOADED)
    forkserver.ensure_running()


def measure(order: Order) -> Measured:
    """Runs `order` in a fresh process; the result reports failures, the process's death too."""
    start_server()
    context = multiprocessing.get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_measured, args=(order, sender), name="profile")
    process.start()
    sender.close()
    try:
        measured: Measured = receiver.recv()
    except EOFError:
        process.join()
        killed = process.exitcode == -signal.SIGKILL
        reason = f"its process ended with status {process.exitcode}"
        if killed:
            reason = "its process was killed, most likely because memory ran out"
        return Measured(failure=reason, out_of_memory=killed)
    except BaseException:
        process.kill()
        raise
    finally:
        process.join()
        receiver.close()
    return measured


def _send_measured(order: Order, sender: Connection) -> None:
    """The body of the process."""
    try:
        measured = _run(order)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        size, _, _ = str(error).partition(" for an array")  # numpy adds shape and type
        reason = size.splitlines()[0][:LONGEST] if size else "it ran out of it"
        failure = f"too little memory on {order.device}: {reason}"
        measured = Measured(failure=failure, out_of_memory=True)
    except LeagueError as error:
        measured = Measured(failure=str(error), error=error)
    sender.send(measured)
    sender.close()


def _run(order: Order) -> Measured:
    with contextlib.suppress(OSError):  # where memory runs out, Linux ends this process first
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    threads = int(order.sections["learner"]["threads"])
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    torch.set_num_threads(threads)
    keep_memory()
    with tempfile.TemporaryDirectory(prefix="kumite-profile-") as folder:
        pipeline = Pipeline(order, Path(folder))
        try:
            pipeline.warm_up(order.seconds)
            bursts = [pipeline.burst(order.seconds) for _ in range(order.bursts)]
            memory = _memory_use(torch.device(order.device))
            busy = None if order.trace is None else pipeline.trace(order.seconds, order.trace)
        finally:
            pipeline.close()
    failed = pipeline.source.failed
    return Measured(
        bursts=bursts,
        memory=memory,
        gpu_busy_share=busy,
        warning=f"a match failed: {failed}" if failed else "",
    )


def _memory_use(device: torch.device) -> dict[str, int]:
    """Most bytes that this process held so far: in main memory, and on the GPU."""
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    use = {"peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
    if device.type == "cuda":
        use["peak_gpu_allocated_bytes"] = torch.cuda.max_memory_allocated(device)
        use["peak_gpu_reserved_bytes"] = torch.cuda.max_memory_reserved(device)
    return use
