"""Leases end: handed back, expired without progress, or abandoned by a restart.

Expiry frees the slot. A result that comes later is still taken, once, while its incarnation is its
worker's newest: nothing else was put in the match's place.
"""

from __future__ import annotations

from collections.abc import Sequence

from league.errors import NotFound
from matchmaker.acts import checks
from matchmaker.state.league import League
from matchmaker.store.rows import AssignmentRow
from matchmaker.store.transaction import Transaction


def release_matches(
    league: League, tx: Transaction, number: int, match_ids: Sequence[str], reason: str
) -> int:
    """Closes the incarnation's open leases, or those named, as released; returns how many."""
    incarnation = league.current_incarnation(tx, number)
    checks.text(reason, "reason")
    checks.number(len(match_ids), "matches in one call", 0, checks.MAX_BATCH)
    held = {row.match_id: row for row in tx.open_assignments(number)}
    for match_id in match_ids:
        if match_id not in held and tx.assignment(checks.identifier(match_id, "match_id")) is None:
            raise NotFound(f"there is no match {match_id}: name ids that were assigned")
    named = set(match_ids)
    rows = [row for match_id, row in held.items() if not named or match_id in named]
    close(league, tx, rows, "released", reason or f"handed back by {incarnation.worker}")
    return len(rows)


def sweep(league: League, tx: Transaction) -> int:
    """Expires the leases whose time is over; returns how many."""
    due = tx.open_assignments(until=league.clock.now())
    close(league, tx, due, "expired", "no progress until the deadline, or too old")
    return len(due)


def close(
    league: League, tx: Transaction, rows: Sequence[AssignmentRow], state: str, reason: str
) -> None:
    """Closes leases and records it, one event for each incarnation."""
    tx.close_leases([row.ordinal for row in rows], state, league.clock.now(), reason)
    for number in sorted({row.incarnation for row in rows}):
        ids = [row.match_id for row in rows if row.incarnation == number]
        worker = league.incarnation(tx, number).worker
        league.log(
            tx,
            f"leases_{state}",
            f"{len(ids)} of {worker}'s leases {state}: {reason}",
            worker=worker,
            incarnation=number,
            match_ids=ids,
        )
