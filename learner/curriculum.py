"""Which opponent mix is played now, and what ends it: a small state machine over settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from league.players import PayoffCell
from learner.settings import CurriculumSettings, StageSettings

CleanMatches = Callable[[str], PayoffCell | None]
"""Counts of the newest evaluated snapshot against an opponent, in clean matches; none so far: None."""


@dataclass(frozen=True, kw_only=True)
class StageChange:
    """A stage that ended, and why, in a sentence for a person."""

    ended: StageSettings
    begins: StageSettings
    reason: str


class Curriculum:
    """Walks the stages in order; `index` and `stage_start` belong in the checkpoint."""

    def __init__(self, settings: CurriculumSettings, index: int = 0, stage_start: int = 0) -> None:
        self.stages = settings.stages
        self.index = min(index, len(self.stages) - 1)
        self.stage_start = stage_start

    @property
    def stage(self) -> StageSettings:
        return self.stages[self.index]

    def advance(self, step: int, clean_matches: CleanMatches) -> StageChange | None:
        """Moves on by at most one stage when its rule or its time-out says so."""
        if self.index + 1 == len(self.stages):
            return None
        reason = self._success(clean_matches) or self._timed_out(step)
        if reason is None:
            return None
        ended = self.stage
        self.index += 1
        self.stage_start = step
        return StageChange(ended=ended, begins=self.stage, reason=reason)

    def _success(self, clean_matches: CleanMatches) -> str | None:
        stage = self.stage
        if not stage.until_opponent:
            return None
        cell = clean_matches(stage.until_opponent)
        if cell is None or cell.games < stage.min_matches:
            return None
        if cell.wins < stage.until_win_rate * cell.games:
            return None
        return f"{cell.row} won {cell.wins} of {cell.games} clean matches against {cell.column}"

    def _timed_out(self, step: int) -> str | None:
        limit = self.stage.max_steps
        if limit is None or step - self.stage_start < limit:
            return None
        return (
            f"stage {self.stage.name} did not reach {self.stage.until_win_rate:.0%} wins against "
            f"{self.stage.until_opponent or 'its goal'} in {limit:,} steps and is left"
        )
