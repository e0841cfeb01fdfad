"""What is believed of a player's strength, and what two such beliefs predict of a match.

TrueSkill (Herbrich et al. 2006): a performance is N(strength, β²), the higher one wins, and within
ε of each other it is a draw. ε = Φ⁻¹((p + 1)/2)·√2·β makes p the share of draws between equals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from league.errors import InvalidInput
from league.stats.ratings.link import NORMAL_LINK, Link

MU = 25.0
SIGMA = 25.0 / 3.0
BETA = 25.0 / 6.0
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Belief:
    """What is believed of a player's strength: a Gaussian. `sigma` is a step size, not an
    interval.
    """

    mu: float = MU
    sigma: float = SIGMA

    @property
    def score(self) -> float:
        """The conservative estimate that orders the leaderboard."""
        return self.mu - 3.0 * self.sigma


NEWCOMER = Belief()


@dataclass(frozen=True)
class Outlook:
    """Probabilities of a match's three ends, from the first player's side."""

    win: float
    draw: float
    loss: float

    @property
    def score(self) -> float:
        """What it earns on average: 1 for a win, ½ for a draw."""
        return self.win + self.draw / 2.0


def win_probability(first: Belief, second: Belief, link: Link = NORMAL_LINK) -> float:
    """F((μ₁ − μ₂)/√(2β² + σ₁² + σ₂²)): how likely `first` performs better; where none draws,
    that it wins.
    """
    return link((first.mu - second.mu) / spread(first, second))


def outlook(
    first: Belief, second: Belief, draw_probability: float, link: Link = NORMAL_LINK
) -> Outlook:
    """How a match may end: F((μ₁ − μ₂ ∓ ε)/c), c² = 2β² + σ₁² + σ₂². `draw_probability`: between
    equals.
    """
    c, gap, margin = spread(first, second), first.mu - second.mu, draw_margin(draw_probability)
    win, loss = link((gap - margin) / c), link((-gap - margin) / c)
    return Outlook(win, max(0.0, 1.0 - win - loss), loss)


def quality(first: Belief, second: Belief) -> float:
    """TrueSkill match quality √(2β²/c²)·exp(−(μ₁ − μ₂)²/(2c²)); .4472 for two newcomers."""
    c = spread(first, second)
    return math.sqrt(2.0) * BETA / c * math.exp(-(((first.mu - second.mu) / c) ** 2) / 2.0)


def spread(first: Belief, second: Belief) -> float:
    """c: standard deviation of the difference of two performances, in points."""
    return math.sqrt(2.0 * BETA**2 + first.sigma**2 + second.sigma**2)


@lru_cache
def draw_margin(draw_probability: float) -> float:
    """ε in points, for a share of draws between equals above 0 and below 1."""
    if not 0.0 < draw_probability < 1.0:
        raise InvalidInput(
            f"draw probability {draw_probability} is none: use one above 0 and below 1"
        )
    return _NORMAL.inv_cdf((draw_probability + 1.0) / 2.0) * math.sqrt(2.0) * BETA
