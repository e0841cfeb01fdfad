"""Settings of the evaluator, section ``[evaluator]``."""

from __future__ import annotations

from pydantic import Field, field_validator

from league.settings.base import Settings

FIRST_SHARE = 0.5
"""Share of a snapshot's matches that it plays at once. The other matches are allocated later."""


class EvaluatorSettings(Settings):
    """How many clean matches a snapshot plays, and on how much of the machine."""

    matches_per_snapshot: int = Field(default=60, ge=6, le=100_000)
    """Clean matches for each snapshot, on average: half of them when it is new, the others
    between the players whose ratings are least certain. Requests count too, a milestone's
    matches come on top.
    """

    milestone_matches: int = Field(default=400, ge=4, le=100_000)
    """Matches (even) of a milestone against every bot, and half that number greedy: 400 give a
    95 % interval of ±5 points at most.
    """

    device: str = Field(default="cpu", pattern=r"^(cpu|cuda(:\d+)?)$")
    """Where its networks run: cpu, cuda, or a certain GPU as cuda:1."""

    nice: int = Field(default=10, ge=0, le=19)
    """Its nice value while learners train, so that they go first on the same cores: at 0 both are
    equal, at 10 it gets a tenth of a core that another process wants as well and a twentieth of
    one that two others want, at 19 hardly more than they leave.
    """

    @field_validator("milestone_matches")
    @classmethod
    def _even(cls, count: int) -> int:
        if count % 2:
            raise ValueError("must be even, for every seed is played from both seats")
        return count

    @property
    def first_matches(self) -> int:
        """Matches that a new snapshot plays at once."""
        return 2 * round(self.matches_per_snapshot * FIRST_SHARE / 2)

    @property
    def greedy_matches(self) -> int:
        """Greedy matches of a milestone against each bot."""
        return 2 * round(self.milestone_matches / 4)
