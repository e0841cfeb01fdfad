"""``league profile``: measures how fast this machine trains, and finds faster settings."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from league.console.options import Assignments, Heading, SeveralValues
from league.console.output import folded, say
from league.errors import InvalidInput, LeagueError
from league.runs.files import write_whole

app = typer.Typer(rich_help_panel=Heading.TRAIN, add_completion=False)
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

    A sweep tries the values of --matches, --batch-size and --threads. For each flag that is
    missing, it tries values around the setting.
    """
    axes: dict[str, Sequence[str | int]] = {
        "matches": matches or (),
        "batch_size": batch_size or (),
        "threads": threads or (),
    }
    if not sweep and (any(axes.values()) or write_preset):
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
    from league.settings.device_flags import has_no_gpu, missing_gpu

    if gpu is not None and not cpu and has_no_gpu():  # before torch and the game are loaded
        raise missing_gpu(gpu)
    from league.runs.folder import write_config
    from league.settings.base import DEFAULT_PRESET, base_preset, resolve
    from learner.profile import sweep as sweeping

    base = base_preset(config) or preset or DEFAULT_PRESET
    sections = resolve(base, config, assignments or [])
    measured = sweeping.take(sections, axes if sweep else None, seconds, trace, gpu, cpu)
    best = measured.best
    if output is not None:
        written = {"preset": base, **measured.to_json()}
        write_whole(output, json.dumps(written, indent=1) + "\n")
    if best is None:
        if measured.stopped:
            return 130
        raise LeagueError(
            f"nothing could be measured: {measured.rows[0].failure}; lower learner.matches or "
            "learner.batch_size"
        )
    if sweep:
        sweeping.print_sweep(measured.rows, best, measured.current)
        print()
    values = ", ".join(f"{name} {value}" for name, value in best.changes.items())
    where = measured.machine["gpu"] or "the CPU"
    sweeping.print_row(best, f"{base or 'settings'} on {where}: {values}")
    print()
    for sentence in measured.sentences():
        print(folded(sentence, indent=2))
    if write_preset is not None:
        learner = {**sections["learner"], **best.changes}
        write_config(write_preset, {**sections, "learner": learner})
        say(f"{write_preset} holds them: bin/start-league --config {write_preset}")
    return 130 if measured.stopped else 0
