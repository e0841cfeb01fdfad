"""The generalised sequential test on Elo, for small differences.

A pair of matches on one seed, once from each seat, scores 0, ¼, ½, ¾ or 1 on average. What the seat
or the seed gives to one side it takes in the other match, so pairs vary less than two matches do,
and the test counts five kinds of pairs ("pentanomial") instead of assuming how the two matches
depend on each other. How often each kind comes is not part of the hypotheses: both take the
distribution that is likeliest given their Elo, so it is "generalised".

    LLR = N Σ p ln(q1/q0),  p the shares seen, q0 and q1 the likeliest under elo0 and elo1

Scores are evenly spaced from 0 to 1, one cell for each. With shares p of what was seen and a linear
constraint Σ q d = 0 the likelihood is largest at

    q = p / (1 + x d),  x from the secular equation  Σ p d / (1 + x d) = 0,

which has one root between its poles −1/max d and −1/min d. Sources: M. Van den Bergh, "A practical
introduction to the GSPRT", "Normalized Elo" and "The generalized maximum likelihood ratio for the
expectation value of a distribution" (proposition 1.1); known answers from fishtest. The error rates
hold for many pairs, and by measurement (docs/gates.md) for a few dozen. Everything is plain floats:
numpy's overhead on five numbers is five times the work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field

from league.errors import InvalidInput
from league.stats.gates.bernoulli import BernoulliTest, Counts, Diffusion, checked_counts

NORMALISED_UNIT = 800.0 / math.log(10.0)
"""Normalised Elo for a mean score one standard deviation of a match above ½: 347.4356."""
PRIOR = 1e-3
"""The count of a cell that was never seen: at 0 no distribution could be tilted into it."""
NOTHING = 1e-9
"""A ratio so small that it is 0: some 2e-7 normalised Elo."""
LEAST = 1e-9
"""The smallest variance that is believed."""
FEW = 5
"""With fewer results than this that differ from the commonest kind, the spread is unknown."""
Shares = list[float]


class EloModel(Enum):
    """The meaning of a difference in Elo.

    Logistic Elo is a score, 1/(1 + 10^(−elo/400)). Normalised Elo is a score in standard deviations
    of a match, (score − ½)/σ · 800/ln 10: how hard the difference is to see, so that the
    length of a test hardly depends on how much is drawn.
    """

    LOGISTIC = "logistic"
    NORMALISED = "normalised"


LARGEST = {EloModel.LOGISTIC: 1000.0, EloModel.NORMALISED: 200.0}
"""Elo beyond which a hypothesis is refused: a score of .9968; .75 if nothing is drawn."""


def score_of(elo: float) -> float:
    """The expected score of a player that is `elo` (logistic) stronger; a draw is half a point."""
    return 1.0 / (1.0 + 10.0 ** (-elo / 400.0))


def elo_of(score: float) -> float:
    """The logistic Elo of an expected score; infinite at 0 and 1."""
    if score <= 0.0 or score >= 1.0:
        return math.copysign(math.inf, score - 0.5)
    return 400.0 * math.log10(score / (1.0 - score))


# --- the likeliest distribution of scores under a constraint


def scores_of(cells: int) -> Shares:
    """The score of each cell, 0 to 1."""
    return [cell / (cells - 1) for cell in range(cells)]


def regularised(counts: Sequence[float]) -> tuple[float, Shares]:
    """How many results there are and the share of each cell, empty ones counted as `PRIOR`."""
    filled = [float(count) or PRIOR for count in counts]
    total = sum(filled)
    return total, [count / total for count in filled]


def moments(shares: Shares) -> tuple[float, float]:
    """Mean and variance of the score."""
    cells = list(zip(shares, scores_of(len(shares)), strict=True))
    mean = sum(share * score for share, score in cells)
    return mean, sum(share * (score - mean) ** 2 for share, score in cells)


def likelihood(seen: Shares, believed: Shares) -> float:
    """Logarithm of the likelihood of `believed` for each result seen: Σ p ln q."""
    return sum(share * math.log(other) for share, other in zip(seen, believed, strict=True))


def likeliest_of_mean(shares: Shares, mean: float) -> Shares:
    """The likeliest shares whose score has the expectation `mean`, in (0, 1)."""
    return _tilted(shares, [score - mean for score in scores_of(len(shares))])


def likeliest_of_ratio(shares: Shares, ratio: float) -> Shares:
    """The likeliest shares with (mean − ½)/deviation = `ratio`, of at most 2.8 either way.

    With u = score − ½ that is E u = k r, r² = E u², k = ratio/√(1 + ratio²). As r = min over ρ of
    ρ/2 + r²/2ρ, taken at ρ = r, it is the linear constraint E (u − k(ρ/2 + u²/2ρ)) = 0 at the ρ
    that equals the r of its solution: a root in ρ, bracketed by the cells nearest to and
    farthest from ½. Where nearly everything was drawn there are several, and the likeliest counts.
    (Solving for mean and deviation by turns does not end where one cell holds nearly all.)
    """
    if abs(ratio) < NOTHING:
        return likeliest_of_mean(shares, 0.5)
    if ratio < 0.0:
        return likeliest_of_ratio(shares[::-1], -ratio)[::-1]
    from scipy.optimize import brentq

    lean = ratio / math.sqrt(1.0 + ratio * ratio)
    offsets = [score - 0.5 for score in scores_of(len(shares))]

    def solved(root: float) -> Shares:
        return _tilted(shares, [u - lean * (root / 2 + u * u / (2 * root)) for u in offsets])

    def excess(root: float) -> float:
        return sum(q * u * u for q, u in zip(solved(root), offsets, strict=True)) - root * root

    # a grid that separates the roots: there is one above five times the least, if any
    nearest = min(u for u in offsets if u > 0.0)
    least = nearest * lean / (1.0 + math.sqrt(1.0 - lean * lean)) * (1.0 + 1e-9)
    grid = [*(least * 1.15**step for step in range(12) if least * 1.15**step < 0.5), 0.5]
    positive = [excess(root) > 0.0 for root in grid]
    found = [
        solved(brentq(excess, grid[at], grid[at + 1], xtol=1e-14, rtol=1e-13))
        for at in range(len(grid) - 1)
        if positive[at] != positive[at + 1]
    ]
    return max(found, key=lambda some: likelihood(shares, some))


def _tilted(shares: Shares, values: list[float]) -> Shares:
    """The likeliest shares under Σ q·value = 0; the values must have both signs."""
    from scipy.optimize import brentq

    least, largest = min(values), max(values)
    if not least < 0.0 < largest:
        raise InvalidInput("no distribution of these scores has such an Elo: take a smaller one")
    # 1 + x·value with x in log-odds between the poles: a sum of non-negative terms, so nothing
    # cancels
    terms = [
        (share * value, 1.0 - value / largest, 1.0 - value / least)
        for share, value in zip(shares, values, strict=True)
    ]

    def secular(log_odds: float) -> float:
        odds = math.exp(log_odds)
        return sum([moment / (low + odds * high) for moment, low, high in terms])

    # begin where x is 0, close to the root when the hypothesis is close to what was seen
    low_end = high_end = math.log(-least / largest)
    step = math.copysign(0.1, secular(low_end))  # the function falls
    while secular(high_end) * step > 0.0:
        low_end, high_end = high_end, high_end + step
        step *= 4.0
    odds = math.exp(brentq(secular, *sorted((low_end, high_end)), xtol=1e-12, rtol=1e-14))
    return [
        share * (1.0 + odds) / (low + odds * high)
        for share, (_, low, high) in zip(shares, terms, strict=True)
    ]


# --- the test


@dataclass(frozen=True, kw_only=True)
class MultinomialTest:
    """H0: the candidate is `elo0` stronger or less, against H1: it is `elo1` stronger or more.

    `cells`: 5 counts pairs of matches, 3 counts matches one by one.
    """

    elo0: float
    elo1: float
    model: EloModel = EloModel.LOGISTIC
    cells: Literal[3, 5] = 5
    kind: Literal["multinomial"] = "multinomial"

    def __post_init__(self) -> None:
        for elo in self.values:
            self._check_elo(elo)
        if self.elo0 >= self.elo1:
            raise InvalidInput(
                f"elo0 {self.elo0:g} is not below elo1 {self.elo1:g}: elo0 is the Elo to reject"
            )

    def _check_elo(self, elo: float) -> None:
        most = LARGEST[self.model]
        if not abs(elo) <= most:
            raise InvalidInput(
                f"{self.model.value} Elo {elo:g} can't be tested: use {-most:g} to {most:g}"
            )

    @property
    def values(self) -> tuple[float, float]:
        """The two hypotheses, in Elo."""
        return self.elo0, self.elo1

    @property
    def _matches_per_result(self) -> int:
        return 2 if self.cells == 5 else 1

    def llr(self, counts: Counts) -> float:
        """The exact generalised log-likelihood ratio; empty cells count as 0.001."""
        checked_counts(counts, self.cells)
        return _llr(self, counts) if any(counts) else 0.0

    def likeliest(self, shares: Shares, elo: float) -> Shares:
        """The likeliest distribution of results with this Elo."""
        if self.model is EloModel.LOGISTIC:
            return likeliest_of_mean(shares, score_of(elo))
        return likeliest_of_ratio(shares, elo / NORMALISED_UNIT * self._matches_per_result**0.5)

    def score(self, value: float, counts: Counts) -> float:
        """The score of an Elo. A normalised one needs the spread seen; without counts, no match
        is drawn."""
        self._check_elo(value)
        if self.model is EloModel.LOGISTIC:
            return score_of(value)
        ratio = value / NORMALISED_UNIT
        if not any(counts):
            return 0.5 + ratio / math.sqrt(1.0 + ratio * ratio) / 2
        _, variance = moments(regularised(counts)[1])
        # the score stays a score where results vary more than any score allows
        score = 0.5 + ratio * math.sqrt(variance * self._matches_per_result)
        return min(max(score, 1e-3), 1.0 - 1e-3)

    def diffusion(self, counts: Counts) -> Diffusion:
        """As for normal scores: drift (s − (s0 + s1)/2)(s1 − s0)/v, variance (s1 − s0)²/v.

        v is the variance seen, plus the square of the distance of s from the mean seen, as of the
        likeliest distribution of mean s, and at most s(1 − s): no score from 0 to 1 varies more.
        Where fewer than `FEW` results differ from the commonest kind, all count as won or lost,
        which varies that much; without any results, matches are independent.
        """
        score0, score1 = (self.score(elo, counts) for elo in self.values)
        middle, gap = (score0 + score1) / 2, score1 - score0
        if sum(counts) - max(counts) < FEW:
            matches = 1 if any(counts) else self._matches_per_result
            slope = gap / (middle * (1.0 - middle) / matches)
            return lambda s: ((s - middle) * slope, s * (1.0 - s) / matches * slope * slope)
        seen, variance = moments(regularised(counts)[1])

        def at(score: float) -> tuple[float, float]:
            spread = max(min(variance + (score - seen) ** 2, score * (1.0 - score)), LEAST)
            return (score - middle) * gap / spread, gap * gap / spread

        return at

    def __str__(self) -> str:
        return f"{self.model.value} Elo {self.elo0:g} against {self.elo1:g}"


@lru_cache(maxsize=16384)  # a gate is counted again from its first result at every look
def _llr(test: MultinomialTest, counts: Counts) -> float:
    total, shares = regularised(counts)
    weak, strong = (test.likeliest(shares, elo) for elo in test.values)
    return total * (likelihood(shares, strong) - likelihood(shares, weak))


Test = Annotated[BernoulliTest | MultinomialTest, Field(discriminator="kind")]
