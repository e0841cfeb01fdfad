"""The `[cloning]` section: how `bin/learner clone` learns from replays."""

from __future__ import annotations

from pydantic import Field

from league.settings.base import Settings


class CloningSettings(Settings):
    """Holds the settings of `bin/learner clone`, except those in [game] and [agent]."""

    epochs: int = Field(12, ge=1, le=10_000)
    """Largest number of passes over the matches. Training ends earlier once the held-out loss no
    longer falls.
    """

    learning_rate: float = Field(1e-3, gt=0, le=1)
    """Adam's step size in the first pass; it falls linearly to a twentieth in the last pass."""

    seed: int = Field(0, ge=0)
    """Seed of weights, of the split and of the order of matches."""
