"""Assigns matches to workers. Either a learner's opponent is drawn from a mix (categories of
opponents with weights), or a worker names both players. After a restart, a worker can continue the
matches that it was playing at its checkpoint.

A worker gets a lease on each of its matches. A lease ends when the match's result is reported, when
it is released, when it expires without progress, or when a restart abandons it. An expired lease no
longer counts toward the worker's open leases. If the match's result comes later, the result is
still accepted once, unless the worker was restarted.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from league.errors import InvalidInput, NotFound, Refused
from league.players import Assignment, Book, Pairing, Player, PlayerKind, PlayerState
from matchmaker import limits
from matchmaker.acts import checks
from matchmaker.sampling.draw import DrawTable, Stream, derived_seed, draw_table, draws
from matchmaker.state.league import League
from matchmaker.state.view import KnownDraw
from matchmaker.store.pairings import Pairings, leased_now, pairing_key
from matchmaker.store.rows import GATE, AssignmentRow, IncarnationRow
from matchmaker.store.transaction import Transaction

MAX_COUNT = 1024
GAUNTLET = "gauntlet"
ID_DIGITS, TOKEN_DIGITS = 22, 32
"""Number of random hexadecimal digits in a match's id (after the ordinal), and in a lease's token.
"""
_UNPLAYABLE = (PlayerKind.LIVE, PlayerKind.HUMAN)


class _Match(NamedTuple):
    """Describes a match without its lease. The fields are those columns of `AssignmentRow` that
    belong to the match, in the same order.
    """

    seat0: str
    seat1: str
    learner_seat: int
    book: Book
    seed: int
    category: str
    mix: str
    replaces: str
    draw: int | None
    draw_seed: int
    probability: float


_MATCH = slice(AssignmentRow._fields.index("seat0"), AssignmentRow._fields.index("probability") + 1)


def acquire_matches(
    league: League, tx: Transaction, incarnation: int, count: int, mix: str
) -> list[Assignment]:
    """Leases `count` matches to the calling worker, between the learner that it trains and
    opponents drawn from a mix.

    Raises:
        Refused: the worker trains no player, or too many leases are open.
        Fenced: a newer start of the worker has replaced the caller.
    """
    checks.number(count, "count", 1, MAX_COUNT)
    checks.text(mix, "mix", checks.MAX_NAME)
    caller = league.trusted_incarnation(tx, incarnation)
    if not caller.player:
        raise Refused(f"{caller.worker} trains no player: AcquirePairings is for evaluators")
    name = caller.player
    draw, table = _draw_table(league, tx, league.view.players[name], mix)
    stream, first = _stream(league.seed), league.view.ordinal + 1
    ordinals = range(first, first + count)
    return _leased(
        league,
        tx,
        caller,
        [
            _Match(
                drawn.opponent if drawn.learner_seat else name,
                name if drawn.learner_seat else drawn.opponent,
                drawn.learner_seat,
                Book.TRAIN,
                drawn.match_seed,
                drawn.category,
                mix,
                "",
                draw,
                stream.seed,
                drawn.probability,
            )
            for drawn in draws(table.shares, table.within, stream, ordinals, table.matches_per_draw)
        ],
    )


@lru_cache(maxsize=8)
def _stream(seed: int) -> Stream:
    """Returns the stream of random numbers with which a league draws all its opponents."""
    return Stream(derived_seed(seed))


def _draw_table(
    league: League, tx: Transaction, learner: Player, mix: str
) -> tuple[int, DrawTable]:
    """Returns the table of probabilities from which the learner's opponents are drawn, and the
    table's number in the log.

    Computing a table takes milliseconds, so the last table is reused. A new result makes a table
    outdated after `limits.DRAW_SECONDS`, and any other new event makes it outdated at once. If
    tables are so expensive that they last longer, new and retired players wait, too.
    """
    view, now = league.view, league.clock.now()
    last = view.last_draw(learner.name, mix)
    if last is not None:
        is_new = 0.0 <= now - last.at < last.lasts
        if is_new or last.event_position == view.event_position:
            return last.number, last.table
    table = draw_table(
        league.sampling,
        learner,
        mix,
        view.players,
        view.tables,
        view.exploiters,
        view.analysis,
        view.steering.changes.get(mix),
    )
    number = league.add_draw(tx, table.body_json, _stream(league.seed).seed)
    drawn_from = KnownDraw(number, table, view.event_position, now, _lasts(league, now))
    tx.after_commit(lambda: view.draws.update({(learner.name, mix): drawn_from}))
    return number, table


def _lasts(league: League, now: float) -> float:
    """Returns for how many seconds a draw table may be reused, so that all learners' tables
    together take at most `limits.DRAW_SHARE` of a core.
    """
    draws, longest = league.view.draws.values(), limits.LONGEST_DRAW_SECONDS
    in_use = 1 + sum(now - draw.at < longest for draw in draws)
    seconds = in_use * len(league.view.players) * limits.DRAW_PLAYER_SECONDS
    return min(longest, max(limits.DRAW_SECONDS, seconds / limits.DRAW_SHARE))


def acquire_pairings(
    league: League, tx: Transaction, incarnation: int, pairings: Sequence[Pairing]
) -> list[Assignment]:
    """Leases matches between named players. A pairing names two players, who meet in pairs of
    matches. The two matches of a pair have the same seed and swapped seats.

    If a pairing's `until` is above 0, it is the total number of matches that the two players should
    have. The matches that already count and the matches with open leases are subtracted from this
    number, and at most the rest is leased (rounded up to whole pairs).

    A pair's seed is derived from the pair's number. With `until`, the numbers continue after all
    pairs that were ever leased for these players. So no seed is played twice, not even the seed of
    a match that never had a result.

    Raises:
        NotFound: a player does not exist.
        Refused: a player can't be paired, or too many leases are open.
    """
    caller = league.trusted_incarnation(tx, incarnation)
    for pairing in pairings:
        checks.pairing(pairing)
        for name in (pairing.player, pairing.opponent):
            check_frozen(league, name, or_human=True)
    total = sum(2 * pairing.pairs for pairing in pairings)
    checks.number(total, "matches in one call", 1, checks.MAX_BATCH)
    view, matches = league.view, list[_Match]()
    is_open = leased_now(tx) if any(pairing.until for pairing in pairings) else Pairings()
    new = Pairings()
    for pairing in pairings:
        players, pairs, first = (pairing.player, pairing.opponent), pairing.pairs, 0
        pair_of = pairing_key(pairing.book, *players)
        if pairing.until:
            counted = view.tables[pairing.book].payoff.counts(*players).games
            room = pairing.until - counted - is_open[pair_of] - new[pair_of]
            pairs, first = min(pairs, (room + 1) // 2), (view.paired[pair_of] + new[pair_of]) // 2
            if pairs <= 0:
                continue
        new[pair_of] += 2 * pairs
        draw = _named_draw(league, tx, "pairing", players, pairing.seed, begun=2 * first)
        for pair in range(first, first + pairs):
            seed = derived_seed(pairing.seed, pair)
            for seats in (players, players[::-1]):
                matches.append(_named_match(seats, pairing.book, seed, GAUNTLET, draw))
    return _leased(league, tx, caller, matches)


def lease_gate_matches(
    league: League,
    tx: Transaction,
    incarnation: IncarnationRow,
    players: tuple[str, str],
    seed: int,
    begun: int,
    count: int,
    matches_per_seed: int,
) -> list[Assignment]:
    """Leases more matches for a gate, the test that a candidate must pass to become an opponent.
    The two players swap seats after each match.

    Args:
        players: the candidate, and the victim against which it is tested.
        seed: seed from which the matches' seeds are derived.
        begun: number of matches that were already leased for this test.
        count: number of matches to lease.
        matches_per_seed: number of consecutive matches that share a seed.

    Returns:
        The assignments.
    """
    for name in players:
        check_frozen(league, name)
    draw = _named_draw(league, tx, GATE, players, seed, begun=begun)
    matches = [
        _named_match(
            players if number % 2 == 0 else players[::-1],
            Book.EVAL,
            derived_seed(seed, number // matches_per_seed),
            GATE,
            draw,
        )
        for number in range(begun, begun + count)
    ]
    return _leased(league, tx, incarnation, matches)


def _named_match(seats: tuple[str, str], book: Book, seed: int, category: str, draw: int) -> _Match:
    return _Match(*seats, -1, book, seed, category, "", "", draw, seed, 1.0)


def _named_draw(
    league: League, tx: Transaction, rule: str, players: tuple[str, str], seed: int, **more: int
) -> int:
    """Records in the log why named players were paired, and returns the record's number."""
    player, opponent = players
    body = {"rule": rule, "player": player, "opponent": opponent, "seed": seed, **more}
    return league.add_draw(tx, json.dumps(body, separators=(",", ":")))


def carry_matches(
    league: League, tx: Transaction, incarnation: IncarnationRow, match_ids: Sequence[str]
) -> list[Assignment]:
    """Leases matches again to a restarted worker, which was playing them at its checkpoint. The
    matches' seats, seeds and books (kinds of match) stay the same.

    Args:
        incarnation: the new incarnation (start) of the worker that played the matches.
        match_ids: ids of the interrupted matches.

    Raises:
        NotFound: a match was never assigned.
        InvalidInput: a match is named twice, belongs to another worker, or was finished before the
            checkpoint.
    """
    if len(set(match_ids)) != len(match_ids):
        raise InvalidInput("carried_matches names a match twice: name each once")
    assignments = tx.assignments(
        [checks.identifier(match_id, "carried match") for match_id in match_ids]
    )
    matches = []
    for match_id in match_ids:
        old = assignments.get(match_id)
        if old is None:
            raise NotFound(f"there is no match {match_id} to carry on: name ids that were assigned")
        owner = league.incarnation(tx, old.incarnation)
        if (owner.worker, owner.player) != (incarnation.worker, incarnation.player):
            raise InvalidInput(f"match {match_id} belongs to {owner.worker}: carry only your own")
        result = tx.result(old.ordinal)
        if result is not None and result.lost_by is None:
            raise InvalidInput(
                f"match {match_id} was finished at log position {result.position}, before the "
                "checkpoint: it can't be carried on"
            )
        matches.append(_Match._make(tuple(old)[_MATCH])._replace(replaces=match_id))
    return _leased(league, tx, incarnation, matches)


def check_frozen(league: League, name: str, *, or_human: bool = False) -> None:
    """Checks that a player can be paired.

    Args:
        name: the player.
        or_human: whether the player may be a person, because the calling worker is a dashboard.

    Raises:
        NotFound: there is no such player.
        Refused: the player is in quarantine, or has no fixed weights.
    """
    player = league.player(name)
    if player.state is PlayerState.QUARANTINED:
        raise Refused(f"{name} is quarantined: an operator must release it first")
    if player.kind in _UNPLAYABLE and not (or_human and player.kind is PlayerKind.HUMAN):
        kind = player.kind.value
        raise Refused(f"{name} is {kind}, without fixed weights: pair snapshots and bots")


def _leased(
    league: League, tx: Transaction, incarnation: IncarnationRow, matches: Sequence[_Match]
) -> list[Assignment]:
    """Gives each match an ordinal (its number among all assigned matches), an id, and a lease that
    starts now. An id begins with the ordinal, so new ids are neighbours in the index on ids.
    Otherwise, each new id in a long log would change a different page of the index.
    """
    if not matches:
        return []
    held, most = tx.open_leases(incarnation.number)[0], limits.MAX_OPEN_LEASES
    if held + len(matches) > most:
        raise Refused(f"{held} leases are open, {len(matches)} more exceed {most}: report some")
    now, size = league.clock.now(), ID_DIGITS + TOKEN_DIGITS
    ends = now + limits.LEASE_SECONDS, now + limits.LEASE_LIMIT_SECONDS
    digits = secrets.token_hex(size // 2 * len(matches))
    rows = []
    for number, match in enumerate(matches):
        ordinal = league.view.ordinal + 1 + number
        middle = number * size + ID_DIGITS
        match_id = f"{ordinal:010x}{digits[number * size : middle]}"
        token = digits[middle : middle + TOKEN_DIGITS]
        rows.append(
            AssignmentRow._make(
                (ordinal, match_id, token, incarnation.number, now, *match, "open", *ends, None, "")
            )
        )
    tx.add_assignments(rows)
    tx.after_commit(lambda: league.view.add_assignments(incarnation.player, rows))
    return list(assignments_of(league, rows))


def assignments_of(league: League, rows: Iterable[AssignmentRow]) -> Iterable[Assignment]:
    """Converts rows of the log to the assignments that workers receive."""
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


def release_matches(
    league: League, tx: Transaction, incarnation: int, match_ids: Sequence[str], reason: str
) -> int:
    """Takes back open leases that the calling worker gives up, and marks them as released.

    Args:
        match_ids: ids of the matches to release. If it is empty, all open leases are released.
        reason: why the matches are released, for the log.

    Returns:
        How many leases were released.

    Raises:
        NotFound: a match was never assigned.
        Fenced: a newer start of the worker has replaced the caller.
    """
    caller = league.current_incarnation(tx, incarnation)
    checks.text(reason, "reason")
    checks.number(len(match_ids), "matches in one call", 0, checks.MAX_BATCH)
    held = {row.match_id: row for row in tx.open_assignments(incarnation)}
    for match_id in match_ids:
        if match_id not in held and tx.assignment(checks.identifier(match_id, "match_id")) is None:
            raise NotFound(f"there is no match {match_id}: name ids that were assigned")
    named = set(match_ids)
    rows = [row for match_id, row in held.items() if not named or match_id in named]
    close(league, tx, rows, "released", reason or f"handed back by {caller.worker}")
    return len(rows)


def expire(league: League, tx: Transaction) -> int:
    """Expires all open leases whose deadline has passed, and returns their number."""
    due = tx.open_assignments(until=league.clock.now())
    close(league, tx, due, "expired", "no progress until the deadline, or too old")
    return len(due)


def close(
    league: League, tx: Transaction, rows: Sequence[AssignmentRow], state: str, reason: str
) -> None:
    """Closes leases for `reason`. `state` says how the leases ended, for example "expired". Logs an
    event for each incarnation (start of a worker) that held some of these leases.
    """
    for number in sorted({row.incarnation for row in rows}):
        mine = [row for row in rows if row.incarnation == number]
        worker = league.incarnation(tx, number).worker
        event = league.log(
            tx,
            f"leases_{state}",
            f"{len(mine)} of {worker}'s leases {state}: {reason}",
            worker=worker,
            incarnation=number,
            reason=reason,
            match_ids=[row.match_id for row in mine],
        )
        tx.close_leases([row.ordinal for row in mine], state, event.at, reason)
