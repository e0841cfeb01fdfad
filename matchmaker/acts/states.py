"""How a player's state changes: the row, the log's event and what is served, together or not at
all.
"""

from __future__ import annotations

from dataclasses import replace

from league.players import Player, PlayerState
from matchmaker.state.league import League
from matchmaker.store.transaction import Transaction


def change_state(
    league: League,
    tx: Transaction,
    player: Player,
    state: PlayerState,
    kind: str,
    words: str,
    /,
    **more: str,
) -> None:
    """Puts `player` into `state`, with an event of `kind` that says so in `words` and holds
    `more`.
    """
    changed = replace(player, state=state)
    tx.update_player(changed)
    league.log(tx, kind, words, player=player.name, **more)
    tx.after_commit(lambda: league.view.set_players([changed]))
