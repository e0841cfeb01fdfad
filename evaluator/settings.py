"""Settings of the evaluator, section ``[evaluator]``."""

from __future__ import annotations

from pydantic import Field, field_validator

from league.settings.base import Settings


class EvaluatorSettings(Settings):
    """How many clean matches a snapshot plays, and on how much of the machine."""

    matches_per_opponent: int = Field(default=100, ge=2, le=100_000)
    """Matches (even) of an ordinary gauntlet against each opponent: 100 separate 90 % from
    75 % wins.
    """

    matches_by_opponent: dict[str, int] = Field(default_factory=dict)
    """Matches (even) of an ordinary gauntlet against single bots instead, by name: a curriculum
    that waits for wins against one needs more of them than of the rest.
    """

    milestone_matches: int = Field(default=400, ge=2, le=100_000)
    """Matches (even) against each opponent for milestones: 400 give a 95 % interval of ±5 points
    at most.
    """

    nice: int = Field(default=10, ge=0, le=19)
    """Its nice value, so that a learner on the same cores goes first: at 0 both are equal, at 10
    it gets about a tenth of a core that both want, at 19 what the learner leaves.
    """

    @field_validator("matches_by_opponent")
    @classmethod
    def _all_even(cls, counts: dict[str, int]) -> dict[str, int]:
        for name, count in counts.items():
            if count < 2 or count % 2:
                raise ValueError(f"{name} = {count} is wrong: use 2 or more, even, for both seats")
        return counts

    @field_validator("matches_per_opponent", "milestone_matches")
    @classmethod
    def _even(cls, count: int) -> int:
        if count % 2:
            raise ValueError("must be even, for every seed is played from both seats")
        return count

    def matches_against(self, opponent: str, *, milestone: bool) -> int:
        """Sampled matches that a gauntlet has against `opponent`."""
        if milestone:
            return self.milestone_matches
        return self.matches_by_opponent.get(opponent, self.matches_per_opponent)
