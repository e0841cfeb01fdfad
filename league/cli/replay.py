"""``league replay MATCH``: a recorded match once more, as `league demo` shows one."""

from __future__ import annotations

import argparse
from pathlib import Path

from league.cli import replays
from league.cli.cast import Member
from league.cli.demo import show
from league.cli.exhibition import Exhibition, RecordedHands
from league.cli.output import Column, print_table
from league.errors import DataCorrupt, InvalidInput
from league.replay import Playback, Replay, load_replay

COLUMNS = (
    Column("match"),
    Column("seat 0"),
    Column("seat 1"),
    Column("won by"),
    Column("frames", number=True),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "match",
        nargs="?",
        metavar="MATCH|FILE",
        help="a match id or a replay file; none lists the run's replays",
    )
    replays.add_arguments(parser)
    parser.add_argument(
        "--speed", type=float, default=1.0, help="times real time on a terminal (default 1)"
    )


def run(args: argparse.Namespace) -> int:
    if args.speed <= 0:
        raise InvalidInput(f"--speed {args.speed}: a speed above 0 is wanted")
    if args.match is None:
        print_table("Replays", COLUMNS, [_row(path) for path in replays.listed(args)])
        return 0
    playback = Playback(replays.find(args, args.match))
    try:
        if show(exhibition(playback), args.speed):
            playback.check_end()
    finally:
        playback.close()
    return 0


def exhibition(playback: Playback) -> Exhibition:
    """The recorded match, played by what both seats did."""
    replay, game = playback.replay, playback.game
    members = [
        Member(name=seat.name, bot=game.spec.bot_index(seat.bot) if seat.bot else None)
        for seat in replay.seats
    ]
    hands = [RecordedHands(replay.actions_T2A[:, seat]) for seat in (0, 1)]
    return Exhibition(game, members, replay.seed, hands=hands)


def _row(path: Path) -> tuple[str, ...]:
    try:
        replay = load_replay(path)
    except DataCorrupt as error:
        return path.stem, "", "", f"unreadable: {error}", ""
    return (
        path.stem,
        replay.seats[0].name,
        replay.seats[1].name,
        _winner(replay),
        str(replay.frames),
    )


def _winner(replay: Replay) -> str:
    return (
        "a draw" if replay.outcome == 0.5 else replay.seats[0 if replay.outcome == 1.0 else 1].name
    )
