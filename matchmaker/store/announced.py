"""Results as events: those of one call share a row of the log, which is opened when somebody
watches.

The row's position is the last of the call's results'; the ones before it are theirs, in order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from league.players import Event
from matchmaker.store.rows import ResultRow

KIND = "results"
"""Of such a row; no event that anybody sees is of this kind."""
_HOW = {1.0: "beats", 0.5: "draws with", 0.0: "loses to"}


def row_of(results: Sequence[ResultRow], at: float) -> Event:
    """The row that announces results which follow one another in the log."""
    span = {"first": results[0].position, "count": len(results)}
    return Event(
        position=0,
        at=at,
        kind=KIND,
        text=f"{len(results)} results",
        data_json=json.dumps(span, separators=(",", ":")),
    )


def span_of(data_json: str) -> tuple[int, int]:
    """Log positions (first, last) of the results that a row announces."""
    span = json.loads(data_json)
    return span["first"], span["first"] + span["count"] - 1


def events_of(results: Sequence[ResultRow], last: int) -> Iterator[Event]:
    """One event for each result of a row, whose position is `last`."""
    for position, row in enumerate(results, start=last + 1 - len(results)):
        text = f"{row.seat0} {_HOW[row.outcome]} {row.seat1}"
        if row.failed:
            text = f"{row.seat0} against {row.seat1} failed: {row.failure or 'no reason given'}"
        data = {
            "match_id": row.match_id,
            "position": row.position,
            "book": row.book.value,
            "outcome": row.outcome,
        }
        encoded = json.dumps(data, separators=(",", ":"))
        yield Event(
            position=position, at=row.received_at, kind="result", text=text, data_json=encoded
        )
