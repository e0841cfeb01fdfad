"""Which opponent mix is played now, and what ends it: a small state machine over settings.

A stage ends by itself, by success or time-out, or when an operator asks for another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from league.players import PayoffCell
from league.stages import Place, Stage, StageRequest, evidence_after, goal_reached
from learner.settings import CurriculumSettings, StageSettings

CleanMatches = Callable[[str, int], PayoffCell | None]
"""Counts of the newest evaluated snapshot frozen behind a step against an opponent, in clean
matches; none so far: None.
"""


@dataclass(frozen=True, kw_only=True)
class StageChange:
    """A stage that ended, and why, in a sentence for a person."""

    ended: StageSettings
    begins: StageSettings
    reason: str


class Curriculum:
    """Walks the stages: in order by itself, anywhere by hand. `state()` belongs in the checkpoint.

    Args:
        settings: the stages.
        index: of the stage that is on.
        stage_start: step at which it began.
        by_hand: whether an operator began it.
        obeyed: number of the newest request that was obeyed, so that none is obeyed twice.
    """

    def __init__(
        self,
        settings: CurriculumSettings,
        index: int = 0,
        stage_start: int = 0,
        by_hand: bool = False,
        obeyed: int = 0,
    ) -> None:
        self.stages = settings.stages
        self.index = min(index, len(self.stages) - 1)
        self.stage_start, self.by_hand, self.obeyed = stage_start, by_hand, obeyed

    @property
    def stage(self) -> StageSettings:
        return self.stages[self.index]

    def state(self) -> dict[str, Any]:
        """What the constructor takes beside the settings."""
        return {
            "index": self.index,
            "stage_start": self.stage_start,
            "by_hand": self.by_hand,
            "obeyed": self.obeyed,
        }

    def stand_at(self, state: Mapping[str, Any]) -> None:
        """Goes to where another curriculum of the same stages is, by its `state()`."""
        self.index, self.stage_start = state["index"], state["stage_start"]
        self.by_hand, self.obeyed = state["by_hand"], state["obeyed"]

    def place(self) -> Place:
        """The same as the league knows it."""
        return Place(
            index=self.index, since_step=self.stage_start, by_hand=self.by_hand, obeyed=self.obeyed
        )

    def as_told(self) -> tuple[Stage, ...]:
        """The stages as the league knows them."""
        return tuple(Stage(**stage.model_dump()) for stage in self.stages)

    def obey(self, asked: StageRequest | None, step: int) -> StageChange | None:
        """Enters the stage that was asked for, once for each request; None when it stays where
        it is.
        """
        if asked is None or asked.number <= self.obeyed:
            return None
        self.obeyed = asked.number
        for index, stage in enumerate(self.stages):
            if stage.name == asked.stage and index != self.index:
                return self._enter(index, step, f"asked for by hand by {asked.by}", by_hand=True)
        return None

    def advance(self, step: int, clean_matches: CleanMatches) -> StageChange | None:
        """Moves on by at most one stage when its rule or its time-out says so."""
        if self.index + 1 == len(self.stages) or self.stage.manual:
            return None
        reason = self._success(clean_matches) or self._timed_out(step)
        return None if reason is None else self._enter(self.index + 1, step, reason)

    def _enter(self, index: int, step: int, reason: str, by_hand: bool = False) -> StageChange:
        ended = self.stage
        self.index, self.stage_start, self.by_hand = index, step, by_hand
        return StageChange(ended=ended, begins=self.stage, reason=reason)

    def _success(self, clean_matches: CleanMatches) -> str | None:
        """A stage begun by hand is not ended by snapshots from before: they may have met its
        goal.
        """
        stage = self.stage
        if not stage.until_opponent:
            return None
        cell = clean_matches(stage.until_opponent, evidence_after(self.place()))
        if cell is None or not goal_reached(Stage(**stage.model_dump()), cell):
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
