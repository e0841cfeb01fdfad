"""Plays the stage of the curriculum that is on: its opponent mix, and its rewards."""

from __future__ import annotations

import logging
from collections.abc import Callable

from league.players import Book, PayoffCell
from league.rpc.client import MatchmakerClient
from league.stages import Place, StageRequest, newest_evaluated
from learner.distributed.ranks import Ranks
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.source import MatchBroker
from learner.train.assembly import SessionSettings, annealed_share, stage_rewards
from learner.train.curriculum import Curriculum, StageChange

log = logging.getLogger(__name__)


class Staging:
    """Walks a learner through its curriculum, and tells the league where it is.

    The leading one of several ranks decides; all go the same way. One that does not tell (`tells`)
    can't be asked to enter a stage: an exploiter, which has only one.
    """

    def __init__(
        self,
        settings: SessionSettings,
        client: MatchmakerClient,
        ranks: Ranks,
        curriculum: Curriculum,
        player: str,
        incarnation: int,
        step: int,
        tells: bool = True,
    ) -> None:
        self.curriculum = curriculum
        self._settings, self._client, self._ranks = settings, client, ranks
        self._player, self._incarnation = player, incarnation
        self._told: Place | None = None
        self._tells = tells
        self._asked = self._tell(step)  # while the learner was away

    def begin(self, model: LeaguePPO, broker: MatchBroker) -> None:
        """Before the first rollout: enters a stage that was asked for while the learner was
        away.
        """
        step = model.num_timesteps
        self._go_on(model, broker, lambda: self.curriculum.obey(self._asked, step))

    def follow(self, model: LeaguePPO, broker: MatchBroker) -> None:
        """After an update: enters another stage if it is time, or if one was asked for."""
        step = model.num_timesteps
        self._go_on(
            model,
            broker,
            lambda: (
                self.curriculum.obey(broker.asked(), step)
                or self.curriculum.advance(step, self._clean_matches)
            ),
        )

    def weigh(self, model: LeaguePPO) -> None:
        """Weighs rewards as the stage and the step want it: nothing of it needs a checkpoint."""
        stage, step = self.curriculum.stage, model.num_timesteps
        model.env.reward_weights_K = stage_rewards(self._settings, stage, step)
        share = annealed_share(self._settings, stage, step)
        if share is not None:
            model.logger.record("reward/annealed_share", share)

    def _go_on(
        self, model: LeaguePPO, broker: MatchBroker, decide: Callable[[], StageChange | None]
    ) -> None:
        before, step = self.curriculum.index, model.num_timesteps
        change = decide() if self._ranks.leads else None
        if change is not None:
            log.info("stage %s ends at step %d: %s", change.ended.name, step, change.reason)
        self.curriculum.stand_at(self._ranks.leading(self.curriculum.state()))
        if self.curriculum.index != before:
            broker.change_mix(self.curriculum.stage.mix)
        self.weigh(model)
        self._tell(step, "" if change is None else change.reason)

    def _tell(self, step: int, reason: str = "") -> StageRequest | None:
        """Says where in its curriculum it is, if that has changed; returns what it is asked to
        enter.
        """
        place = self.curriculum.place()
        if place == self._told or not (self._ranks.leads and self._tells):
            return None
        self._told = place
        return self._client.enter_stage(
            self._incarnation, step, self.curriculum.as_told(), place, reason
        )

    def _clean_matches(self, opponent: str, after: int) -> PayoffCell | None:
        """Counts of the newest evaluated snapshot of this learner in the clean book, frozen
        behind a step.
        """
        cells = self._client.payoff(Book.EVAL, columns=[opponent])
        return newest_evaluated(cells, self._player, after)
