"""Describes the state of a league: its workers, their opponents, and the matchmaker itself.

A mix sets the share of a learner's matches that each category of opponents gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from league.players import Book

DASHBOARD, SERVES_PAGES = "dashboard", "serves pages"
ENDED = ("done", "stopped")
"""Activities of a worker that has stopped working."""
PAUSED = "paused"
"""Activity of a learner that waits because an operator has paused the learners."""
GAME_SERVER = "the game's server"
"""Text in the activity of a worker that can't play because of a problem with its game's server."""
SILENT_SECONDS = 30.0
"""If a worker's last heartbeat is older than this, the worker hangs or has ended. Workers send a
heartbeat every second or two.
"""

STALLED = "progress/stalled_seconds"
"""Metric: seconds since a worker last made progress. Time in which the worker sends no heartbeats,
or reports a reason to wait, does not count.
"""

CORE_WAIT = "evaluator/core_wait_share"
"""Metric: share of the time in which an evaluator could have played but had to wait for a core."""
MOST_CORE_WAIT = 0.5
"""Value of `CORE_WAIT` above which an evaluator reports that it waits for a free core."""


def at_rest(metrics: Mapping[str, float]) -> dict[str, float]:
    """Returns the metrics of a worker that has stopped working."""
    rates = {name: 0.0 for name in metrics if name.startswith("rate/")}
    return {name: one for name, one in metrics.items() if name != "progress/seconds_left"} | rates


@dataclass(frozen=True, kw_only=True)
class Share:
    """Says how often a player meets a category of opponents under its current mix.

    `configured` is the share that the settings give to the category. `realised` is the category's
    share of the matches so far. `expected` is the probability that the next opponent comes from the
    category. `expected` is 0 if the category has no players, and includes the changes that
    `matchmaker.adaptive` makes to the weights of bots.
    """

    player: str
    mix: str
    category: str
    configured: float
    expected: float
    realised: float
    matches: int
    realised_since: float = 0.0
    """Like `realised`, but only since an operator last changed the mix."""
    matches_since: int = 0


@dataclass(frozen=True, kw_only=True)
class MixChange:
    """Describes an operator's change of a mix.

    Attributes:
        number: the position of the change in the log.
        at: the time of the change, in Unix seconds.
        by: the operator.
        weights: the new weights by category. 0 removes a category.
    """

    mix: str
    number: int
    at: float
    by: str
    weights: Mapping[str, float]

    @property
    def words(self) -> str:
        """Returns the weights as text for people, such as `based = 5, random = 0`."""
        return ", ".join(f"{name} = {weight:g}" for name, weight in sorted(self.weights.items()))


@dataclass(frozen=True, kw_only=True)
class Pause:
    """Says which operator has paused the learners, and when, in Unix seconds."""

    by: str
    at: float


@dataclass(frozen=True, kw_only=True)
class WorkerStatus:
    worker: str
    incarnation: int
    player: str
    step: int
    mix: str
    activity: str
    last_beat_at: float
    metrics: Mapping[str, float]
    open_leases: int
    trouble: str = ""
    """The reason why the worker is in quarantine, or a note that its results contradict another
    worker's results. "" for most workers.
    """
    is_quarantined: bool = False
    node: str = ""
    """Name of the machine that the worker runs on, "" before its first heartbeat."""

    @property
    def doing(self) -> str:
        """The activity in words. A dashboard is a worker only while a person plays, and serves its
        pages before and after that.
        """
        is_idle = self.worker == DASHBOARD and self.activity in ENDED
        return SERVES_PAGES if is_idle else self.activity


@dataclass(frozen=True, kw_only=True)
class Vitals:
    """Describes the health of a service. Times are Unix seconds.

    If the health check answers NOT_SERVING, `trouble` is the reason. Otherwise it is "".
    """

    trouble: str = ""
    now: float = 0.0
    started_at: float = 0.0
    store_bytes: int = 0
    disk_free_bytes: int = -1
    event_position: int = 0
    assignments: int = 0


@dataclass(frozen=True, kw_only=True)
class RatingEpoch:
    """Gives the probability of a draw that a book's ratings assume for results after log position
    `after_position`.

    The probability was measured when the book had `games` rated games.
    """

    book: Book
    after_position: int
    games: int
    draw_probability: float


@dataclass(frozen=True, kw_only=True)
class LeagueStatus:
    game: str
    log_position: int
    open_leases: int
    workers: tuple[WorkerStatus, ...]
    shares: tuple[Share, ...]
    version: str
    vitals: Vitals = field(default_factory=Vitals)
    epochs: tuple[RatingEpoch, ...] = ()
    payoff_unit: str = ""
    """Unit of payoffs, such as "chips", or "" in games without payoffs."""
    changes: tuple[MixChange, ...] = ()
    """The newest change of each mix that operators changed."""
    pause: Pause | None = None

    @property
    def has_nodes(self) -> bool:
        """Whether the workers run on more than one machine."""
        return len({worker.node for worker in self.workers if worker.node}) > 1

    def is_silent(self, worker: WorkerStatus) -> bool:
        """Returns whether a worker has stopped sending heartbeats without reporting its end."""
        # After the matchmaker's start, workers get time for their first heartbeat.
        heard = max(worker.last_beat_at, self.vitals.started_at)
        is_late = self.vitals.now - heard > SILENT_SECONDS
        return is_late and worker.activity not in ENDED

    def is_running(self, worker: WorkerStatus) -> bool:
        """Returns whether a worker has sent a recent heartbeat and has not reported its end."""
        is_heard = self.vitals.now - worker.last_beat_at < SILENT_SECONDS
        return is_heard and worker.activity not in ENDED
