"""``league record PLAYER OPPONENT ...``: plays many matches side by side and keeps each as a
replay.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from league.cli import cast, connect
from league.cli.cast import Member
from league.cli.output import Column, print_table, say
from league.errors import InvalidInput
from league.games.base import CHOICE, EXTERNAL
from league.games.settings import GameSettings
from league.replay import SUFFIX, Contender, Recipe, Replay, save_replay

if TYPE_CHECKING:
    from league.agent.contract import PlayingNetwork

COLUMNS = (
    Column("player"),
    Column("opponent"),
    Column("matches", number=True),
    Column("wins", number=True),
    Column("draws", number=True),
    Column("losses", number=True),
    Column("score", number=True),
    Column("score_as_first", number=True),
    Column("score_as_second", number=True),
)
MOST_MATCHES = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "player", metavar="PLAYER", help="a bot, a snapshot, or a .safetensors file"
    )
    parser.add_argument(
        "opponents", nargs="+", metavar="OPPONENT", help="whom it meets, one after the other"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for the replays; without it, only the score is told",
    )
    parser.add_argument(
        "--matches",
        type=int,
        default=100,
        help="against each opponent, seats swapped (default 100)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first match (default 0)")
    parser.add_argument(
        "--pace",
        type=int,
        default=1,
        metavar="N",
        help="let PLAYER, a bot, hold its keys for N frames, as an agent with frame_skip N does",
    )
    parser.add_argument(
        "--disturb",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="make PLAYER err for this share of the time: a clone learns how it recovers",
    )
    parser.add_argument(
        "--greedy", action="store_true", help="snapshots press each key by its likelier value"
    )
    connect.add_arguments(parser)
    parser.add_argument(
        "--blobs", type=Path, metavar="DIR", help="weights, when the league is named by address"
    )
    parser.add_argument(
        "--game", metavar="NAME", help="the game, for bots and files (default: the run's, or brawl)"
    )


def run(args: argparse.Namespace) -> int:
    if not 1 <= args.matches <= MOST_MATCHES or args.seed < 0:
        raise InvalidInput(
            f"--matches {args.matches} --seed {args.seed}: 1 to {MOST_MATCHES} and a seed from 0 go"
        )
    names = [args.player, *args.opponents]
    settings = cast.game_settings(args, names)
    _check_pupil(args, settings)
    members = cast.find_members(args, settings.spec(), names)
    _make_folder(args.out)
    if settings.name == "brawl":
        say("(brawl; the first match of a machine takes a moment to compile)")
    rows = []
    for opponent in members[1:]:
        played = record(settings, members[0], opponent, args)
        rows.append(_row(members[0], opponent, played))
    print_table("Matches", COLUMNS, rows)
    if args.out is not None:
        say(
            f"kept in {args.out}: bin/league replay FILE shows one, bin/learner clone learns from all of them"
        )
    return 0


def record(
    settings: GameSettings, player: Member, opponent: Member, args: argparse.Namespace
) -> list[tuple[int, float]]:
    """Plays and keeps the matches of two members; of each, the seat of `player` and the outcome
    for it.
    """
    from league.agent.recorded_matches import paired, play_bouts

    weights = _Weights(settings, [player, opponent], args.pace)
    bouts = paired(
        _contender(player),
        _contender(opponent),
        (_bot(player), _bot(opponent)),
        args.matches,
        args.seed,
        pupil=player.name if args.disturb or args.pace > 1 else "",
    )
    replays = play_bouts(
        Recipe.of(settings),
        bouts,
        weights.load,
        frame_skip=weights.frame_skip,
        seed=args.seed,
        greedy=args.greedy,
        pace=args.pace,
        disturb=args.disturb,
    )
    played = []
    for replay in replays:
        if args.out is not None:
            save_replay(args.out / f"{replay.match_id}{SUFFIX}", replay)
        played.append(_result(replay, player.name))
    if len(played) < len(bouts):
        say(
            f"({len(bouts) - len(played)} matches could not be played to their end and are left out)"
        )
    return played


class _Weights:
    """The networks of those members that have weights, which must all decide at one pace."""

    def __init__(self, settings: GameSettings, members: Sequence[Member], pace: int) -> None:
        self._folders = {m.digest: m.blobs for m in members if m.blobs is not None}
        paces = {m.name: self._pace(settings, m) for m in members if m.blobs is not None}
        if len(set(paces.values())) > 1:
            told = " and ".join(f"{name} every {pace} frames" for name, pace in paces.items())
            raise InvalidInput(
                f"{told} decide at different paces: name players of one pace, or bots"
            )
        self.frame_skip = next(iter(paces.values()), 1)
        if pace > 1 and paces and self.frame_skip != pace:
            name = next(iter(paces))
            raise InvalidInput(
                f"--pace {pace}: {name} decides every {self.frame_skip} frames, give that pace"
            )

    @staticmethod
    def _pace(settings: GameSettings, member: Member) -> int:
        from league.agent.snapshot import read_card

        assert member.blobs is not None
        card = read_card(member.blobs, member.digest)
        if card.game != settings.name:
            raise InvalidInput(
                f"{member.name} plays {card.game}, not {settings.name}: name another"
            )
        return card.frame_skip

    def load(self, digest: str) -> PlayingNetwork:
        """The network of a digest."""
        from league.agent.snapshot import load_snapshot

        return load_snapshot(self._folders[digest], digest)[0]


def _check_pupil(args: argparse.Namespace, settings: GameSettings) -> None:
    if not 0.0 <= args.disturb <= 0.5:
        raise InvalidInput(f"--disturb {args.disturb}: a share from 0 to 0.5 is wanted")
    if not 1 <= args.pace <= 30:
        raise InvalidInput(f"--pace {args.pace}: 1 to 30 frames are wanted")
    if (args.disturb or args.pace > 1) and settings.spec().action_kind == CHOICE:
        raise InvalidInput(
            f"--pace and --disturb are about keys, and {settings.name} is a game of choices: leave them out"
        )


def _make_folder(folder: Path | None) -> None:
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"--out {folder} can't be a folder ({error.strerror}): name another place"
        ) from None


def _contender(member: Member) -> Contender:
    return Contender(name=member.name, digest=member.digest)


def _bot(member: Member) -> int:
    return EXTERNAL if member.bot is None else member.bot


def _result(replay: Replay, player: str) -> tuple[int, float]:
    # of the first one, where a member meets itself
    seat = 0 if replay.seats[0].name == player else 1
    return seat, replay.outcome if seat == 0 else 1.0 - replay.outcome


def _row(player: Member, opponent: Member, played: Sequence[tuple[int, float]]) -> tuple[str, ...]:
    outcomes = [outcome for _, outcome in played]
    counts = [outcomes.count(value) for value in (1.0, 0.5, 0.0)]
    sides = [[outcome for seat, outcome in played if seat == side] for side in (0, 1)]
    return (
        player.name,
        opponent.name,
        str(len(played)),
        *map(str, counts),
        *map(_percent, (outcomes, *sides)),
    )


def _percent(outcomes: Sequence[float]) -> str:
    """Mean outcome, a draw counting half."""
    return f"{100 * sum(outcomes) / len(outcomes):.1f}%" if outcomes else ""
