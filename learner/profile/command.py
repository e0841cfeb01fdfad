"""``league profile``: how fast this machine trains, what limits it, and faster settings."""

from __future__ import annotations

import json
import math
import os
import platform
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from league import __version__
from league.cli.options import SeveralValues
from league.cli.output import say
from league.errors import InvalidInput, LeagueError
from league.runs.files import write_whole
from league.settings.base import base_preset, lay_over, resolve

if TYPE_CHECKING:
    from learner.profile.measuring import Measured
    from learner.profile.sweep import Changes, Row

PRESET = "laptop"
SECONDS, SWEEP_SECONDS = 20.0, 6.0
BURSTS = 5
"""Of a profile of one configuration; their spread shows how steady the machine is."""

app = typer.Typer(add_completion=False)
Count = Annotated[list[int] | None, typer.Option(min=1, metavar="N", rich_help_panel="Sweep")]


@app.command(cls=SeveralValues)
def profile(
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="The settings to measure (default: laptop).")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A settings file to measure.")
    ] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="One setting.")
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            metavar="S", help="Seconds measured of each configuration (default: 20, in a sweep 6)."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all of it as JSON, too.")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a trace of two updates (.json, .json.gz)."),
    ] = None,
    gpu: Annotated[int | None, typer.Option(metavar="N", help="Compute on GPU number N.")] = None,
    cpu: Annotated[
        bool, typer.Option("--cpu", help="Compute on the CPU even if there is a GPU.")
    ] = False,
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep", help="Measure many configurations, recommend one.", rich_help_panel="Sweep"
        ),
    ] = False,
    matches: Count = None,
    batch_size: Count = None,
    threads: Count = None,
    precision: Annotated[
        list[str] | None, typer.Option(metavar="P", rich_help_panel="Sweep")
    ] = None,
    gradient_parts: Count = None,
    write_preset: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the recommended settings for bin/start-league.",
            rich_help_panel="Sweep",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Write over a settings file that exists.", rich_help_panel="Sweep"
        ),
    ] = False,
) -> int:
    """Measures how fast this machine trains and what limits it, and finds faster settings.

    A sweep tries the values of --matches, --batch-size, --threads, --precision and
    --gradient-parts, or some around those of the settings.
    """
    given: dict[str, Sequence[str | int] | None] = {
        "matches": matches,
        "batch_size": batch_size,
        "threads": threads,
        "precision": precision,
        "gradient_parts": gradient_parts,
    }
    asked = {axis: values for axis, values in given.items() if values}
    if gpu is not None and cpu:
        raise InvalidInput("--gpu and --cpu exclude each other: give one of them")
    if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
        raise InvalidInput(f"--seconds {seconds:g} is no time to measure in: give more than 0")
    if not sweep and (asked or write_preset):
        named = ", ".join(f"--{axis.replace('_', '-')}" for axis in asked) or "--write-preset"
        raise InvalidInput(f"{named} is for a sweep: add --sweep, or leave it out")
    if sweep and trace:
        raise InvalidInput("--trace is of one configuration: leave --sweep out")
    for path in filter(None, (output, trace, write_preset)):
        if path.is_dir() or not os.access(path.parent, os.W_OK):
            raise InvalidInput(f"{path} can't be written: name a file in a folder that you own")
    if write_preset is not None and write_preset.exists() and not force:
        raise InvalidInput(
            f"{write_preset} exists already: name another file, or add --force to write over it"
        )
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from league.agent.device import choose_device
    from learner.profile import measuring, report
    from learner.profile.opponents import make_snapshots
    from learner.profile.sweep import AXES, ROUNDS, plan, recommended, run_rounds
    from learner.train.build import SessionSettings, check_stages

    base = base_preset(config) or preset or (None if config else PRESET)
    sections = resolve(base, config, assignments or [])
    settings, learner = SessionSettings.of(sections), sections["learner"]
    mixes = sections["matchmaker"]["mixes"]
    check_stages(settings, mixes, lambda opponent: settings.learner.steps)
    device, sentence = choose_device(gpu, cpu)
    say(sentence)
    measuring.start_server()
    facts = _facts(str(device)) | {"cpu_ranks": settings.learner.cpu_ranks()}
    own: Changes = {axis: learner[axis] for axis in AXES}
    cells, left_out = [own], list[str]()
    if sweep:
        cells, left_out = plan(learner, asked, facts["cores"], device.type == "cuda")
    rows: list[Row] = []
    stopped = False
    with tempfile.TemporaryDirectory(prefix="kumite-profile-") as folder:
        # the snapshots of a whole run's league at its end
        count = min(
            sections["matchmaker"]["max_saved"], learner["steps"] // learner["snapshot_interval"]
        )
        met = mixes[settings.curriculum.stages[-1].mix].get("snapshots", 0) > 0
        wanted = max(1, count) if met else 0
        say(f"freezing {wanted} fresh snapshots to play against")
        snapshots = make_snapshots(Path(folder), settings, wanted)
        length = seconds or (SWEEP_SECONDS if sweep else SECONDS)
        order = measuring.Order(
            sections=sections,
            device=str(device),
            snapshots=tuple(snapshots),
            blobs=Path(folder),
            seconds=length / (ROUNDS if sweep else BURSTS),
            bursts=1 if sweep else BURSTS,
            trace=None if trace is None else trace.absolute(),
        )

        def measured(changes: Changes) -> Measured:
            changed = {**sections, "learner": {**learner, **changes}}
            return measuring.measure(replace(order, sections=lay_over(changed)))

        rounds = ROUNDS if sweep else 1
        try:
            for number, known in enumerate(run_rounds(cells, rounds, measured), 1):
                rows = known
                if sweep:
                    say(f"measurement {number} of at most {len(cells) * rounds}")
        except KeyboardInterrupt:
            stopped = True
            say("stopped: what was measured until now follows")
    best = recommended(rows, own)
    before = next((row for row in rows if dict(row.changes) == dict(own)), None)
    sentences: dict[str, list[str]] = {"bottleneck": [], "warning": [], "not measured": []}
    if best is not None:
        warnings = {report.doubt(best, before), *(row.warning for row in rows)}
        sentences["bottleneck"] = [report.bottleneck(best, facts)]
        sentences["warning"] = sorted(filter(None, warnings))
        sentences["not measured"] = report.not_measured(best, facts)
    if output is not None:
        written = {
            "preset": base,
            "machine": facts,
            "settings": sections,
            "snapshots": len(snapshots),
            "rows": [row.to_json() for row in rows],
            "left_out": left_out,
            "stopped": stopped,
            "recommended": None if best is None else rows.index(best),
            **sentences,
        }
        write_whole(output, json.dumps(written, indent=1) + "\n")
    if best is None:
        if stopped:
            return 130
        raise LeagueError(
            f"nothing could be measured: {rows[0].failure}; lower learner.matches or "
            "learner.batch_size"
        )
    if sweep:
        report.print_sweep(rows, best, own, left_out)
        print()
    values = ", ".join(f"{name} {value}" for name, value in best.changes.items())
    report.print_row(best, f"{base or 'settings'} on {facts['gpu'] or 'the CPU'}: {values}")
    print()
    for label, said in sentences.items():
        for sentence in said:
            print(textwrap.fill(f"{label}: {sentence}", report.WIDTH, subsequent_indent="  "))
    if write_preset is not None:
        write_whole(write_preset, report.preset_text(base, sections, own, best, rows, facts))
        say(f"{write_preset} holds them: bin/start-league --config {write_preset}")
    return 130 if stopped else 0


def _facts(device: str) -> dict[str, Any]:
    """Facts of the machine that figures depend on."""
    import torch

    gpu = torch.cuda.get_device_properties(device) if device != "cpu" else None
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "system": platform.platform(),
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average": os.getloadavg()[0],
        "python": platform.python_version(),
        "torch": torch.__version__,
        "kumite": __version__,
        "device": device,
        "gpu": None if gpu is None else gpu.name,
        "gpu_memory_bytes": None if gpu is None else gpu.total_memory,
    }
