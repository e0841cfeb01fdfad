"""``league export SNAPSHOT --format F --out PATH``: a snapshot as a file for other programs."""

from __future__ import annotations

import argparse
from pathlib import Path

from league.cli import cast, connect
from league.cli.output import say
from league.errors import ConfigError, InvalidInput, VersionMismatch
from league.games.base import GameSpec
from league.games.settings import GameSettings
from league.settings.base import build

FORMATS = ("sb3", "onnx", "folder")
ENDINGS = {".zip": "sb3", ".onnx": "onnx"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "snapshot",
        metavar="SNAPSHOT",
        help="a snapshot, a live player (its newest snapshot), or a .safetensors file",
    )
    connect.add_arguments(parser)
    parser.add_argument(
        "--blobs", type=Path, metavar="DIR", help="weights, when the league is named by address"
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="sb3: a .zip for sb3_contrib.RecurrentPPO.load; onnx: one step as a graph; folder: one that "
        "plays with numpy and onnxruntime (default: by the ending of PATH)",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="PATH", help="file or folder to write"
    )
    parser.add_argument("--game", metavar="NAME", help="brawl, kuhn, … (default: the run's)")


def run(args: argparse.Namespace) -> int:
    kind = args.format or _by_ending(args.out)
    settings = cast.game_settings(args, [args.snapshot])
    (member,) = cast.find_members(args, settings.spec(), [args.snapshot])
    if member.blobs is None:
        raise InvalidInput(f"{member.name} is a bot and has no weights: name a snapshot")
    from league.agent.snapshot import load_snapshot

    network, card = load_snapshot(member.blobs, member.digest)
    if kind == "sb3":
        from league.agent.export.sb3 import write_sb3

        write_sb3(args.out, network, card)
    elif kind == "onnx":
        from league.agent.export.onnx_graph import write_onnx

        write_onnx(args.out, network, card)
    else:
        from league.agent.export.folder import write_folder

        write_folder(args.out, network, card, _spec(settings, card.game, card.game_version))
    say(f"{args.out}: {member.name} as {kind}, step {card.step:,} of {card.game}")
    return 0


def _by_ending(path: Path) -> str:
    kind = ENDINGS.get(path.suffix.lower(), "" if path.suffix else "folder")
    if not kind:
        raise ConfigError(f"{path.name!r} tells no format: add --format {'|'.join(FORMATS)}")
    return kind


def _spec(settings: GameSettings, game: str, version: str) -> GameSpec:
    """The spec of the snapshot's game, under the run's settings where the run plays it."""
    if settings.name != game:
        settings = build(GameSettings, "game", {"name": game})
    spec = settings.spec()
    if spec.version != version:
        raise VersionMismatch(
            f"the snapshot plays {game} version {version}, this is version {spec.version}, whose "
            "observations may mean something else: export it with the version that it was trained in"
        )
    return spec
