"""What the terminal shows, as frozen values: a picture is a pure function of one `Screen`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from league.cluster.crew import ProcessFacts
from league.exploiters import CandidateGate
from league.players import LeagueStatus, PayoffCell, PlayerKind, Rating, WorkerStatus

if TYPE_CHECKING:
    from league.stats.ratings.cross_check import CrossCheck


@dataclass(frozen=True, kw_only=True)
class Note:
    """Something that happened, as one sentence. `at` in Unix seconds."""

    at: float
    text: str
    is_trouble: bool = False


@dataclass(frozen=True, kw_only=True)
class Exam:
    """The newest evaluated snapshot against one bot, in clean matches: sampled, and greedy."""

    player: str
    opponent: str
    sampled: PayoffCell | None = None
    greedy: PayoffCell | None = None


@dataclass(frozen=True, kw_only=True)
class EvaluatorFacts:
    """What the evaluator does now."""

    current: str
    matches_done: int
    matches_total: int
    queue: tuple[str, ...]
    gauntlets_done: int
    drained: bool


@dataclass(frozen=True, kw_only=True)
class LeagueFacts:
    """The league as last read. `trouble` says why it could not be read, "" when it could.

    `steps` and `target_steps` are those of the learner that leads (`leading`, its worker's name:
    the first main), kept while it restarts.
    """

    leading: str = ""
    steps: int = 0
    target_steps: int = 0
    status: LeagueStatus | None = None
    ratings: tuple[Rating, ...] = ()
    opinion: CrossCheck | None = None
    exams: tuple[Exam, ...] = ()
    snapshots: int = 0
    newest: str = ""
    gates: tuple[CandidateGate, ...] | None = None
    evaluator: EvaluatorFacts | None = None
    speeds: tuple[float, ...] = ()
    win_rates: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    trouble: str = ""

    @property
    def learner(self) -> WorkerStatus | None:
        """The worker that leads, or the first that trains a live player."""
        training = [worker for worker in self.workers if worker.player]
        return next(
            (one for one in training if one.worker == self.leading),
            training[0] if training else None,
        )

    @property
    def workers(self) -> tuple[WorkerStatus, ...]:
        return self.status.workers if self.status is not None else ()

    @property
    def metrics(self) -> Mapping[str, float]:
        return self.learner.metrics if self.learner is not None else {}

    @property
    def best_bot_rank(self) -> int | None:
        ranks = [rating.rank for rating in self.ratings if rating.player.kind is PlayerKind.BOT]
        return min(ranks, default=None)


@dataclass(frozen=True, kw_only=True)
class Screen:
    """Everything on the terminal at one moment. Times are Unix seconds."""

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

    @property
    def steps(self) -> int:
        return self.league.steps

    @property
    def target_steps(self) -> int:
        return self.league.target_steps

    @property
    def done_share(self) -> float:
        """Share of the steps done, in [0, 1]."""
        return min(1.0, self.steps / self.target_steps) if self.target_steps else 0.0

    @property
    def seconds_left(self) -> float | None:
        return self.league.metrics.get("progress/seconds_left")
