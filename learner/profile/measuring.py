"""Measures the learner's pipeline in bursts, short trainings that consist of whole updates.

A fork server loads torch once, and forks a fresh process for every measurement. So the memory and
CPU time of each measurement are separate. If a measurement runs out of memory, the others are not
affected.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch
from torch.profiler import ProfilerActivity
from torch.profiler import profile as profiled

from league.agent.config import AgentConfig
from league.agent.device import keep_memory
from league.players import Player
from league.runs.blobs import BlobFolder
from league.service.die_with_parent import end_with_parent
from league.settings.base import Sections
from learner.rollout.mix_source import MixSource
from learner.train.build import SessionSettings, make_env, make_game, make_model
from learner.train.join import live_player
from learner.train.memory import is_out_of_memory
from learner.train.metrics import busy_seconds

TRACED_UPDATES = 2
LONGEST = 160
"""Largest number of characters to show of another library's error message."""
PRELOADED = ["learner.profile.measuring", "torch.utils.tensorboard", "league.games.brawl.game"]


class Spread(NamedTuple):
    """Holds the median, the smallest and the largest of the bursts' values."""

    median: float
    lowest: float
    highest: float

    def __str__(self) -> str:
        return "{:,.0f} ({:,.0f} to {:,.0f})".format(*self)


@dataclass(frozen=True, kw_only=True)
class Burst:
    """Holds the measurements of a burst of whole updates.

    Attributes:
        steps: steps of the learner, all matches together.
        seconds: wall-clock time of these steps.
        parts: seconds by kind of work. `other` is the time that belongs to no kind.
        cpu_seconds: CPU time of the process for these steps, all its threads together.
    """

    steps: int
    seconds: float
    parts: dict[str, float]
    cpu_seconds: float


@dataclass(frozen=True, kw_only=True)
class Order:
    """Describes a measurement.

    Attributes:
        sections: all settings, as `league.settings.base.resolve` gives them.
        device: name of the device.
        snapshots: frozen players to use as opponents.
        blobs: folder of the snapshots' weights.
        seconds: minimum length of each burst.
        bursts: number of bursts.
        trace: file for a trace of two updates that follow the bursts.
    """

    sections: Sections
    device: str
    snapshots: tuple[Player, ...]
    blobs: Path
    seconds: float
    bursts: int
    trace: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Holds the bursts (short trainings) of an order, or the reason for a failure.

    Attributes:
        bursts: at least one burst, if nothing failed.
        memory: peak memory in bytes, in main memory and on the GPU.
        gpu_busy_share: share of the traced time in which the GPU computed, None without a trace.
        failure: why there are no bursts, for example because memory ran out.
        warning: a sentence that the user should read. It does not affect the figures.
        changes: values of the settings of [learner] that a sweep varies, by the setting's name.
    """

    bursts: list[Burst] = field(default_factory=list)
    memory: dict[str, int] = field(default_factory=dict)
    gpu_busy_share: float | None = None
    failure: str = ""
    warning: str = ""
    changes: Mapping[str, str | int] = field(default_factory=dict)

    def speed(self) -> Spread:
        """Returns the steps per second of wall-clock time."""
        rates = [burst.steps / burst.seconds for burst in self.bursts]
        return Spread(median(rates), min(rates), max(rates))

    def shares(self) -> dict[str, float]:
        """Returns the share of the time that each kind of work takes, over all bursts (short
        trainings). The shares add up to 1.
        """
        total = sum(sum(burst.parts.values()) for burst in self.bursts)
        kinds = self.bursts[0].parts
        return {kind: sum(burst.parts[kind] for burst in self.bursts) / total for kind in kinds}

    def slowest(self) -> str:
        """Returns the kind of work that takes the most time."""
        shares = self.shares()
        return max(shares, key=shares.__getitem__)

    def cpu_cores(self) -> float:
        """Returns how many cores the process kept busy: CPU time divided by wall-clock time."""
        return sum(b.cpu_seconds for b in self.bursts) / sum(b.seconds for b in self.bursts)

    def steps_per_cpu_second(self) -> float:
        """Returns the steps per second of CPU time. This number hardly depends on how busy the
        machine is.
        """
        return sum(b.steps for b in self.bursts) / sum(b.cpu_seconds for b in self.bursts)

    def to_json(self) -> dict[str, Any]:
        """Returns the values that `--output` writes."""
        figures: dict[str, Any] = {}
        if self.bursts:
            figures = {
                "steps_per_second": self.speed()._asdict(),
                "shares": self.shares(),
                "steps_per_cpu_second": self.steps_per_cpu_second(),
                "cpu_cores": self.cpu_cores(),
            }
        return {**asdict(self), **figures}


class Pipeline:
    """Builds the parts of a learner without a league around it."""

    def __init__(self, order: Order, folder: Path) -> None:
        settings = SessionSettings.of(order.sections)
        self._device = torch.device(order.device)
        game, stage = make_game(settings), settings.curriculum.stages[-1]
        live, matchmaker = live_player("main", game), order.sections["matchmaker"]
        self.source = MixSource(
            matchmaker["mixes"][stage.mix],
            game.spec,
            live,
            order.snapshots,
            settings.learner.seed,
            matches_per_draw=matchmaker["matches_per_draw"],
        )
        blobs = BlobFolder(order.blobs)
        self.env = make_env(settings, game, self.source, blobs, stage, self._device, live)
        config = AgentConfig.of(settings.agent, game.spec)
        self.model = make_model(settings, config, self.env, folder, self._device, lambda: False)
        # Sets up the counters and the callback, as `learn` would.
        _, self._callback = self.model._setup_learn(settings.learner.steps, None)

    def burst(self, seconds: float) -> Burst:
        """Plays and learns for at least `seconds`, and ends with a whole update."""
        model, played = self.model, self.model.num_timesteps
        start = time.perf_counter()
        cpu, busy = time.process_time(), busy_seconds(model)
        elapsed = 0.0
        while elapsed < seconds:
            self._update()
            elapsed = time.perf_counter() - start
        now = busy_seconds(model)
        unused = [kind for kind in ("waiting", "references") if now[kind] == busy[kind]]
        parts = {kind: now[kind] - busy[kind] for kind in busy if kind not in unused}
        return Burst(
            steps=model.num_timesteps - played,
            seconds=elapsed,
            parts={**parts, "other": max(0.0, elapsed - sum(parts.values()))},
            cpu_seconds=time.process_time() - cpu,
        )

    def _update(self) -> None:
        model = self.model
        model.collect_rollouts(self.env, self._callback, model.rollout_buffer, model.n_steps)
        self.env.finished = []
        model._update_current_progress_remaining(model.num_timesteps, model._total_timesteps)
        model.train()
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def trace(self, path: Path) -> float | None:
        """Writes a torch profiler trace of two updates, for chrome://tracing or Perfetto.

        Returns:
            The share of the time in which the GPU computed, or None without a GPU.
        """
        activities = [ProfilerActivity.CPU]
        if self._device.type == "cuda":
            activities.append(ProfilerActivity.CUDA)
        start = time.perf_counter()
        with profiled(activities=activities) as recorded:
            for _ in range(TRACED_UPDATES):
                self._update()
            elapsed = time.perf_counter() - start
        recorded.export_chrome_trace(str(path))
        if self._device.type != "cuda":
            return None
        on_gpu = sum(event.self_device_time_total for event in recorded.key_averages())
        return min(1.0, on_gpu / 1e6 / elapsed)


def measure(order: Order) -> Measured:
    """Runs `order` in a fresh process.

    If the process runs out of memory or is killed, the result has a `failure`.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with ProcessPoolExecutor(1, context, initializer=end_with_parent) as pool:
        try:
            return pool.submit(_run, order).result()
        except BrokenProcessPool:
            return Measured(failure="its process was killed, most likely because memory ran out")
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            reason = (str(error) or "it ran out of it").splitlines()[0][:LONGEST]
            return Measured(failure=f"too little memory on {order.device}: {reason}")


def _run(order: Order) -> Measured:
    # If memory runs out, Linux ends the process with the highest score first.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    threads = int(order.sections["learner"]["threads"])
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    torch.set_num_threads(threads)
    keep_memory()
    with tempfile.TemporaryDirectory(prefix="kumite-profile-") as folder:
        pipeline = Pipeline(order, Path(folder))
        try:
            pipeline.burst(0.01)  # one update to warm up
            bursts = [pipeline.burst(order.seconds) for _ in range(order.bursts)]
            unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
            resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
            memory = {"peak_resident_bytes": resident}
            if order.device.startswith("cuda"):
                memory["peak_gpu_bytes"] = torch.cuda.max_memory_reserved(order.device)
            busy = None if order.trace is None else pipeline.trace(order.trace)
        finally:
            pipeline.env.game.close()
    failed = pipeline.source.failed
    return Measured(
        bursts=bursts,
        memory=memory,
        gpu_busy_share=busy,
        warning=f"a match failed: {failed}" if failed else "",
    )
