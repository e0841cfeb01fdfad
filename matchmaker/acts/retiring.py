"""Changes players' states; retires references, and snapshots above `max_saved`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from league.errors import InvalidInput
from league.ids import SnapshotName
from league.players import Player, PlayerKind, PlayerState
from matchmaker.acts import checks
from matchmaker.acts.analyse import first_to_retire, is_active_snapshot
from matchmaker.state.league import League
from matchmaker.store.transaction import Transaction

ACTIVE, RETIRED = PlayerState.ACTIVE, PlayerState.RETIRED


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
    """Puts `player` into `state`, with an event of `kind` that says so in `words`, with `more`."""
    changed = replace(player, state=state)
    tx.update_player(changed)
    league.log(tx, kind, words, player=player.name, **more)
    tx.after_commit(lambda: league.view.set_players([changed]))


def keep_references(
    league: League, tx: Transaction, number: int, names: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Retires the references that incarnation `number`'s worker made and does not name; one that it
    names again is active again. Returns the names of both, in order of registration.
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
    leaves = [one for name, one in mine.items() if one.state is ACTIVE and name not in names]
    returns = [one for name, one in mine.items() if one.state is RETIRED and name in names]
    for player in leaves:
        words = f"{player.name} retires: {worker} holds no learner near it any more"
        change_state(league, tx, player, RETIRED, "player_retired", words)
    for player in returns:
        words = f"{player.name} is back: {worker} returned to a checkpoint that has it"
        change_state(league, tx, player, ACTIVE, "player_returned", words)
    return [player.name for player in leaves], [player.name for player in returns]


def retire_surplus(
    league: League, tx: Transaction, known: dict[str, Player], lineages: set[str]
) -> list[str]:
    """Keeps `max_saved` active snapshots of each lineage, as far as its milestones allow.

    Those that retire are changed in `known`, all players in order of registration, and returned.
    """
    retired: list[str] = []
    most = league.settings.max_saved
    for lineage in sorted(lineages):
        active = [
            player
            for player in known.values()
            if is_active_snapshot(player) and SnapshotName.parse(player.name).lineage == lineage
        ]
        for player in first_to_retire(active, league.view.analysis)[: max(len(active) - most, 0)]:
            known[player.name] = replace(player, state=RETIRED)
            tx.update_player(known[player.name])
            words = f"{player.name} retires: {lineage} keeps {most} snapshots"
            league.log(tx, "player_retired", words, player=player.name)
            retired.append(player.name)
    return retired
