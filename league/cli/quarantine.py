"""``league quarantine``: players that nobody meets, because an operator does not trust them."""

from __future__ import annotations

import argparse

from league.cli import connect
from league.cli.operator import operator
from league.cli.output import Column, print_table, say
from league.errors import InvalidInput
from league.players import PlayerState

COLUMNS = (Column("player"), Column("kind"), Column("step", number=True))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "player",
        nargs="?",
        metavar="NAME",
        help="a bot, snapshot or reference; without: show who is in it",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--reason", metavar="TEXT", help="why nobody shall meet it; kept in the log")
    how.add_argument("--release", action="store_true", help="it may be met again")
    connect.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    changes = args.reason is not None or args.release
    if changes != (args.player is not None):
        raise InvalidInput(
            "name a player and --reason TEXT or --release; or nothing, to see who is in it"
        )
    if changes:
        connect.must_go_on(args, "change who is in quarantine")
    with connect.connect(args) as client:
        if not changes:
            found = client.players(states=[PlayerState.QUARANTINED])
            rows = [(one.name, one.kind.value, f"{one.step}") for one in found]
            print_table("In quarantine", COLUMNS, rows)
        elif args.release:
            state = client.release_player(args.player, operator())
            say(f"{args.player} is {state.value} again")
        else:
            client.quarantine(args.player, args.reason, operator())
            say(
                f"nobody is sent to {args.player} until `bin/league quarantine {args.player} --release`"
            )
    return 0
