"""Joins a learner to its league: its players, its incarnation, and the matches that it goes on
with.

All ranks of one learner share an incarnation, which the leading one opens: for the matchmaker they
are one worker, fenced at once and by one number. Each holds leases of its own under it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from league.exploiters import Generation
from league.games.base import BatchedGame
from league.players import Assignment, Player, PlayerKind, Role
from league.rpc.client import MatchmakerClient
from league.rpc.convert import from_message, to_message
from league.v1 import types_pb2
from learner.distributed.ranks import Ranks
from learner.train.assembly import SessionSettings
from learner.train.checkpoint import Values, parts_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Membership:
    """What a rank has of the league when it starts."""

    incarnation: int
    playing: tuple[Assignment, ...] = ()
    """Its matches in progress, leased anew; none when new ones begin."""
    ready: tuple[Assignment, ...] = ()
    """Its matches drawn and not begun, leased anew."""


def live_player(name: str, game: BatchedGame, generation: Generation | None = None) -> Player:
    """The player that learns: its weights change. An exploiter's is its generation's."""
    return Player(
        name=name if generation is None else generation.player,
        game=game.spec.name,
        kind=PlayerKind.LIVE,
        role=Role.MAIN if generation is None else generation.role,
        creator=f"learner-{name}",
    )


def register_players(client: MatchmakerClient, live: Player, game: BatchedGame) -> None:
    """Makes the game's bots and the live player known; again changes nothing."""
    bots = [
        Player(name=bot.name, game=live.game, kind=PlayerKind.BOT, held_out=bot.held_out)
        for bot in game.spec.bots
    ]
    client.register_players([*bots, live])


def fits_matches(saved: Values, settings: SessionSettings, game: BatchedGame, ranks: Ranks) -> bool:
    """Whether a checkpoint's matches can be played on under these settings, by as many ranks as
    there are.
    """
    parts = parts_of(saved)
    if len(parts) != ranks.count:
        log.info(
            "the checkpoint was made by %s and goes on under %d: the matches in progress are handed back "
            "and new ones begin, with random numbers of their own",
            "one rank" if len(parts) == 1 else f"{len(parts)} ranks",
            ranks.count,
        )
        return False
    return (
        all(len(part["environment"]["matches"]) == settings.share.matches for part in parts)
        and saved["frame_skip"] == settings.game.frame_skip
        and saved["game_version"] == game.spec.version
    )


def join_league(
    ranks: Ranks,
    client: MatchmakerClient,
    live: Player,
    game: BatchedGame,
    saved: Values | None,
    carries: bool,
) -> Membership:
    """Registers the bots and the live player, and opens an incarnation that carries matches on."""
    held = (
        [(part["environment"]["matches"], part["ready"]) for part in parts_of(saved)]
        if saved
        else []
    )
    carried: Sequence[Assignment] = ()
    number = 0
    if ranks.leads:
        register_players(client, live, game)
        incarnation = client.open_incarnation(
            live.creator,
            live.name,
            checkpoint_step=saved["algorithm"]["num_timesteps"] if saved else 0,
            checkpoint_log_position=saved["log_position"] if saved else 0,
            carried_matches=[name for lists in held for names in lists for name in names]
            if carries
            else [],
        )
        number, carried = incarnation.number, incarnation.carried
    number, carried = _told(ranks, number, carried)
    if not carries:
        return Membership(incarnation=number)
    first = sum(len(playing) + len(ready) for playing, ready in held[: ranks.rank])
    playing, ready = map(len, held[ranks.rank])
    return Membership(
        incarnation=number,
        playing=tuple(carried[first : first + playing]),
        ready=tuple(carried[first + playing : first + playing + ready]),
    )


def _told(
    ranks: Ranks, number: int, carried: Sequence[Assignment]
) -> tuple[int, Sequence[Assignment]]:
    """The leading rank's incarnation and all carried matches, on every rank."""
    if ranks.count == 1:
        return number, carried
    written = [to_message(one).SerializeToString().hex() for one in carried]
    told = ranks.leading({"incarnation": number, "carried": written})
    messages = [types_pb2.Assignment.FromString(bytes.fromhex(one)) for one in told["carried"]]
    return told["incarnation"], [from_message(Assignment, message) for message in messages]
