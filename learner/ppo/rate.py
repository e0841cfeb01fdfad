"""Steers the optimizer's step size to a KL divergence per update."""

from __future__ import annotations

FACTOR = 1.2
TOLERANCE = 1.5
SMALLEST = 1.0 / 64.0


class AdaptiveRate:
    """A factor on the scheduled step size, in [1/64, 1].

    When an update moved the policy by more than 1.5 times the desired KL divergence the factor
    shrinks by 1.2, below it by as much it grows: the rule of PPO's adaptive penalty (Schulman et
    al. 2017, arXiv 1707.06347, section 4), put to the step size. One step size does not fit a
    curriculum: what a fresh policy needs to get going makes a peaked one forget
    (docs/benchmarks.md).
    """

    def __init__(self, desired_kl: float | None) -> None:
        self.desired_kl, self.scale = desired_kl, 1.0

    def adapt(self, kl: float) -> None:
        """Takes in the mean KL divergence of an update."""
        if self.desired_kl is None:
            return
        if kl > self.desired_kl * TOLERANCE:
            self.scale = max(self.scale / FACTOR, SMALLEST)
        elif kl < self.desired_kl / TOLERANCE:
            self.scale = min(self.scale * FACTOR, 1.0)
