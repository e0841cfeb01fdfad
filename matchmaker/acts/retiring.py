"""Which of a learner's references are drawn as opponents."""

from __future__ import annotations

from collections.abc import Sequence

from league.errors import InvalidInput
from league.players import PlayerKind, PlayerState
from matchmaker.acts import checks
from matchmaker.acts.states import change_state
from matchmaker.state.league import League
from matchmaker.store.base import Transaction


def keep_references(
    league: League, tx: Transaction, number: int, names: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Retires the references that the worker of incarnation `number` made and does not name.

    One that it names again, after going back to a checkpoint, is active again; quarantined ones
    stay.

    Returns:
        Names of those that retired, and of those that came back, in order of registration.
    """
    checks.number(len(names), "references", 0, checks.MAX_BATCH)
    worker = league.current_incarnation(tx, number).worker
    mine = {
        player.name: player
        for player in league.view.players.values()
        if player.kind is PlayerKind.REFERENCE and player.creator == worker
    }
    for name in names:
        if name not in mine:
            raise InvalidInput(f"{name[:80]!r} is no reference of {worker}: register it first")
    leaves = [
        one for one in mine.values() if one.state is PlayerState.ACTIVE and one.name not in names
    ]
    returns = [
        one for one in mine.values() if one.state is PlayerState.RETIRED and one.name in names
    ]
    for player in leaves:
        words = f"{player.name} retires: {worker} holds nobody near it any more"
        change_state(league, tx, player, PlayerState.RETIRED, "player_retired", words)
    for player in returns:
        words = f"{player.name} is back: {worker} went back to a checkpoint that has it"
        change_state(league, tx, player, PlayerState.ACTIVE, "player_returned", words)
    return [player.name for player in leaves], [player.name for player in returns]
