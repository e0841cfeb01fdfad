"""Implements the generalised sequential test on Elo. It suits small differences in strength.

The test counts pairs of matches on a common seed, in which each player plays each seat once. The
mean score of a pair is 0, ¼, ½, ¾ or 1. An advantage of a seat or seed helps each player once, so a
pair varies less than two independent matches. The test counts five kinds of pairs ("pentanomial")
instead of assuming how the two matches depend on each other. A hypothesis is only an Elo and does
not say how frequent each kind is. So the test assumes the distribution with this Elo under which
the results are likeliest, which makes the test "generalised".

    LLR = N Σ p ln(q1/q0),  p the shares seen, q0 and q1 the likeliest under elo0 and elo1

The possible scores are evenly spaced from 0 to 1. The results with the same score form a cell. With
observed shares p of the cells and a linear constraint Σ q d = 0, the likelihood is largest at

    q = p / (1 + x d),  x from the secular equation  Σ p d / (1 + x d) = 0,

which has a single root between its poles −1/max d and −1/min d. Sources: M. Van den Bergh, "A
practical introduction to the GSPRT" and "The generalized maximum likelihood ratio for the
expectation value of a distribution" (proposition 1.1). Unit tests compare the results with
fishtest's.

In theory, the error rates hold only for many pairs. Measurements (docs/gates.md) show that they
also hold for a few dozen. The code uses plain floats, because numpy's overhead on five numbers is
five times the cost of the computation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field

from league.errors import InvalidInput
from league.stats.gates.bernoulli import BernoulliTest, Counts, Diffusion, checked_counts

PRIOR = 1e-3
"""Count that replaces the 0 of an empty cell. With 0, the score of this cell would have probability
0 under the likeliest distribution.
"""
LEAST = 1e-9
"""Lower limit of the variance of a score."""
FEW = 5
"""If fewer results than this differ from the most common kind, the spread is unknown."""
Shares = list[float]


LEAST_ELO_GAP = 1e-3
"""Least distance between the two hypotheses. If they were closer, even 10^12 results would hardly
decide between them.
"""
LARGEST_ELO = 1000.0
"""Largest Elo of a hypothesis, which is a score of .9968."""


def score_of(elo: float) -> float:
    """Returns the expected score of a player that is stronger by `elo` (logistic Elo). A draw is
    half a point.
    """
    return 1.0 / (1.0 + 10.0 ** (-elo / 400.0))


def elo_of(score: float) -> float:
    """Returns the logistic Elo of an expected score, infinite at 0 and 1."""
    if score <= 0.0 or score >= 1.0:
        return math.copysign(math.inf, score - 0.5)
    return 400.0 * math.log10(score / (1.0 - score))


# --- the likeliest distribution of scores under a constraint


def scores_of(cells: int) -> Shares:
    """Returns the score of each cell, 0 to 1."""
    return [cell / (cells - 1) for cell in range(cells)]


def regularised(counts: Sequence[float]) -> tuple[float, Shares]:
    """Returns the number of results and the share of each cell. Each empty cell counts as `PRIOR`
    results.
    """
    filled = [float(count) or PRIOR for count in counts]
    total = sum(filled)
    return total, [count / total for count in filled]


def moments(shares: Shares) -> tuple[float, float]:
    """Returns the mean and variance of a result's score."""
    cells = list(zip(shares, scores_of(len(shares)), strict=True))
    mean = sum(share * score for share, score in cells)
    return mean, sum(share * (score - mean) ** 2 for share, score in cells)


def likelihood(seen: Shares, believed: Shares) -> float:
    """Returns the mean log-likelihood per result, Σ p ln q, where p are the shares `seen` and q the
    shares `believed`.
    """
    return sum(share * math.log(other) for share, other in zip(seen, believed, strict=True))


def likeliest_of_mean(shares: Shares, mean: float) -> Shares:
    """Returns the distribution of results under which the observed results are likeliest, among the
    distributions with the mean score `mean`.

    Args:
        shares: observed share of each cell.
        mean: mean score, in (0, 1).

    Returns:
        The probability of each cell.
    """
    from scipy.optimize import brentq

    values = [score - mean for score in scores_of(len(shares))]
    least, largest = min(values), max(values)
    # The search is over the log-odds of x between the two poles. Then 1 + x·value is a sum of
    # non-negative terms, so no digits cancel.
    terms = [
        (share * value, 1.0 - value / largest, 1.0 - value / least)
        for share, value in zip(shares, values, strict=True)
    ]

    def secular(log_odds: float) -> float:
        odds = math.exp(log_odds)
        return sum([moment / (low + odds * high) for moment, low, high in terms])

    # Begin at x = 0, which is close to the root if the hypothesis is close to the results. The
    # largest distance reaches beyond every root, because no share is below 10^-16.
    near = start = math.log(-least / largest)
    away = math.copysign(1.0, secular(start))  # the function falls
    for distance in (0.1, 0.5, 2.0, 8.0, 32.0, 128.0):
        far = start + away * distance
        if secular(far) * away <= 0.0:
            break
        near = far
    odds = math.exp(brentq(secular, *sorted((near, far)), xtol=1e-12, rtol=1e-14))
    return [
        share * (1.0 + odds) / (low + odds * high)
        for share, (_, low, high) in zip(shares, terms, strict=True)
    ]


# --- the test


@dataclass(frozen=True, kw_only=True)
class MultinomialTest:
    """Tests H0: the candidate is at most `elo0` Elo stronger, against H1: at least `elo1` Elo
    stronger.

    If `cells` is 5, it counts pairs of matches. If `cells` is 3, it counts single matches.
    """

    elo0: float
    elo1: float
    cells: Literal[3, 5] = 5
    kind: Literal["multinomial"] = "multinomial"

    def __post_init__(self) -> None:
        for elo in self.values:
            self._check_elo(elo)
        if self.elo1 - self.elo0 < LEAST_ELO_GAP:
            raise InvalidInput(
                f"elo0 {self.elo0:.9g} is not at least {LEAST_ELO_GAP:g} below elo1 "
                f"{self.elo1:.9g}: elo0 is the Elo to reject"
            )

    def _check_elo(self, elo: float) -> None:
        if not abs(elo) <= LARGEST_ELO:
            raise InvalidInput(
                f"logistic Elo {elo:g} can't be tested: use {-LARGEST_ELO:g} to {LARGEST_ELO:g}"
            )

    @property
    def values(self) -> tuple[float, float]:
        """Returns the two hypotheses in Elo."""
        return self.elo0, self.elo1

    def llr(self, counts: Counts) -> float:
        """Returns the exact generalised log-likelihood ratio. Each empty cell counts as 0.001
        results.
        """
        checked_counts(counts, self.cells)
        return _llr(self, counts) if any(counts) else 0.0

    def score(self, value: float) -> float:
        """Returns the score of an Elo. An Elo beyond `LARGEST_ELO` raises `InvalidInput`."""
        self._check_elo(value)
        return score_of(value)

    def diffusion(self, counts: Counts) -> Diffusion:
        """Returns the drift and the variance of the log-likelihood ratio per result, as functions
        of the true score s. They are (s − (s0 + s1)/2)(s1 − s0)/v and (s1 − s0)²/v, as for normal
        scores.

        Here, v is the observed variance plus the squared distance of s from the observed mean, as
        for the likeliest distribution with mean s. It is at most s(1 − s), the largest variance of
        a score from 0 to 1. If fewer than `FEW` results differ from the most common kind, this
        largest variance is assumed. Without any results, the two matches of a pair are assumed to
        be independent.
        """
        score0, score1 = (score_of(elo) for elo in self.values)
        middle, gap = (score0 + score1) / 2, score1 - score0
        if sum(counts) - max(counts) < FEW:
            matches = 2 if self.cells == 5 and not any(counts) else 1
            slope = gap / (middle * (1.0 - middle) / matches)
            return lambda s: ((s - middle) * slope, s * (1.0 - s) / matches * slope * slope)
        seen, variance = moments(regularised(counts)[1])

        def at(score: float) -> tuple[float, float]:
            spread = max(min(variance + (score - seen) ** 2, score * (1.0 - score)), LEAST)
            return (score - middle) * gap / spread, gap * gap / spread

        return at

    def __str__(self) -> str:
        return f"logistic Elo {self.elo0:g} against {self.elo1:g}"


@lru_cache(maxsize=16384)  # each check of a gate counts its results again from the first
def _llr(test: MultinomialTest, counts: Counts) -> float:
    total, shares = regularised(counts)
    weak, strong = (likeliest_of_mean(shares, score_of(elo)) for elo in test.values)
    return total * (likelihood(shares, strong) - likelihood(shares, weak))


Test = Annotated[BernoulliTest | MultinomialTest, Field(discriminator="kind")]
