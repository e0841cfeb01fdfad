"""What a difference of two strengths, in logits, makes of a match: Bradley and Terry's model, with
draws.

Davidson's form (1970) of it: with d = θ₁ − θ₂ and ν ≥ 0,

    win : draw : loss = e^{d/2} : ν : e^{−d/2}

so the odds of winning against losing are e^d whatever is drawn, and ν/(2 + ν) of the games between
equals are draws. ν = 0 is Bradley and Terry's own.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from league.stats.ratings.belief import BETA, draw_margin

Array = NDArray[np.float64]
_MATCHED_SCORE = 0.9
_NO_DRAWS = 1e-9


def log_odds_free(d_P: Array, log_nu: float) -> tuple[Array, Array, Array]:
    """Log-probabilities of win, draw and loss; `log_nu` −∞ where there are no draws."""
    half_P = d_P / 2.0
    total_P = np.logaddexp(np.abs(half_P), -np.abs(half_P))
    if log_nu > -math.inf:
        total_P = np.logaddexp(total_P, log_nu)
    return half_P - total_P, log_nu - total_P, -half_P - total_P


def expected_score(d_P: Array, nu: float) -> Array:
    """Mean of 1 for a win, ½ for a draw, 0 for a loss."""
    x_P = np.exp(-np.abs(d_P) / 2.0)
    behind_P = x_P * (x_P + nu / 2.0) / (1.0 + x_P * x_P + nu * x_P)
    return np.where(d_P >= 0.0, 1.0 - behind_P, behind_P)


def drawn_between_equals(nu: float) -> float:
    """Share of draws between two players of one strength."""
    return nu / (2.0 + nu)


def points_per_logit(nu: float) -> float:
    """TrueSkill points that a difference of one logit is put at: 3.44 without draws.

    The two models bend differently, so no factor fits everywhere. With this one they agree on a
    pair of whom one earns 0.9 of the points; between there and a half they then differ by 0.9 % at
    most.
    """
    score = _MATCHED_SCORE
    # (x + ν/2)/(x + 1/x + ν) = score at x = e^{d/2}
    half = nu * (score - 0.5)
    x = (half + math.sqrt(half * half + 4.0 * score * (1.0 - score))) / (2.0 * (1.0 - score))
    return _gap_of(score, drawn_between_equals(nu)) / (2.0 * math.log(x))


def _gap_of(score: float, draw_probability: float) -> float:
    """Difference of two known strengths, in points, at which TrueSkill expects this score above
    ½.
    """
    spread = math.sqrt(2.0) * BETA
    margin = draw_margin(draw_probability) if draw_probability > _NO_DRAWS else 0.0

    def expected(gap: float) -> float:
        return (
            math.fsum(
                math.erfc((shift - gap) / spread * math.sqrt(0.5)) for shift in (margin, -margin)
            )
            / 4.0
        )

    low, high = 0.0, margin + 10.0 * spread
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if expected(middle) < score else (low, middle)
    return (low + high) / 2.0
