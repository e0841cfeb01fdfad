"""Players enter the league, and the oldest snapshots retire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from league.errors import AlreadyExists, InvalidInput, NotFound
from league.ids import SnapshotName
from league.players import Player, PlayerKind, PlayerState
from matchmaker.acts import checks
from matchmaker.acts.admission import open_admission, opponent_of, pass_over
from matchmaker.acts.support import first_to_retire
from matchmaker.state.league import League
from matchmaker.store.base import Transaction

IDENTITY = ("game", "kind", "role", "digest")
"""Fields that a second registration of the same player must repeat."""


def register_players(
    league: League, tx: Transaction, players: Sequence[Player], number: int = 0
) -> tuple[list[Player], list[str]]:
    """Registers players in order, parents first. The same again is fine and may raise it to a
    milestone.

    `number` is the incarnation of the worker that asks, 0 for one that has not opened any. A main's
    snapshot that must pass a gate is a candidate from then on, and its gate is open.

    Returns:
        The players as they stand, and the names retired because of ``max_saved``.
    """
    checks.number(len(players), "players in one call", 1, checks.MAX_BATCH)
    if number:
        league.current_incarnation(tx, number)
    known = dict(league.view.players)
    for player in players:
        checks.player(player, league.settings.game)
        opponent = opponent_of(league.settings, player, known)
        state = PlayerState.CANDIDATE if opponent else PlayerState.ACTIVE
        known[player.name] = _register(league, tx, known, player, state)
        if opponent:
            known |= {one.name: one for one in pass_over(league, tx, player, known)}
            open_admission(league, tx, player, opponent)
    retired = _retire(
        league, tx, known, {_lineage(p) for p in players if p.kind is PlayerKind.SNAPSHOT}
    )
    tx.after_commit(lambda: league.view.set_players(known.values()))
    return [known[player.name] for player in players], retired


def register_candidate(league: League, tx: Transaction, player: Player) -> Player:
    """Registers a snapshot that waits for its gate: nobody is drawn against it before it is
    accepted.
    """
    checks.player(player, league.settings.game)
    known = league.view.players
    entered = _register(league, tx, dict(known), player, PlayerState.CANDIDATE)
    tx.after_commit(lambda: league.view.set_players([entered]))
    return entered


def admit_candidate(league: League, tx: Transaction, candidate: Player) -> None:
    """Makes a candidate a member, in whose lineage another one may retire for it."""
    known = dict(league.view.players)
    known[candidate.name] = replace(candidate, state=PlayerState.ACTIVE)
    tx.update_player(known[candidate.name])
    retired = _retire(league, tx, known, {_lineage(candidate)})
    changed = [known[name] for name in (candidate.name, *retired)]
    tx.after_commit(lambda: league.view.set_players(changed))


def _register(
    league: League,
    tx: Transaction,
    known: dict[str, Player],
    player: Player,
    state: PlayerState = PlayerState.ACTIVE,
) -> Player:
    existing = known.get(player.name)
    if existing is not None:
        return _register_again(league, tx, existing, player)
    if player.parent and player.parent not in known:
        raise NotFound(
            f"{player.name} names {player.parent!r} as its parent, which is not registered"
        )
    if player.state is not PlayerState.ACTIVE:
        raise InvalidInput(
            f"{player.name} would enter {player.state.value}: register players as active"
        )
    created = replace(player, state=state, created_at=player.created_at or league.clock.now())
    tx.add_player(created)
    league.log(
        tx,
        "player_registered",
        f"{player.name} enters the league ({player.kind.value})",
        player=player.name,
        kind=player.kind.value,
        step=player.step,
        parent=player.parent,
        milestone=player.milestone,
    )
    return created


def _register_again(league: League, tx: Transaction, existing: Player, player: Player) -> Player:
    for name in IDENTITY:
        if getattr(existing, name) != getattr(player, name):
            raise AlreadyExists(
                f"{player.name} is registered with another {name} ({getattr(existing, name)!s:.80}, "
                f"not {getattr(player, name)!s:.80}): choose another name"
            )
    if not player.milestone or existing.milestone:
        return existing
    promoted = replace(existing, milestone=True)
    tx.update_player(promoted)
    league.log(
        tx, "milestone", f"{player.name} is a milestone now and never retires", player=player.name
    )
    return promoted


def _lineage(player: Player) -> str:
    return SnapshotName.parse(player.name).lineage


def _retire(
    league: League, tx: Transaction, known: dict[str, Player], lineages: set[str]
) -> list[str]:
    """Of each lineage keeps `max_saved` active snapshots, as far as its milestones let it."""
    retired: list[str] = []
    for lineage in sorted(lineages):
        active = [p for p in known.values() if _active_of(p, lineage)]  # in order of registration
        surplus = len(active) - league.settings.max_saved
        for player in first_to_retire(active, league.view.support)[: max(surplus, 0)]:
            known[player.name] = replace(player, state=PlayerState.RETIRED)
            tx.update_player(known[player.name])
            retired.append(player.name)
            league.log(
                tx,
                "player_retired",
                f"{player.name} retires: {lineage} keeps {league.settings.max_saved} snapshots",
                player=player.name,
            )
    return retired


def _active_of(player: Player, lineage: str) -> bool:
    return (
        player.kind is PlayerKind.SNAPSHOT
        and player.state is PlayerState.ACTIVE
        and _lineage(player) == lineage
    )
