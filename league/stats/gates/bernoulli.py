"""Wald's sequential probability ratio test on a share of points: for large differences, match by
match.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from league.errors import InvalidInput
from league.stats.gates.hypotheses import Counts, Steps, Walk, checked_counts


@dataclass(frozen=True, kw_only=True)
class BernoulliTest:
    """H0: the score is `p0` or less, against H1: it is `p1` or more.

    A win adds ln(p1/p0) to the log-likelihood ratio, a loss ln((1 − p1)/(1 − p0)), and a **draw
    half of each**: it counts as half a win and half a loss. That is sound whatever the share of
    draws: a result x of 0, ½ or 1 multiplies the likelihood ratio by (p1/p0)^x ((1 − p1)/(1 −
    p0))^(1 − x), which is convex in x and so at most its chord, 1 at x = p0 and falling below it.
    Hence under every distribution with a mean of at most p0 the ratio is a non-negative
    supermartingale, as it is without draws, and reaches the bound (1 − β)/α with a probability of
    at most α/(1 − β) (Ville 1939); so for its inverse under a mean of p1 or more. Draws make tests
    longer and errors rarer.

    The same holds for a mean over an alternation, a match from each seat, as the product of two
    chords is largest when both are equal; but it needs matches that don't depend on one another.
    Two matches on one seed may: count those as a pair (`MultinomialTest`). Source: A. Wald (1945).
    """

    p0: float
    p1: float
    kind: Literal["bernoulli"] = "bernoulli"

    def __post_init__(self) -> None:
        for name, share in (("p0", self.p0), ("p1", self.p1)):
            if not 0.0 < share < 1.0:
                raise InvalidInput(
                    f"{name} {share:g} is no hypothesis: give a share between 0 and 1, as 0.55"
                )
        if self.p0 >= self.p1:
            raise InvalidInput(
                f"p0 {self.p0:g} is not below p1 {self.p1:g}: p0 is the score to reject, p1 the one to accept"
            )

    @property
    def cells(self) -> int:
        return 3

    @property
    def win(self) -> float:
        """What a win adds to the log-likelihood ratio."""
        return math.log(self.p1 / self.p0)

    @property
    def loss(self) -> float:
        """What a loss adds, below 0."""
        return math.log((1.0 - self.p1) / (1.0 - self.p0))

    def llr(self, counts: Counts) -> float:
        """(wins + draws/2) ln(p1/p0) + (losses + draws/2) ln((1 − p1)/(1 − p0)); no results: 0."""
        losses, draws, wins = checked_counts(counts, self.cells)
        return (wins + draws / 2) * self.win + (losses + draws / 2) * self.loss

    @property
    def values(self) -> tuple[float, float]:
        return self.p0, self.p1

    def score(self, value: float, counts: Counts) -> float:
        """The value itself; raises `InvalidInput` when it is no share."""
        if not 0.0 <= value <= 1.0:
            raise InvalidInput(f"{value:g} is no share of the points: give one from 0 to 1")
        return value

    def walk(self, counts: Counts) -> Walk:
        """The variance is p(1 − p) less a quarter of the share of draws; unseen are two that
        were decided.
        """
        _, draws, _ = checked_counts(counts, self.cells)
        missing = draws / (sum(counts) + 2) / 4

        def at(score: float) -> tuple[float, float]:
            variance = max(score * (1.0 - score) - missing, 0.0)
            return self.loss + score * (self.win - self.loss), variance * (
                self.win - self.loss
            ) ** 2

        return at

    def steps(self, score: float, counts: Counts) -> Steps:
        """With as many draws as were seen, as far as `score` leaves room for them."""
        drawn = counts[1] / sum(counts) if any(counts) else 0.0
        drawn = min(drawn, 2 * score, 2 * (1.0 - score))
        won = score - drawn / 2
        half = (self.win + self.loss) / 2
        return [(self.loss, max(0.0, 1.0 - won - drawn)), (half, drawn), (self.win, won)]

    def __str__(self) -> str:
        return f"score {self.p0:g} against {self.p1:g}"
