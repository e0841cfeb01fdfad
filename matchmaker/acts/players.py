"""Registers, retires, brings back, pins and quarantines players. Adds and removes rivals."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from league.errors import AlreadyExists, InvalidInput, NotFound, Refused
from league.gates import CandidateGate
from league.ids import SnapshotName
from league.players import CATEGORIES, Book, Player, PlayerKind, PlayerState, Role
from matchmaker.acts import checks
from matchmaker.acts.analyse import retire_surplus
from matchmaker.acts.evaluate import cancel_those_of
from matchmaker.acts.gate import begin_gate, opponent_of, pass_over
from matchmaker.state.league import League
from matchmaker.store.transaction import Transaction

IDENTITY = ("game", "kind", "role", "digest")
"""Fields that a second registration of the same player must repeat."""
FARTHEST = 1000.0
"""Most points by which a pinned rating (an anchor) may differ from 0. A newcomer has 25 points, and
learners stay within a few dozen points of 25.
"""


class Registered(NamedTuple):
    """Lists players in their present state, and the names of snapshots that retired because of
    `max_saved`.
    """

    players: list[Player]
    retired: list[str]


class References(NamedTuple):
    """Names the references (frozen copies that regularise a learner's training) that retired or
    returned.
    """

    retired: list[str]
    returned: list[str]


def register_players(
    league: League, tx: Transaction, players: Sequence[Player], incarnation: int = 0
) -> Registered:
    """Registers players in order, so parents must come before their children. A registration is
    safe to repeat. A repeated registration may make a player a milestone (a snapshot that never
    retires), and changes nothing else.

    A main's snapshot that must pass a gate (a test against an earlier snapshot) becomes a
    candidate, and its gate opens.

    Args:
        players: the players.
        incarnation: the calling worker's incarnation, 0 if the caller is not a worker.

    Raises:
        AlreadyExists: a name belongs to another player.
        NotFound: a parent is not registered.
        InvalidInput: a player's field is out of bounds.
    """
    checks.number(len(players), "players in one call", 1, checks.MAX_BATCH)
    if incarnation:
        league.current_incarnation(tx, incarnation)
    by_name = dict(league.view.players)
    for player in players:
        checks.player(player, league.settings.game)
        if player.kind is PlayerKind.RIVAL:
            raise InvalidInput(f"{player.name} is a rival, which an operator adds: bin/league add")
        opponent = opponent_of(league.settings, player, by_name)
        state = PlayerState.CANDIDATE if opponent else PlayerState.ACTIVE
        by_name[player.name] = _register(league, tx, by_name, player, state)
        if opponent:
            by_name |= {passed.name: passed for passed in pass_over(league, tx, player, by_name)}
            begin_gate(league, tx, player, [opponent])
    snapshots = [player for player in players if player.kind is PlayerKind.SNAPSHOT]
    lineages = {SnapshotName.parse(player.name).lineage for player in snapshots}
    retired = retire_surplus(league, tx, by_name, lineages)
    tx.after_commit(lambda: league.view.set_players(by_name.values()))
    return Registered([by_name[player.name] for player in players], retired)


def open_gate(league: League, tx: Transaction, incarnation: int, player: Player) -> CandidateGate:
    """Registers an exploiter's snapshot as a candidate, and opens its gate (the test that it must
    pass to become an opponent). A repeated call changes nothing.

    Raises:
        InvalidInput: the worker trains no exploiter, or `player` is not a snapshot of that
            exploiter.
    """
    caller = league.current_incarnation(tx, incarnation)
    generation = league.view.exploiters.by_player.get(caller.player)
    if generation is None:
        raise InvalidInput(f"{caller.worker} trains no exploiter's generation")
    if player.kind is not PlayerKind.SNAPSHOT or player.role is not generation.role:
        raise InvalidInput(
            f"{player.name[: checks.MAX_NAME]} is no snapshot of a {generation.role.value}: "
            f"{generation.learner} freezes those"
        )
    checks.player(player, league.settings.game)
    entered = _register(league, tx, dict(league.view.players), player, PlayerState.CANDIDATE)
    tx.after_commit(lambda: league.view.set_players([entered]))
    gate = league.view.exploiters.gates.get(player.name)
    return gate or begin_gate(league, tx, player, generation.victims, generation)


def _register(
    league: League, tx: Transaction, by_name: dict[str, Player], player: Player, state: PlayerState
) -> Player:
    existing = by_name.get(player.name)
    if existing is not None:
        return _register_again(league, tx, existing, player)
    if player.parent and player.parent not in by_name:
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
        before, now = getattr(existing, name), getattr(player, name)
        if before != now:
            raise AlreadyExists(
                f"{player.name} is registered with another {name} ({before!s:.80}, "
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
    """Changes a player's state, and logs an event. `kind` is the event's kind, `words` is its text,
    and `more` are its further fields.
    """
    changed = replace(player, state=state)
    tx.update_player(changed)
    league.log(tx, kind, words, player=player.name, **more)
    tx.after_commit(lambda: league.view.set_players([changed]))


def add_rival(league: League, tx: Transaction, player: Player, by: str) -> PlayerState:
    """Registers a rival (another person's agent), or brings a removed rival back. A repeated call
    is safe.

    Raises:
        AlreadyExists: another player has the name.
        InvalidInput: the player is no rival, or a field is out of bounds.
    """
    checks.text(by, "by", checks.MAX_NAME)
    checks.player(player, league.settings.game)
    if player.kind is not PlayerKind.RIVAL or player.role is not Role.NONE:
        raise InvalidInput(f"{player.name} is a {player.kind.value}: only a rival can be added")
    if player.name in CATEGORIES:
        raise InvalidInput(f"{player.name} is a category of mixes: give the rival another name")
    known = _register(league, tx, dict(league.view.players), player, PlayerState.ACTIVE)
    if known.state is PlayerState.RETIRED:
        words = f"{f'{by} returns' if by else 'an operator returns'} {player.name} to the league"
        change_state(league, tx, known, PlayerState.ACTIVE, "player_returned", words, by=by)
        return PlayerState.ACTIVE
    tx.after_commit(lambda: league.view.set_players([known]))
    return known.state


def remove_rival(league: League, tx: Transaction, player: str, by: str) -> PlayerState:
    """Retires a rival (another person's agent). Matches that were already assigned are still
    played, and the rival's results stay.

    Raises:
        NotFound: there is no such player.
        InvalidInput: the player is no rival, or retired already.
        Refused: the rival is in quarantine.
    """
    target, who = _known(league, player, by)
    if target.kind is not PlayerKind.RIVAL:
        raise InvalidInput(
            f"{player} is a {target.kind.value}, and only rivals can be removed: quarantine it"
        )
    if target.state is PlayerState.QUARANTINED:
        raise Refused(f"{player} is in quarantine and gets no matches: release it first")
    if target.state is PlayerState.RETIRED:
        raise InvalidInput(f"{player} is removed already")
    words = f"{who}removes {player} from the league" if who else f"{player} is removed"
    change_state(league, tx, target, PlayerState.RETIRED, "player_retired", words, by=by)
    cancel_those_of(league, tx, player, by or "an operator", f"{player} was removed")
    return PlayerState.RETIRED


def keep_references(
    league: League, tx: Transaction, incarnation: int, names: Sequence[str]
) -> References:
    """Makes `names` the only active references of the calling worker: retires its other references,
    and brings retired references in `names` back. References are frozen copies of a learner that
    regularise its training.

    Args:
        names: the references that the learner's regularisation uses now.

    Returns:
        The names of references that retired or returned, in order of registration.

    Raises:
        InvalidInput: a name is not a reference of the worker.
    """
    checks.number(len(names), "references", 0, checks.MAX_BATCH)
    worker = league.current_incarnation(tx, incarnation).worker
    mine = {
        player.name: player
        for player in league.view.players.values()
        if player.kind is PlayerKind.REFERENCE and player.creator == worker
    }
    for name in names:
        if name not in mine:
            raise InvalidInput(f"{name[:80]!r} is no reference of {worker}: register it first")
    leaves = [
        player
        for name, player in mine.items()
        if player.state is PlayerState.ACTIVE and name not in names
    ]
    returns = [
        player
        for name, player in mine.items()
        if player.state is PlayerState.RETIRED and name in names
    ]
    for player in leaves:
        words = f"{player.name} retires: {worker} holds no learner near it any more"
        change_state(league, tx, player, PlayerState.RETIRED, "player_retired", words)
    for player in returns:
        words = f"{player.name} is back: {worker} returned to a checkpoint that has it"
        change_state(league, tx, player, PlayerState.ACTIVE, "player_returned", words)
    return References([player.name for player in leaves], [player.name for player in returns])


def pin_rating(
    league: League, tx: Transaction, player: str, mu: float, unpin: bool, by: str
) -> int:
    """Pins a player's rating at `mu` points in every book (one for each kind of match), or ends the
    pin. A pinned rating never changes, but still affects the ratings of opponents.

    Args:
        mu: the rating, in points.
        unpin: whether to end the pin instead.

    Raises:
        NotFound: there is no such player.
        InvalidInput: the player learns, is not pinned, or `mu` is not a possible rating.
    """
    target, who = _known(league, player, by)
    position = tx.positions()[0]
    if unpin:
        if player not in league.view.tables[Book.EVAL].anchors():
            raise InvalidInput(f"{player} is not pinned: `bin/league pin` lists those that are")
        words = (
            f"{who}unpins {player} from log position {position + 1} on: its results rate it again"
        )
        league.log(tx, "rating_unpinned", words, player=player, by=by)
        return position
    if target.kind is PlayerKind.LIVE:
        raise InvalidInput(f"{player} learns, so its rating moves: pin one of its snapshots")
    if not (math.isfinite(mu) and abs(mu) <= FARTHEST):
        raise InvalidInput(f"mu = {mu} is no rating: give {-FARTHEST:g} to {FARTHEST:g} points")
    words = f"{who}pins {player} at {mu:.2f} points from log position {position + 1} on"
    league.log(tx, "rating_pinned", words, player=player, mu=mu, by=by)
    return position


def quarantine(
    league: League, tx: Transaction, player: str, release: bool, reason: str, by: str
) -> PlayerState:
    """Puts a player into quarantine, so that it gets no new matches, or releases it. Matches that
    were already assigned are still played, and all results stay.

    Args:
        player: name of the player.
        release: whether to end the quarantine.
        reason: why the player is in quarantine.
        by: the person who asks.

    Raises:
        NotFound: there is no such player.
        InvalidInput: the player learns, the reason is empty, or nothing would change.
        Refused: the player's gate (its test for admission) is open.
    """
    target, who = _known(league, player, by)
    if release:
        if target.state is not PlayerState.QUARANTINED:
            raise InvalidInput(f"{player} is in no quarantine, but {target.state.value}")
        quarantines = [json.loads(event.data_json) for event in tx.events_of("player_quarantined")]
        state = PlayerState([data["was"] for data in quarantines if data["player"] == player][-1])
        words = f"{who}releases {player} from quarantine: it is {state.value}"
        change_state(league, tx, target, state, "player_released", words, by=by, state=state.value)
        return state
    checks.text(reason, "reason")
    if not reason.strip():
        raise InvalidInput(f"{player} is put into quarantine without a reason: say why")
    if target.kind is PlayerKind.LIVE:
        raise InvalidInput(f"{player} learns and is no opponent: stop it, or name its snapshots")
    if target.state is PlayerState.QUARANTINED:
        raise InvalidInput(f"{player} is in quarantine already")
    if target.state is PlayerState.CANDIDATE:
        raise Refused(f"{player} is not drawn while its gate is open: wait until that is decided")
    words = f"{who}puts {player} into quarantine: {reason}"
    state, was = PlayerState.QUARANTINED, target.state.value
    change_state(league, tx, target, state, "player_quarantined", words, by=by, was=was)
    cancel_those_of(league, tx, player, by or "an operator", f"{player} is in quarantine")
    return state


def _known(league: League, name: str, by: str) -> tuple[Player, str]:
    """Returns the player, and the beginning of a sentence for the log: the operator's name and a
    blank, or "" without a name.
    """
    checks.text(by, "by", checks.MAX_NAME)
    return league.player(name), f"{by} " if by else ""
