"""Takes players whose weights an operator does not trust out of play, and back."""

from __future__ import annotations

import json

from league.errors import InvalidInput, NotFound, Refused
from league.players import Player, PlayerKind, PlayerState
from matchmaker.acts import checks
from matchmaker.acts.retiring import change_state
from matchmaker.state.league import League
from matchmaker.store.transaction import Transaction


def quarantine(league: League, tx: Transaction, name: str, by: str, *, reason: str) -> PlayerState:
    """Stops drawing this player; matches that were assigned are played, results stay."""
    player = _known(league, name, by)
    checks.text(reason, "reason")
    if not reason.strip():
        raise InvalidInput(f"{name} is put into quarantine without a reason: say why")
    if player.kind is PlayerKind.LIVE:
        raise InvalidInput(
            f"{name} learns and is no opponent: stop its learner, or name its snapshots"
        )
    if player.state is PlayerState.QUARANTINED:
        raise InvalidInput(f"{name} is in quarantine already")
    if player.state is PlayerState.CANDIDATE:
        raise Refused(f"the gate of {name} is open, so nobody draws it: wait until that is decided")
    words = f"{_who(by)}puts {name} into quarantine: {reason}"
    was = player.state.value
    change_state(
        league, tx, player, PlayerState.QUARANTINED, "player_quarantined", words, by=by, was=was
    )
    return PlayerState.QUARANTINED


def release(league: League, tx: Transaction, name: str, by: str) -> PlayerState:
    """Ends a quarantine: the player is what it would be without, active or retired; returns
    that.
    """
    player = _known(league, name, by)
    if player.state is not PlayerState.QUARANTINED:
        raise InvalidInput(f"{name} is in no quarantine, but {player.state.value}")
    quarantines = [json.loads(event.data_json) for event in tx.events_of("player_quarantined")]
    state = PlayerState([data["was"] for data in quarantines if data["player"] == name][-1])
    words = f"{_who(by)}releases {name} from quarantine: it is {state.value}"
    change_state(league, tx, player, state, "player_released", words, by=by, state=state.value)
    return state


def _known(league: League, name: str, by: str) -> Player:
    checks.text(by, "by", checks.MAX_NAME)
    player = league.view.players.get(name)
    if player is None:
        raise NotFound(
            f"there is no player {name[: checks.MAX_NAME]!r}: `bin/league players` lists them"
        )
    return player


def _who(by: str) -> str:
    return f"{by} " if by else ""
