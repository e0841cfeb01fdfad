"""``league profile``: how fast this machine trains, what holds it up, and settings that are
faster.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Annotated

import typer

from league.cli.options import SeveralValues
from league.errors import InvalidInput

PRESET = "laptop"
SECONDS, SWEEP_SECONDS = 20.0, 6.0
COUNTS = ("matches", "batch_size", "threads", "gradient_parts")


app = typer.Typer(add_completion=False)


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
    matches: Annotated[
        list[int] | None,
        typer.Option(
            metavar="N", help="Values of learner.matches to try.", rich_help_panel="Sweep"
        ),
    ] = None,
    batch_size: Annotated[
        list[int] | None,
        typer.Option(
            metavar="N", help="Values of learner.batch_size to try.", rich_help_panel="Sweep"
        ),
    ] = None,
    threads: Annotated[
        list[int] | None,
        typer.Option(
            metavar="N", help="Values of learner.threads to try.", rich_help_panel="Sweep"
        ),
    ] = None,
    precision: Annotated[
        list[str] | None,
        typer.Option(
            metavar="P", help="Values of learner.precision to try.", rich_help_panel="Sweep"
        ),
    ] = None,
    gradient_parts: Annotated[
        list[int] | None,
        typer.Option(
            metavar="N", help="Values of learner.gradient_parts to try.", rich_help_panel="Sweep"
        ),
    ] = None,
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
    """Measures how fast this machine trains and what limits it, and finds faster settings."""
    args = argparse.Namespace(**locals() | {"assignments": assignments or []})
    if args.gpu is not None and args.cpu:
        raise InvalidInput("--gpu and --cpu exclude each other: give one of them")
    if args.seconds is not None and not (math.isfinite(args.seconds) and args.seconds > 0):
        raise InvalidInput(f"--seconds {args.seconds:g} is no time to measure in: give more than 0")
    _check(args)
    from learner.profile.profile import run_profile  # loads torch

    return run_profile(args)


def _check(args: argparse.Namespace) -> None:
    """Finds out now what would otherwise be known after minutes of measuring."""
    if not args.sweep:
        for flag in (*COUNTS, "precision", "write_preset"):
            if getattr(args, flag) is not None:
                raise InvalidInput(
                    f"--{flag.replace('_', '-')} is for a sweep: add --sweep, or leave it out"
                )
    elif args.trace is not None:
        raise InvalidInput("--trace is of one configuration: leave --sweep out")
    for flag in COUNTS:
        for value in getattr(args, flag) or ():
            if value < 1:
                raise InvalidInput(
                    f"--{flag.replace('_', '-')} {value} can't be measured: give 1 or more"
                )
    for path in (args.output, args.trace, args.write_preset):
        if path is not None:
            _check_place(path)
    if args.write_preset is not None and args.write_preset.exists() and not args.force:
        raise InvalidInput(
            f"{args.write_preset} exists already: name another file, or add --force to write over it"
        )


def _check_place(path: Path) -> None:
    import os

    if path.is_dir():
        raise InvalidInput(f"{path} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent}: make it, or name another place")
    if not os.access(path.parent, os.W_OK):
        raise InvalidInput(f"{path} can't be written: name another place")
