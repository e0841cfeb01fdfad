"""``league curves``: a run's training curves as one picture, from its files alone."""

from __future__ import annotations

import argparse
from pathlib import Path

from league.cli.connect import run_folder
from league.cli.output import say
from league.cluster.artist import FILE
from league.errors import InvalidInput
from league.runs.files import write_whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--run-dir", type=Path, metavar="DIR", help="the run (default: the newest in runs/)"
    )
    parser.add_argument(
        "--learner", default="", metavar="NAME", help="whose (default: main, or the first)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help=f"default: {FILE} in the run's folder"
    )


def run(args: argparse.Namespace) -> int:
    run_dir = run_folder(args)
    out = args.out or run_dir / FILE
    if out.suffix != ".png":
        raise InvalidInput(f"{out} can't be drawn: name a file that ends in .png")
    from league.views.curves.history import gather

    history = gather(run_dir, args.learner)
    from league.views.curves.figure import draw  # matplotlib takes a second to load

    write_whole(out, draw(history))
    say(
        f"{out} shows {len(history.scalars)} metrics and {len(history.trained) + len(history.others)} bots"
    )
    return 0
