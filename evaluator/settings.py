"""Settings of the evaluator, section ``[evaluator]``."""

from __future__ import annotations

from pydantic import Field, field_validator

from league.settings.base import Settings


class EvaluatorSettings(Settings):
    """How many clean matches a snapshot plays, against whom, and how they are run."""

    matches_per_opponent: int = Field(default=100, ge=2, le=100_000)
    """Matches (even) of an ordinary gauntlet against each opponent: 100 tell 90 % from 75 %
    wins.
    """

    matches_by_opponent: dict[str, int] = Field(default_factory=dict)
    """Matches (even) of an ordinary gauntlet against single bots instead, by name: a curriculum
    that waits for wins against one needs more of them than of the rest.
    """

    milestone_matches: int = Field(default=400, ge=2, le=100_000)
    """Matches (even) against each opponent for milestones: 400 give a 95 % interval of ±5 points
    at most.
    """

    greedy_share: float = Field(default=0.5, ge=0.0, le=1.0)
    """Greedy matches against each bot, as a share of the sampled ones; 0 plays none."""

    best_snapshots: int = Field(default=2, ge=0, le=100)
    """How many of the highest rated other snapshots join the gauntlet beside bots and parent."""

    imported_snapshots: int = Field(default=4, ge=0, le=100)
    """How many of the snapshots imported from other runs join it too, in the order in which they
    came.
    """

    exploiters: int = Field(default=4, ge=0, le=100)
    """How many accepted exploiters the gauntlet of a main's snapshot has beside: first those it
    has yet to beat; if they are more, the newest and some drawn for each snapshot. Its matches
    against them say whether they are patched.
    """

    seed: int = Field(default=0, ge=0, lt=2**31)
    """Seed of the match seeds, which are common over opponents and snapshots, and of sampled
    actions.
    """

    parallel_matches: int = Field(default=128, ge=2, le=2048)
    """Matches played at once; more make a step's forward pass cheaper a match, and need more
    memory.
    """

    cpu_share: float = Field(default=1.0, ge=0.05, le=1.0)
    """Share of one core that evaluation may take; 1: as much as it gets. Less leaves more to a
    learner on the same cores, and snapshots are known later.
    """

    nice: int = Field(default=10, ge=0, le=19)
    """How far it steps back behind a learner on the same cores; 0 not at all, 10 to about a
    tenth of a core that both want.
    """

    replays_kept: int = Field(default=2000, ge=0, le=100_000)
    """Replays (a few kB each) that stay in the run's folder, the newest; 0 records none. Of each
    gauntlet the first match and the first loss against each opponent are recorded.
    """

    report_seconds: float = Field(default=1.0, ge=0.0, le=60.0)
    """Finished matches are handed to the matchmaker at most this long (seconds) after they end."""

    heartbeat_seconds: float = Field(default=2.0, gt=0.0, le=60.0)
    """Seconds between beats to the matchmaker; must stay well under its lease time."""

    poll_seconds: float = Field(default=1.0, gt=0.0, le=60.0)
    """Seconds between looks for new snapshots while there is nothing to play."""

    wait_seconds: float = Field(default=300.0, gt=0.0)
    """Seconds to wait for a matchmaker that does not answer before giving up."""

    @field_validator("matches_by_opponent")
    @classmethod
    def _all_even(cls, counts: dict[str, int]) -> dict[str, int]:
        for name, count in counts.items():
            if count < 2 or count % 2:
                raise ValueError(
                    f"{name} = {count} can't be played: use 2 or more, even, for both seats"
                )
        return counts

    @field_validator("matches_per_opponent", "milestone_matches", "parallel_matches")
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

    def greedy_matches(self, matches: int) -> int:
        """Greedy matches (even) that go with `matches` sampled ones."""
        return 2 * round(matches * self.greedy_share / 2)
