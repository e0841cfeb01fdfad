"""The `[cloning]` section: how `bin/learner clone` learns from replays."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from league.settings.base import Settings


class CloningSettings(Settings):
    """How `bin/learner clone` learns from replays; frame_skip and sizes are those of [game] and
    [agent].
    """

    key_rule: Literal["taps", "any", "majority", "first"] = "taps"
    """Which keys a decision of several frames learns: those down in any of its frames, in at
    least half of them, or in the first. taps is any, but a key tapped again while it is still
    held is let go first: only a new press jumps again.
    """

    held_out: float = Field(0.1, gt=0, le=0.5)
    """Share of the matches' seeds that is not learnt from, and tells when to stop."""

    epochs: int = Field(12, ge=1, le=10_000)
    """Most passes over the matches; the step size falls over all of them."""

    patience: int = Field(3, ge=1, le=1000)
    """Passes without a lower held-out loss after which it stops."""

    learning_rate: float = Field(1e-3, gt=0, le=1)
    """Adam's step size in the first pass."""

    learning_rate_final: float = Field(5e-5, gt=0, le=1)
    """Step size in the last pass, reached linearly."""

    streams: int = Field(8, ge=1, le=65_536)
    """Matches learnt from side by side."""

    sequence: int = Field(64, ge=1, le=65_536)
    """Decisions that the gradient goes back through; the memory itself runs over whole matches."""

    max_grad_norm: float = Field(1.0, gt=0)
    """The gradient of all parameters together is scaled down to this norm."""

    smoothing: float = Field(0.002, ge=0, lt=1)
    """Share by which the keys learnt are drawn to 1/2 (choices: to all that are legal), so that
    none that the player never used becomes impossible: training from the clone must be able to
    try it.
    """

    seed: int = Field(0, ge=0)
    """Seed of weights, of the split and of the order of matches."""

    def learning_rate_at(self, epoch: int) -> float:
        """Step size in a pass, counted from 1."""
        share = (epoch - 1) / max(self.epochs - 1, 1)
        return self.learning_rate + (self.learning_rate_final - self.learning_rate) * share
