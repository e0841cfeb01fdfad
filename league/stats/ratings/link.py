"""What a difference of two beliefs means for a match, as the league's own games say it.

TrueSkill takes performances as Gaussian, so that the better one wins with Φ(t), t = (μ₁ − μ₂)/c.
Two things bend that: games whose upsets follow Elo's logistic curve, and beliefs that began wider
or narrower apart than the players are, which makes t too bold or too timid for hundreds of games.
Both are seen in the predictions made so far, and undone by

    F(t) = (1 − λ) Φ(a t) + λ / (1 + exp(−1.702 a t))

with sharpness a and logistic share λ measured at epochs. Ratings are folded with Φ alone, as
published.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from league.errors import InvalidInput

LOGISTIC_SCALE = 1.702
"""1/(1 + exp(−1.702 t)) is within .0095 of Φ(t) everywhere."""
_ROOT_HALF = math.sqrt(0.5)


@dataclass(frozen=True)
class Link:
    """F, by its sharpness a above 0 and its logistic share λ from 0 to 1."""

    sharpness: float = 1.0
    logistic_share: float = 0.0

    def __post_init__(self) -> None:
        if not (0.0 < self.sharpness < math.inf and 0.0 <= self.logistic_share <= 1.0):
            raise InvalidInput(f"{self} is no link: sharpness above 0, logistic_share from 0 to 1")

    def __call__(self, t: float) -> float:
        t *= self.sharpness
        normal = math.erfc(-t * _ROOT_HALF) / 2.0
        if not self.logistic_share:
            return normal
        logistic = 0.5 + math.tanh(LOGISTIC_SCALE * t / 2.0) / 2.0
        return normal + self.logistic_share * (logistic - normal)


NORMAL_LINK = Link()
