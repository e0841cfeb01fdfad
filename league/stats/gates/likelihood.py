"""The likeliest distribution of scores under a constraint, from counts: the exact form of a GSPRT.

Scores are evenly spaced from 0 to 1, one cell for each: (0, ½, 1) for matches, (0, ¼, ½, ¾, 1) for
pairs. With shares p of what was seen and a linear constraint Σ q d = 0, the multinomial likelihood
is largest at

    q = p / (1 + x d),  x from the secular equation  Σ p d / (1 + x d) = 0,

which has one root between its poles −1/max d and −1/min d, found by bracketing (M. Van den Bergh,
"The generalized maximum likelihood ratio for the expectation value of a distribution", proposition
1.1). Everything here is plain floats: numpy's overhead on five numbers is five times the work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from league.errors import InvalidInput

PRIOR = 1e-3
"""What a cell that was never seen counts as: without it no distribution could be tilted into it."""
NOTHING = 1e-9
"""A ratio so small that it is 0: some 2e-7 normalised Elo."""
Shares = list[float]


def scores_of(cells: int) -> Shares:
    """The score of each cell, 0 to 1."""
    return [cell / (cells - 1) for cell in range(cells)]


def regularised(counts: Sequence[float]) -> tuple[float, Shares]:
    """How many results there are and the share of each cell, empty ones counted as `PRIOR`.

    Raises `InvalidInput` when a count is negative or not finite, or all are 0.
    """
    if any(not math.isfinite(count) or count < 0 for count in counts) or not any(counts):
        raise InvalidInput(
            f"counts {tuple(counts)} say nothing: give numbers from 0 on, not all of them 0"
        )
    filled = [float(count) or PRIOR for count in counts]
    total = sum(filled)
    return total, [count / total for count in filled]


def moments(shares: Shares) -> tuple[float, float]:
    """Mean and variance of the score."""
    scores = scores_of(len(shares))
    mean = sum(share * score for share, score in zip(shares, scores, strict=True))
    return mean, sum(
        share * (score - mean) ** 2 for share, score in zip(shares, scores, strict=True)
    )


def likeliest_of_mean(shares: Shares, mean: float) -> Shares:
    """The likeliest shares whose score has the expectation `mean`, in (0, 1)."""
    if not 0.0 < mean < 1.0:
        raise InvalidInput(f"no score has the mean {mean:g}: give one between 0 and 1")
    return _tilted(shares, [score - mean for score in scores_of(len(shares))])


def likeliest_of_ratio(shares: Shares, ratio: float) -> Shares:
    """The likeliest shares whose score has (mean − ½)/deviation = `ratio`, of at most 2.8 either
    way.

    With u = score − ½ that is E u = k r, r² = E u², k = ratio/√(1 + ratio²). As r = min over ρ of
    ρ/2 + r²/2ρ, taken at ρ = r, it is the linear constraint E (u − k(ρ/2 + u²/2ρ)) = 0 at the ρ
    that equals the r of its own solution: a root in ρ, bracketed by the cells nearest to and
    farthest from ½. Where nearly everything was drawn there are several, and the likeliest counts.
    (Solving for mean and deviation by turns, as is usual, does not end where one cell holds nearly
    all.)
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

    grid = _roots_lie_between(lean, min(u for u in offsets if u > 0.0))
    signs = [excess(root) > 0.0 for root in grid]
    found = [
        solved(brentq(excess, low, high, xtol=1e-14, rtol=1e-13))
        for low, high, over, under in zip(grid, grid[1:], signs, signs[1:], strict=False)
        if over != under
    ]
    return max(found, key=lambda some: likelihood(shares, some))


def _roots_lie_between(lean: float, nearest: float) -> Shares:
    """Values of ρ that part the roots: there is one beyond five times the least, if any."""
    least = nearest * lean / (1.0 + math.sqrt(1.0 - lean * lean)) * (1.0 + 1e-9)
    return [*(least * 1.15**step for step in range(12) if least * 1.15**step < 0.5), 0.5]


def likelihood(seen: Shares, believed: Shares) -> float:
    """Logarithm of the likelihood of `believed` for each result seen: Σ p ln q."""
    return sum(share * math.log(other) for share, other in zip(seen, believed, strict=True))


def _tilted(shares: Shares, values: list[float]) -> Shares:
    """The likeliest shares under Σ q·value = 0; the values must have both signs."""
    from scipy.optimize import brentq

    least, largest = min(values), max(values)
    if not least < 0.0 < largest:
        raise InvalidInput(
            "no distribution of these scores meets the hypothesis: take less extreme Elo"
        )
    # 1 + x·value, x in log-odds between the poles: a sum of what is never negative, so nothing
    # cancels.
    terms = [
        (share * value, 1.0 - value / largest, 1.0 - value / least)
        for share, value in zip(shares, values, strict=True)
    ]

    def secular(log_odds: float) -> float:
        odds = math.exp(log_odds)
        return sum([moment / (low + odds * high) for moment, low, high in terms])

    # where x is 0: nearly there when the hypothesis is near what was seen
    start = math.log(-least / largest)
    step = math.copysign(0.1, secular(start))  # it falls
    low_end, high_end = start, start + step
    while secular(high_end) * step > 0.0:
        step *= 4.0
        low_end, high_end = high_end, high_end + step
    odds = math.exp(brentq(secular, *sorted((low_end, high_end)), xtol=1e-12, rtol=1e-14))
    return [
        share * (1.0 + odds) / (low + odds * high)
        for share, (_, low, high) in zip(shares, terms, strict=True)
    ]
