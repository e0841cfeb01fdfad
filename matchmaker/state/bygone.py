"""Workers, leases and results as they were at a moment: what the tables hold of later is left out.

Leases and workers are known by the clock, for the log gives them no place among the results. Of a
worker's beats only the newest is kept: where that came later, what the worker did then is not
known.
"""

from __future__ import annotations

import json
from collections import Counter

from league.players import Event
from matchmaker.state.history import Moment
from matchmaker.store.base import Reader
from matchmaker.store.rows import AssignmentRow, BeatRow, IncarnationRow, ResultRow

_OPENED = """
SELECT max(number) FROM incarnations WHERE event_position <= :event_position GROUP BY worker ORDER BY 1
"""
_HANDED_OUT = """
SELECT a.incarnation, a.lease_state, a.lease_deadline, a.closed_at, r.position, r.late
FROM assignments a LEFT JOIN results r USING (ordinal) WHERE a.assigned_at <= :at
"""
_LAST_MIX = """
SELECT mix FROM assignments WHERE incarnation = :number AND mix != '' AND assigned_at <= :at
ORDER BY ordinal DESC LIMIT 1
"""


def lease_state_at(
    moment: Moment | None,
    state: str,
    deadline: float,
    closed_at: float | None,
    result: tuple[int, bool] | None,
) -> str:
    """The state, then, of a lease that had been handed out by then; without a moment, as it is.

    Args:
        result: log position of its result, if it has one, and whether that came late.
    """
    if moment is None:
        return state
    if result is not None:
        position, late = result
        if position <= moment.log_position:
            return "reported"
        return "expired" if late and deadline <= moment.at else "open"
    return state if closed_at is not None and closed_at <= moment.at else "open"


def open_leases_at(reader: Reader, moment: Moment) -> Counter[int]:
    """How many leases each incarnation held open."""
    found: Counter[int] = Counter()
    for number, state, deadline, closed_at, position, late in reader.select(
        _HANDED_OUT, at=moment.at
    ):
        result = None if position is None else (position, bool(late))
        if lease_state_at(moment, state, deadline, closed_at, result) == "open":
            found[number] += 1
    return found


def match_at(
    moment: Moment | None, row: AssignmentRow, result: ResultRow | None
) -> tuple[AssignmentRow, ResultRow | None]:
    """A match that had been handed out by then, and its result if it had one, whether lost by
    then or not.
    """
    if moment is None:
        return row, result
    came = None if result is None else (result.position, result.late)
    state = lease_state_at(moment, row.lease_state, row.lease_deadline, row.closed_at, came)
    return row._replace(lease_state=state), result if state == "reported" else None


def workers_at(reader: Reader, moment: Moment | None) -> list[IncarnationRow]:
    """The newest incarnation of each worker."""
    if moment is None:
        return reader.newest_incarnations()
    rows = reader.select(_OPENED, event_position=moment.event_position)
    found = (reader.incarnation(number) for (number,) in rows)
    return [row for row in found if row is not None]


def beat_at(reader: Reader, number: int, moment: Moment | None) -> BeatRow | None:
    """The newest beat of an incarnation; None where it came after the moment."""
    beat = reader.beat(number)
    return beat if beat is None or moment is None or beat.at <= moment.at else None


def mix_at(reader: Reader, number: int, moment: Moment | None) -> str:
    """The mix that an incarnation without a known beat drew from last; "" where it drew none."""
    if moment is None:
        return ""
    found = reader.select(_LAST_MIX, number=number, at=moment.at)
    return str(found[0][0]) if found else ""


def had_happened(event: Event, moment: Moment | None) -> bool:
    """Whether the log held an event: results come in with others, and one of them may be the
    last.
    """
    if moment is None:
        return True
    if event.position > moment.event_position:
        return False
    return event.kind != "result" or json.loads(event.data_json)["position"] <= moment.log_position
