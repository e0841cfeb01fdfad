"""Matches are handed out: drawn from a mix, paired by name, or carried over a restart."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from league.errors import InvalidInput, NotFound, Refused
from league.players import Assignment, Book, Pairing, Player, PlayerKind, PlayerState
from matchmaker.acts import checks
from matchmaker.sampling import kept_draws
from matchmaker.sampling.draw import derived_seed, draws
from matchmaker.state.league import League
from matchmaker.store.base import Transaction
from matchmaker.store.rows import AssignmentRow, DrawRow, IncarnationRow

MAX_COUNT = 1024
GAUNTLET, GATE = "gauntlet", "gate"
ID_DIGITS, TOKEN_DIGITS = 22, 32
"""Hexadecimal ones of chance, in a match's id behind its ordinal and in a lease's token."""
_UNPLAYABLE = (PlayerKind.LIVE, PlayerKind.HUMAN)


def acquire_matches(
    league: League, tx: Transaction, number: int, count: int, mix: str
) -> list[Assignment]:
    """Leases `count` matches of the incarnation's learner against opponents drawn by a mix."""
    checks.number(count, "count", 1, MAX_COUNT)
    checks.text(mix, "mix", checks.MAX_NAME)
    incarnation = league.current_incarnation(tx, number)
    learner = _learner(league, incarnation)
    _check_room(league, number, count)
    kept = kept_draws.current(league, tx, learner, mix)
    ordinals = range(league.view.ordinal + 1, league.view.ordinal + 1 + count)
    now = league.clock.now()
    deadline, rows = now + league.settings.lease_seconds, []
    table = kept.table
    drawings = draws(table.shares, table.within, kept.stream, ordinals, table.matches_per_draw)
    for ordinal, drawn, (match_id, token) in zip(ordinals, drawings, _ids(ordinals), strict=True):
        seat = drawn.learner_seat
        rows.append(
            AssignmentRow(  # in the order of its fields: names would take as long as all the rest
                ordinal,
                match_id,
                token,
                number,
                "open",
                deadline,
                now,
                drawn.opponent if seat else learner.name,
                learner.name if seat else drawn.opponent,
                seat,
                Book.TRAIN,
                drawn.match_seed,
                drawn.category,
                mix,
                "",
                kept.number,
                kept.stream.seed,
                drawn.probability,
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
    _check_room(league, number, total)
    now = league.clock.now()
    deadline = now + league.settings.lease_seconds
    ids = _ids(range(league.view.ordinal + 1, league.view.ordinal + 1 + total))
    rows: list[AssignmentRow] = []
    for pairing in pairings:
        draw_number = tx.add_draw(_pairing_row(league, pairing))
        for pair in range(pairing.pairs):
            seed = derived_seed(pairing.seed, pair)
            for seats in ((pairing.player, pairing.opponent), (pairing.opponent, pairing.player)):
                ordinal = league.view.ordinal + 1 + len(rows)
                lease = _Lease(ordinal, *next(ids), number, now, deadline)
                rows.append(_by_name(lease, seats, pairing.book, seed, GAUNTLET, draw_number))
    return _store(league, tx, incarnation, rows)


def lease_gate_matches(
    league: League,
    tx: Transaction,
    number: int,
    players: tuple[str, str],
    seed: int,
    begun: int,
    count: int,
    matches_per_seed: int,
) -> list[Assignment]:
    """Leases `count` more matches between two players for a gate that has begun so many before.

    The seats are taken in turn. Each match is on a seed of its own, for a test that wants matches
    which don't depend on one another, or both of a pair (`matches_per_seed` 2) on one.
    """
    incarnation = league.current_incarnation(tx, number)
    checks.number(count, "count", 1, MAX_COUNT)
    player, opponent = players
    _check_pairing(
        league, Pairing(player=player, opponent=opponent, pairs=1, book=Book.EVAL, seed=seed)
    )
    _check_room(league, number, count)
    body = {"rule": GATE, "player": player, "opponent": opponent, "seed": seed, "begun": begun}
    draw_number = tx.add_draw(league.draw_row(json.dumps(body, separators=(",", ":"))))
    now, ordinals = (
        league.clock.now(),
        range(league.view.ordinal + 1, league.view.ordinal + 1 + count),
    )
    deadline, rows = now + league.settings.lease_seconds, []
    for place, (ordinal, (match_id, token)) in enumerate(
        zip(ordinals, _ids(ordinals), strict=True), begun
    ):
        match_seed = derived_seed(seed, place // matches_per_seed)
        seats = players if place % 2 == 0 else (opponent, player)
        lease = _Lease(ordinal, match_id, token, number, now, deadline)
        rows.append(_by_name(lease, seats, Book.EVAL, match_seed, GATE, draw_number))
    return _store(league, tx, incarnation, rows)


class _Lease(NamedTuple):
    """What a new match is known by, and who plays it until when."""

    ordinal: int
    match_id: str
    token: str
    incarnation: int
    assigned_at: float
    deadline: float


def _by_name(
    lease: _Lease, seats: tuple[str, str], book: Book, seed: int, category: str, draw_number: int
) -> AssignmentRow:
    """The row of a match between named players, neither of whom learns."""
    return AssignmentRow(
        ordinal=lease.ordinal,
        match_id=lease.match_id,
        lease_token=lease.token,
        incarnation=lease.incarnation,
        lease_state="open",
        lease_deadline=lease.deadline,
        assigned_at=lease.assigned_at,
        seat0=seats[0],
        seat1=seats[1],
        learner_seat=-1,
        book=book,
        seed=seed,
        category=category,
        mix="",
        replaces="",
        draw=draw_number,
        draw_seed=seed,
        probability=1.0,
    )


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
    ordinals = range(league.view.ordinal + 1, league.view.ordinal + 1 + len(match_ids))
    now = league.clock.now()
    for ordinal, match_id, (new_id, token) in zip(ordinals, match_ids, _ids(ordinals), strict=True):
        old = tx.assignment(checks.identifier(match_id, "carried match"))
        if old is None:
            raise NotFound(f"there is no match {match_id} to carry on: name ids that were assigned")
        _check_carried(league, tx, incarnation, old)
        rows.append(
            old._replace(
                ordinal=ordinal,
                match_id=new_id,
                lease_token=token,
                incarnation=incarnation.number,
                lease_state="open",
                lease_deadline=now + league.settings.lease_seconds,
                assigned_at=now,
                closed_at=None,
                close_reason="",
                replaces=match_id,
            )
        )
    return _store(league, tx, incarnation, rows) if rows else []


def _check_carried(
    league: League, tx: Transaction, incarnation: IncarnationRow, old: AssignmentRow
) -> None:
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


def _check_room(league: League, number: int, count: int) -> None:
    held, limit = league.view.open_count[number], league.settings.max_open_leases
    if held + count > limit:
        raise Refused(
            f"{held} leases are open and {count} more exceed {limit}: report or release some"
        )


def _check_pairing(league: League, pairing: Pairing) -> None:
    checks.pairing(pairing)
    for name in (pairing.player, pairing.opponent):
        player = league.view.players.get(name)
        if player is None:
            raise NotFound(f"there is no player {name!r}: register it first")
        if player.state is PlayerState.QUARANTINED:
            raise Refused(f"{name} is quarantined: an operator must release it first")
        if player.kind in _UNPLAYABLE:
            raise Refused(
                f"{name} is {player.kind.value}, without fixed weights: pair snapshots and bots"
            )


def _pairing_row(league: League, pairing: Pairing) -> DrawRow:
    body = {
        "rule": "pairing",
        "player": pairing.player,
        "opponent": pairing.opponent,
        "seed": pairing.seed,
    }
    return league.draw_row(json.dumps(body, separators=(",", ":")))


def _ids(ordinals: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Ids of new matches, and their leases' tokens.

    A match's id begins with its ordinal, so that ids are found together that were made together: in
    a long log, ids without order would touch a page of the file each.
    """
    size = ID_DIGITS + TOKEN_DIGITS
    random = secrets.token_hex(size // 2 * len(ordinals))
    for begin, ordinal in zip(range(0, len(random), size), ordinals, strict=True):
        middle = begin + ID_DIGITS
        yield f"{ordinal:010x}{random[begin:middle]}", random[middle : begin + size]


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
