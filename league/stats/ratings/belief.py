"""Rates two players with TrueSkill (the `trueskill` package), and predicts results from ratings.

TrueSkill (Herbrich et al. 2006) models a player's performance as N(strength, β²). The higher
performance wins, and two performances within the draw margin ε draw. With ε = Φ⁻¹((p + 1)/2)·√2·β
two equal players draw with probability p.

The package assumes that players do not change. A learner's strength changes while it learns, so
`Drift` widens its belief before each match.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import trueskill
from numpy.typing import ArrayLike, NDArray

MU = 25.0
SIGMA = 25.0 / 3.0
BETA = 25.0 / 6.0
FIRST_DRAW_PROBABILITY = 0.1
"""Share of draws between equal players that ratings expect before the share has been measured."""
_ANCHOR_SIGMA = 1e-6
"""The σ that the package gets for a pinned player (with a fixed rating), because the package
rejects 0. Ratings have the same digits as with 0.
"""
_ONE_PASS = 1.0
"""The package's `min_delta`. A match of two players needs a single pass over its factor graph. With
a smaller `min_delta`, the package would make a second pass to see that nothing moves. The package
also takes `min_delta` as the least weight of a player, but all weights are 1.
"""
_DIGITS = 50
"""Digits of the mpmath backend, enough for gaps of 100,000 points."""
_FARTHEST = 6.0
"""Largest gap of two players in `rate_points`, in units of c (`spread`). Wider gaps are reduced to
this gap.
"""
_LOGISTIC_SCALE = 1.702
"""Scale of the logistic curve: 1/(1 + exp(−1.702 t)) is within .0095 of Φ(t) everywhere."""


@dataclass(frozen=True)
class Belief:
    """Describes a player's strength as a Gaussian.

    `sigma` determines how far a result moves `mu`. It is not a standard error of `mu`.
    """

    mu: float = MU
    sigma: float = SIGMA

    @property
    def score(self) -> float:
        """Returns the conservative estimate that orders the leaderboard."""
        return self.mu - 3.0 * self.sigma


NEWCOMER = Belief()


@dataclass(frozen=True)
class Drift:
    """Models a learner's strength as a random walk over the logarithm of its steps.

    From step s to step s′ the variance grows by κ·ln((s′ + s₀)/(s + s₀)). The variance grows fast
    at first and more slowly later, because learning curves are straight over the logarithm of the
    steps. This is the state noise of a Kalman filter, as in TrueSkill Through Time (Dangauthier et
    al. 2007), but over steps instead of matches.

    Attributes:
        points2_per_fold: κ, the growth of σ² in points² while the steps grow by a factor of e. In
            runs of the preset `laptop`, the strength climbs by 4 to 5 points per factor of e, and
            its variance around this climb grows by 2 to 8 points². TrueSkill does not model the
            climb, so it predicts the training matches of these runs best with a κ of 10 to 20.
        settling_steps: s₀. As long as s is far below s₀, the variance grows in proportion to s.
    """

    points2_per_fold: float = 10.0
    settling_steps: int = 50_000

    def variance(self, since: float, step: float) -> float:
        """Returns the growth of σ² from the learner step `since` to the learner step `step`, in
        points². The growth is 0 if `step` is not later than `since`.
        """
        if step <= since:
            return 0.0
        ratio = (step + self.settling_steps) / (since + self.settling_steps)
        return self.points2_per_fold * math.log(ratio)


NO_DRIFT = Drift(0.0)


@dataclass(frozen=True)
class Link:
    """Turns a normalised rating gap t into a win probability.

    The link's parameters are measured at each rating epoch (`league.stats.ratings.table`).

    In TrueSkill this probability is Φ(t). Φ is inaccurate if upsets follow Elo's logistic curve, or
    if ratings are farther apart or closer together than the players' true strengths. F(t) = (1 −
    λ)·Φ(a t) + λ/(1 + exp(−1.702 a t)) corrects both errors in predictions. Ratings themselves are
    updated with Φ, as published.

    Attributes:
        sharpness: a, above 0.
        logistic_share: λ, from 0 to 1.
    """

    sharpness: float = 1.0
    logistic_share: float = 0.0

    def curve(self, t: ArrayLike) -> NDArray[np.float64]:
        """Returns F of every gap in `t`, in the shape of `t`."""
        from scipy.special import expit, ndtr  # takes a quarter of a second to load

        scaled = self.sharpness * np.asarray(t, np.float64)
        normal = ndtr(scaled)
        logistic = expit(_LOGISTIC_SCALE * scaled)
        return np.asarray(normal + self.logistic_share * (logistic - normal))

    def score(self, t: ArrayLike, e: ArrayLike) -> NDArray[np.float64]:
        """Returns the expected scores at rating gaps `t` and draw margins `e`, both in units of c
        (`spread`).
        """
        t, e = np.asarray(t, np.float64), np.asarray(e, np.float64)
        return (self.curve(t - e) + self.curve(t + e)) / 2.0


NORMAL_LINK = Link()


def spread(first: Belief, second: Belief) -> float:
    """Returns c, the standard deviation of the difference of two performances, in points."""
    return math.sqrt(2.0 * BETA**2 + first.sigma**2 + second.sigma**2)


@lru_cache
def draw_margin(draw_probability: float) -> float:
    """Returns ε in points for a draw probability between 0 and 1."""
    return float(trueskill.calc_draw_margin(draw_probability, 2, _package(draw_probability)))


def rate(
    first: Belief,
    second: Belief,
    outcome: float,
    draw_probability: float = FIRST_DRAW_PROBABILITY,
) -> tuple[Belief, Belief]:
    """Rates two players after a match.

    Args:
        first, second: the players' ratings before the match.
        outcome: outcome of the first player, 1, ½ or 0.
        draw_probability: share of draws between equal players, above 0.
    """
    winner, loser = (second, first) if outcome == 0.0 else (first, second)
    try:
        rated = _rated(winner, loser, outcome == 0.5, _package(draw_probability))
    except (ArithmeticError, ValueError):  # gaps over 400 points, and very narrow draw margins
        import mpmath

        exact = _package(draw_probability, "mpmath")
        with mpmath.workdps(_DIGITS):
            rated = _rated(winner, loser, outcome == 0.5, exact)
    return (rated[1], rated[0]) if outcome == 0.0 else rated


def rate_points(
    first: Belief, second: Belief, points: float, worth: float
) -> tuple[Belief, Belief]:
    """Rates two players after a match that counts for several games, or for a part of a game.

    μ moves by a weighted mean: the step after a win has the weight `points`, and the step after a
    loss has the weight 1 − `points`. The variances shrink as much as they do on average in a game
    without draws.

    Args:
        first, second: the players' ratings before the match.
        points: the first player's points per game, 1 for a win and 0 for a loss. Payoffs may be
            more than 1 or less than 0.
        worth: number of games for which the match counts.
    """
    c = spread(first, second)
    t = min(max((first.mu - second.mu) / c, -_FARTHEST), _FARTHEST)
    likely, chances = _pdf(t), _cdf(t) * _cdf(-t)
    gained = worth * c * likely * (points - _cdf(t)) / chances
    information = worth * likely * likely / chances
    scale = c * c + (max(worth, 1.0) - 1.0) * (first.sigma**2 + second.sigma**2)
    rated = (
        Belief(
            belief.mu + sign * belief.sigma**2 * gained / scale,
            belief.sigma * math.sqrt(1.0 - belief.sigma**2 * information / scale),
        )
        for belief, sign in ((first, 1.0), (second, -1.0))
    )
    return next(rated), next(rated)


def _rated(
    winner: Belief, loser: Belief, drawn: bool, package: trueskill.TrueSkill
) -> tuple[Belief, Belief]:
    """Rates a winner and a loser with the package. If the backend computes with too few digits,
    raises `ArithmeticError` or `ValueError`.
    """
    before = [
        trueskill.Rating(belief.mu, max(belief.sigma, _ANCHOR_SIGMA)) for belief in (winner, loser)
    ]
    after = trueskill.rate_1vs1(*before, drawn=drawn, min_delta=_ONE_PASS, env=package)
    for old, new in zip(before, after, strict=True):
        # A match always narrows the beliefs of both players, so any other result is a cancellation
        # error.
        if not (math.isfinite(new.mu) and 0.0 < new.sigma <= old.sigma * (1.0 + 1e-9)):
            raise FloatingPointError(f"σ went from {old.sigma} to {new.sigma}")
    return Belief(after[0].mu, after[0].sigma), Belief(after[1].mu, after[1].sigma)


@lru_cache
def _package(draw_probability: float, backend: str = "float") -> trueskill.TrueSkill:
    """Returns the package's environment. τ is 0, because `RatingTable` adds the drift.

    "float" uses the C library's erfc, because the package's own erfc has only 7 correct digits.
    "mpmath" has any number of digits.
    """
    functions = (_cdf, _pdf, NormalDist().inv_cdf) if backend == "float" else backend
    return trueskill.TrueSkill(
        mu=MU,
        sigma=SIGMA,
        beta=BETA,
        tau=0.0,
        draw_probability=draw_probability,
        backend=functions,
    )


def _cdf(x: float) -> float:
    return math.erfc(-x * math.sqrt(0.5)) / 2.0


def _pdf(x: float) -> float:
    return math.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi)
