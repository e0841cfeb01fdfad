"""Who plays in a demo: bots of the game, snapshots of a league, or a weights file."""

from __future__ import annotations

import argparse
import difflib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from league.cli import connect
from league.errors import InvalidInput, InvalidName, NotFound
from league.games.base import GameSpec
from league.games.registry import game_spec
from league.games.settings import GameSettings
from league.ids import SnapshotName
from league.players import Player, PlayerKind
from league.runs.blobs import SUFFIX, BlobFolder
from league.settings.base import resolve

if TYPE_CHECKING:
    from league.agent.contract import NetworkConfig

GAMES = ("brawl", "kuhn", "leduc", "matrix:rps", "matrix:mp")
"""Games that come along, among whose bots one is looked for that the game played doesn't have."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """One seat: a bot by its index in the game's spec, or weights by digest in a folder."""

    name: str
    bot: int | None = None
    digest: str = ""
    blobs: BlobFolder | None = None


def game_settings(args: argparse.Namespace, names: list[str]) -> GameSettings:
    """The game of the run that the members come from, with its options, where `--game` names no
    other one.

    Without a run it is the game that `--game` names, else the default.
    """
    own = _settings_of_run(args) if args.run_dir is not None else None
    if own is not None and args.game in (None, own.name):
        return own
    named = (
        resolve(assignments=[f"game.name={args.game}"]).of(GameSettings)
        if args.game
        else GameSettings()
    )
    bots = [bot.name for bot in named.spec().bots]
    strangers = [name for name in names if name not in bots and not name.endswith(SUFFIX)]
    if own is None and strangers and not args.address:
        try:
            own = _settings_of_run(args)
        except NotFound as error:
            raise _no_run(args, error, strangers, named.spec()) from None
    return own if own is not None and args.game in (None, own.name) else named


def _settings_of_run(args: argparse.Namespace) -> GameSettings | None:
    file = connect.run_folder(args) / "config.toml"
    return resolve(file=file, environment={}).of(GameSettings) if file.exists() else None


def _no_run(
    args: argparse.Namespace, error: NotFound, names: list[str], spec: GameSpec
) -> NotFound:
    """Where there is no run, a bot was meant."""
    if args.game:
        return _no_bot(names[0], spec)
    hint = _near_bot(names, spec)
    return NotFound(f"{error}, or {hint}") if hint else error


def _no_bot(name: str, spec: GameSpec) -> NotFound:
    return NotFound(
        f"{spec.name} has no bot {name!r}: it has {', '.join(bot.name for bot in spec.bots)}"
    )


def _near_bot(names: list[str], spec: GameSpec) -> str:
    """«did you mean the bot 'based'?»: of the game played, else of one that comes along."""
    for game in (spec, *(game_spec(name) for name in GAMES)):
        bots = [bot.name for bot in game.bots]
        found = [
            close[0] for name in names if (close := difflib.get_close_matches(name, bots, n=1))
        ]
        if found:
            where = "" if game.name == spec.name else f" of {game.name} (--game {game.name})"
            return f"did you mean the bot {found[0]!r}{where}?"
    return ""


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
        members |= {name: _from_league(args, name, players, blobs, spec) for name in rest}
    return [members[name] for name in names]


def check_sizes(name: str, agent: NetworkConfig, spec: GameSpec) -> None:
    """Raises `InvalidInput` when an agent sees or chooses other things than this game has."""
    own, here = (
        (sizes.observation_size, sizes.action_size, sizes.action_kind) for sizes in (agent, spec)
    )
    if own != here:
        raise InvalidInput(
            f"{name} sees {own[0]} numbers and has {own[1]} actions, {spec.name} here has {here[0]} and "
            f"{here[1]}: it was trained with other options of the game, so name its run with --run-dir"
        )


def told_apart(cast: list[Member]) -> list[Member]:
    """The same with a number behind names that occur twice."""
    if len({member.name for member in cast}) == len(cast):
        return cast
    return [
        replace(member, name=f"{member.name} ({number})") for number, member in enumerate(cast, 1)
    ]


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


def _from_league(
    args: argparse.Namespace, name: str, players: list[Player], blobs: BlobFolder, spec: GameSpec
) -> Member:
    player = next((player for player in players if player.name == name), None)
    if player is None or player.kind is PlayerKind.BOT:
        raise _no_member(args, name, players, spec)
    if player.kind is PlayerKind.LIVE:
        player = _newest_snapshot(name, players)
    if not player.digest:
        raise InvalidInput(
            f"{player.name} ({player.kind.value}) has no weights to play with: name a snapshot"
        )
    return Member(name=player.name, digest=player.digest, blobs=blobs)


def _no_member(
    args: argparse.Namespace, name: str, players: list[Player], spec: GameSpec
) -> NotFound:
    """Nobody of this league who could play, with whom may have been meant."""
    known = [
        *(bot.name for bot in spec.bots),
        *(p.name for p in players if p.kind is not PlayerKind.BOT),
    ]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if not close and args.game:
        return _no_bot(name, spec)
    hint = f"did you mean {close[0]!r}?" if close else _near_bot([name], spec)
    where = f"in {args.address or args.run_dir}, which plays {next((p.game for p in players), spec.name)}"
    return NotFound(
        f"there is no member {name!r} {where}: {hint or 'bin/league players lists them'}"
    )


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
