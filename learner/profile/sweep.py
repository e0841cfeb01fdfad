"""Plans a sweep of settings, measures its configurations, prints them and recommends the best."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from league.agent.device import choose_device
from league.console.output import print_pairs, print_table, say
from league.errors import ConfigError
from league.settings.base import Sections, fault_of, lay_over
from league.settings.device_flags import cores
from learner.profile import measuring
from learner.profile.measuring import Measured
from learner.profile.opponents import make_snapshots
from learner.settings import LearnerSettings
from learner.train.build import SessionSettings, check_stages

SECONDS, SWEEP_SECONDS = 20.0, 6.0
BURSTS, SWEEP_BURSTS = 5, 3
"""Number of bursts (short trainings) with each configuration. Their spread shows how steady the
machine is.
"""
Changes = Mapping[str, str | int]
AXES = ("matches", "batch_size", "threads", "precision")
"""Settings of [learner] that a sweep may change."""
CHANGES_LEARNING = ("matches", "batch_size")
"""Axes (settings that a sweep varies) that affect learning and not only its speed, because they
change the rollouts or the optimizer's steps.
"""
CLOSE = 0.03
"""Speeds that differ by less than this share count as equal."""
MIB = 1 << 20
STARVED = 0.85
"""If a learner on the CPU keeps fewer cores busy than this, it must be waiting: for a core, for a
process of the game, or in a sleep.
"""
ADVICE = {
    "game": "more matches share each call's fixed cost (learner.matches); a game with its own "
    "workers takes more of them in game.options",
    "opponents": "reading many snapshots' weights takes the time: more matches put several seats "
    "on each (learner.matches, matchmaker.matches_per_draw), a smaller league has fewer "
    "(matchmaker.mixes, matchmaker.max_saved)",
    "inference": "more matches make larger batches (learner.matches), a smaller agent is faster "
    "(agent.size)",
    "learning": "fewer passes (learner.n_epochs), a smaller agent (agent.size) or a GPU; on one, "
    "larger minibatches (learner.batch_size) and lower precision; --sweep tries them",
    "references": "fewer at once (regularisation.portfolio_size)",
    "other": "matches that begin and end, weights that are loaded, advantages: longer matches and "
    "larger rollouts have less of it",
}


@dataclass(frozen=True)
class Profile:
    """Holds the measurements of a single configuration, or of a sweep.

    Attributes:
        sections: all settings.
        rows: the measurements in the order in which they were made.
        current: the values that the settings give to `AXES`, before a sweep changes them.
        machine: facts about the machine and its software.
        snapshots: number of frozen opponents.
        stopped: whether Ctrl-C ended the measurements early.
    """

    sections: Sections
    rows: list[Measured]
    current: Changes
    machine: Mapping[str, Any]
    snapshots: int
    stopped: bool

    @property
    def best(self) -> Measured | None:
        """The recommended measurement, or None if nothing was measured."""
        return recommended(self.rows, self.current)

    def sentences(self) -> list[str]:
        """States the bottleneck of the recommended configuration, then the warnings."""
        best = self.best
        if best is None:
            return []
        before = next((row for row in self.rows if row.changes == self.current), None)
        warnings = {doubt(best, before), *(row.warning for row in self.rows)} - {""}
        lines = [f"bottleneck: {bottleneck(best, self.machine)}"]
        return lines + [f"warning: {warning}" for warning in sorted(warnings)]

    def to_json(self) -> dict[str, Any]:
        """Returns the values that `--output` writes."""
        best = self.best
        return {
            "machine": self.machine,
            "settings": self.sections,
            "snapshots": self.snapshots,
            "rows": [row.to_json() for row in self.rows],
            "stopped": self.stopped,
            "recommended": None if best is None else self.rows.index(best),
            "said": self.sentences(),
        }


def take(
    sections: Sections,
    wanted: Mapping[str, Sequence[str | int]] | None,
    seconds: float | None,
    trace: Path | None,
    gpu: int | None,
    cpu: bool,
) -> Profile:
    """Measures the settings, or all configurations of a sweep if `wanted` is given. Ctrl-C ends the
    measurements early.

    Args:
        sections: all settings.
        wanted: the values to try for each axis (a setting that the sweep varies), as for `plan`.
            None: there is no sweep, and only the settings themselves are measured.
        seconds: seconds of measurement for each configuration, None for the default.
        trace: file for a trace of two updates.
        gpu: number of the GPU to compute on.
        cpu: whether to compute on the CPU even if there is a GPU.

    Raises:
        ConfigError: the settings, the device or all configurations of the sweep can't be used.
    """
    device, sentence = choose_device(gpu, cpu)
    settings, learner = SessionSettings.of(sections), sections["learner"]
    mixes = sections["matchmaker"]["mixes"]
    check_stages(settings, mixes)
    say(sentence)
    on_gpu = device.type == "cuda"
    machine: dict[str, Any] = {
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": cores(),
        "load_average": os.getloadavg()[0],
        "python": platform.python_version(),
        "torch": torch.__version__,
        "kumite": version("kumite"),
        "device": str(device),
        "gpu": torch.cuda.get_device_name(device) if on_gpu else None,
    }
    current: Changes = {axis: learner[axis] for axis in AXES}
    cells = [current] if wanted is None else plan(learner, wanted, machine["cores"], on_gpu)
    length, bursts = (SECONDS, BURSTS) if wanted is None else (SWEEP_SECONDS, SWEEP_BURSTS)
    rows: list[Measured] = []
    stopped = False
    with tempfile.TemporaryDirectory(prefix="kumite-profile-") as folder:
        # The number of snapshots that the league has at the end of a whole run.
        saved = learner["steps"] // learner["snapshot_interval"]
        count = max(1, min(sections["matchmaker"]["max_saved"], saved))
        met = mixes[settings.curriculum.stages[-1].mix].get("snapshots", 0) > 0
        snapshots = make_snapshots(Path(folder), settings, count if met else 0)
        say(f"playing against {len(snapshots)} fresh snapshots")
        order = measuring.Order(
            sections=sections,
            device=str(device),
            snapshots=tuple(snapshots),
            blobs=Path(folder),
            seconds=(seconds or length) / bursts,
            bursts=bursts,
            trace=None if trace is None else trace.absolute(),
        )
        try:
            for number, cell in enumerate(cells, 1):
                say(f"measurement {number} of {len(cells)}")
                changed = lay_over({**sections, "learner": {**learner, **cell}})
                measured = measuring.measure(replace(order, sections=changed))
                rows.append(replace(measured, changes=cell))
        except KeyboardInterrupt:
            stopped = True
            say("stopped: what was measured until now follows")
    return Profile(sections, rows, current, machine, len(snapshots), stopped)


def plan(
    learner: Mapping[str, Any], wanted: Mapping[str, Sequence[str | int]], cores: int, gpu: bool
) -> list[Changes]:
    """Combines values of all axes (settings to vary) into the configurations of a sweep.

    Args:
        learner: the settings [learner].
        wanted: the values to try for each axis of `AXES`. For a missing axis, the sweep tries
            values around the setting.
        cores: cores of the machine.
        gpu: whether the learner computes on a GPU.

    Returns:
        The valid combinations. If the values of `learner` are among them, they come first.

    Raises:
        ConfigError: no combination is valid.
    """
    matches, batch, n_steps = (learner[name] for name in ("matches", "batch_size", "n_steps"))
    precision = learner["precision"]
    around: dict[str, Sequence[str | int]] = {
        "matches": [max(1, matches // 2), matches, matches * 2],
        "batch_size": [max(1, batch // n_steps // 2) * n_steps, batch, batch * 2],
        "threads": sorted({learner["threads"], 1, min(2, cores)}),
        "precision": [precision, *(["auto" if precision == "float32" else "float32"] * gpu)],
    }
    values = [wanted.get(axis) or around[axis] for axis in AXES]
    current = tuple(learner[axis] for axis in AXES)
    cells: list[Changes] = []
    fault = ""
    for combination in sorted(dict.fromkeys(product(*values)), key=lambda cell: cell != current):
        cell = dict(zip(AXES, combination, strict=True))
        try:
            LearnerSettings.model_validate({**learner, **cell})
            cells.append(cell)
        except ValidationError as error:
            first = error.errors()[0]
            reason = fault_of(first, map(str, first["loc"]), LearnerSettings, "learner")
            fault = f"{', '.join(f'{axis} {cell[axis]}' for axis in AXES)}: {reason}"
    if not cells:
        raise ConfigError(f"the sweep has no configuration that can be: {fault}")
    return cells


def recommended(rows: Sequence[Measured], current: Changes) -> Measured | None:
    """Returns the measurement of the fastest configuration. If the speeds of several configurations
    differ by less than `CLOSE`, the configuration that changes the fewest settings is returned.

    A change of a setting that affects learning counts more than any number of changes that affect
    only the speed.

    Args:
        rows: the measurements.
        current: the values that the settings give to `AXES`, before a sweep changes them.

    Returns:
        The measurement, or None if nothing was measured.
    """
    counted = [row for row in rows if row.bursts]
    best = max((row.speed().median for row in counted), default=0.0)

    def cost(row: Measured) -> tuple[int, int, float]:
        different = [axis for axis in row.changes if row.changes[axis] != current[axis]]
        learning = sum(axis in CHANGES_LEARNING for axis in different)
        return learning, len(different), -row.speed().median

    equals = [row for row in counted if row.speed().median >= (1 - CLOSE) * best]
    return min(equals, key=cost, default=None)


def bottleneck(row: Measured, facts: Mapping[str, Any]) -> str:
    """Returns one or two sentences about the most expensive kind of work and how to speed it up on
    this machine.
    """
    kind, busy = row.slowest(), row.cpu_cores()
    sentence = f"{kind} takes {row.shares()[kind]:.0%} of the time: {ADVICE[kind]}."
    if facts["device"] == "cpu" and busy < STARVED:
        sentence += (
            f" The process kept only {busy:.2f} of a core busy: the rest of the time it waited for "
            f"a core that other work held (load average {facts['load_average']:.1f} on "
            f"{facts['cores']} cores at the start), for processes of the game, or in sleep."
        )
    return sentence


def doubt(best: Measured, before: Measured | None) -> str:
    """Returns a warning if the recommended configuration may be faster than the unchanged settings
    only by chance, because the speeds of both configurations' bursts overlap. Otherwise returns "".

    Args:
        best: the measurement of the recommended configuration.
        before: the measurement of the unchanged settings.
    """
    if before is None or before is best or not before.bursts:
        return ""
    ours, theirs = best.speed(), before.speed()
    if ours.lowest > theirs.highest:
        return ""
    return (
        f"the lead over the unchanged settings is within the spread ({ours} against {theirs}): "
        "measure again on a quiet machine, or with more --seconds, before you rely on it"
    )


def print_row(row: Measured, title: str) -> None:
    """Prints the speed and time share of each kind of work, and then CPU use and memory."""
    speed = row.speed()
    lines = [
        [kind, f"{speed.median / share:,.0f}" if share else "", f"{share:.1%}"]
        for kind, share in row.shares().items()
    ]
    print_table(title, "part steps_per_second# share#", lines)
    print()
    pairs = [
        ("end to end", f"{speed} steps a second, {len(row.bursts)} bursts"),
        (
            "cpu",
            f"{row.cpu_cores():.2f} cores busy, {row.steps_per_cpu_second():,.0f} steps a second "
            "of CPU time",
        ),
    ]
    for name, size in row.memory.items():
        pairs.append((name.removesuffix("_bytes").replace("_", " "), f"{size / MIB:,.0f} MiB"))
    if row.gpu_busy_share is not None:
        pairs.append(("gpu busy", f"{row.gpu_busy_share:.0%} of the time, in the trace"))
    print_pairs(pairs)


def print_sweep(rows: Sequence[Measured], best: Measured, current: Changes) -> None:
    """Prints all configurations, the fastest first, failed ones last."""
    cells = []
    for row in sorted(rows, key=lambda row: -row.speed().median if row.bursts else 0.0):
        figures = [""] * 5
        if row.bursts:
            memory = row.memory.get("peak_gpu_bytes", row.memory["peak_resident_bytes"])
            figures = [f"{value:,.0f}" for value in (*row.speed(), memory / MIB)]
            figures.append(f"{row.slowest()} {row.shares()[row.slowest()]:.0%}")
        notes = ["recommended"] if row is best else []
        notes += ["unchanged"] if row.changes == current else []
        notes += [f"failed: {row.failure}"] if row.failure else []
        cells.append([*(str(row.changes[axis]) for axis in AXES), *figures, ", ".join(notes)])
    columns = [f"{name}#" for name in (*AXES, "steps/s", "lowest", "highest", "memory_mib")]
    caption = f"{' and '.join(CHANGES_LEARNING)} change what is learnt, too"
    print_table("Sweep", [*columns, "slowest", "note"], cells, caption=caption)
