"""Implements Wald's sequential probability ratio test on a share of points. The test suits large
differences in strength.

This module also provides the parts that all tests share: counts of results, error rates and their
bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from league.errors import InvalidInput

Counts = tuple[int, ...]
"""Number of results with each score, lowest score first. For matches these are (losses, draws,
wins), for pairs the numbers of pairs that scored 0, ½, 1, 1½ and 2.
"""
LEAST_GAP = 1e-6
"""Least distance between the two hypotheses. If they were closer, even 10^12 results would hardly
decide between them.
"""
LEAST_VARIANCE = 1e-12
"""Lower limit of the variance of a result's score."""
Diffusion = Callable[[float], tuple[float, float]]
"""Maps a true score to the drift and variance of the log-likelihood ratio per result."""


def unit(cells: int) -> str:
    """Returns the unit that a test counts: "pair" if a result has five possible scores, else
    "match".
    """
    return "pair" if cells == 5 else "match"


def amount(results: float, cells: int) -> str:
    """Returns a number with its unit: «1,234 pairs», «1 match»."""
    singular, plural = ("pair", "pairs") if cells == 5 else ("match", "matches")
    return f"{results:,.0f} {singular if f'{results:,.0f}' == '1' else plural}"


def checked_counts(counts: Sequence[int], cells: int) -> Counts:
    """Checks and returns a test's counts of results by score.

    Args:
        counts: number of results of each score.
        cells: number of possible scores.

    Raises:
        InvalidInput: there are not exactly `cells` counts, or a count is not a whole number of at
            least 0.
    """
    if len(counts) != cells:
        kinds = "losses, draws, wins" if cells == 3 else "pairs that scored 0, ½, 1, 1½, 2"
        raise InvalidInput(f"{len(counts)} counts were given where {cells} are wanted: {kinds}")
    for count in counts:
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= 10**12:
            raise InvalidInput(f"{count!r} is no count: give whole numbers from 0 to 10^12")
    return tuple(counts)


def checked_shares(shares: dict[str, float], meaning: str) -> None:
    """Checks that shares lie between 0 and 1. Otherwise raises `InvalidInput`."""
    for name, share in shares.items():
        if not 0.0 < share < 1.0:
            raise InvalidInput(
                f"{name} {share:g} can't be used: give a share between 0 and 1, a {meaning}"
            )


def points(counts: Counts) -> float:
    """Returns the sum of the scores of all results."""
    return sum(cell * count for cell, count in enumerate(counts)) / (len(counts) - 1)


def mean_score(counts: Counts) -> float:
    """Returns the share of the possible points that the results give, NaN without results."""
    return points(counts) / sum(counts) if any(counts) else math.nan


@dataclass(frozen=True, kw_only=True)
class Risks:
    """Sets the error rates of a test, and so the bounds on its log-likelihood ratio.

    `alpha` is the probability that the test accepts a candidate that is only as strong as the null
    hypothesis says. `beta` is the probability that the test rejects a candidate that is as strong
    as the alternative hypothesis says. The true rates α', β' satisfy α' <= α/(1 − β), β' <= β/(1 −
    α) and α' + β' <= α + β. Source: A. Wald, "Sequential tests of statistical hypotheses", Annals
    of Mathematical Statistics 16 (1945).
    """

    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        checked_shares({"alpha": self.alpha, "beta": self.beta}, "rate of errors, as 0.05")
        if self.alpha + self.beta >= 1.0:
            raise InvalidInput(
                f"alpha {self.alpha:g} and beta {self.beta:g} add up to 1 or more: use smaller ones"
            )

    def of_each(self, tests: int) -> Risks:
        """Returns the error rates to use in each of several tests if a candidate must pass all of
        them. All tests together then have the error rates of `self`.

        If a candidate is as strong as every alternative says, it fails at least one of n tests with
        a probability of at most n times the `beta` of each test. `alpha` is unchanged, because a
        candidate that is weak in one test still has to pass that test.
        """
        return replace(self, beta=self.beta / tests)

    @property
    def lower(self) -> float:
        """Returns ln(β/(1 − α)), −2.9444 for error rates of 5 %. At or below this value the test
        rejects.
        """
        return math.log(self.beta / (1.0 - self.alpha))

    @property
    def upper(self) -> float:
        """Returns ln((1 − β)/α), 2.9444 for error rates of 5 %. At or above this value the test
        accepts.
        """
        return math.log((1.0 - self.beta) / self.alpha)


@dataclass(frozen=True, kw_only=True)
class BernoulliTest:
    """Tests H0: the score is at most `p0`, against H1: the score is at least `p1`.

    A win adds ln(p1/p0) to the log-likelihood ratio, a loss adds ln((1 − p1)/(1 − p0)), and a
    **draw adds half of each**: it counts as half a win and half a loss. That is sound for any share
    of draws. A result x of 0, ½ or 1 multiplies the likelihood ratio by (p1/p0)^x ((1 − p1)/(1 −
    p0))^(1 − x). This factor is convex in x, so between 0 and 1 it is at most the straight line
    through its values at x = 0 and x = 1. The line is 1 at x = p0 and below 1 at a smaller x. So
    under every distribution with a mean of at most p0 the ratio is a non-negative supermartingale.
    It reaches the bound (1 − β)/α with a probability of at most α/(1 − β) (Ville 1939). The inverse
    ratio has the same property under a mean of p1 or more. Draws make tests longer and errors
    rarer.

    The error rates also hold if matches alternate between the seats and the mean score over both
    seats is at most p0. The expected factor of two matches is at most the product of the line's
    values at the two seats' mean scores. This product is largest when the two means are equal. But
    matches must be independent. Two matches on a common seed may depend on each other, so count
    them as a pair (`MultinomialTest`). Source: A. Wald (1945).
    """

    p0: float
    p1: float
    kind: Literal["bernoulli"] = "bernoulli"

    def __post_init__(self) -> None:
        checked_shares({"p0": self.p0, "p1": self.p1}, "score, as 0.55")
        if self.p1 - self.p0 < LEAST_GAP:
            raise InvalidInput(
                f"p0 {self.p0:.9g} is not at least {LEAST_GAP:g} below p1 {self.p1:.9g}: p0 is the "
                "score to reject"
            )

    @property
    def cells(self) -> int:
        """Returns 3, the number of possible scores of a result (0, ½ and 1)."""
        return 3

    @property
    def values(self) -> tuple[float, float]:
        """Returns the two hypotheses, `p0` and `p1`."""
        return self.p0, self.p1

    @property
    def win(self) -> float:
        """Returns the amount that a win adds to the log-likelihood ratio."""
        return math.log(self.p1 / self.p0)

    @property
    def loss(self) -> float:
        """Returns the amount, below 0, that a loss adds to the log-likelihood ratio."""
        return math.log((1.0 - self.p1) / (1.0 - self.p0))

    def llr(self, counts: Counts) -> float:
        """Returns (wins + draws/2) ln(p1/p0) + (losses + draws/2) ln((1 − p1)/(1 − p0))."""
        losses, draws, wins = checked_counts(counts, self.cells)
        return (wins + draws / 2) * self.win + (losses + draws / 2) * self.loss

    def score(self, value: float) -> float:
        """Converts a hypothesis' value to a score. The score is the value itself, because this
        test's hypotheses are scores.

        Raises:
            InvalidInput: the value is not between 0 and 1.
        """
        if not 0.0 <= value <= 1.0:
            raise InvalidInput(f"{value:g} is no share of the points: give one from 0 to 1")
        return value

    def diffusion(self, counts: Counts) -> Diffusion:
        """Returns the drift and the variance of the log-likelihood ratio per result, as functions
        of the true score.

        The variance of a result's score is p(1 − p) minus a quarter of the share of draws. To
        estimate this share, the test adds two results that are not draws to the counts.
        """
        _, draws, _ = checked_counts(counts, self.cells)
        missing = draws / (sum(counts) + 2) / 4
        step = self.win - self.loss

        def at(score: float) -> tuple[float, float]:
            variance = max(score * (1.0 - score) - missing, LEAST_VARIANCE)
            return self.loss + score * step, variance * step * step

        return at

    def __str__(self) -> str:
        return f"score {self.p0:g} against {self.p1:g}"
