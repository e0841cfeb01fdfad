"""Runs the curriculum, a sequence of stages. Each stage has an opponent mix, rewards, and a rule
for its end.

A stage ends when the learner beats the stage's opponent, when its time-out is reached, or when an
operator asks for another stage.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from league.players import Book
from league.rpc.client import MatchmakerClient
from league.stages import Place, Stage, StageRequest, evidence_after
from learner.distributed.rank_group import RankGroup
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.source import MatchBroker
from learner.settings import CurriculumSettings, StageSettings
from learner.train.build import SessionSettings, annealed_share, stage_rewards

if TYPE_CHECKING:  # scipy takes a quarter of a second to load
    from league.stats.climb import WinRate

WinRates = Callable[[Stage, int, int], "WinRate | None"]
"""Function of a stage, the current step and an earlier step. It estimates the current win rate
against the stage's opponent from the matches since the earlier step. It returns None if there are
no such matches, or if too few steps have passed since the last estimate.
"""
LOOKS = 5
"""Number of win rate estimates per snapshot interval. The win rate changes little between two
estimates.
"""
log = logging.getLogger(__name__)


class Curriculum:
    """Moves through the stages. When the current stage has ended, the next stage follows. An
    operator can request any stage.

    Args:
        settings: the stages.
        player: the player that learns.
        place: the place in the curriculum from which to continue.
    """

    def __init__(
        self, settings: CurriculumSettings, player: str, place: Place | None = None
    ) -> None:
        self.stages, self.player, place = settings.stages, player, place or Place()
        self.place = replace(place, index=min(place.index, len(self.stages) - 1))

    @property
    def stage(self) -> StageSettings:
        return self.stages[self.place.index]

    def obey(self, asked: StageRequest | None, step: int) -> str:
        """Enters the stage that an operator has requested. A request is obeyed only once.

        Args:
            asked: the newest request.
            step: step of the training.

        Returns:
            The reason why the previous stage ended, or "" if no other stage was entered.
        """
        if asked is None or asked.number <= self.place.obeyed:
            return ""
        self.place = replace(self.place, obeyed=asked.number)
        names = [stage.name for stage in self.stages]
        if asked.stage == self.stage.name or asked.stage not in names:
            return ""
        self._enter(names.index(asked.stage), step, by_hand=True)
        return f"asked for by hand by {asked.by}"

    def advance(self, step: int, win_rates: WinRates) -> str:
        """Enters the next stage if the current stage has ended by its rule or by its time-out.

        Args:
            step: step of the training.
            win_rates: looks up the win rate.

        Returns:
            The reason why the previous stage ended, or "" if it has not ended.
        """
        if self.place.index + 1 == len(self.stages):
            return ""
        reason = self._success(step, win_rates) or self._timed_out(step)
        if reason:
            self._enter(self.place.index + 1, step)
        return reason

    def _enter(self, index: int, step: int, by_hand: bool = False) -> None:
        self.place = replace(self.place, index=index, since_step=step, by_hand=by_hand)

    def _success(self, step: int, win_rates: WinRates) -> str:
        stage = _stage(self.stage)
        if not stage.until_opponent:
            return ""
        from league.stats.climb import goal_reached

        win_rate = win_rates(stage, step, evidence_after(self.place))
        if win_rate is None or not goal_reached(stage, win_rate):
            return ""
        return win_rate.sentence(self.player, stage.until_opponent)

    def _timed_out(self, step: int) -> str:
        limit = self.stage.max_steps
        if limit is None or step - self.place.since_step < limit:
            return ""
        stage = self.stage
        if not stage.until_opponent:
            return f"stage {stage.name} has lasted its {limit:,} steps"
        return (
            f"stage {stage.name} did not reach {stage.until_win_rate:.0%} wins against "
            f"{stage.until_opponent} in {limit:,} steps and is left"
        )


def _stage(settings: StageSettings) -> Stage:
    return Stage(**settings.model_dump())


class StageRunner:
    """Applies a curriculum to a learner's matches, and reports the current stage to the league.

    If the learner has several ranks (processes), the leader (rank 0) decides and all ranks follow.

    Args:
        incarnation: the learner's incarnation (see `learner.train.join`).
        step: step of the training.
        reports: whether to report the stage to the league. It is False for an exploiter, because an
            exploiter has a single stage, and an operator can't request another.
    """

    def __init__(
        self,
        settings: SessionSettings,
        client: MatchmakerClient,
        group: RankGroup,
        curriculum: Curriculum,
        incarnation: int,
        step: int,
        reports: bool = True,
    ) -> None:
        self.curriculum = curriculum
        self._settings, self._client, self._group = settings, client, group
        self._incarnation, self._look_at = incarnation, 0
        self._reported: Place | None = None
        self._reports = reports
        self._asked = self._report(step)  # the request made while the learner was away, if any

    def begin(self, model: LeaguePPO, broker: MatchBroker) -> None:
        """Before the first rollout, enters the stage that was requested while the learner was away,
        if any.
        """
        self._change(model, broker, lambda step: self.curriculum.obey(self._asked, step))

    def follow(self, model: LeaguePPO, broker: MatchBroker) -> None:
        """After an update, enters another stage if an operator has requested it or the current
        stage has ended.
        """
        self._change(
            model,
            broker,
            lambda step: (
                self.curriculum.obey(broker.asked(), step)
                or self.curriculum.advance(step, self._win_rate)
            ),
        )

    @property
    def snapshot_interval(self) -> int:
        """Returns the number of steps between snapshots in the current stage.

        If the curriculum has several stages, this number is doubled in stages without
        `until_opponent`. In such a stage, successive snapshots are similar.
        """
        has_climbed = len(self.curriculum.stages) > 1 and not self.curriculum.stage.until_opponent
        return (2 if has_climbed else 1) * self._settings.learner.snapshot_interval

    def tune(self, settings: SessionSettings, model: LeaguePPO) -> None:
        """Continues with other settings, whose stages are the same."""
        self._settings = settings
        self.set_rewards(model)

    def set_rewards(self, model: LeaguePPO) -> None:
        """Computes the reward weights from the stage and the step, and sets them. So a checkpoint
        need not store the weights.
        """
        stage, step = self.curriculum.stage, model.num_timesteps
        model.env.reward_weights_K = stage_rewards(self._settings, stage, step)
        share = annealed_share(self._settings, stage, step)
        if share is not None:
            model.logger.record("reward/annealed_share", share)

    def _change(self, model: LeaguePPO, broker: MatchBroker, decide: Callable[[int], str]) -> None:
        before, step = self.curriculum.stage, model.num_timesteps
        reason = decide(step) if self._group.is_leader else ""
        if reason:
            log.info("stage %s ends at step %d: %s", before.name, step, reason)
        self.curriculum.place = self._group.broadcast(self.curriculum.place)
        if self.curriculum.stage is not before:
            broker.change_mix(self.curriculum.stage.mix)
        self.set_rewards(model)
        self._report(step, reason)

    def _report(self, step: int, reason: str = "") -> StageRequest | None:
        """Reports the place in the curriculum if it has changed. Returns the newest request for a
        stage.
        """
        place = self.curriculum.place
        if place == self._reported or not (self._group.is_leader and self._reports):
            return None
        self._reported = place
        stages = tuple(map(_stage, self.curriculum.stages))
        return self._client.enter_stage(self._incarnation, step, stages, place, reason)

    def _win_rate(self, stage: Stage, step: int, after: int) -> WinRate | None:
        if step < self._look_at:
            return None
        from league.stats.climb import win_rate_now

        self._look_at = step + self._settings.learner.snapshot_interval // LOOKS
        opponent, player = stage.until_opponent, self.curriculum.player
        clean = self._client.payoff(Book.EVAL, columns=[opponent])
        training = self._client.payoff(Book.TRAIN, columns=[opponent], climb=True)
        least = stage.min_matches
        return win_rate_now(player, clean, training, step, after=after, least=least)
