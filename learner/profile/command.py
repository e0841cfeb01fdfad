"""``league profile``: how fast this machine trains, what holds it up, and settings that are
faster.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from league.errors import InvalidInput

PRESET = "laptop"
SECONDS, SWEEP_SECONDS = 20.0, 6.0
COUNTS = ("matches", "batch_size", "threads", "gradient_parts")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--preset", metavar="NAME", help=f"the settings to measure (default: {PRESET})"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="a settings file to measure")
    parser.add_argument(
        "--set", dest="assignments", action="append", default=[], metavar="SECTION.KEY=VALUE"
    )
    parser.add_argument(
        "--seconds",
        type=_seconds,
        metavar="S",
        help=f"seconds measured of each configuration (default: {SECONDS:g}, in a sweep {SWEEP_SECONDS:g})",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write all of it as JSON, too")
    parser.add_argument(
        "--trace", type=Path, metavar="FILE", help="write a trace of two updates (.json, .json.gz)"
    )
    device = parser.add_mutually_exclusive_group()
    device.add_argument("--gpu", type=int, metavar="N", help="compute on GPU number N")
    device.add_argument(
        "--cpu", action="store_true", help="compute on the CPU even if there is a GPU"
    )
    _add_sweep(parser.add_argument_group("sweep"))


def _add_sweep(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--sweep", action="store_true", help="measure many configurations, recommend one"
    )
    group.add_argument(
        "--matches", type=int, nargs="+", metavar="N", help="values of learner.matches to try"
    )
    group.add_argument(
        "--batch-size", type=int, nargs="+", metavar="N", help="values of learner.batch_size to try"
    )
    group.add_argument(
        "--threads", type=int, nargs="+", metavar="N", help="values of learner.threads to try"
    )
    group.add_argument(
        "--precision", nargs="+", metavar="P", help="values of learner.precision to try"
    )
    group.add_argument(
        "--gradient-parts",
        type=int,
        nargs="+",
        metavar="N",
        help="values of learner.gradient_parts to try (more come by themselves where memory runs out)",
    )
    group.add_argument(
        "--write-preset",
        type=Path,
        metavar="FILE",
        help="write the recommended settings for bin/start-league",
    )
    group.add_argument(
        "--force", action="store_true", help="write over a settings file that exists"
    )


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(
            f"{text} is no time to measure in: give seconds above 0, for example 5"
        )
    return value


def run(args: argparse.Namespace) -> int:
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
