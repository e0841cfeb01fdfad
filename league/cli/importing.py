"""``league import``: another run's snapshots into this league, as frozen players with pinned
ratings.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from league.cli import connect
from league.cli.operator import operator
from league.cli.output import Column, print_table, say
from league.errors import AlreadyExists, InvalidInput, NotFound, VersionMismatch
from league.ids import SnapshotName
from league.players import Player, PlayerKind, PlayerState, Rating
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder

COLUMNS = (Column("player"), Column("from"), Column("mu", number=True), Column("digest"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", type=Path, metavar="RUN", help="the folder of the run they come from"
    )
    parser.add_argument(
        "--players",
        nargs="+",
        default=["*"],
        metavar="NAME",
        help="which of its snapshots: names or shell patterns (default: all that have clean matches)",
    )
    parser.add_argument(
        "--prefix",
        metavar="NAME",
        help="what their names begin with here (default: RUN's own name)",
    )
    parser.add_argument(
        "--sample",
        action="store_true",
        help="learners train against them too; without, only the evaluator's gauntlets meet them",
    )
    connect.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    if args.address:
        raise InvalidInput(
            "weights go into the run's own folder: name it with --run-dir, not --address"
        )
    into = connect.run_folder(args)
    if into.resolve() == args.source.resolve():
        raise InvalidInput(
            f"{into} is the run itself: name another one's folder, or --run-dir for this one"
        )
    connect.must_go_on(args, "import")
    game, rated = _rated_snapshots(args.source)
    chosen = _chosen(rated, args.players, args.source)
    prefix = args.prefix or re.sub(r"[^a-z0-9_.-]", "-", args.source.resolve().name.lower())
    with connect.connect(args) as client:
        here = client.status().game
        if here != game:
            raise VersionMismatch(
                f"{args.source} plays {game!r} and {into} plays {here!r}: only snapshots of one game can meet"
            )
        rows = _bring(client, chosen, args.source, into, prefix, sample=args.sample)
    print_table("Imported", COLUMNS, rows)
    met = "are drawn as snapshots" if args.sample else "are met in gauntlets alone"
    one = len(rows) == 1
    met = (
        "is drawn as a snapshot"
        if one and args.sample
        else "is met in gauntlets alone"
        if one
        else met
    )
    brought = "1 snapshot" if one else f"{len(rows)} snapshots"
    say(
        f"{brought} of {args.source} {'is an anchor' if one else 'are anchors'} in {into} and {met}"
    )
    return 0


def _rated_snapshots(source: Path) -> tuple[str, list[Rating]]:
    """The other run's game, and its snapshots with clean matches, best first."""
    with connect.connect_run(source) as client:
        ratings = client.ratings()
        game = client.status().game
    return game, [
        rating
        for rating in ratings
        if rating.player.kind is PlayerKind.SNAPSHOT
        and rating.player.state is not PlayerState.QUARANTINED
    ]


def _chosen(rated: Sequence[Rating], patterns: Sequence[str], source: Path) -> list[Rating]:
    for pattern in patterns:
        if not any(fnmatchcase(rating.player.name, pattern) for rating in rated):
            raise NotFound(
                f"{source} has no rated snapshot {pattern!r}: bin/league ratings --run-dir {source} "
                "lists them"
            )
    return [
        one for one in rated if any(fnmatchcase(one.player.name, pattern) for pattern in patterns)
    ]


def _bring(
    client: MatchmakerClient,
    chosen: Sequence[Rating],
    source: Path,
    into: Path,
    prefix: str,
    *,
    sample: bool,
) -> list[tuple[str, ...]]:
    """Weights first, so that nobody is registered whom nobody could load. Again is fine."""
    theirs, ours = BlobFolder(source / "blobs"), BlobFolder(into / "blobs")
    for rating in chosen:
        if not ours.has(rating.player.digest):
            ours.put(theirs.get(rating.player.digest))
    anchors = [_as_anchor(rating.player, prefix, sample=sample) for rating in chosen]
    try:
        client.register_players(anchors)
    except AlreadyExists as error:
        raise AlreadyExists(f"{error}; give these another --prefix") from None
    rows: list[tuple[str, ...]] = []
    for rating, anchor in zip(chosen, anchors, strict=True):
        client.pin_rating(anchor.name, rating.mu, operator())
        rows.append((anchor.name, rating.player.name, f"{rating.mu:.2f}", anchor.digest[:12]))
    return rows


def _as_anchor(player: Player, prefix: str, *, sample: bool) -> Player:
    """Never retired, and of a lineage of its own; its parents stayed behind."""
    return replace(
        player,
        name=str(SnapshotName.parse(player.name).imported(prefix)),
        state=PlayerState.ACTIVE,
        parent="",
        creator="import",
        held_out=not sample,
        milestone=True,
        created_at=0.0,
    )
