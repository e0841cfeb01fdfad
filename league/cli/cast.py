"""Who plays in a demo: bots of the game, snapshots of a league, or a weights file."""

from __future__ import annotations

import argparse
import difflib
from dataclasses import dataclass, replace
from pathlib import Path

from league.blobs import SUFFIX, BlobFolder
from league.cli import connect
from league.config import build, load_section
from league.errors import InvalidInput, InvalidName, NotFound
from league.games.base import GameSpec
from league.games.registry import game_spec
from league.games.settings import GameSettings
from league.ids import SnapshotName
from league.players import Player, PlayerKind


@dataclass(frozen=True, kw_only=True)
class Member:
    """One seat: a bot by its index in the game's spec, or weights by digest in a folder."""

    name: str
    bot: int | None = None
    digest: str = ""
    blobs: BlobFolder | None = None


def game_settings(args: argparse.Namespace, names: list[str]) -> GameSettings:
    """The game that `--game` names, else that of the run that the members come from, else the default."""
    if args.game:
        return build(GameSettings, "game", {"name": args.game})
    bots = {bot.name for bot in game_spec(GameSettings().name).bots}
    is_of_league = any(name not in bots and not name.endswith(SUFFIX) for name in names)
    if args.run_dir is not None or (is_of_league and not args.address):
        file = _folder_of(args, names, [*bots]) / "config.toml"
        if file.exists():
            return load_section(GameSettings, "game", file)
    return GameSettings()


def _folder_of(args: argparse.Namespace, names: list[str], bots: list[str]) -> Path:
    """The run; where there is none, the error names the bot that may have been meant."""
    try:
        return connect.run_folder(args)
    except NotFound as error:
        unknown = next((name for name in names if name not in bots and not name.endswith(SUFFIX)), "")
        close = difflib.get_close_matches(unknown, bots, n=1)
        if not close:
            raise
        raise NotFound(f"{error}, or did you mean the bot {close[0]!r}?") from None


def find_members(args: argparse.Namespace, spec: GameSpec, names: list[str]) -> list[Member]:
    """A member for each name; the league is asked only for what is neither bot nor file."""
    members: dict[str, Member] = {}
    bots = {bot.name: index for index, bot in enumerate(spec.bots)}
    for name in names:
        if name in bots:
            members[name] = Member(name=name, bot=bots[name])
        elif name.endswith(SUFFIX):
            members[name] = _from_file(Path(name))
    rest = [name for name in names if name not in members]
    if rest:
        blobs = _blob_folder(args)
        with connect.connect(args) as client:
            players = client.players()
        members |= {name: _from_league(name, players, blobs, [*bots]) for name in rest}
    return [members[name] for name in names]


def told_apart(cast: list[Member]) -> list[Member]:
    """The same with a number behind names that occur twice."""
    if len({member.name for member in cast}) == len(cast):
        return cast
    return [replace(member, name=f"{member.name} ({number})") for number, member in enumerate(cast, 1)]


def _from_file(path: Path) -> Member:
    if not path.is_file():
        raise NotFound(f"there is no weights file {path}: check the path")
    return Member(name=path.stem[:12], digest=path.stem, blobs=BlobFolder(path.parent))


def _blob_folder(args: argparse.Namespace) -> BlobFolder:
    if args.blobs is not None:
        return BlobFolder(args.blobs)
    if args.address:
        raise InvalidInput("weights come from a folder, not over --address: add --blobs RUN/blobs")
    return BlobFolder(connect.run_folder(args) / "blobs")


def _from_league(name: str, players: list[Player], blobs: BlobFolder, bots: list[str]) -> Member:
    player = next((player for player in players if player.name == name), None)
    if player is None:
        close = difflib.get_close_matches(name, [*bots, *(p.name for p in players)], n=1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}?" if close else "bin/league players lists them"
        raise NotFound(f"there is no member {name!r}: {hint}")
    if player.kind is PlayerKind.LIVE:
        player = _newest_snapshot(name, players)
    if not player.digest:
        raise InvalidInput(
            f"{player.name} ({player.kind.value}) has no weights to play with: name a snapshot"
        )
    return Member(name=player.name, digest=player.digest, blobs=blobs)


def _newest_snapshot(lineage: str, players: list[Player]) -> Player:
    """The newest frozen weights of a live player."""
    own = [player for player in players if player.digest and _lineage(player.name) == lineage]
    if not own:
        raise NotFound(f"{lineage} has no snapshot yet: wait for its first")
    return max(own, key=lambda player: player.step)


def _lineage(name: str) -> str:
    try:
        return SnapshotName.parse(name).lineage
    except InvalidName:
        return name
