"""``league attention MATCH --out FILE.png``: what an agent looked at in a recorded match."""

from __future__ import annotations

import argparse
from pathlib import Path

from league.cli import connect, replays
from league.cli.output import Column, print_table, say
from league.errors import InvalidInput, NotFound
from league.runs.files import write_whole

COLUMNS = (
    Column("attention"),
    Column("mean_age_seconds", number=True),
    Column("5_percent", number=True),
    Column("95_percent", number=True),
    Column("entropy_share", number=True),
    Column("fixed_share", number=True),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "match",
        metavar="MATCH|FILE",
        help="a match id (bin/league replay lists them) or a replay file",
    )
    replays.add_arguments(parser)
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="the picture, a .png"
    )
    parser.add_argument(
        "--seat",
        type=int,
        choices=(0, 1),
        help="whose attention (default: the first seat that weights played)",
    )
    parser.add_argument(
        "--blobs", type=Path, metavar="DIR", help="folder of the weights (default: the run's)"
    )
    parser.add_argument(
        "--from", dest="start", type=float, default=0.0, metavar="S", help="first second"
    )
    parser.add_argument(
        "--to", dest="stop", type=float, metavar="S", help="last second (default: its end)"
    )


def run(args: argparse.Namespace) -> int:
    if args.out.suffix != ".png":
        raise InvalidInput(f"{args.out} can't be drawn: name a file that ends in .png")
    replay = replays.find(args, args.match)
    import torch

    from league.agent.snapshot import load_snapshot
    from league.runs.blobs import BlobFolder
    from league.views.attention.reading import agent_seat, read_match, summary_of

    torch.set_num_threads(1)
    seat = agent_seat(replay, args.seat)
    contender = replay.seats[seat]
    blobs = BlobFolder(args.blobs or connect.run_folder(args) / "blobs")
    if not blobs.has(contender.digest):
        raise NotFound(
            f"the weights of {contender.name} are not in {blobs.root}: name the run with --run-dir, or the "
            "folder with --blobs"
        )
    reading = read_match(replay, seat, *load_snapshot(blobs, contender.digest))
    from league.views.attention.figure import draw  # matplotlib takes a second to load

    write_whole(args.out, draw(reading, args.start, args.stop))
    rows = []
    for name, weights_TP in (("latent", reading.latent_TP), ("context", reading.context_TP)):
        found = summary_of(weights_TP, reading.age_P)
        if found is not None:
            rows.append((name, *(f"{value:.3f}" for value in vars(found).values())))
    print_table(f"What {contender.name} looked at", COLUMNS, rows)
    say(f"{args.out} shows {len(reading.frame_T)} decisions of {contender.name}")
    return 0
