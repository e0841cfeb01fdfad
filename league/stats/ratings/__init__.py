"""Ratings: TrueSkill in commit order, and a fit of all games at once to check it.

The matchmaker folds results with the names below. The fit is in `league.stats.ratings.fit`.
"""

from league.stats.ratings.belief import (
    BETA,
    FIRST_DRAW_PROBABILITY,
    MU,
    NEWCOMER,
    NO_DRIFT,
    NORMAL_LINK,
    SIGMA,
    Belief,
    Drift,
    Link,
    Outlook,
    outlook,
    quality,
    rate,
    win_probability,
)
from league.stats.ratings.epochs import Epoch, PredictionRecord
from league.stats.ratings.table import RatedGame, RatingTable

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
    "Epoch",
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
