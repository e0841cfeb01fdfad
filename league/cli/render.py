"""``league render MATCH --out FILE``: a recorded match as a film."""

from __future__ import annotations

import argparse
from pathlib import Path

from league.cli import replays
from league.cli.output import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "match", metavar="MATCH|FILE", help="a match id (bin/league replay lists them) or a file"
    )
    replays.add_arguments(parser)
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="to write; its ending chooses: .mp4, .gif, .html (a page that plays it), .png (one picture), "
        ".json (the game's frames)",
    )
    parser.add_argument(
        "--fps", type=float, metavar="N", help="pictures a second (default 30, of a gif 12)"
    )
    parser.add_argument("--width", type=int, metavar="PIXELS", help="default 1280, of a gif 480")
    parser.add_argument("--height", type=int, metavar="PIXELS", help="default 9/16 of the width")
    parser.add_argument(
        "--from",
        dest="start",
        type=float,
        metavar="S",
        help="second to begin with (default 0; a .png of cards or a board: its end)",
    )
    parser.add_argument(
        "--to", dest="stop", type=float, metavar="S", help="second to end at (default: its end)"
    )


def run(args: argparse.Namespace) -> int:
    from league.views.film import Cut, write_film

    replay = replays.find(args, args.match)
    cut = Cut(start=args.start, stop=args.stop)
    write_film(args.out, replay, cut=cut, fps=args.fps, width=args.width, height=args.height)
    say(f"{args.out}: {args.out.stat().st_size / 1000:,.0f} kB")
    return 0
