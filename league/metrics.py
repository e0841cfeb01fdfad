"""Provides means that can be merged, and intervals that say how certain a win rate is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from league.errors import InvalidInput


@dataclass(frozen=True)
class Mean:
    """Keeps a mean as a sum and a count, so that ``a + b`` is the exact mean of both samples."""

    total: float = 0.0
    count: int = 0

    def __add__(self, other: Mean) -> Mean:
        return Mean(self.total + other.total, self.count + other.count)

    def add(self, value: float, count: int = 1) -> Mean:
        """Returns the mean with `count` more observations of `value`."""
        return Mean(self.total + value * count, self.count + count)

    @property
    def value(self) -> float:
        """Returns the mean itself, NaN without observations."""
        return self.total / self.count if self.count else math.nan


@dataclass(frozen=True)
class Interval:
    """Holds the two ends of a confidence interval of a share. Both lie in [0, 1]."""

    low: float
    high: float


@dataclass(frozen=True)
class Measured:
    """Holds a number with the ends of its 95 % interval. An unknown end is NaN."""

    value: float
    low: float = math.nan
    high: float = math.nan


def wilson_interval(successes: float, trials: float, confidence: float = 0.95) -> Interval:
    """Computes Wilson's score interval of a binomial share, without continuity correction.

    With p = successes / trials and z the normal quantile of (1 + confidence) / 2::

        (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
    JASA 22 (1927). R. G. Newcombe, Statistics in Medicine 17 (1998), table I, has examples with
    numbers.

    Args:
        successes: number of wins. A draw may count as half a win. The interval is then wider than
            necessary, because draws reduce the variance.
        trials: number of matches. Without matches the share is unknown, and the interval is (0, 1).
        confidence: probability that the interval covers the share.

    Raises:
        InvalidInput: the counts or the confidence are impossible.
    """
    if trials < 0 or not 0 <= successes <= max(trials, 0):
        raise InvalidInput(
            f"{successes:g} wins of {trials} matches can't be: give 0 <= wins <= matches"
        )
    if not 0.0 < confidence < 1.0:
        raise InvalidInput(
            f"a confidence of {confidence} can't be used: give a share between 0 and 1"
        )
    if trials == 0:
        return Interval(0.0, 1.0)
    z = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    share = successes / trials
    shrink = 1.0 + z * z / trials
    centre = (share + z * z / (2.0 * trials)) / shrink
    half = z / shrink * math.sqrt(share * (1.0 - share) / trials + z * z / (4.0 * trials * trials))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return Interval(low, high)


def mean_interval(values: Sequence[float], largest: float) -> Measured:
    """Computes the mean of independent values in [-largest, largest] with its 95 % interval.

    Args:
        values: any number of values.
        largest: the largest possible absolute value.

    Returns:
        The mean with the interval that `interval_at` computes.

    Raises:
        InvalidInput: a value exceeds `largest`, so no interval could be trusted.
    """
    if not values:
        return Measured(math.nan, -largest, largest)
    most = max(map(abs, values))
    if most > largest * (1.0 + 1e-4):
        raise InvalidInput(
            f"a match paid {most:g}, and the game says that {largest:g} is the most: correct its "
            "largest_payoff"
        )
    count = len(values)
    square = math.fsum(value * value for value in values) / count
    return interval_at(math.fsum(values) / count, square, count, largest)


def interval_at(
    mean: float, square: float, count: int, largest: float, confidence: float = 0.95
) -> Measured:
    """Computes an interval of the mean of `count` independent values in [-largest, largest].

    Each end is computed as in a normal interval, after some observations have been added to the
    values. Let z be the normal quantile of (1 + confidence) / 2. For the low end, z² observations
    of -largest are added. For the high end, z² observations of largest are added. The added
    observations allow for extreme values that are too rare to be observed.

    A. Agresti and B. Coull, "Approximate is better than exact", The American Statistician 52
    (1998), compute both ends from the same values, with z²/2 added observations of each extreme. If
    large values are rare, the true mean is then too often beyond one of the ends.

    Args:
        mean: mean of the values.
        square: mean of their squares.
        count: number of values.
        largest: the largest possible absolute value.
        confidence: probability that the interval covers the mean.

    Returns:
        The mean with its interval.
    """
    z = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    worth = count + z * z

    def end(sign: float) -> float:
        centre = (mean * count + sign * z * z * largest) / worth
        variance = (square * count + (z * largest) ** 2) / worth - centre * centre
        return centre + sign * z * math.sqrt(max(0.0, variance) / worth)

    return Measured(mean, max(end(-1.0), -largest), min(end(1.0), largest))
