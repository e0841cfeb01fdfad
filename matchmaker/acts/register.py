"""Registers players and candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from league.errors import AlreadyExists, InvalidInput, NotFound
from league.exploiters import CandidateGate
from league.ids import SnapshotName
from league.players import Player, PlayerKind, PlayerState
from matchmaker.acts import checks
from matchmaker.acts.gate import open_gate, opponent_of, pass_over
from matchmaker.acts.retiring import retire_surplus
from matchmaker.state.league import League
from matchmaker.store.transaction import Transaction

IDENTITY = ("game", "kind", "role", "digest")
"""Fields that a second registration of the same player must repeat."""


def register_players(
    league: League, tx: Transaction, players: Sequence[Player], number: int = 0
) -> tuple[list[Player], list[str]]:
    """Registers players in order, parents first, for incarnation `number` if there is one; returns
    them, and the names retired because of `max_saved`.

    The same again is fine and may raise a player to a milestone. A main's snapshot that must pass a
    gate is a candidate, and its gate is open.
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
            open_gate(league, tx, player, [opponent])
    snapshots = [player for player in players if player.kind is PlayerKind.SNAPSHOT]
    lineages = {SnapshotName.parse(player.name).lineage for player in snapshots}
    retired = retire_surplus(league, tx, known, lineages)
    tx.after_commit(lambda: league.view.set_players(known.values()))
    return [known[player.name] for player in players], retired


def register_candidate(
    league: League, tx: Transaction, number: int, player: Player
) -> CandidateGate:
    """Registers an exploiter's frozen snapshot as a candidate and opens its gate, once."""
    incarnation = league.current_incarnation(tx, number)
    generation = league.view.exploiters.by_player.get(incarnation.player)
    if generation is None:
        raise InvalidInput(f"{incarnation.worker} trains no exploiter's generation")
    if player.kind is not PlayerKind.SNAPSHOT or player.role is not generation.role:
        raise InvalidInput(
            f"{player.name[: checks.MAX_NAME]} is no snapshot of a {generation.role.value}: "
            f"{generation.learner} freezes those"
        )
    checks.player(player, league.settings.game)
    entered = _register(league, tx, dict(league.view.players), player, PlayerState.CANDIDATE)
    tx.after_commit(lambda: league.view.set_players([entered]))
    known = league.view.exploiters.gates.get(player.name)
    return known or open_gate(league, tx, player, generation.victims, generation)


def _register(
    league: League, tx: Transaction, known: dict[str, Player], player: Player, state: PlayerState
) -> Player:
    existing = known.get(player.name)
    if existing is not None:
        return _register_again(league, tx, existing, player)
    if player.parent and player.parent not in known:
        raise NotFound(f"the parent {player.parent!r} of {player.name} is not registered")
    if player.state is not PlayerState.ACTIVE:
        raise InvalidInput(f"{player.name} is {player.state.value}: register players as active")
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
        known, now = getattr(existing, name), getattr(player, name)
        if known != now:
            raise AlreadyExists(
                f"{player.name} is registered with another {name} ({known!s:.80}, "
                f"not {now!s:.80}): choose another name"
            )
    if not player.milestone or existing.milestone:
        return existing
    promoted = replace(existing, milestone=True)
    tx.update_player(promoted)
    league.log(
        tx, "milestone", f"{player.name} is a milestone now and never retires", player=player.name
    )
    return promoted
