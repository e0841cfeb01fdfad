"""Carries a profile out: what is measured, in which processes, and what is reported of it."""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from league import __version__
from league.agent.device import choose_device
from league.cli.output import say
from league.errors import LeagueError
from league.runs.files import write_whole
from league.settings.base import Sections, base_preset, lay_over, resolve
from learner.profile import report, sweep
from learner.profile.command import PRESET, SECONDS, SWEEP_SECONDS
from learner.profile.measuring import Measured, Order, measure, session_settings, start_server
from learner.profile.opponents import make_snapshots, mix_of, snapshots_of_a_run
from learner.profile.sweep import Changes, Row
from learner.settings import LearnerSettings

BURSTS = 5
"""Of a profile of one configuration; their spread shows how steady the machine is."""
FORMAT = 1
"""Of the JSON file; a reader of another number does not know it."""


@dataclass
class Profile:
    """All that is known when the measuring ends, or is interrupted."""

    base: str | None
    sections: Sections
    own: Changes
    facts: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    snapshots_made: int = 0
    snapshots_of_a_run: int = 0
    left_out: Sequence[str] = ()
    stopped: bool = False

    def best(self) -> Row | None:
        """The row that is recommended."""
        return sweep.recommended(self.rows, self.own)

    def warnings(self, best: Row) -> list[str]:
        """What to know before the figures are used."""
        before = next((row for row in self.rows if dict(row.changes) == dict(self.own)), None)
        said = [report.doubt(best, before), *(row.warning for row in self.rows)]
        return list(dict.fromkeys(sentence for sentence in said if sentence))

    def not_measured(self, best: Row) -> list[str]:
        made, whole = self.snapshots_made, self.snapshots_of_a_run
        cpu_ranks = LearnerSettings(**self.sections["learner"]).cpu_ranks()
        return report.not_measured(best, self.facts, made, whole, cpu_ranks)

    def to_json(self) -> dict[str, Any]:
        """Plain values, as `--output` writes them."""
        best = self.best()
        return {
            "format": FORMAT,
            "written_at": time.time(),
            "preset": self.base,
            "machine": self.facts,
            "settings": self.sections,
            "league": {
                "snapshots_made": self.snapshots_made,
                "snapshots_of_a_run": self.snapshots_of_a_run,
            },
            "rows": [row.to_json() for row in self.rows],
            "left_out": list(self.left_out),
            "stopped": self.stopped,
            "recommended": None if best is None else self.rows.index(best),
            "bottleneck": None if best is None else report.bottleneck(best, self.facts),
            "warnings": [] if best is None else self.warnings(best),
            "not_measured": [] if best is None else self.not_measured(best),
        }


def run_profile(args: argparse.Namespace) -> int:
    """Measures what the command line asks for; returns the exit status."""
    base = base_preset(args.config) or args.preset or (None if args.config else PRESET)
    sections = resolve(base, args.config, args.assignments)
    settings = session_settings(sections)
    device, sentence = choose_device(args.gpu, args.cpu)
    say(sentence)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    start_server()
    own = {axis: sections["learner"][axis] for axis in sweep.AXES}
    profile = Profile(base, sections, own, _facts(device))
    cells: list[Changes] = [own]
    if args.sweep:
        asked = {axis: getattr(args, axis) for axis in sweep.AXES if getattr(args, axis)}
        planned = sweep.plan(sections["learner"], asked, _cores(), device.type == "cuda")
        cells, profile.left_out = planned.cells, planned.left_out
    mix = mix_of(sections, settings)
    profile.snapshots_of_a_run = snapshots_of_a_run(sections)
    wanted = profile.snapshots_of_a_run if mix.get("snapshots", 0) > 0 else 0
    seconds = args.seconds or (SWEEP_SECONDS if args.sweep else SECONDS)
    with tempfile.TemporaryDirectory(prefix="kumite-profile-") as folder:
        say(f"freezing {wanted} fresh snapshots to play against")
        snapshots = make_snapshots(Path(folder), settings, wanted)
        profile.snapshots_made = len(snapshots)
        order = Order(
            sections=sections,
            device=str(device),
            mix=mix,
            snapshots=tuple(snapshots),
            blobs=Path(folder),
            seconds=seconds / (sweep.ROUNDS if args.sweep else BURSTS),
            bursts=1 if args.sweep else BURSTS,
            trace=None if args.trace is None else args.trace.absolute(),
        )
        try:
            _measure(profile, cells, order, args.sweep)
        except KeyboardInterrupt:
            profile.stopped = True
            say("stopped: what was measured until now follows")
    return _report(profile, args)


def _measure(profile: Profile, cells: Sequence[Changes], order: Order, is_sweep: bool) -> None:
    learner = profile.sections["learner"]

    def one(changes: Changes) -> Measured:
        sections = lay_over({**profile.sections, "learner": {**learner, **changes}})
        return measure(replace(order, sections=sections))

    def instead(changes: Changes) -> Changes | None:
        return sweep.in_more_parts(learner, changes) if is_sweep else None

    rounds = sweep.ROUNDS if is_sweep else 1
    with report.progress(rounds, is_sweep) as show:
        for rows in sweep.run_rounds(cells, rounds, one, instead):
            profile.rows = rows
            show(rows)


def _report(profile: Profile, args: argparse.Namespace) -> int:
    """Writes the files and prints the report; raises when nothing could be measured."""
    if args.output is not None:
        write_whole(args.output, json.dumps(profile.to_json(), indent=1) + "\n")
    best, facts = profile.best(), profile.facts
    if best is None:
        if profile.stopped:
            return 130
        for row in profile.rows:
            if row.error is not None:
                raise row.error
        raise LeagueError(
            f"nothing could be measured: {profile.rows[0].failure}; lower learner.matches or "
            "learner.batch_size"
        )
    if args.sweep:
        report.print_sweep(profile.rows, best, profile.own, profile.left_out)
        print()
    values = ", ".join(f"{name} {value}" for name, value in best.changes.items())
    where = facts["gpu"] or "the CPU"
    report.print_row(best, f"{profile.base or 'settings'} on {where}: {values}")
    print()
    report.print_sentences("bottleneck", [report.bottleneck(best, facts)])
    report.print_sentences("warning", profile.warnings(best))
    report.print_sentences("not measured", profile.not_measured(best))
    if args.write_preset is not None:
        text = report.preset_text(
            profile.base, profile.sections, profile.own, best, profile.rows, facts
        )
        write_whole(args.write_preset, text)
        say(f"{args.write_preset} holds them: bin/start-league --config {args.write_preset}")
    return 130 if profile.stopped else 0


def _cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _facts(device: torch.device) -> dict[str, Any]:
    """Facts of the machine that figures depend on."""
    gpu = torch.cuda.get_device_properties(device) if device.type == "cuda" else None
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "system": platform.platform(),
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "cores": _cores(),
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "kumite": __version__,
        "device": str(device),
        "gpu": None if gpu is None else gpu.name,
        "gpu_memory_bytes": None if gpu is None else gpu.total_memory,
    }
