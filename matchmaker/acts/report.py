"""Accepts each result exactly once, or refuses it with a reason."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from league.errors import InvalidInput
from league.players import MatchResult, PlayerKind, PlayerState, Refusal, Verdict
from matchmaker.acts import checks
from matchmaker.acts.players import quarantine
from matchmaker.state.league import League
from matchmaker.store.rows import AssignmentRow, IncarnationRow, ResultRow
from matchmaker.store.transaction import Transaction

_STEPS = (f"{name} of seat {seat}" for seat in (0, 1) for name in ("step_start", "step_end"))
FACTS = ("outcome", "frames", "failed", *_STEPS)
"""Facts that all reports of a match must agree on. Statistics and times come from the first
report.
"""
ROUNDED = 1.001
"""Factor by which a rounded payoff may exceed the game's largest payoff."""
FAILED_IN_A_ROW = 50
"""Number of consecutive failed matches after which a rival is put into quarantine."""
_CLOSED = {
    "released": (Refusal.RELEASED, "its lease was handed back"),
    "abandoned": (Refusal.FENCED, "its lease was given up when a newer incarnation took over"),
}
"""Reason to refuse a result, by the state of its lease."""


class _Unfit(InvalidInput):
    """Refuses a result that is well-formed but can't be accepted."""

    def __init__(self, refusal: Refusal, message: str) -> None:
        super().__init__(message)
        self.refusal = refusal


def refused(match_id: str, error: InvalidInput) -> Verdict:
    """Returns the verdict on a result that can't be accepted or decoded."""
    refusal = error.refusal if isinstance(error, _Unfit) else Refusal.MALFORMED
    return Verdict(
        match_id=match_id[: checks.MAX_NAME], accepted=False, reason=str(error), refusal=refusal
    )


class Verdicts(NamedTuple):
    """Gives a verdict on each result, in order, and the newest result's position in the log."""

    verdicts: list[Verdict]
    log_position: int


def report_results(
    league: League, tx: Transaction, incarnation: int, results: Sequence[MatchResult | Verdict]
) -> Verdicts:
    """Accepts or refuses results, in order.

    Args:
        results: decoded results, or verdicts on results that could not be decoded.

    Returns:
        The verdicts, and the newest result's position in the log.

    Raises:
        NotFound: there is no such incarnation (start of a worker).
    """
    checks.number(len(results), "results in one call", 0, checks.MAX_BATCH)
    caller = league.incarnation(tx, incarnation)
    leases = tx.assignments(
        [result.match_id for result in results if isinstance(result, MatchResult)]
    )
    position = league.view.log_position
    verdicts: list[Verdict] = []
    accepted: dict[str, tuple[MatchResult, AssignmentRow]] = {}
    positions: dict[str, int] = {}
    for result in results:
        if isinstance(result, Verdict):
            verdicts.append(result)
            continue
        match_id = result.match_id
        try:
            lease = _lease(leases.get(match_id), result)
            if match_id in accepted:
                first: Sequence[float] = _facts(accepted[match_id][0])
                verdicts.append(_repeated(result, first, positions[match_id]))
            elif lease.lease_state == "reported":
                row = tx.result(lease.ordinal)
                assert row is not None  # both were written in one transaction
                verdicts.append(_repeated(result, _known(row), row.position))
            else:
                _check(lease, caller, result, league)
                position += 1
                accepted[match_id], positions[match_id] = (result, lease), position
                verdicts.append(Verdict(match_id=match_id, accepted=True, log_position=position))
        except InvalidInput as error:
            verdicts.append(refused(match_id, error))
    if accepted:
        now = league.clock.now()
        rows = tx.add_results([*accepted.values()], now)
        assert rows[-1].position == position
        tx.close_leases([row.ordinal for row in rows], "reported", now, "")
        tx.after_commit(lambda: league.view.add_results(rows))
        _set_aside_rivals(league, tx, [result for result, _ in accepted.values()])
    tx.after_commit(lambda: league.on_verdicts(verdicts))
    return Verdicts(verdicts, position)


def _set_aside_rivals(league: League, tx: Transaction, results: Sequence[MatchResult]) -> None:
    """Quarantines rivals whose last `FAILED_IN_A_ROW` matches all failed."""
    met = {seat.player for result in results for seat in result.seats}
    active = {
        name
        for name, player in ((name, league.view.players[name]) for name in met)
        if player.kind is PlayerKind.RIVAL and player.state is PlayerState.ACTIVE
    }
    failed = league.view.failed_in_a_row.copy()
    for result in results:
        for name in active & {seat.player for seat in result.seats}:
            failed[name] = failed.get(name, 0) + 1 if result.failed else 0
            if failed[name] == FAILED_IN_A_ROW:
                reason = result.failure or "their worker gave no reason"
                words = f"{FAILED_IN_A_ROW} matches in a row failed, the last as {reason}"
                quarantine(league, tx, name, False, words[: checks.MAX_TEXT], "the matchmaker")
                active.remove(name)
                failed[name] = 0
    if failed != league.view.failed_in_a_row:
        tx.after_commit(lambda: league.view.failed_in_a_row.update(failed))


def _lease(lease: AssignmentRow | None, result: MatchResult) -> AssignmentRow:
    """Returns `lease` if the result is well-formed and has the lease's token. Otherwise raises
    `InvalidInput`.
    """
    checks.result(result)
    if lease is None:
        raise _Unfit(
            Refusal.UNKNOWN_MATCH, f"match {result.match_id} is unknown: it was never assigned"
        )
    if not hmac.compare_digest(lease.lease_token.encode(), result.lease_token.encode()):
        raise _Unfit(Refusal.LEASE_TOKEN, "the lease token is not the one that was handed out")
    return lease


def _repeated(result: MatchResult, first: Sequence[float], position: int) -> Verdict:
    """Returns the verdict on a repeated report. Only the first report counts."""
    verdict = Verdict(
        match_id=result.match_id, accepted=True, duplicate=True, log_position=position
    )
    for name, was, now in zip(FACTS, first, _facts(result), strict=True):
        if was != now:
            reason = (
                f"the match was reported with {name} = {was:.15g}, and now with {now:.15g}: "
                "what was reported first stands"
            )
            return replace(verdict, accepted=False, reason=reason, refusal=Refusal.CONTRADICTION)
    return verdict


def _facts(result: MatchResult) -> tuple[float, ...]:
    steps = (step for seat in result.seats for step in (seat.step_start, seat.step_end))
    return result.outcome, result.frames, result.failed, *steps


def _known(row: ResultRow) -> tuple[float, ...]:
    return row.outcome, row.frames, row.failed, row.step0, row.end_step0, row.step1, row.end_step1


def _check(
    lease: AssignmentRow, incarnation: IncarnationRow, result: MatchResult, league: League
) -> None:
    """Checks the first well-formed report of a match. An unacceptable report raises `_Unfit`."""
    if lease.incarnation != incarnation.number:
        raise _Unfit(
            Refusal.OTHER_INCARNATION,
            f"the lease belongs to incarnation {lease.incarnation}, not {incarnation.number}",
        )
    if refusal := league.view.quarantines.sentence(incarnation.worker):
        raise _Unfit(Refusal.QUARANTINED, refusal)
    if incarnation.fenced_by is not None:
        raise _Unfit(
            Refusal.FENCED,
            f"incarnation {incarnation.number} is fenced: {incarnation.fenced_by} took its place",
        )
    if lease.lease_state in _CLOSED:
        raise _Unfit(*_CLOSED[lease.lease_state])
    for seat, (name, reported) in enumerate(
        zip((lease.seat0, lease.seat1), result.seats, strict=True)
    ):
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
        paid, most = reported.stats.get("payoff", 0.0), league.settings.largest_payoff
        if most is not None and abs(paid) > most * ROUNDED:
            raise _Unfit(
                Refusal.MALFORMED,
                f"{name} was paid {paid:g}, but a match of {league.settings.game} pays at most "
                f"{most:g}: correct the game's largest_payoff if it can pay more",
            )
