"""Ratings: TrueSkill folded in commit order, and a fit of all games at once beside it.

`league.stats.ratings` itself is what a matchmaker folds results with; the fit, which loads scipy,
is in `league.stats.ratings.bradley_terry`.
"""

from league.stats.ratings.belief import (
    BETA,
    MU,
    NEWCOMER,
    SIGMA,
    Belief,
    Outlook,
    outlook,
    quality,
    win_probability,
)
from league.stats.ratings.drift import NO_DRIFT, Drift
from league.stats.ratings.link import NORMAL_LINK, Link
from league.stats.ratings.record import PredictionRecord
from league.stats.ratings.table import FIRST_DRAW_PROBABILITY, RatedGame, RatingTable, rate

__all__ = [
    "BETA",
    "FIRST_DRAW_PROBABILITY",
    "MU",
    "NEWCOMER",
    "NORMAL_LINK",
    "NO_DRIFT",
    "SIGMA",
    "Belief",
    "Drift",
    "Link",
    "Outlook",
    "PredictionRecord",
    "RatedGame",
    "RatingTable",
    "outlook",
    "quality",
    "rate",
    "win_probability",
]
