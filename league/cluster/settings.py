"""Settings of the supervisor: restarts, time-outs of stopping and draining, the terminal view."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from league.settings.base import Settings


class LearnerEntry(Settings):
    """One of a run's learners: a process of its own."""

    name: str = Field(min_length=1)
    """Name of the player that learns; its files lie in learner-NAME of the run's folder."""
    role: Literal["main", "main_exploiter", "league_exploiter"] = "main"
    """What it is there for: mains make the league, exploiters look for weaknesses."""
    set: tuple[str, ...] = ()
    """Settings of its own over the run's, each as on the command line: "learner.ent_coef=0.02"."""


class SupervisorSettings(Settings):
    """How a league's processes are kept alive, shown and stopped."""

    learners: tuple[LearnerEntry, ...] = (LearnerEntry(name="main"),)
    """The learners that run side by side; the run ends when its mains have done their steps."""

    evaluators: int = Field(default=1, ge=0, le=1)
    """Evaluators to run, 0 or 1. 0 leaves all processor time to training; the leaderboard stays
    empty.
    """

    even_steps: bool = True
    """Whether several learners make as many steps each: who is ahead waits for whoever is
    behind. Without, each takes what processor time it gets, for example where each has a GPU of
    its own.
    """

    restart_limit: int = Field(default=5, ge=0)
    """Restarts of one process allowed within the window; a fault that needs more is no accident."""

    restart_window_seconds: float = Field(default=300.0, gt=0)
    """Seconds over which restarts are counted."""

    restart_first_seconds: float = Field(default=0.5, ge=0)
    """Seconds before the first restart; each further one in the window waits twice as long."""

    restart_longest_seconds: float = Field(default=30.0, ge=0)
    """Longest wait before a restart, in seconds."""

    stop_worker_seconds: float = Field(default=7.0, gt=0)
    """Seconds that learner and evaluator get to stop; a learner needs up to 6 to save. All in
    all < 10.
    """

    stop_matchmaker_seconds: float = Field(default=1.0, gt=0)
    """Seconds the matchmaker gets to close, after the others; each reply is on disk already."""

    drain_seconds: float = Field(default=1800.0, ge=0)
    """Longest wait, after the last step, for the evaluator to finish its queue (seconds)."""

    refresh_seconds: float = Field(default=1.0, gt=0)
    """Seconds between two looks at the league, and two pictures of the terminal view."""

    leaderboard_seconds: float = Field(default=3.0, gt=0)
    """Seconds between two readings of ratings and payoffs, which cost more than the status."""

    curves_minutes: float = Field(default=10.0, ge=0)
    """Minutes between drawings of training_curves.png, and one more at the end; 0 never draws
    it.
    """

    line_seconds: float = Field(default=10.0, gt=0)
    """Seconds between two lines when the output is no terminal, or with --headless."""

    log_megabytes: float = Field(default=16.0, gt=0)
    """Size in MB beyond which a process's log is set aside and begun anew."""

    log_files: int = Field(default=3, ge=1)
    """Set-aside logs kept for each process."""

    @field_validator("learners")
    @classmethod
    def _named(cls, learners: tuple[LearnerEntry, ...]) -> tuple[LearnerEntry, ...]:
        names = [learner.name for learner in learners]
        for name in names:
            if not _NAME.fullmatch(name):
                raise ValueError(
                    f"{name!r} can't name a learner: up to 40 of a-z 0-9 _ -, as main-exploiter"
                )
            if names.count(name) > 1:
                raise ValueError(f"two learners are called {name!r}: give each a name of its own")
        if not any(learner.role == "main" for learner in learners):
            raise ValueError("at least one learner must have the role main")
        return learners

    @model_validator(mode="after")
    def _has_gates(self) -> Self:
        if not self.evaluators and any(learner.role != "main" for learner in self.learners):
            raise ValueError("exploiters' gates are played by the evaluator: set evaluators = 1")
        return self


_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
