"""Defines the values that the terminal shows. The terminal's picture is a pure function of a
`Screen`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from league.exploiters import is_mains_snapshot
from league.gates import CandidateGate
from league.players import PayoffCell, Player, PlayerKind, Rating
from league.status import LeagueStatus, WorkerStatus
from league.v1.evaluator_pb2 import GetEvaluatorStatusResponse

MEASURED = (
    (
        "steps/s",
        ("", "rate/steps_per_second", ",.0f"),
        ("frames", "rate/frames_per_second", ",.0f"),
    ),
    ("reward", ("", "reward/episode_mean", ".3f"), ("match seconds", "match/seconds_mean", ".1f")),
    ("loss", ("policy", "loss/policy", ".3f"), ("value", "loss/value", ".3f")),
    ("policy", ("entropy", "policy/entropy", ".3f"), ("KL", "policy/approx_kl", ".3f")),
    ("", ("clipped", "policy/clip_fraction", ".3f"), ("rate", "learning/rate", ".1e")),
    ("value", ("explained variance", "value/explained_variance", ".3f")),
)
"""The measurements of a learner, line by line: the line's name, and each number's label, metric and
format.
"""


class State(Enum):
    """Lists the states of a league's process."""

    RUNNING = "running"
    WAITING = "waiting"
    STOPPING = "stopping"
    DONE = "done"
    STOPPED = "stopped"
    KILLED = "killed"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class ProcessFacts:
    """Describes a process of the league. Times are Unix seconds."""

    name: str
    state: State
    pid: int
    started_at: float
    restarts: int


@dataclass(frozen=True, kw_only=True)
class Note:
    """Holds an event as a sentence. `at` is in Unix seconds."""

    at: float
    text: str
    is_trouble: bool = False


@dataclass(frozen=True, kw_only=True)
class LeagueFacts:
    """Holds the league as last read.

    The mains are the players that the league trains to be strong, unlike exploiters, which look
    for weaknesses. A clean match is a match on which no learner trains.

    Attributes:
        leading: the worker name of the first main's learner.
        steps, target_steps: that learner's steps so far, and the steps at which its training ends.
            The last known values are kept while the learner restarts.
        evaluations: clean matches against each bot. The matches of the mains' newest snapshots are
            added up, starting with the newest snapshot, until there are enough.
        snapshots: number of active snapshots of the mains.
        newest: the newest of these snapshots.
        trouble: the reason why the league could not be read, or "".
    """

    leading: str = ""
    steps: int = 0
    target_steps: int = 0
    status: LeagueStatus | None = None
    ratings: tuple[Rating, ...] = ()
    evaluations: tuple[PayoffCell, ...] = ()
    snapshots: int = 0
    newest: str = ""
    gates: tuple[CandidateGate, ...] = ()
    evaluator: GetEvaluatorStatusResponse | None = None
    trouble: str = ""

    @property
    def workers(self) -> tuple[WorkerStatus, ...]:
        return self.status.workers if self.status is not None else ()

    @property
    def active(self) -> str:
        """The number of active snapshots, as text."""
        return f"{self.snapshots:,} active snapshot{'' if self.snapshots == 1 else 's'}"

    @property
    def learner(self) -> WorkerStatus | None:
        """The worker called `leading`, or else the first worker that trains a live player."""
        training = [worker for worker in self.workers if worker.player]
        return min(training, key=lambda worker: worker.worker != self.leading, default=None)

    @property
    def metrics(self) -> Mapping[str, float]:
        return self.learner.metrics if self.learner is not None else {}

    @property
    def win_rates(self) -> dict[str, float]:
        """Shares of recent wins in training, by kind of opponent."""
        names = [name for name in self.metrics if name.startswith("winrate/")]
        return {name.removeprefix("winrate/"): self.metrics[name] for name in names}

    @property
    def newest_rated(self) -> Player | None:
        """The newest snapshot of the mains that has a rating."""
        snapshots = [rating.player for rating in self.ratings if is_mains_snapshot(rating.player)]
        return max(snapshots, key=lambda player: player.step, default=None)

    def best(self, room: int) -> list[Rating]:
        """Returns at most `room` ratings, best first. The best player, the newest rated snapshot,
        and the bots take precedence, in this order. Further good players fill the rest.
        """

        def priority(rating: Rating) -> int:
            if rating is self.ratings[0]:
                return 0
            if rating.player == self.newest_rated:
                return 1
            return 2 if rating.player.kind is PlayerKind.BOT else 3

        shown = sorted(self.ratings, key=priority)[: max(1, room)]
        return [rating for rating in self.ratings if rating in shown]


@dataclass(frozen=True, kw_only=True)
class Screen:
    """Holds the content of the terminal at a moment. Times are Unix seconds."""

    run_dir: str
    preset: str
    device: str
    started_at: float
    now: float
    phase: str = "training"
    league: LeagueFacts = field(default_factory=LeagueFacts)
    processes: tuple[ProcessFacts, ...] = ()
    notes: tuple[Note, ...] = ()
    logs_dir: str = ""
    learners: tuple[str, ...] = ()
    dashboard: str = ""
    """The dashboard's address, "" without a dashboard."""
    usage: str = ""
    """The disk and the GPUs that the run takes, in words."""

    @property
    def done_share(self) -> float:
        """Share of the target steps that are done, in [0, 1]."""
        target = self.league.target_steps
        return min(1.0, self.league.steps / target) if target else 0.0

    @property
    def seconds_left(self) -> float | None:
        return self.league.metrics.get("progress/seconds_left")
