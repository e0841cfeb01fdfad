"""``league players``: members in order of registration."""

from __future__ import annotations

import argparse

from league.cli import connect
from league.cli.output import Column, print_table, when
from league.players import Player, PlayerKind, PlayerState

COLUMNS = (
    Column("player"),
    Column("kind"),
    Column("role"),
    Column("state"),
    Column("step", number=True),
    Column("parent"),
    Column("marks"),
    Column("created_at"),
    Column("digest"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    connect.add_arguments(parser)
    connect.add_moment(parser)
    parser.add_argument(
        "--kind", choices=[kind.value for kind in PlayerKind], action="append", default=[]
    )
    parser.add_argument(
        "--state", choices=[state.value for state in PlayerState], action="append", default=[]
    )


def run(args: argparse.Namespace) -> int:
    kinds, states = (
        [PlayerKind(kind) for kind in args.kind],
        [PlayerState(state) for state in args.state],
    )
    with connect.connect(args) as client:
        players = client.players(kinds=kinds, states=states)
    print_table("Players", COLUMNS, [_row(player) for player in players])
    return 0


def _row(player: Player) -> tuple[str, ...]:
    marks = [
        mark
        for mark, given in (("milestone", player.milestone), ("held out", player.held_out))
        if given
    ]
    return (
        player.name,
        player.kind.value,
        player.role.value,
        player.state.value,
        str(player.step),
        player.parent,
        ", ".join(marks),
        when(player.created_at),
        player.digest[:12],
    )
