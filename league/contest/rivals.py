"""Adds other people's agents, and snapshots of other runs, to a running league."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from league.agent.rival_bundles import bundles, link, pack, trust
from league.agent.rival_worker import BARRED
from league.agent.rivals import barred, check
from league.console.output import operator, say
from league.contest.league import League
from league.contest.members import check_plays, from_file
from league.errors import InvalidInput
from league.games.registry import family
from league.games.settings import GameSettings
from league.ids import SnapshotName
from league.players import Player, PlayerKind
from league.runs.blobs import SUFFIX, BlobFolder
from league.settings.base import resolve

ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):\d{1,5}")
"""HOST:PORT of a running player."""


def add_member(
    league: League,
    path: Path,
    name: str,
    *,
    trust: bool,
    token_file: Path | None = None,
    tls: Path | None = None,
) -> Player:
    """Stores a rival's files, a player's address or a snapshot's weights in the run's folder, and
    registers the player. Repeating the call is safe.

    Args:
        league: a running league, named by its folder.
        path: an agent's file, a folder with `my_agent.py` and data files, a model, HOST:PORT of a
            running player, or the weights of a snapshot. A running player and a snapshot run no
            code here, so they need no trust.
        name: the player's name in the league.
        trust: whether the user agrees to run the file. Otherwise the user is asked at the terminal.
        token_file: a file with the token that the running player requires.
        tls: a folder with certificates, for a running player that uses TLS.

    Returns:
        The player.

    Raises:
        InvalidInput: the user doesn't agree, the agent fails, the league plays another game, or the
            league is named by its address.
        NotFound: there is no such weights file.
        DataCorrupt: the weights or the zip file are damaged.
        VersionMismatch: the snapshot plays under other rules.
        Refused: the league is not running.
        AlreadyExists: another player has the name.
    """
    if league.address:
        raise InvalidInput("a rival's files go into the run's own folder: name it with --run-dir")
    folder = league.folder()
    if path.name.endswith(SUFFIX):
        return _add_snapshot(league, path, name)
    is_elsewhere = ADDRESS.fullmatch(str(path)) is not None and not path.exists()
    bundle = b"" if is_elsewhere else pack(path)
    league.require_running("add")
    with league.connect() as client:
        game = client.status().game
        if family(game) != "brawl":
            raise InvalidInput(f"{folder} plays {game}: rivals play brawl only")
        if is_elsewhere:
            version = _game_of(league).spec().version
            plays = game if game == family(game) else "ai2:original"  # without the folder's path
            bundle = link(str(path), plays, version, token_file, tls)
        else:
            say(_protection(barred()))
            require_trust([str(path)], trust=trust)
        digest = keep(bundle, BlobFolder(folder / "blobs"))
        rival = Player(name=name, game=game, kind=PlayerKind.RIVAL, digest=digest, creator="rivals")
        return replace(rival, state=client.add_rival(rival, operator()))


def keep(bundle: bytes, blobs: BlobFolder) -> str:
    """Checks that a bundle can play, stores it, and records that the user trusts it.

    Args:
        bundle: a bundle from `pack` or `link`, to which the user has agreed.
        blobs: the blobs of a run, or another folder.

    Returns:
        The bundle's digest.

    Raises:
        InvalidInput: the bundle can't play.
    """
    check(bundle)
    digest = bundles(blobs).put(bundle)
    trust(digest)
    return digest


def _add_snapshot(league: League, path: Path, name: str) -> Player:
    from league.agent.snapshot import load_snapshot  # torch takes seconds to load

    member = from_file(path)
    assert member.blobs is not None
    _, card = load_snapshot(member.blobs, member.digest)
    league.require_running("add")
    settings = _game_of(league)
    check_plays(str(path), card, settings.spec())
    BlobFolder(league.folder() / "blobs").put(member.blobs.get(member.digest))
    player = Player(
        name=str(SnapshotName("main", card.step).imported(name)),
        game=settings.name,
        kind=PlayerKind.SNAPSHOT,
        digest=member.digest,
        step=card.step,
        creator="import",
        milestone=True,  # never retired
    )
    with league.connect() as client:
        client.register_players([player])
    return player


def _game_of(league: League) -> GameSettings:
    return resolve(file=league.folder() / "config.toml", environment={}).of(GameSettings)


def _protection(kept: Sequence[str]) -> str:
    bare = [part for part in BARRED if part not in kept]
    words = f"on this machine the kernel keeps rivals from {', '.join(kept) or 'nothing'}"
    return words + (f", but not from {', '.join(bare)}" if bare else "")


def require_trust(programs: Sequence[str], *, trust: bool) -> None:
    """Raises `InvalidInput` unless `trust` is set, or the user agrees at the terminal to run these
    programs.
    """
    if trust or not programs:
        return
    listed, is_one = ", ".join(programs), len(programs) == 1
    if sys.stdin.isatty() and sys.stderr.isatty():
        are = "is a Python program" if is_one else "are Python programs"
        say(f"{listed} {are} that the league will run with your rights.")
        whose = "its author" if is_one else "their authors"
        print(f"Do you trust {whose}? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    are, them = ("is a program", "it") if is_one else ("are programs", "them")
    raise InvalidInput(
        f"{listed} {are} of another person, and {'runs' if is_one else 'run'} with your rights: "
        f"read {them}, then add --trust"
    )
