"""Provides ratings: TrueSkill, which rates results in the order of the log, and a fit of all games
at once, to check TrueSkill.

This package exports TrueSkill, which the matchmaker uses. The fit is in `league.stats.ratings.fit`.
"""
# ruff: noqa: F401

from league.stats.ratings.belief import (
    BETA,
    MU,
    NEWCOMER,
    NO_DRIFT,
    NORMAL_LINK,
    SIGMA,
    Belief,
    Drift,
    Link,
    rate,
)
from league.stats.ratings.table import Epoch, PredictionRecord, RatingTable
