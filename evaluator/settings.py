"""Settings of the evaluator, section ``[evaluator]``."""

from __future__ import annotations

from pydantic import Field, field_validator

from league.settings.base import Settings

FIRST_SHARE = 0.5
"""A new snapshot plays this share of `matches_per_snapshot` at once. The rest is allocated
later.
"""


class EvaluatorSettings(Settings):
    """How many clean matches a snapshot plays, and on how much of the machine."""

    matches_per_snapshot: int = Field(default=60, ge=6, le=100_000)
    """Clean matches for each snapshot, on average. A snapshot plays half of them when it is new.
    The other half is played between the players whose ratings are least certain. Requested matches
    count toward this number, but a milestone's matches come on top.
    """

    milestone_matches: int = Field(default=400, ge=4, le=100_000)
    """Matches of a milestone against every bot, an even number. Half as many greedy matches come on
    top. 400 matches give a 95 % interval of ±5 points at most.
    """

    device: str = Field(default="cpu", pattern=r"^(cpu|cuda(:\d+)?)$")
    """Where its networks run: cpu, cuda, or a certain GPU, such as cuda:1."""

    nice: int = Field(default=10, ge=0, le=19)
    """Nice value of the evaluator while learners train, so that learners go first on the same
    cores. At 0 both get equal shares. At 10 the evaluator gets a tenth of a core that one other
    process wants too, and a twentieth of a core that two other processes want. At 19 it gets hardly
    more than the other processes leave.
    """

    @field_validator("milestone_matches")
    @classmethod
    def _even(cls, count: int) -> int:
        if count % 2:
            raise ValueError("must be even, for every seed is played from both seats")
        return count

    @property
    def first_matches(self) -> int:
        """Number of matches that a snapshot plays when it is new."""
        return 2 * round(self.matches_per_snapshot * FIRST_SHARE / 2)

    @property
    def greedy_matches(self) -> int:
        """Greedy matches of a milestone against each bot."""
        return 2 * round(self.milestone_matches / 4)
