"""The rows of the store's tables as immutable values, their fields in the order of the columns, and
the checksum that each row is stored with.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from league.players import Book

GATE = "gate"
"""Category of the matches of gates."""


def checksum(values: Iterable[Any]) -> int:
    """The checksum of a row's values, as SQLite gives them back."""
    return zlib.crc32("\x1f".join(map(str, values)).encode())


def as_stored(row: Iterable[Any]) -> tuple[Any, ...]:
    """The values that SQLite gives back of a row."""
    return tuple(
        [value if type(value) is str or type(value) is int else _number(value) for value in row]
    )


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return value + 0.0 if isinstance(value, float) else value  # it keeps no -0.0


def sealed(row: Iterable[Any]) -> tuple[Any, ...]:
    """A row in the stored form, with its checksum."""
    values = as_stored(row)
    return *values, checksum(values)


class IncarnationRow(NamedTuple):
    """A worker's process; `number` is 0 until it is stored."""

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
    """What assignments were drawn from. `number` is 0 until it is stored."""

    number: int
    policy_hash: str
    log_position: int
    event_position: int
    stream: int | None
    """Seed of the stream that the matches are drawn from; None for matches paired by name."""
    body_json: str


class AssignmentRow(NamedTuple):
    """An assignment, which never changes, and from `lease_state` on its lease, which does."""

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
    """The latest deadline that progress may move the lease to."""
    closed_at: float | None = None
    close_reason: str = ""


class ResultRow(NamedTuple):
    """A committed result: the columns of its table, then what ratings need of its assignment."""

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
    """Learner steps of the weights of seat 0 when the match began."""
    step1: int
    end_step0: int
    """And when it ended: a learner's weights change meanwhile."""
    end_step1: int
    stats_json: str
    match_id: str
    seat0: str
    seat1: str
    book: Book
    category: str
    lost_by: int | None = None
    """The incarnation whose restart took the result back, None while it counts."""

    @property
    def rated(self) -> bool:
        """Whether ratings and payoffs count it: a gate's matches stop on luck."""
        return not self.failed and self.lost_by is None and self.category != GATE

    @property
    def stats(self) -> list[dict[str, float]]:
        """Behaviour statistics of seat 0 and of seat 1."""
        stats: list[dict[str, float]] = json.loads(self.stats_json)
        return stats


class FoldRow(NamedTuple):
    """What memory held after a result, so that a restart need not fold the log from its start."""

    log_position: int
    event_position: int
    version: int
    at: float
    body: bytes
