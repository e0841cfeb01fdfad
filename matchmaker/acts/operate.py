"""What operators do to players: pin their ratings, and take them out of play and back."""

from __future__ import annotations

import json
import math

from league.errors import InvalidInput, Refused
from league.players import Book, Player, PlayerKind, PlayerState
from matchmaker.acts import checks
from matchmaker.acts.retiring import change_state
from matchmaker.state.league import League
from matchmaker.store.transaction import Transaction

FARTHEST = 1000.0
"""Points an anchor may lie from 0: a newcomer has 25, learners stay within a few dozen of it."""


def pin(league: League, tx: Transaction, name: str, mu: float | None, by: str) -> int:
    """Pins a player at `mu` points in every book, or unpins it; returns the log position then."""
    player, who = _known(league, name, by)
    position = tx.positions()[0]
    if mu is None:
        if name not in league.view.tables[Book.EVAL].anchors():
            raise InvalidInput(f"{name} is not pinned: `bin/league pin` lists those that are")
        words = f"{who}unpins {name} from log position {position + 1} on: its results rate it again"
        league.log(tx, "rating_unpinned", words, player=name, by=by)
        return position
    if player.kind is PlayerKind.LIVE:
        raise InvalidInput(f"{name} learns, so its rating moves: pin one of its snapshots")
    if not (math.isfinite(mu) and abs(mu) <= FARTHEST):
        raise InvalidInput(f"mu = {mu} is no rating: give {-FARTHEST:g} to {FARTHEST:g} points")
    words = f"{who}pins {name} at {mu:.2f} points from log position {position + 1} on"
    league.log(tx, "rating_pinned", words, player=name, mu=mu, by=by)
    return position


def quarantine(league: League, tx: Transaction, name: str, by: str, reason: str) -> PlayerState:
    """Stops drawing this player; matches that were assigned are played, results stay."""
    player, who = _known(league, name, by)
    checks.text(reason, "reason")
    if not reason.strip():
        raise InvalidInput(f"{name} is put into quarantine without a reason: say why")
    if player.kind is PlayerKind.LIVE:
        raise InvalidInput(f"{name} learns and is no opponent: stop it, or name its snapshots")
    if player.state is PlayerState.QUARANTINED:
        raise InvalidInput(f"{name} is in quarantine already")
    if player.state is PlayerState.CANDIDATE:
        raise Refused(f"{name} is not drawn while its gate is open: wait until that is decided")
    words = f"{who}puts {name} into quarantine: {reason}"
    state, was = PlayerState.QUARANTINED, player.state.value
    change_state(league, tx, player, state, "player_quarantined", words, by=by, was=was)
    return state


def release(league: League, tx: Transaction, name: str, by: str) -> PlayerState:
    """Ends a quarantine; returns the state that the player had before, active or retired."""
    player, who = _known(league, name, by)
    if player.state is not PlayerState.QUARANTINED:
        raise InvalidInput(f"{name} is in no quarantine, but {player.state.value}")
    quarantines = [json.loads(event.data_json) for event in tx.events_of("player_quarantined")]
    state = PlayerState([data["was"] for data in quarantines if data["player"] == name][-1])
    words = f"{who}releases {name} from quarantine: it is {state.value}"
    change_state(league, tx, player, state, "player_released", words, by=by, state=state.value)
    return state


def _known(league: League, name: str, by: str) -> tuple[Player, str]:
    """The player, and who acts as the beginning of a sentence."""
    checks.text(by, "by", checks.MAX_NAME)
    return league.player(name), f"{by} " if by else ""
