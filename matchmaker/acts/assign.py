"""Assigns matches: drawn from a mix, paired by name, or carried over a restart."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from league.errors import InvalidInput, NotFound, Refused
from league.players import Assignment, Book, Pairing, Player, PlayerKind, PlayerState
from matchmaker import limits
from matchmaker.acts import checks
from matchmaker.sampling.draw import DrawTable, Stream, derived_seed, draw_table, draws
from matchmaker.state.league import League
from matchmaker.store.rows import AssignmentRow, IncarnationRow
from matchmaker.store.transaction import Transaction

MAX_COUNT = 1024
GAUNTLET, GATE = "gauntlet", "gate"
ID_DIGITS, TOKEN_DIGITS = 22, 32
"""Random hexadecimal digits in a match's id, after its ordinal, and in a lease's token."""
_UNPLAYABLE = (PlayerKind.LIVE, PlayerKind.HUMAN)


def acquire_matches(
    league: League, tx: Transaction, number: int, count: int, mix: str
) -> list[Assignment]:
    """Leases `count` matches of the incarnation's learner against opponents drawn by a mix."""
    checks.number(count, "count", 1, MAX_COUNT)
    checks.text(mix, "mix", checks.MAX_NAME)
    incarnation = league.current_incarnation(tx, number)
    learner = _learner(league, incarnation)
    _check_room(league, tx, number, count)
    draw_number, table = _draw_table(league, tx, learner, mix)
    lease, ordinals = _new_lease(league, number), _next_ordinals(league, count)
    stream = _stream(league.seed)
    drawings = draws(table.shares, table.within, stream, ordinals, table.matches_per_draw)
    rows = [
        lease._replace(
            ordinal=ordinal,
            match_id=match_id,
            lease_token=token,
            seat0=drawn.opponent if drawn.learner_seat else learner.name,
            seat1=learner.name if drawn.learner_seat else drawn.opponent,
            learner_seat=drawn.learner_seat,
            seed=drawn.match_seed,
            category=drawn.category,
            mix=mix,
            draw=draw_number,
            draw_seed=stream.seed,
            probability=drawn.probability,
        )
        for ordinal, drawn, (match_id, token) in zip(
            ordinals, drawings, _ids(ordinals), strict=True
        )
    ]
    return _store(league, tx, incarnation, rows)


@lru_cache(maxsize=8)
def _stream(seed: int) -> Stream:
    """The stream of a league that all opponents are drawn from."""
    return Stream(derived_seed(seed))


def _draw_table(
    league: League, tx: Transaction, learner: Player, mix: str
) -> tuple[int, DrawTable]:
    """What the learner's opponents are drawn from, and its number in the log.

    Calls between two events of the log share a table, and its row.
    """
    view, key = league.view, (learner.name, mix)
    known = view.draws.get(key)
    if known is not None and known[0] == view.event_position:
        return known[1:]
    table = draw_table(
        league.settings, learner, mix, view.players, view.tables, view.analysis, view.exploiters
    )
    number = tx.add_draw(league.draw_row(table.body_json, _stream(league.seed).seed))
    found = view.event_position, number, table
    tx.after_commit(lambda: view.draws.update({key: found}))
    return number, table


def _next_ordinals(league: League, count: int) -> range:
    first = league.view.ordinal + 1
    return range(first, first + count)


def _new_lease(league: League, number: int) -> AssignmentRow:
    """An assignment of an incarnation from this moment on, without a match."""
    now = league.clock.now()
    return AssignmentRow(
        ordinal=0,
        match_id="",
        lease_token="",
        incarnation=number,
        lease_state="open",
        lease_deadline=now + limits.LEASE_SECONDS,
        lease_limit=now + limits.LEASE_LIMIT_SECONDS,
        assigned_at=now,
        seat0="",
        seat1="",
        learner_seat=-1,
        book=Book.TRAIN,
        seed=0,
        category="",
        mix="",
        replaces="",
        draw=None,
        draw_seed=0,
        probability=1.0,
    )


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
    ids = _ids(_next_ordinals(league, total))
    rows: list[AssignmentRow] = []
    for pairing in pairings:
        players = pairing.player, pairing.opponent
        draw_number = _add_named_draw(league, tx, "pairing", players, pairing.seed)
        for pair in range(pairing.pairs):
            seed = derived_seed(pairing.seed, pair)
            lease = _new_lease(league, number)._replace(
                book=pairing.book, seed=seed, category=GAUNTLET, draw=draw_number, draw_seed=seed
            )
            for seat0, seat1 in (players, players[::-1]):
                match_id, token = next(ids)
                rows.append(
                    lease._replace(
                        ordinal=league.view.ordinal + 1 + len(rows),
                        match_id=match_id,
                        lease_token=token,
                        seat0=seat0,
                        seat1=seat1,
                    )
                )
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
    """Leases `count` more matches between two players for a gate with `begun` earlier ones.

    Seats alternate. Each match has its own seed, for a test that wants independent matches, or
    both of a pair (`matches_per_seed` 2) have one.
    """
    incarnation = league.current_incarnation(tx, number)
    checks.number(count, "count", 1, MAX_COUNT)
    player, opponent = players
    _check_pairing(
        league, Pairing(player=player, opponent=opponent, pairs=1, book=Book.EVAL, seed=seed)
    )
    _check_room(league, tx, number, count)
    draw_number = _add_named_draw(league, tx, GATE, players, seed, begun=begun)
    ordinals = _next_ordinals(league, count)
    lease = _new_lease(league, number)._replace(book=Book.EVAL, category=GATE, draw=draw_number)
    rows = []
    for place, (ordinal, (match_id, token)) in enumerate(
        zip(ordinals, _ids(ordinals), strict=True), begun
    ):
        match_seed = derived_seed(seed, place // matches_per_seed)
        seat0, seat1 = players if place % 2 == 0 else (opponent, player)
        rows.append(
            lease._replace(
                ordinal=ordinal,
                match_id=match_id,
                lease_token=token,
                seat0=seat0,
                seat1=seat1,
                seed=match_seed,
                draw_seed=match_seed,
            )
        )
    return _store(league, tx, incarnation, rows)


def _add_named_draw(
    league: League, tx: Transaction, rule: str, players: tuple[str, str], seed: int, **more: int
) -> int:
    """Records how matches between named players came about; returns the draw's number."""
    player, opponent = players
    body = {"rule": rule, "player": player, "opponent": opponent, "seed": seed, **more}
    return tx.add_draw(league.draw_row(json.dumps(body, separators=(",", ":"))))


def carry_matches(
    league: League, tx: Transaction, incarnation: IncarnationRow, match_ids: Sequence[str]
) -> list[Assignment]:
    """Leases matches that were in progress at a checkpoint again: same seats, seed and book.

    Raises:
        NotFound: a match that was never assigned.
        InvalidInput: another worker's, or finished before the checkpoint.
    """
    if len(set(match_ids)) != len(match_ids):
        raise InvalidInput("carried_matches names a match twice: name each once")
    rows, ordinals = [], _next_ordinals(league, len(match_ids))
    lease = _new_lease(league, incarnation.number)
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
                incarnation=lease.incarnation,
                lease_state=lease.lease_state,
                lease_deadline=lease.lease_deadline,
                lease_limit=lease.lease_limit,
                assigned_at=lease.assigned_at,
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


def _check_room(league: League, tx: Transaction, number: int, count: int) -> None:
    held, limit = tx.open_leases(number)[0], limits.MAX_OPEN_LEASES
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


def _ids(ordinals: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Ids of new matches, and their leases' tokens.

    A match's id begins with its ordinal, so that ids that were made together are stored together:
    in a long log, ids without order would touch a page of the file each.
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
