"""Matches are handed out: drawn from a mix, paired by name, or carried over a restart."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from league.errors import InvalidInput, NotFound, Refused
from league.ids import new_id
from league.players import Assignment, Book, Pairing, Player, PlayerKind, PlayerState
from matchmaker import checks
from matchmaker.candidates import draw_table
from matchmaker.league import League
from matchmaker.sampling import derived_seed, draw
from matchmaker.store.base import AssignmentRow, DrawRow, IncarnationRow, Transaction

MAX_COUNT = 1024
GAUNTLET = "gauntlet"
_UNPLAYABLE = (PlayerKind.LIVE, PlayerKind.HUMAN)


def acquire_matches(league: League, tx: Transaction, number: int, count: int, mix: str) -> list[Assignment]:
    """Leases `count` matches of the incarnation's learner against opponents drawn by a mix."""
    checks.number(count, "count", 1, MAX_COUNT)
    incarnation = league.current_incarnation(tx, number)
    learner = _learner(league, incarnation)
    _check_room(league, tx, number, count)
    view = league.view
    table = draw_table(league.settings, learner, mix, view.players, view.tables)
    draw_number = tx.add_draw(_draw_row(league, table.body_json))
    rows = []
    for ordinal in range(view.ordinal + 1, view.ordinal + 1 + count):
        draw_seed = derived_seed(league.seed, ordinal)
        drawn = draw(table.shares, table.within, draw_seed)
        seats = (learner.name, drawn.opponent)
        rows.append(
            _fresh(
                league,
                incarnation,
                ordinal,
                seat0=seats[drawn.learner_seat],
                seat1=seats[1 - drawn.learner_seat],
                learner_seat=drawn.learner_seat,
                seed=drawn.match_seed,
                category=drawn.category,
                mix=mix,
                draw=draw_number,
                draw_seed=draw_seed,
                probability=drawn.probability,
            )
        )
    return _store(league, tx, incarnation, rows)


def acquire_pairings(
    league: League, tx: Transaction, number: int, pairings: Sequence[Pairing]
) -> list[Assignment]:
    """Leases matches between named players: each pair is one seed with the seats swapped."""
    incarnation = league.current_incarnation(tx, number)
    for pairing in pairings:
        _check_pairing(league, pairing)
    total = sum(2 * pairing.pairs for pairing in pairings)
    checks.number(total, "matches in one call", 1, checks.MAX_BATCH)
    _check_room(league, tx, number, total)
    rows: list[AssignmentRow] = []
    for pairing in pairings:
        body = {
            "rule": "pairing",
            "player": pairing.player,
            "opponent": pairing.opponent,
            "seed": pairing.seed,
        }
        draw_number = tx.add_draw(_draw_row(league, json.dumps(body, separators=(",", ":"))))
        for pair in range(pairing.pairs):
            seed = derived_seed(pairing.seed, pair)
            for seats in ((pairing.player, pairing.opponent), (pairing.opponent, pairing.player)):
                rows.append(
                    _fresh(
                        league,
                        incarnation,
                        league.view.ordinal + 1 + len(rows),
                        seat0=seats[0],
                        seat1=seats[1],
                        book=pairing.book,
                        seed=seed,
                        category=GAUNTLET,
                        draw=draw_number,
                        draw_seed=seed,
                    )
                )
    return _store(league, tx, incarnation, rows)


def carry_matches(
    league: League, tx: Transaction, incarnation: IncarnationRow, match_ids: Sequence[str]
) -> list[Assignment]:
    """Leases matches in progress at a checkpoint anew, same seats, seed, category and book.

    Raises:
        NotFound: a match that was never assigned.
        InvalidInput: another worker's, or finished before the checkpoint.
    """
    if len(set(match_ids)) != len(match_ids):
        raise InvalidInput("carried_matches names a match twice: name each once")
    rows = []
    for ordinal, match_id in enumerate(match_ids, start=league.view.ordinal + 1):
        old = tx.assignment(checks.identifier(match_id, "carried match"))
        if old is None:
            raise NotFound(f"there is no match {match_id} to carry on: name ids that were assigned")
        _check_carried(league, tx, incarnation, old)
        rows.append(
            replace(
                old,
                ordinal=ordinal,
                match_id=new_id(),
                lease_token=new_id(),
                incarnation=incarnation.number,
                lease_state="open",
                lease_deadline=league.clock.now() + league.settings.lease_seconds,
                assigned_at=league.clock.now(),
                closed_at=None,
                close_reason="",
                replaces=match_id,
            )
        )
    return _store(league, tx, incarnation, rows) if rows else []


def _check_carried(league: League, tx: Transaction, incarnation: IncarnationRow, old: AssignmentRow) -> None:
    owner = league.incarnation(tx, old.incarnation)
    if owner.worker != incarnation.worker or owner.player != incarnation.player:
        raise InvalidInput(f"match {old.match_id} belongs to {owner.worker}: carry only your own")
    result = tx.result(old.ordinal)
    if result is not None and result.lost_by is None:
        raise InvalidInput(
            f"match {old.match_id} was finished at log position {result.position}, before the checkpoint: "
            f"it can't be carried on"
        )


def _learner(league: League, incarnation: IncarnationRow) -> Player:
    if not incarnation.player:
        raise Refused(f"{incarnation.worker} trains no player: AcquirePairings is for evaluators")
    return league.view.players[incarnation.player]


def _check_room(league: League, tx: Transaction, number: int, count: int) -> None:
    held, limit = tx.open_count(number), league.settings.max_open_leases
    if held + count > limit:
        raise Refused(f"{held} leases are open and {count} more exceed {limit}: report or release some")


def _check_pairing(league: League, pairing: Pairing) -> None:
    checks.pairing(pairing)
    for name in (pairing.player, pairing.opponent):
        player = league.view.players.get(name)
        if player is None:
            raise NotFound(f"there is no player {name!r}: register it first")
        if player.state is PlayerState.QUARANTINED:
            raise Refused(f"{name} is quarantined: an operator must release it first")
        if player.kind in _UNPLAYABLE:
            raise Refused(f"{name} is {player.kind.value}, without fixed weights: pair snapshots and bots")


def _draw_row(league: League, body_json: str) -> DrawRow:
    return DrawRow(
        number=0,
        policy_hash=league.settings.policy_hash(),
        log_position=league.view.log_position,
        event_position=league.view.event_position,
        body_json=body_json,
    )


def _fresh(league: League, incarnation: IncarnationRow, ordinal: int, **drawn: Any) -> AssignmentRow:
    """An open lease from now on; `drawn` says who plays what and why."""
    now = league.clock.now()
    defaults: dict[str, Any] = {
        "learner_seat": -1,
        "book": Book.TRAIN,
        "mix": "",
        "replaces": "",
        "probability": 1.0,
    }
    return AssignmentRow(
        ordinal=ordinal,
        match_id=new_id(),
        lease_token=new_id(),
        incarnation=incarnation.number,
        lease_state="open",
        lease_deadline=now + league.settings.lease_seconds,
        assigned_at=now,
        **(defaults | drawn),
    )


def _store(
    league: League, tx: Transaction, incarnation: IncarnationRow, rows: Sequence[AssignmentRow]
) -> list[Assignment]:
    tx.add_assignments(rows)
    tx.after_commit(lambda: league.view.add_assignments(incarnation.player, rows))
    return list(assignments_of(league, rows))


def assignments_of(league: League, rows: Iterable[AssignmentRow]) -> Iterable[Assignment]:
    """Rows as workers see them."""
    for row in rows:
        yield Assignment(
            match_id=row.match_id,
            ordinal=row.ordinal,
            lease_token=row.lease_token,
            lease_deadline=row.lease_deadline,
            seats=(league.view.players[row.seat0], league.view.players[row.seat1]),
            learner_seat=row.learner_seat,
            book=row.book,
            seed=row.seed,
            category=row.category,
            replaces=row.replaces,
        )
