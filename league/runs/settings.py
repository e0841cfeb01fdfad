"""Defines the settings of a run's processes: its learners and its evaluator."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from league.settings.base import Settings

SHARED = ("agent", "cluster", "curriculum", "evaluator", "exploiter", "game", "learner",
          "matchmaker", "regularisation")  # fmt: skip
"""Sections that learners and evaluators on other machines take from the league. The other sections
are about a machine's own processes, ports and certificates.
"""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


class LearnerEntry(Settings):
    """One of a run's learners. Each learner is a process."""

    name: str = Field(min_length=1)
    """Name of the player that learns; its files are in learner-NAME of the run's folder."""
    role: Literal["main", "main_exploiter", "league_exploiter"] = "main"
    """Mains make up the league, exploiters look for weaknesses."""
    set: tuple[str, ...] = ()
    """Settings that only this learner has, as on the command line: "learner.ent_coef=0.02"."""


class SupervisorSettings(Settings):
    """Which processes a run has."""

    learners: tuple[LearnerEntry, ...] = (LearnerEntry(name="main"),)
    """The learners that run side by side; the run ends when its mains have done their steps. An
    empty list makes a league that waits for learners (bin/learner) until Ctrl-C.
    """

    evaluators: int = Field(default=1, ge=0, le=16)
    """Evaluators to run; they share the work. 0 leaves all processor time to training, and the
    leaderboard stays empty.
    """

    @field_validator("learners")
    @classmethod
    def _check_names(cls, learners: tuple[LearnerEntry, ...]) -> tuple[LearnerEntry, ...]:
        names = [learner.name for learner in learners]
        for name in names:
            if not _NAME.fullmatch(name):
                raise ValueError(
                    f"{name!r} can't name a learner: up to 40 of a-z 0-9 _ -, as main-exploiter"
                )
            if names.count(name) > 1:
                raise ValueError(f"two learners are called {name!r}: names must differ")
        if learners and not any(learner.role == "main" for learner in learners):
            raise ValueError("at least one learner must have the role main")
        return learners

    @model_validator(mode="after")
    def _check_gates(self) -> Self:
        if not self.evaluators and any(learner.role != "main" for learner in self.learners):
            raise ValueError("the evaluator plays exploiters' gates: set evaluators = 1")
        return self
