"""The generalised sequential test on Elo: for small differences, on pairs of matches with the seats
swapped.

A pair of matches on one seed, once from each seat, scores 0, ¼, ½, ¾ or 1 on average. What seat or
seed give to one side they take in the other match, so pairs vary less than two matches do, and the
test counts five kinds of pairs («pentanomial») instead of assuming how two matches of a pair depend
on each other. How often each kind comes is not part of the hypotheses: both take the distribution
that is likeliest given their Elo, hence «generalised».

    LLR = N Σ p ln(q1/q0),  p the shares seen, q0 and q1 the likeliest under elo0 and elo1

Source: M. Van den Bergh, "A practical introduction to the GSPRT" and "Normalized Elo"; known
answers from fishtest. The error rates hold for many pairs, and by measurement (docs/gates.md) for a
few dozen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from league.errors import InvalidInput
from league.stats.gates.elo import NORMALISED_UNIT, EloModel, score_of
from league.stats.gates.hypotheses import Counts, Steps, Walk, checked_counts
from league.stats.gates.likelihood import (
    Shares,
    likeliest_of_mean,
    likeliest_of_ratio,
    likelihood,
    moments,
    regularised,
    scores_of,
)

LARGEST = {EloModel.LOGISTIC: 1000.0, EloModel.NORMALISED: 200.0}
"""Elo beyond which a hypothesis is refused: a score of .9968; .75 if nothing is drawn."""
LEAST = 1e-9
"""The smallest variance that is believed."""
FEW = 5
"""Fewer results than this that differ from the commonest kind tell nothing of the spread."""


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
        for elo in (self.elo0, self.elo1):
            _checked_elo(elo, self.model)
        if self.elo0 >= self.elo1:
            raise InvalidInput(
                f"elo0 {self.elo0:g} is not below elo1 {self.elo1:g}: elo0 is to be rejected, elo1 accepted"
            )
        if self.cells not in (3, 5):
            raise InvalidInput(
                f"{self.cells} kinds of results can't be tested: 3 for matches, 5 for pairs"
            )

    def llr(self, counts: Counts) -> float:
        """The exact generalised log-likelihood ratio, empty cells counted as 0.001; no results:
        0.
        """
        checked_counts(counts, self.cells)
        if not any(counts):
            return 0.0
        total, shares = regularised(counts)
        weak, strong = (self._likeliest(shares, elo) for elo in (self.elo0, self.elo1))
        return total * (likelihood(shares, strong) - likelihood(shares, weak))

    def _likeliest(self, shares: Shares, elo: float) -> Shares:
        if self.model is EloModel.LOGISTIC:
            return likeliest_of_mean(shares, score_of(elo))
        return likeliest_of_ratio(shares, elo / NORMALISED_UNIT * self._matches_per_result**0.5)

    @property
    def _matches_per_result(self) -> int:
        return 2 if self.cells == 5 else 1

    @property
    def values(self) -> tuple[float, float]:
        return self.elo0, self.elo1

    def score(self, value: float, counts: Counts) -> float:
        """Normalised Elo is a score by the spread seen; without counts, of matches that are not
        drawn.
        """
        _checked_elo(value, self.model)
        if self.model is EloModel.LOGISTIC:
            return score_of(value)
        ratio = value / NORMALISED_UNIT
        if not any(counts):
            return 0.5 + ratio / math.sqrt(1.0 + ratio * ratio) / 2
        _, variance = moments(regularised(counts)[1])
        # A few lopsided pairs show next to no spread, many different ones more than any score
        # allows.
        return min(
            max(0.5 + ratio * math.sqrt(variance * self._matches_per_result), 1e-3), 1.0 - 1e-3
        )

    def walk(self, counts: Counts) -> Walk:
        """As for normal scores: drift (s − (s0 + s1)/2)(s1 − s0)/v, variance (s1 − s0)²/v.

        v is the variance seen, plus the square of how far s lies from the mean seen, as of the
        likeliest distribution of mean s, and at most s(1 − s): no score from 0 to 1 varies more.
        Unless a few results differ from the commonest kind they show too little of it; then all
        count as won or lost, which varies that much.
        """
        score0, score1 = (self.score(elo, counts) for elo in self.values)
        middle, gap = (score0 + score1) / 2, score1 - score0
        seen, variance = moments(regularised(counts)[1])
        few = sum(counts) - max(counts) < FEW

        def at(score: float) -> tuple[float, float]:
            if few:
                slope = gap / (middle * (1.0 - middle))
                return (score - middle) * slope, score * (1.0 - score) * slope * slope
            spread = max(min(variance + (score - seen) ** 2, score * (1.0 - score)), LEAST)
            return (score - middle) * gap / spread, gap * gap / spread

        return at

    def steps(self, score: float, counts: Counts) -> Steps:
        """Of the likeliest distribution with this score, by the form for normal scores."""
        if any(counts):
            likeliest = likeliest_of_mean(regularised(counts)[1], score)
        else:
            lost = 1.0 - score
            likeliest = [lost, 0.0, score]
            if self.cells == 5:
                likeliest = [lost * lost, 0.0, 2 * lost * score, 0.0, score * score]
        score0, score1 = (self.score(elo, counts) for elo in self.values)
        _, variance = moments(likeliest)
        slope = (score1 - score0) / variance
        scores = scores_of(self.cells)
        return [
            (slope * (one - (score0 + score1) / 2), share)
            for one, share in zip(scores, likeliest, strict=True)
        ]

    def __str__(self) -> str:
        return f"{self.model.value} Elo {self.elo0:g} against {self.elo1:g}"


def _checked_elo(elo: float, model: EloModel) -> None:
    most = LARGEST[model]
    if not abs(elo) <= most:
        raise InvalidInput(
            f"Elo {elo:g} can't be tested: give {model.value} Elo from {-most:g} to {most:g}"
        )
