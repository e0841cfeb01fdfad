"""Results come in: each is accepted exactly once, or refused with a reason."""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from league.errors import InvalidInput
from league.players import MatchResult, Refusal, Verdict
from matchmaker.acts import checks
from matchmaker.state.league import League
from matchmaker.store.rows import AssignmentRow, IncarnationRow, ResultRow
from matchmaker.store.transaction import Transaction

Taken = tuple[MatchResult, AssignmentRow, bool]
"""A result, its lease, and whether it came late."""
_STEPS = (f"{name} of seat {seat}" for seat in (0, 1) for name in ("step_start", "step_end"))
FACTS = ("outcome", "frames", "failed", *_STEPS)
"""What all reports of one match agree on; behaviour numbers and times are left to the first."""


class _Unfit(InvalidInput):
    """A well-formed result that can't be taken."""

    def __init__(self, refusal: Refusal, message: str) -> None:
        super().__init__(message)
        self.refusal = refusal


def refused(match_id: str, error: InvalidInput) -> Verdict:
    """The verdict on a result that can't be taken, or not even be read."""
    refusal = error.refusal if isinstance(error, _Unfit) else Refusal.MALFORMED
    return Verdict(
        match_id=match_id[: checks.MAX_NAME], accepted=False, reason=str(error), refusal=refusal
    )


def report_results(
    league: League, tx: Transaction, number: int, results: Sequence[MatchResult | Verdict]
) -> tuple[list[Verdict], int]:
    """Takes results in, in order; a `Verdict` among them was refused while it was decoded.

    Returns:
        A verdict for each, and the position of the newest result of the log.
    """
    checks.number(len(results), "results in one call", 0, checks.MAX_BATCH)
    incarnation = league.incarnation(tx, number)
    verdicts: list[Verdict | str] = []  # a match's id where the verdict is that of its result
    taken: dict[str, Taken] = {}
    for result in results:
        if isinstance(result, MatchResult):
            verdicts.append(_judged(league, tx, incarnation, result, taken))
        else:
            verdicts.append(result)
    rows = _added(league, tx, list(taken.values()))
    positions = {row.match_id: row.position for row in rows}
    newest = rows[-1].position if rows else league.view.log_position
    told = list(_told(verdicts, positions))
    tx.after_commit(lambda: league.on_verdicts(told))
    return told, newest


def _judged(
    league: League,
    tx: Transaction,
    incarnation: IncarnationRow,
    result: MatchResult,
    taken: dict[str, Taken],
) -> Verdict | str:
    """The verdict on a result that changes nothing, or the id of the match that is taken in."""
    try:
        checks.result(result)
        lease = _lease(league, tx, result)
        if result.match_id in taken:
            difference = _difference(_facts(taken[result.match_id][0]), _facts(result))
            return _contradiction(result.match_id, difference) if difference else result.match_id
        if lease.lease_state == "reported":
            return _duplicate(tx, lease, result)
        _check(lease, incarnation, result, league)
    except InvalidInput as error:
        return refused(result.match_id, error)
    taken[result.match_id] = result, lease, lease.lease_state == "expired"
    return result.match_id


def _lease(league: League, tx: Transaction, result: MatchResult) -> AssignmentRow:
    """That the result is of, if its reporter holds it."""
    lease = tx.assignment(result.match_id)
    if lease is None:
        raise _Unfit(
            Refusal.UNKNOWN_MATCH, f"match {result.match_id} is unknown: it was never assigned"
        )
    if not hmac.compare_digest(lease.lease_token.encode(), result.lease_token.encode()):
        raise _Unfit(Refusal.LEASE_TOKEN, "the lease token is not the one that was handed out")
    return lease


def _added(league: League, tx: Transaction, taken: Sequence[Taken]) -> list[ResultRow]:
    if not taken:
        return []
    now = league.clock.now()
    rows = tx.add_results(taken, now)
    tx.close_leases([row.ordinal for row in rows], "reported", now, "")
    tx.after_commit(lambda: league.view.add_results(rows))
    return rows


def _told(verdicts: Sequence[Verdict | str], positions: Mapping[str, int]) -> Iterator[Verdict]:
    """Verdicts in order; a match that a call reports twice is accepted once."""
    seen = set()
    for verdict in verdicts:
        if isinstance(verdict, Verdict):
            first = (
                verdict.duplicate and not verdict.log_position and positions.get(verdict.match_id)
            )
            yield replace(verdict, log_position=first) if first else verdict
        else:
            yield Verdict(
                match_id=verdict,
                accepted=True,
                duplicate=verdict in seen,
                log_position=positions[verdict],
            )
            seen.add(verdict)


def _duplicate(tx: Transaction, lease: AssignmentRow, result: MatchResult) -> Verdict:
    """The verdict on another report of a match whose result the log has: that one stands."""
    known = tx.result(lease.ordinal)
    assert known is not None  # the lease says so, and both are written in one transaction
    if difference := _difference(_known(known), _facts(result)):
        return replace(_contradiction(lease.match_id, difference), log_position=known.position)
    return Verdict(
        match_id=lease.match_id, accepted=True, duplicate=True, log_position=known.position
    )


def _contradiction(match_id: str, difference: str) -> Verdict:
    return Verdict(
        match_id=match_id,
        accepted=False,
        duplicate=True,
        reason=f"the match was reported with {difference}: what was reported first stands",
        refusal=Refusal.CONTRADICTION,
    )


def _facts(result: MatchResult) -> tuple[float, ...]:
    """`FACTS` of a report."""
    steps = (step for seat in result.seats for step in (seat.step_start, seat.step_end))
    return result.outcome, result.frames, result.failed, *steps


def _known(row: ResultRow) -> tuple[float, ...]:
    """`FACTS` of a result of the log."""
    return row.outcome, row.frames, row.failed, row.step0, row.end_step0, row.step1, row.end_step1


def _difference(first: Sequence[float], now: Sequence[float]) -> str:
    """The first thing that two reports don't agree on, in words; empty if there is none."""
    for name, was, says in zip(FACTS, first, now, strict=True):
        if was != says:
            return f"{name} = {was:.15g}, and now with {says:.15g}"
    return ""


def _check(
    lease: AssignmentRow, incarnation: IncarnationRow, result: MatchResult, league: League
) -> None:
    """Raises `_Unfit` when a well-formed first result can't be taken."""
    if lease.incarnation != incarnation.number:
        raise _Unfit(
            Refusal.OTHER_INCARNATION,
            f"the lease belongs to incarnation {lease.incarnation}, not {incarnation.number}",
        )
    if incarnation.fenced_by is not None:
        raise _Unfit(
            Refusal.FENCED,
            f"incarnation {incarnation.number} is fenced: {incarnation.fenced_by} took its place",
        )
    if lease.lease_state == "released":
        raise _Unfit(Refusal.RELEASED, "its lease was handed back")
    if lease.lease_state == "abandoned":
        raise _Unfit(Refusal.FENCED, "its lease was given up when a newer incarnation took over")
    for seat, name in enumerate((lease.seat0, lease.seat1)):
        reported = result.seats[seat]
        if reported.player != name:
            raise _Unfit(
                Refusal.WRONG_PLAYER,
                f"seat {seat} was assigned to {name}, not {reported.player[:80]!r}",
            )
        digest = league.view.players[name].digest
        if reported.digest != digest:
            raise _Unfit(
                Refusal.WRONG_DIGEST,
                f"{name} was assigned with digest {digest!r}, not {reported.digest[:80]!r}",
            )
