"""Elo and scores. A score is a share of the points, a draw half of one: 0 to 1."""

from __future__ import annotations

import math
from enum import Enum

NORMALISED_UNIT = 800.0 / math.log(10.0)
"""Normalised Elo for a mean score one standard deviation of a match above ½: 347.4356."""


class EloModel(Enum):
    """How a difference in Elo is meant.

    Logistic Elo is a score, 1/(1 + 10^(−elo/400)). Normalised Elo is a score in standard deviations
    of a match, (score − ½)/σ · 800/ln 10: how hard the difference is to see, so that a test of
    given hypotheses takes about as many matches whether most are drawn or none.
    """

    LOGISTIC = "logistic"
    NORMALISED = "normalised"


def score_of(elo: float) -> float:
    """The expected score of who is `elo` (logistic) stronger."""
    return 1.0 / (1.0 + 10.0 ** (-elo / 400.0))


def elo_of(score: float) -> float:
    """The logistic Elo of an expected score; infinite at 0 and 1."""
    if score <= 0.0 or score >= 1.0:
        return math.copysign(math.inf, score - 0.5)
    return 400.0 * math.log10(score / (1.0 - score))
