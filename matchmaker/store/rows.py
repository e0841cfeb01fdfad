"""Defines the rows of the store's tables, with fields in the order of the columns, and their
checksum.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from league.players import Book

GATE = "gate"
"""Category of the matches of gates (tests of candidates)."""


def checksum(values: Iterable[Any]) -> int:
    """Returns the checksum of a row's values, which must be in the stored form (`as_stored`)."""
    return zlib.crc32("\x1f".join(map(str, values)).encode())


def as_stored(row: Iterable[Any]) -> tuple[Any, ...]:
    """Returns a row's values in their stored form: the form in which SQLite returns them."""
    return tuple(
        [value if type(value) is str or type(value) is int else _number(value) for value in row]
    )


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return value + 0.0 if isinstance(value, float) else value  # SQLite does not keep -0.0


def sealed(row: Iterable[Any]) -> tuple[Any, ...]:
    """Returns a row in the stored form with its checksum."""
    values = as_stored(row)
    return *values, checksum(values)


class IncarnationRow(NamedTuple):
    """Describes an incarnation, which is a start of a worker. `number` is 0 until the row is
    stored.
    """

    number: int
    worker: str
    player: str
    checkpoint_step: int
    checkpoint_log_position: int
    opened_at: float
    event_position: int
    fenced_by: int | None = None


class BeatRow(NamedTuple):
    incarnation: int
    at: float
    progress: int
    step: int
    mix: str
    activity: str
    metrics_json: str


class DrawRow(NamedTuple):
    """Records why matches were made: the probabilities from which opponents are drawn, or the
    pairing of named players. `number` is 0 until the row is stored.
    """

    number: int
    policy_hash: str
    log_position: int
    event_position: int
    stream: int | None
    """Seed of the draws' random stream, None for matches paired by name."""
    body_json: str


class AssignmentRow(NamedTuple):
    """Describes a match that was assigned to a worker, and the worker's lease on it. The fields
    from `lease_state` on belong to the lease and change. The other fields never change.
    """

    ordinal: int
    match_id: str
    lease_token: str
    incarnation: int
    assigned_at: float
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
    lease_state: str
    lease_deadline: float
    lease_limit: float
    """Latest deadline to which progress may extend the lease."""
    closed_at: float | None = None
    close_reason: str = ""


class ResultRow(NamedTuple):
    """Describes a committed result: the columns of its table, then columns of its assignment."""

    position: int
    ordinal: int
    event_position: int
    incarnation: int
    outcome: float
    frames: int
    failed: bool
    failure: str
    finished_at: float
    received_at: float
    late: bool
    step0: int
    """Learner steps of seat 0's weights when the match began."""
    step1: int
    end_step0: int
    """Learner steps of seat 0's weights when the match ended. A learner's weights change during a
    match.
    """
    end_step1: int
    stats_json: str
    match_id: str
    seat0: str
    seat1: str
    book: Book
    category: str
    lost_by: int | None = None
    """The incarnation whose start marked the result as lost, None while the result counts."""

    @property
    def rated(self) -> bool:
        """Returns whether ratings and payoffs count the result. Both leave out the matches of gates
        (tests of candidates), because a gate may stop as soon as its scores are clear, which biases
        the scores.
        """
        return not self.failed and self.lost_by is None and self.category != GATE

    @property
    def stats(self) -> list[dict[str, float]]:
        """Returns the statistics of seat 0 and seat 1."""
        stats: list[dict[str, float]] = json.loads(self.stats_json)
        return stats


class FoldRow(NamedTuple):
    """Stores the state that follows from the log up to a result, so that a restart need not read
    the whole log.
    """

    log_position: int
    event_position: int
    version: int
    at: float
    body: bytes
