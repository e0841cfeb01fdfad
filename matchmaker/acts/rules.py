"""Moves a league to another version of the game's rules.

Ratings and payoffs begin again, so results under different rules are never mixed.
"""

from __future__ import annotations

from dataclasses import replace

from league.gates import GateState
from league.players import PlayerState
from matchmaker.acts.analyse import is_active_snapshot
from matchmaker.acts.assign import close
from matchmaker.acts.gate import close_gate
from matchmaker.acts.players import change_state
from matchmaker.state.league import GAME_VERSION, League


def change_rules(league: League) -> None:
    """Begins new ratings and payoffs if the settings name another version of the game's rules than
    the log.

    Open leases, and the open gates (tests) of candidates, end. Snapshots retire, because their
    cards (`Player.card_json`) name the old rules. Workers must be started again.
    """
    game, version = league.settings.game, league.settings.game_version
    with league.store.write() as tx:
        before = tx.meta(GAME_VERSION)
        if not version or version == before:
            return
        reason = f"{game} has version {version} of its rules now, not {before}"
        close(league, tx, tx.open_assignments(), "abandoned", reason)
        for gate in league.view.exploiters.open_gates():
            close_gate(league, tx, replace(gate, state=GateState.UNDECIDED, reason=reason))
        for player in filter(is_active_snapshot, league.view.players.values()):
            words = f"{player.name} retires: {reason}"
            change_state(league, tx, player, PlayerState.RETIRED, "player_retired", words)
        text = f"{reason}: ratings and payoffs begin again"
        league.log(tx, "rules_changed", text, before=before, version=version)
        tx.set_meta(GAME_VERSION, version)
