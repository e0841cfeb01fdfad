"""``league profile``: how fast this machine trains, what limits it, and faster settings."""

from __future__ import annotations

import json
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
from league.cli.options import Assignments, SeveralValues
from league.cli.output import say
from league.errors import InvalidInput, LeagueError
from league.runs.files import write_whole
from league.runs.folder import write_config
from league.settings.base import DEFAULT_PRESET, base_preset, lay_over, resolve
from league.settings.device_flags import cores

if TYPE_CHECKING:
    from learner.profile.measuring import Measured
    from learner.profile.sweep import Changes

SECONDS, SWEEP_SECONDS = 20.0, 6.0
BURSTS, SWEEP_BURSTS = 5, 3
"""Of one configuration: their spread shows how steady the machine is."""

app = typer.Typer(add_completion=False)
Count = Annotated[
    list[int] | None,
    typer.Option(min=1, metavar="N", help="Values to try.", rich_help_panel="Sweep"),
]


@app.command(cls=SeveralValues)
def profile(
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="The settings to measure (default: laptop).")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A settings file to measure.")
    ] = None,
    assignments: Assignments = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            min=0.1, help="Seconds measured of each configuration (default: 20, in a sweep 6)."
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
    write_preset: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the recommended settings to a new file for bin/start-league.",
            rich_help_panel="Sweep",
        ),
    ] = None,
) -> int:
    """Measures how fast this machine trains and what limits it, and finds faster settings.

    A sweep tries the values of --matches, --batch-size and --threads, or some around those of the
    settings.
    """
    given: dict[str, Sequence[str | int]] = {
        "matches": matches or (),
        "batch_size": batch_size or (),
        "threads": threads or (),
    }
    if not sweep and (any(given.values()) or write_preset):
        raise InvalidInput(
            "--matches, --batch-size, --threads and --write-preset are for a sweep: add --sweep"
        )
    if sweep and trace:
        raise InvalidInput("--trace is of one configuration: leave --sweep out")
    for path in filter(None, (output, trace, write_preset)):
        if path.is_dir() or not os.access(path.parent, os.W_OK):
            raise InvalidInput(f"{path} can't be written: name a file in a folder that you own")
    if write_preset is not None and write_preset.exists():
        raise InvalidInput(f"{write_preset} exists already: name another file, or move it away")
    import torch

    from league.agent.device import choose_device
    from learner.profile import measuring
    from learner.profile import sweep as sweeping
    from learner.profile.opponents import make_snapshots
    from learner.train.build import SessionSettings, check_stages

    base = base_preset(config) or preset or DEFAULT_PRESET
    sections = resolve(base, config, assignments or [])
    settings, learner = SessionSettings.of(sections), sections["learner"]
    mixes = sections["matchmaker"]["mixes"]
    check_stages(settings, mixes)
    device, sentence = choose_device(gpu, cpu)
    say(sentence)
    on_gpu = device.type == "cuda"
    facts: dict[str, Any] = {
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": cores(),
        "load_average": os.getloadavg()[0],
        "python": platform.python_version(),
        "torch": torch.__version__,
        "kumite": __version__,
        "device": str(device),
        "gpu": torch.cuda.get_device_name(device) if on_gpu else None,
    }
    own: Changes = {axis: learner[axis] for axis in sweeping.AXES}
    cells = sweeping.plan(learner, given, facts["cores"], on_gpu) if sweep else [own]
    rows: list[Measured] = []
    stopped = False
    with tempfile.TemporaryDirectory(prefix="kumite-profile-") as folder:
        # the snapshots of a whole run's league at its end
        wanted = min(
            sections["matchmaker"]["max_saved"], learner["steps"] // learner["snapshot_interval"]
        )
        met = mixes[settings.curriculum.stages[-1].mix].get("snapshots", 0) > 0
        snapshots = make_snapshots(Path(folder), settings, max(1, wanted) if met else 0)
        say(f"playing against {len(snapshots)} fresh snapshots")
        bursts = SWEEP_BURSTS if sweep else BURSTS
        order = measuring.Order(
            sections=sections,
            device=str(device),
            snapshots=tuple(snapshots),
            blobs=Path(folder),
            seconds=(seconds or (SWEEP_SECONDS if sweep else SECONDS)) / bursts,
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
    best = sweeping.recommended(rows, own)
    said: list[str] = []
    if best is not None:
        before = next((row for row in rows if row.changes == own), None)
        warnings = {sweeping.doubt(best, before), *(row.warning for row in rows)} - {""}
        said.append(f"bottleneck: {sweeping.bottleneck(best, facts)}")
        said += [f"warning: {warning}" for warning in sorted(warnings)]
    if output is not None:
        written = {
            "preset": base,
            "machine": facts,
            "settings": sections,
            "snapshots": len(snapshots),
            "rows": [row.to_json() for row in rows],
            "stopped": stopped,
            "recommended": None if best is None else rows.index(best),
            "said": said,
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
        sweeping.print_sweep(rows, best, own)
        print()
    values = ", ".join(f"{name} {value}" for name, value in best.changes.items())
    sweeping.print_row(best, f"{base or 'settings'} on {facts['gpu'] or 'the CPU'}: {values}")
    print()
    for sentence in said:
        print(textwrap.fill(sentence, 100, subsequent_indent="  "))
    if write_preset is not None:
        write_config(write_preset, {**sections, "learner": {**learner, **best.changes}})
        say(f"{write_preset} holds them: bin/start-league --config {write_preset}")
    return 130 if stopped else 0
