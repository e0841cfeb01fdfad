"""When TrueSkill and the fit of all games disagree on a player.

TrueSkill is a running estimate that depends on the order of games and on who was met when; the fit
knows no order and has intervals. They are put on one zero point (that of the anchors, or such that
the median difference is none), and disagree on a player when both of these hold:

    μ lies outside the fit's 95 % interval of the player's rating
    the gap is worth WORTH of win rate against an equal: Φ(|gap|/√2·β) ≥ ½ + WORTH, .74 points

The first alone would name players that a thousand games made sure of and a gap too small to mind;
the second alone those of whom the fit knows little either.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from league.stats.ratings.belief import BETA, Belief
from league.stats.ratings.bradley_terry import Interval, LeagueFit

WORTH = 0.05
LEAST_GAP = statistics.NormalDist().inv_cdf(0.5 + WORTH) * 2.0**0.5 * BETA


@dataclass(frozen=True)
class Disagreement:
    """TrueSkill's `mu`, on the fit's zero point, and the interval that it misses."""

    name: str
    mu: float
    fitted: Interval

    @property
    def gap(self) -> float:
        """Points that TrueSkill has the player above the fit."""
        return self.mu - self.fitted.estimate


def zero_point(beliefs: Mapping[str, Belief], fitted: LeagueFit) -> float:
    """Points that TrueSkill's scale lies above the fit's: the median gap, none where anchors
    hold both.
    """
    if fitted.fit.is_anchored:
        return 0.0
    ratings = zip(fitted.names, fitted.fit.rating_N, strict=True)
    gaps = [beliefs[name].mu - float(rating) for name, rating in ratings if name in beliefs]
    return statistics.median(gaps) if gaps else 0.0


def disagreements(beliefs: Mapping[str, Belief], fitted: LeagueFit) -> list[Disagreement]:
    """Players that both know and rate differently, the widest gap first."""
    known = [(n, name) for n, name in enumerate(fitted.names) if name in beliefs]
    zero = zero_point(beliefs, fitted)
    found = [
        Disagreement(name, beliefs[name].mu - zero, fitted.fit.interval(n)) for n, name in known
    ]
    found = [one for one in found if abs(one.gap) >= LEAST_GAP and not one.fitted.holds(one.mu)]
    return sorted(found, key=lambda one: (-abs(one.gap), one.name))
