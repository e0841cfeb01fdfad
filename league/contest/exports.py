"""Exports the weights of members to the formats of `league.agent.export`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from league.agent.contract import PlayingNetwork
from league.agent.snapshot import SnapshotCard, check_rules, load_snapshot
from league.contest.members import Finder, Member, game_settings
from league.errors import ConfigError, InvalidInput
from league.games.base import GameSpec
from league.games.settings import GameSettings, check_game_of_file

FORMATS = {"sb3": ".zip", "onnx": ".onnx", "folder": "", "ai2": ".py"}
"""Formats of exports, with their file name endings."""


@dataclass(frozen=True, kw_only=True)
class Export:
    """Describes an export that was written. `step` is the training step of the newest snapshot in
    it.
    """

    name: str
    format: str
    step: int
    game: str


def format_of(path: Path) -> str:
    """Returns the format whose files have this path's ending. Raises `ConfigError` if no format
    has it.
    """
    for name, ending in FORMATS.items():
        if ending == path.suffix.lower():
            return name
    raise ConfigError(f"{path.name!r} names no format: add --format {'|'.join(FORMATS)}")


def export(
    finder: Finder, player: str, out: Path, format: str = "", *, greedy: bool = False
) -> Export:
    """Writes a player's weights for another program.

    Args:
        finder: finds the player.
        player: a snapshot, a live player or a weights file. For ai2 it may be a mixture.
        out: the file or folder to write.
        format: a name in `FORMATS`. By default, the ending of `out` decides.
        greedy: whether an agent for ai2 takes the likeliest keys instead of sampling.

    Raises:
        ConfigError: no format has the ending of `out`.
        InvalidInput: the player has no weights, or doesn't suit the format.
        NotFound: there is no such player.
        VersionMismatch: the game's rules have changed.
    """
    format = format or format_of(out)
    if greedy and format != "ai2":
        raise InvalidInput(f"--greedy is for ai2: who plays the {format} chooses at every step")
    if format == "ai2" and out.suffix != ".py":
        raise InvalidInput(f"{out} would be no Python file: name one that ends in .py")
    settings = finder.settings([player], alone=format != "ai2")
    (entrant,) = finder.entrants(settings.spec(), [player])
    loaded = [load(member) for member in entrant.members]
    member, (network, card) = entrant.members[0], loaded[0]
    if format == "sb3":
        from league.agent.export.sb3 import write_sb3

        write_sb3(out, network, card)
    elif format == "onnx":
        from league.agent.export.onnx_graph import write_onnx

        write_onnx(out, network, card)
    elif format == "ai2":
        from league.agent.export.ai2 import Exported, write_ai2

        exported = []
        for member, own, share in zip(entrant.members, loaded, entrant.weights, strict=True):
            _spec(settings, member, own[1])
            exported.append(Exported(member.name, *own, share))
        write_ai2(out, exported, name=entrant.name, greedy=greedy)
    else:
        from league.agent.export.onnx_graph import write_folder

        write_folder(out, network, card, _spec(settings, member, card))
    step = max(card.step for _, card in loaded)
    return Export(name=entrant.name, format=format, step=step, game=card.game)


def load(member: Member) -> tuple[PlayingNetwork, SnapshotCard]:
    """Returns a member's network and card. Raises `InvalidInput` if it is a bot or a rival."""
    if member.blobs is None or member.is_rival:
        kind = "rival" if member.is_rival else "bot"
        raise InvalidInput(f"{member.name} is a {kind} and has no weights: name a snapshot")
    return load_snapshot(member.blobs, member.digest)


def _spec(settings: GameSettings, member: Member, card: SnapshotCard) -> GameSpec:
    """Returns the spec of the snapshot's game. If the run plays this game, the spec follows the
    run's settings.
    """
    if settings.name != card.game:
        check_game_of_file(card.game, {})
        settings = game_settings(card.game)
    spec = settings.spec()
    check_rules(member.name, card, spec)
    return spec
