"""Looks over the learner's shoulder: says in the log when a run looks ill, and when it no longer
does.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from numpy.typing import NDArray

from league.games.base import GameSpec
from league.runs.alarms import AlarmWatch, MatchFacts, UpdateFacts, largest_entropy
from learner.rollout.finished import FinishedMatch
from learner.settings import LearnerSettings

log = logging.getLogger(__name__)


class RunWatch:
    """The alarms of one learner. After a restart they are found anew."""

    def __init__(self, settings: LearnerSettings, spec: GameSpec) -> None:
        largest = largest_entropy(spec.action_kind, spec.action_size)
        self._terms = spec.reward_terms
        self._watch = AlarmWatch(largest, settings.desired_kl or settings.target_kl)

    def look(
        self,
        step: int,
        metrics: Mapping[str, float],
        matches: Sequence[FinishedMatch],
        weights_K: NDArray,
    ) -> dict[str, float]:
        """Takes in an update with the matches that ended in its rollout; returns the alarms as
        metrics.
        """
        ended = [
            MatchFacts(
                match.assignment.category,
                match.score,
                dict(zip(self._terms, match.reward_terms.tolist(), strict=True)),
            )
            for match in matches
        ]
        weights = dict(zip(self._terms, weights_K.tolist(), strict=True))
        for change in self._watch.update(
            UpdateFacts(step=step, metrics=metrics, matches=ended, weights=weights)
        ):
            log.warning("step %d: %s", change.step, change.sentence)
        return {key: alarm.value for key, alarm in self._watch.active.items()}
