"""The curriculum: which opponent mix and rewards are used now, and what ends that stage.

A stage ends by itself, by success or time-out, or when an operator asks for another one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from league.players import Book, PayoffCell
from league.rpc.client import MatchmakerClient
from league.stages import (
    Place,
    Stage,
    StageRequest,
    evidence_after,
    goal_reached,
    newest_evaluated,
)
from learner.distributed.rank_group import RankGroup
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.source import MatchBroker
from learner.settings import CurriculumSettings, StageSettings
from learner.train.build import SessionSettings, annealed_share, stage_rewards

CleanMatches = Callable[[str, int], PayoffCell | None]
"""Clean matches, against an opponent, of the newest snapshot frozen after a step; None for none."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class StageChange:
    """A stage that ended, and why, in a sentence."""

    ended: StageSettings
    reason: str


class Curriculum:
    """A state machine over the stages: in order by itself, anywhere by hand.

    Args:
        settings: the stages.
        index: of the current stage.
        stage_start: step at which it began.
        by_hand: whether an operator began it.
        obeyed: number of the newest request that was obeyed, so that each is obeyed once.
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
        """The constructor's arguments after the settings, for the checkpoint."""
        return {
            "index": self.index,
            "stage_start": self.stage_start,
            "by_hand": self.by_hand,
            "obeyed": self.obeyed,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Moves to the `state()` of another curriculum with the same stages."""
        self.index, self.stage_start = state["index"], state["stage_start"]
        self.by_hand, self.obeyed = state["by_hand"], state["obeyed"]

    def place(self) -> Place:
        """The state as the league stores it."""
        return Place(
            index=self.index, since_step=self.stage_start, by_hand=self.by_hand, obeyed=self.obeyed
        )

    def league_stages(self) -> tuple[Stage, ...]:
        """The stages as the league stores them."""
        return tuple(Stage(**stage.model_dump()) for stage in self.stages)

    def obey(self, asked: StageRequest | None, step: int) -> StageChange | None:
        """Enters the stage that was asked for, once for each request; None when it stays."""
        if asked is None or asked.number <= self.obeyed:
            return None
        self.obeyed = asked.number
        for index, stage in enumerate(self.stages):
            if stage.name == asked.stage and index != self.index:
                return self._enter(index, step, f"asked for by hand by {asked.by}", by_hand=True)
        return None

    def advance(self, step: int, clean_matches: CleanMatches) -> StageChange | None:
        """Moves on by at most one stage when its rule or its time-out says so."""
        if self.index + 1 == len(self.stages):
            return None
        reason = self._success(clean_matches) or self._timed_out(step)
        return None if reason is None else self._enter(self.index + 1, step, reason)

    def _enter(self, index: int, step: int, reason: str, by_hand: bool = False) -> StageChange:
        ended = self.stage
        self.index, self.stage_start, self.by_hand = index, step, by_hand
        return StageChange(ended=ended, reason=reason)

    def _success(self, clean_matches: CleanMatches) -> str | None:
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


class StageRunner:
    """Applies a curriculum to a learner's matches and reports its place to the league.

    The leader of several ranks decides; all follow.

    Args:
        reports: False for an exploiter, whose one stage the league need not know; it can't be
            asked to enter another.
    """

    def __init__(
        self,
        settings: SessionSettings,
        client: MatchmakerClient,
        group: RankGroup,
        curriculum: Curriculum,
        player: str,
        incarnation: int,
        step: int,
        reports: bool = True,
    ) -> None:
        self.curriculum = curriculum
        self._settings, self._client, self._group = settings, client, group
        self._player, self._incarnation = player, incarnation
        self._reported: Place | None = None
        self._reports = reports
        self._asked = self._report(step)  # while the learner was away

    def begin(self, model: LeaguePPO, broker: MatchBroker) -> None:
        """Before the first rollout: enters a stage that was asked for in the meantime."""
        step = model.num_timesteps
        self._change(model, broker, lambda: self.curriculum.obey(self._asked, step))

    def follow(self, model: LeaguePPO, broker: MatchBroker) -> None:
        """After an update: enters another stage if it is due or was asked for."""
        step = model.num_timesteps
        self._change(
            model,
            broker,
            lambda: (
                self.curriculum.obey(broker.asked(), step)
                or self.curriculum.advance(step, self._clean_matches)
            ),
        )

    def set_rewards(self, model: LeaguePPO) -> None:
        """Sets the reward weights of the stage and the step; a checkpoint needs none of this."""
        stage, step = self.curriculum.stage, model.num_timesteps
        model.env.reward_weights_K = stage_rewards(self._settings, stage, step)
        share = annealed_share(self._settings, stage, step)
        if share is not None:
            model.logger.record("reward/annealed_share", share)

    def _change(
        self, model: LeaguePPO, broker: MatchBroker, decide: Callable[[], StageChange | None]
    ) -> None:
        before, step = self.curriculum.index, model.num_timesteps
        change = decide() if self._group.is_leader else None
        if change is not None:
            log.info("stage %s ends at step %d: %s", change.ended.name, step, change.reason)
        self.curriculum.load(self._group.broadcast(self.curriculum.state()))
        if self.curriculum.index != before:
            broker.change_mix(self.curriculum.stage.mix)
        self.set_rewards(model)
        self._report(step, "" if change is None else change.reason)

    def _report(self, step: int, reason: str = "") -> StageRequest | None:
        """Reports the place if it has changed; returns the stage that the league asks for."""
        place = self.curriculum.place()
        if place == self._reported or not (self._group.is_leader and self._reports):
            return None
        self._reported = place
        stages = self.curriculum.league_stages()
        return self._client.enter_stage(self._incarnation, step, stages, place, reason)

    def _clean_matches(self, opponent: str, after: int) -> PayoffCell | None:
        cells = self._client.payoff(Book.EVAL, columns=[opponent])
        return newest_evaluated(cells, self._player, after)
