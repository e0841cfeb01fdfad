"""What the tables hold, row by row, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from league.players import Book


@dataclass(frozen=True, kw_only=True)
class IncarnationRow:
    number: int
    worker: str
    player: str
    checkpoint_step: int
    checkpoint_log_position: int
    opened_at: float
    event_position: int
    fenced_by: int | None


@dataclass(frozen=True, kw_only=True)
class BeatRow:
    incarnation: int
    at: float
    progress: int
    step: int
    mix: str
    activity: str
    metrics_json: str


@dataclass(frozen=True, kw_only=True)
class DrawRow:
    """What the assignments of one call were drawn from. `number` 0: not stored yet."""

    number: int
    policy_hash: str
    log_position: int
    event_position: int
    body_json: str
    stream: int | None = None
    """Seed of the stream that its matches are drawn from; None in older logs, where each has its
    own.
    """


class AssignmentRow(NamedTuple):
    """An assignment and the state of its lease."""

    ordinal: int
    match_id: str
    lease_token: str
    incarnation: int
    lease_state: str
    lease_deadline: float
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
    closed_at: float | None = None
    close_reason: str = ""


class ResultRow(NamedTuple):
    """A committed result with what ratings need of its assignment."""

    position: int
    ordinal: int
    match_id: str
    incarnation: int
    seat0: str
    seat1: str
    book: Book
    outcome: float
    frames: int
    failed: bool
    failure: str
    finished_at: float
    received_at: float
    late: bool
    lost_by: int | None
    step0: int
    """Learner steps behind the weights of seat 0 when the match began."""
    step1: int
    end_step0: int
    """And when it ended: a learner's weights change meanwhile."""
    end_step1: int
    stats: bytes
    """Both seats' behaviour numbers, for `Reader.stats`."""

    @property
    def rated(self) -> bool:
        """Whether ratings and payoffs take it in (a player against itself they skip by
        themselves).
        """
        return not self.failed and self.lost_by is None


@dataclass(frozen=True, kw_only=True)
class AggregateRow:
    """What memory held up to a result, packed (see `matchmaker.state.aggregates`)."""

    log_position: int
    event_position: int
    at: float
    digest: str
    body: bytes
