"""Results come in: each is accepted exactly once, or refused with a reason."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import replace

from league.errors import InvalidInput
from league.players import Event, MatchResult, Verdict
from matchmaker import checks
from matchmaker.league import League
from matchmaker.store.base import AssignmentRow, IncarnationRow, ResultRow, Transaction

_CLOSED = {
    "released": "its lease was handed back",
    "abandoned": "its worker started anew since",
}


def report_results(
    league: League, tx: Transaction, number: int, results: Sequence[MatchResult | Verdict]
) -> tuple[list[Verdict], int]:
    """Takes results in, in order; a `Verdict` among them was refused while it was decoded.

    Returns:
        A verdict for each, and the position of the newest result of the log.
    """
    checks.number(len(results), "results in one call", 0, checks.MAX_BATCH)
    incarnation = league.incarnation(tx, number)
    verdicts: list[Verdict] = []
    rows: list[ResultRow] = []
    taken: dict[str, Verdict] = {}
    for result in results:
        if isinstance(result, Verdict):
            verdicts.append(result)
            continue
        try:
            verdict, row = _take(league, tx, incarnation, result, taken)
        except InvalidInput as error:
            verdict, row = _refused(result, str(error)), None
        verdicts.append(verdict)
        if row is not None:
            rows.append(row)
            taken[row.match_id] = verdict
    if rows:
        tx.close_leases([row.ordinal for row in rows], "reported", league.clock.now(), "")
        league.log_all(tx, [_event(league, row) for row in rows])
        tx.after_commit(lambda: league.view.add_results(rows))
    return verdicts, max([league.view.log_position, *(row.position for row in rows)])


def _take(
    league: League,
    tx: Transaction,
    incarnation: IncarnationRow,
    result: MatchResult,
    taken: Mapping[str, Verdict],
) -> tuple[Verdict, ResultRow | None]:
    checks.result(result)
    lease = tx.assignment(result.match_id)
    if lease is None:
        return _refused(result, f"match {result.match_id} is unknown: it was never assigned"), None
    if not hmac.compare_digest(lease.lease_token.encode(), result.lease_token.encode()):
        return _refused(result, "the lease token is not the one that was handed out"), None
    if result.match_id in taken:
        return replace(taken[result.match_id], duplicate=True), None
    if lease.lease_state == "reported":
        return _duplicate(tx, lease), None
    reason = _objection(lease, incarnation, result, league)
    if reason:
        return _refused(result, reason), None
    row = tx.add_result(result, lease, league.clock.now(), lease.lease_state == "expired")
    return Verdict(match_id=result.match_id, accepted=True, log_position=row.position), row


def _duplicate(tx: Transaction, lease: AssignmentRow) -> Verdict:
    known = tx.result(lease.ordinal)
    assert known is not None  # the lease says so, and both are written in one transaction
    return Verdict(match_id=lease.match_id, accepted=True, duplicate=True, log_position=known.position)


def _objection(lease: AssignmentRow, incarnation: IncarnationRow, result: MatchResult, league: League) -> str:
    """Why a well-formed first result can't be taken, "" when it can."""
    if lease.incarnation != incarnation.number:
        return f"the lease belongs to incarnation {lease.incarnation}, not {incarnation.number}"
    if incarnation.fenced_by is not None:
        return f"incarnation {incarnation.number} is fenced: {incarnation.fenced_by} took its place"
    if lease.lease_state in _CLOSED:
        return f"{_CLOSED[lease.lease_state]}"
    for seat, name in enumerate((lease.seat0, lease.seat1)):
        reported = result.seats[seat]
        if reported.player != name:
            return f"seat {seat} was assigned to {name}, not {reported.player[:80]!r}"
        digest = league.view.players[name].digest
        if reported.digest != digest:
            return f"{name} was assigned with digest {digest!r}, not {reported.digest[:80]!r}"
    return ""


def _refused(result: MatchResult, reason: str) -> Verdict:
    return Verdict(match_id=result.match_id, accepted=False, reason=reason)


def _event(league: League, row: ResultRow) -> Event:
    how = {1.0: "beats", 0.5: "draws with", 0.0: "loses to"}[row.outcome]
    text = f"{row.seat0} {how} {row.seat1}"
    if row.failed:
        text = f"{row.seat0} against {row.seat1} failed: {row.failure or 'no reason given'}"
    data = {
        "match_id": row.match_id,
        "position": row.position,
        "book": row.book.value,
        "outcome": row.outcome,
    }
    return league.event("result", text, data)
