"""What every test of two hypotheses answers, whatever it counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from league.errors import InvalidInput

Counts = tuple[int, ...]
"""How many results fell in each cell, the worst score first: (losses, draws, wins), or pairs by
score.
"""
Walk = Callable[[float], tuple[float, float]]
"""From a true score to drift and variance, for each result, of the log-likelihood ratio."""
Steps = list[tuple[float, float]]
"""How far one result moves the log-likelihood ratio, and how likely it is."""


class Hypotheses(Protocol):
    """H0, the candidate is too weak, against H1, it is strong enough; both about its score."""

    @property
    def cells(self) -> int:
        """How many scores a result can have: 3 for a match, 5 for a pair of matches."""

    def llr(self, counts: Counts) -> float:
        """Logarithm of the likelihood of `counts` under H1 over that under H0."""

    @property
    def values(self) -> tuple[float, float]:
        """What H0 and H1 are about, in the test's own unit."""

    def score(self, value: float, counts: Counts) -> float:
        """The score that a value in the test's unit stands for; `counts` tell the spread if that
        matters.
        """

    def walk(self, counts: Counts) -> Walk:
        """The ratio as a walk, with the spread that `counts` show; they must not all be 0."""

    def steps(self, score: float, counts: Counts) -> Steps:
        """What one result does at a true `score`; without counts, matches are independent and
        not drawn.
        """


def unit(cells: int) -> str:
    """What is counted: "match" or "pair"."""
    return "pair" if cells == 5 else "match"


def amount(results: float, cells: int) -> str:
    """«1,234 pairs», «1 match»."""
    kind = unit(cells)
    if f"{results:,.0f}" == "1":
        return f"1 {kind}"
    return f"{results:,.0f} {kind}{'s' if kind == 'pair' else 'es'}"


def checked_counts(counts: Sequence[int], cells: int) -> Counts:
    """`counts` as a tuple of `cells` whole numbers from 0 on, else `InvalidInput`."""
    if len(counts) != cells:
        named = (
            "losses, draws and wins"
            if cells == 3
            else "pairs by score, from 0 to 2 in steps of a half"
        )
        raise InvalidInput(f"{len(counts)} counts were given where {cells} are wanted: {named}")
    for count in counts:
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= 10**12:
            raise InvalidInput(
                f"{count!r} is no count: give whole numbers from 0 to a million millions"
            )
    return tuple(counts)


def points(counts: Counts) -> float:
    """The sum of the scores of all results."""
    return sum(cell * count for cell, count in enumerate(counts)) / (len(counts) - 1)


def mean_score(counts: Counts) -> float:
    """The share of the points, NaN of nothing."""
    return points(counts) / sum(counts) if any(counts) else math.nan
