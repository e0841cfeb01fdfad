"""Lets a main take over the weights and settings of another main that is better (PBT).

The matchmaker decides this, by clean matches (`matchmaker/acts/population.py`). A copy is applied
exactly once: the checkpoint holds its number, and the matchmaker repeats a copy until the learner
reports this number.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from league.agent.snapshot import load_snapshot
from league.errors import ConfigError
from league.population import MemberCopy
from league.runs.files import first_fault
from learner.settings import LearnerSettings
from learner.train.build import SessionSettings
from learner.train.checkpoint import load_weights, snapshot_values

if TYPE_CHECKING:
    from learner.train.parts import SessionParts

NAMES = ("learning_rate", "learning_rate_final", "ent_coef", "ent_coef_final", "clip_range")
"""Settings of [learner] that a copy may change."""
REWARD = "reward."
"""Prefix of the weights of `game.reward_weights`, which a copy may change, too."""
log = logging.getLogger(__name__)


def values_of(settings: SessionSettings) -> dict[str, float]:
    """Returns the settings that a copy may change, by name. Absent settings are left out."""
    own = {name: getattr(settings.learner, name) for name in NAMES}
    rewards = {f"{REWARD}{term}": weight for term, weight in settings.game.reward_weights.items()}
    return {name: float(value) for name, value in own.items() if value is not None} | rewards


def tuned(settings: SessionSettings, values: Mapping[str, float]) -> SessionSettings:
    """Returns the settings with other values of the settings in `values_of`. Unknown names are
    ignored.

    Raises:
        ConfigError: a setting can't have such a value.
    """
    learner = {name: value for name, value in values.items() if name in NAMES}
    weights = {
        term: values.get(f"{REWARD}{term}", weight)
        for term, weight in settings.game.reward_weights.items()
    }
    try:
        return replace(
            settings,
            learner=LearnerSettings.model_validate(settings.learner.model_dump() | learner),
            game=settings.game.model_copy(update={"reward_weights": weights}),
        )
    except ValidationError as error:
        raise ConfigError(f"the copied settings can't be used: {first_fault(error)}") from None


class PopulationMember:
    """Keeps a learner's place in a population. All ranks call the methods together.

    Args:
        parts: the learner's parts.
    """

    def __init__(self, parts: SessionParts) -> None:
        self.parts = parts
        self.applied = int(parts.population.get("applied", 0))
        self.settings = parts.settings
        if self.applied:
            self._tune(parts.population["values"])

    def state(self) -> dict[str, Any]:
        """Returns the values that a checkpoint keeps."""
        return {"applied": self.applied, "values": values_of(self.settings)}

    def follow(self) -> bool:
        """Asks the matchmaker after a snapshot, and applies the copy that it answers, if any.
        Returns whether the weights have changed.
        """
        parts, model, copy = self.parts, self.parts.model, None
        if parts.group.is_leader:
            copy = parts.client.compare_member(
                parts.incarnation,
                model.num_timesteps,
                parts.settings.learner.steps,
                values_of(self.settings),
                self.applied,
            )
        copy = parts.group.broadcast(copy)
        if copy is not None:
            self._apply(copy)
        return copy is not None

    def _apply(self, copy: MemberCopy) -> None:
        model = self.parts.model
        network, card = load_snapshot(self.parts.blobs, copy.digest)
        load_weights(model, snapshot_values(network, card))
        model.policy.optimizer.state.clear()
        model.rate.scale = 1.0
        if model.references is not None:  # the next rollout freezes the new weights as the first
            model.references.members.clear()
        self._tune(copy.values)
        self.applied = copy.number
        self.parts.publisher.continue_from(copy.source, self.settings.hash())
        log.info("copies %s, with %s", copy.source, dict(copy.values))

    def _tune(self, values: Mapping[str, float]) -> None:
        self.settings = tuned(self.settings, values)
        self.parts.model.tune(self.settings.share)
        self.parts.stages.tune(self.settings, self.parts.model)
