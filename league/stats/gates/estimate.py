"""Forecasts tests and estimates scores, modelling the log-likelihood ratio as a Brownian motion."""

from __future__ import annotations

import math
from dataclasses import dataclass

from league.stats.gates.bernoulli import BernoulliTest, Counts, Risks, mean_score
from league.stats.gates.multinomial import MultinomialTest

EDGE = 1e-6
"""The search for a score covers EDGE to 1 − EDGE."""
OVERSHOOT = 0.583
"""Mean overshoot: how far beyond a bound a random walk ends, in standard deviations of a step."""
LEVEL = 1e-7
"""A walk counts as driftless if its drift times the distance between the bounds is less than this
value times its variance.
"""
ENDED = 3.0
"""When a walk's standard deviation is this many times the distance between the bounds, all but a
share of 10^-19 of the walks have ended.
"""
TURNS = 20
"""Number of reflections in the series of `worse_outcome`. For a walk that has not reached `ENDED`,
further reflections do not matter.
"""


@dataclass(frozen=True)
class Forecast:
    """Gives the probability that a test accepts, and the mean number of results that it takes."""

    accepted: float
    results: float


def forecast(
    test: BernoulliTest | MultinomialTest, score: float, counts: Counts, risks: Risks
) -> Forecast:
    """Forecasts how a new test will end.

    A Brownian motion with drift μ and variance σ² reaches the upper bound B before the lower bound
    A with probability (1 − e^(hA))/(e^(hB) − e^(hA)), h = −2μ/σ². The motion takes E(S)/μ results
    on average, where S is the log-likelihood ratio at the end. Both bounds are moved outwards by
    the mean overshoot of a random walk (Siegmund, "Sequential Analysis", 1985). Without this shift,
    the forecast number of matches for a test with p0 = .65 and p1 = .75 would be 7 % too small.

    Args:
        score: the candidate's true score.
        counts: results from which the variance is estimated, all 0 if there are none.
        risks: the test's error rates.
    """
    drift, variance = test.diffusion(counts)(score)
    moved = OVERSHOOT * math.sqrt(variance)
    upper, lower = risks.upper + moved, risks.lower - moved
    accepted = _upper_first(drift / variance, lower, upper)
    if abs(drift) * (upper - lower) < LEVEL * variance:
        return Forecast(accepted, -lower * upper / variance)
    return Forecast(accepted, (accepted * upper + (1.0 - accepted) * lower) / drift)


def _upper_first(tilt: float, lower: float, upper: float) -> float:
    """Returns the probability that a motion with drift `tilt` per unit of variance reaches `upper`
    before `lower`.
    """
    if abs(tilt) * (upper - lower) < 1e-15:  # the limit without drift, to the last digit
        return -lower / (upper - lower)
    # Compute the probability of reaching the bound towards which the motion drifts. In this form no
    # exponent is positive, so nothing overflows.
    far, exponent = (lower if tilt > 0 else upper), 2.0 * abs(tilt)
    reached = math.expm1(-exponent * abs(far)) / math.expm1(-exponent * (upper - lower))
    return reached if tilt > 0 else 1.0 - reached


@dataclass(frozen=True)
class Estimate:
    """Gives a score with its interval. Unlike the mean of a stopped test, the score is
    median-unbiased.

    `low` and `high` are 0 and 1 if the results set no bound.
    """

    score: float
    low: float
    high: float


def estimate(
    test: BernoulliTest | MultinomialTest,
    counts: Counts,
    risks: Risks,
    confidence: float = 0.95,
) -> Estimate | None:
    """Estimates the candidate's score from a test that stopped.

    A test that stops as soon as its likelihood ratio is high tends to stop on good luck. So the
    mean of the test's results is too high after an acceptance and too low after a rejection. This
    function orders the outcomes of the test by when and where it stopped (`worse_outcome`). If the
    log-likelihood ratio is beyond a bound, the ratio is moved back to the bound, and the number of
    results is reduced in proportion.

    Args:
        confidence: probability that the interval covers the score.

    Returns:
        The estimate with its interval, None without results. The estimated score is the score under
        which an outcome at least this good has the probability ½.
    """
    if not any(counts):
        return None
    from scipy.optimize import brentq

    diffusion, mean, results = test.diffusion(counts), mean_score(counts), float(sum(counts))
    position = results * diffusion(mean)[0]
    if not risks.lower <= position <= risks.upper:
        bound = risks.upper if position > 0 else risks.lower
        results, position = results * bound / position, bound

    def same_or_better(score: float) -> float:
        return 1.0 - worse_outcome(*diffusion(score), risks, results, position)

    def score_at(wanted: float) -> float:
        """Finds the score nearest to the mean at which `same_or_better` equals `wanted`. If there
        is no such score, it returns 0 or 1.

        Near the mean, `same_or_better` increases with the score. Far from the mean this is not
        guaranteed, because the variance depends on the score.
        """
        near, step = min(max(mean, EDGE), 1.0 - EDGE), EDGE
        upwards = same_or_better(near) < wanted
        end = 1.0 - EDGE if upwards else EDGE
        while near != end:
            far = min(near + step, end) if upwards else max(near - step, end)
            if (same_or_better(far) < wanted) is not upwards:
                root = brentq(lambda score: same_or_better(score) - wanted, near, far, xtol=1e-12)
                return float(root)
            near, step = far, 1.25 * step
        return float(upwards)

    tail = (1.0 - confidence) / 2.0
    return Estimate(score_at(0.5), score_at(tail), score_at(1.0 - tail))


def worse_outcome(
    drift: float, variance: float, risks: Risks, results: float, position: float
) -> float:
    """Computes the probability that a Brownian motion ends worse than the observed motion, which is
    at `position` after `results` results.

    A motion ends worse in three cases: it crosses the lower bound before the observed motion ends,
    it is below `position` at that time, or it crosses the upper bound later or never. This is the
    order of Siegmund ("Sequential Analysis", 1985), which compares tests that stopped at different
    times. The motion begins at 0. The probability is an exact series of reflections. A path that
    ends above `position` counts as worse if it crossed the lower bound first. A path that ends
    below `position` counts as better if it crossed the upper bound first.

    Args:
        drift, variance: drift and variance of the motion per result.
        risks: the error rates, which set the bounds.
        results: number of results.
        position: a value of the motion, between the bounds or on a bound.
    """
    from scipy.special import log_ndtr

    lower, upper = risks.lower, risks.upper
    width, deviation = upper - lower, math.sqrt(variance * results)
    tilt, end = drift / variance, drift * results

    def above(shift: float) -> float:
        return math.exp(-tilt * shift + log_ndtr((end - position - shift) / deviation))

    def below(shift: float) -> float:
        return math.exp(tilt * shift + log_ndtr((position - end - shift) / deviation))

    if deviation > ENDED * width:
        return 1.0 - _upper_first(tilt, lower, upper)
    total = math.exp(log_ndtr((position - end) / deviation))
    for turn in range(TURNS):
        both, next_both = 2 * turn * width, 2 * (turn + 1) * width
        terms = (
            above(both - 2 * lower),
            -above(next_both),
            -below(both + 2 * upper),
            below(next_both),
        )
        total += sum(terms)
        if max(map(abs, terms)) < 1e-15:
            break
    return min(max(total, 0.0), 1.0)
