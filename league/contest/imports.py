"""Imports snapshots of another run into a running league.

In the running league, the ratings of these snapshots stay fixed. So they anchor the scale of all
other ratings.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from league.console.output import operator
from league.contest.league import League
from league.errors import AlreadyExists, InvalidInput, NotFound, VersionMismatch
from league.ids import SnapshotName
from league.players import Player, PlayerKind, PlayerState, Rating
from league.runs.blobs import BlobFolder


@dataclass(frozen=True)
class Imported:
    """Holds an imported snapshot, and its rating in the run that it comes from."""

    anchor: Player
    origin: Rating


def import_snapshots(
    league: League,
    source: Path,
    patterns: Sequence[str] = ("*",),
    *,
    prefix: str | None = None,
    sample: bool = False,
) -> list[Imported]:
    """Copies the snapshots' weights, and registers the snapshots as players. Repeating the call is
    safe.

    Args:
        league: a running league, named by its folder.
        source: the folder of the other run.
        patterns: names of snapshots, or shell patterns.
        prefix: beginning of the names in this league, by default the source folder's name.
        sample: whether learners train against the snapshots too. Otherwise only the evaluator plays
            them.

    Returns:
        The snapshots, best first.

    Raises:
        InvalidInput: the league is named by its address, or is the other run itself.
        Refused: the league is not running.
        NotFound: the other run has no such rated snapshot.
        VersionMismatch: the runs play different games.
        AlreadyExists: another player has the name of a snapshot.
    """
    if league.address:
        raise InvalidInput("weights go into the run's own folder: name it with --run-dir")
    into = league.folder()
    if into.resolve() == source.resolve():
        raise InvalidInput(f"{into} is the run itself: name the folder of another run")
    league.require_running("import")
    with League(run_dir=source).connect() as client:
        chosen = _chosen(client.ratings(), patterns, source)
        game = client.status().game
    prefix = prefix or re.sub(r"[^a-z0-9_.-]", "-", source.resolve().name.lower())
    with league.connect() as client:
        here = client.status().game
        if here != game:
            raise VersionMismatch(
                f"{source} plays {game!r} and {into} plays {here!r}: name a run of the same game"
            )
        theirs, ours = BlobFolder(source / "blobs"), BlobFolder(into / "blobs")
        for rating in chosen:  # weights are copied first, so that registered players can be loaded
            if not ours.has(rating.player.digest):
                ours.put(theirs.get(rating.player.digest))
        imported = [Imported(_anchor(one.player, prefix, sample), one) for one in chosen]
        try:
            client.register_players([one.anchor for one in imported])
        except AlreadyExists as error:
            raise AlreadyExists(f"{error}; give these another --prefix") from None
        for one in imported:
            client.pin_rating(one.anchor.name, one.origin.mu, operator())
    return imported


def _chosen(rated: Sequence[Rating], patterns: Sequence[str], source: Path) -> list[Rating]:
    """Returns the snapshots that match the patterns, best first, without quarantined players."""
    names = [
        rating.player.name
        for rating in rated
        if rating.player.kind is PlayerKind.SNAPSHOT
        and rating.player.state is not PlayerState.QUARANTINED
    ]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise NotFound(
                f"{source} has no rated snapshot {pattern!r}: bin/league ratings --run-dir "
                f"{source} lists them"
            )
    wanted = {name for pattern in patterns for name in fnmatch.filter(names, pattern)}
    return [rating for rating in rated if rating.player.name in wanted]


def _anchor(player: Player, prefix: str, sample: bool) -> Player:
    return replace(
        player,
        name=str(SnapshotName.parse(player.name).imported(prefix)),
        state=PlayerState.ACTIVE,
        parent="",
        creator="import",
        held_out=not sample,
        milestone=True,  # never retired
        created_at=0.0,
    )
