"""``league pin``: anchors, players whose rating stays where an operator put it."""

from __future__ import annotations

import argparse

from league.cli import connect
from league.cli.operator import operator
from league.cli.output import Column, print_table, say
from league.errors import InvalidInput

COLUMNS = (Column("player"), Column("mu", number=True))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "player",
        nargs="?",
        metavar="NAME",
        help="a bot or snapshot; without: show all that are pinned",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--mu", type=float, metavar="POINTS", help="where its rating stays; a newcomer has 25"
    )
    how.add_argument(
        "--unpin",
        action="store_true",
        help="let it go: it goes on from what was believed before the pin",
    )
    connect.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    changes = args.mu is not None or args.unpin
    if changes != (args.player is not None):
        raise InvalidInput(
            "name a player and --mu POINTS or --unpin; or nothing, to see who is pinned"
        )
    if changes:
        connect.must_go_on(args, "pin")
    with connect.connect(args) as client:
        if not changes:
            rows = [(name, f"{mu:.2f}") for name, mu in sorted(client.anchors().items())]
            print_table("Anchors", COLUMNS, rows)
        elif args.unpin:
            position = client.unpin_rating(args.player, operator())
            say(f"{args.player} is rated by its results from log position {position + 1} on")
        else:
            position = client.pin_rating(args.player, args.mu, operator())
            say(f"{args.player} stays at {args.mu:.2f} points from log position {position + 1} on")
    return 0
