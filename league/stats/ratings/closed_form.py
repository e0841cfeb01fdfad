"""TrueSkill between two players in closed form, folded game by game in plain Python.

With c² = 2β² + σ₁² + σ₂², t = (μ₁ − μ₂)/c and e = ε/c, after a match that the first one won or
drew:

    μ₁ += σ₁²/c · v,  μ₂ −= σ₂²/c · v,  σᵢ² *= 1 − σᵢ²/c² · w won:    v = φ(x)/Φ(x), w = v(v + x), x
    = t − e drawn:  v = E[s] − t,  w = 1 − Var[s],  s a unit Gaussian around t that is known to lie
    within ±e

(Herbrich et al. 2006; a draw's v and w are their quotients of φ and Φ, written as the moments that
they are, which can still be told where numerator and denominator vanish). A test holds it equal to
the `trueskill` package at 50 digits. A player without variance is known: it never moves, and its
games move others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from league.stats.ratings.belief import BETA
from league.stats.ratings.record import BIN, BINS, PredictionRecord

_TWO_BETA2 = 2.0 * BETA**2
_FAR_TAIL = 6.0
"""Beyond, φ/Φ comes from a continued fraction: erfc loses v + x to cancellation, and ends at 38."""
_TERMS = 16
"""Of that fraction: at 6 the rest is below a float's last bit."""
_NARROW = 0.1
"""Draw margins below, in units of c, are integrated unless t is large."""
_LEGENDRE = (  # nodes and weights of 8 points: exact to 1e-15 for the densities they are used on
    (-0.9602898564975363, 0.10122853629037626),
    (-0.7966664774136267, 0.22238103445337448),
    (-0.5255324099163290, 0.31370664587788727),
    (-0.1834346424956498, 0.36268378337836200),
    (0.1834346424956498, 0.36268378337836200),
    (0.5255324099163290, 0.31370664587788727),
    (0.7966664774136267, 0.22238103445337448),
    (0.9602898564975363, 0.10122853629037626),
)
_NEVER = 40.0
"""exp(−40) is nothing beside 1."""


def fold(
    mus: list[float],
    variances: list[float],
    games: Iterable[tuple[int, int, float, float, float]],
    margin: float,
    record: PredictionRecord | None = None,
) -> None:
    """Takes games in, in order, changing the two lists in place.

    Args:
        mus: by player, points. variances: by player, points²; 0 for one that is known. games:
        (first, second, outcome of the first in {1, ½, 0}, and by what the variance of the first and
            of the second grows before the match). The two must differ.
        margin: `draw_margin` of all of them. record: gets what was believed of each game before it
        was folded (spelt out here: a call a game would
            cost as much as the fold).
    """
    played, draws, gaps, narrowness, scores = (record or PredictionRecord()).sums()
    last = BINS - 1
    sqrt, exp, erfc = math.sqrt, math.exp, math.erfc
    two_beta2, density, half = _TWO_BETA2, math.sqrt(2.0 / math.pi), math.sqrt(0.5)
    nearest = _FAR_TAIL * half
    for first, second, outcome, growth0, growth1 in games:
        if outcome == 0.0:
            first, second, growth0, growth1 = second, first, growth1, growth0
        mu0, mu1 = mus[first], mus[second]
        variance0, variance1 = variances[first] + growth0, variances[second] + growth1
        c2 = two_beta2 + variance0 + variance1
        c = sqrt(c2)
        t = (mu0 - mu1) / c
        ahead = t if t >= 0.0 else -t
        at = int(ahead / BIN)
        if at > last:
            at = last
        played[at] += 1.0
        gaps[at] += ahead
        narrowness[at] += 1.0 / c
        if outcome == 0.5:
            draws[at] += 1.0
            scores[at] += 0.5
            v, w = drawn(t, margin / c)
        else:
            if t > 0.0:  # the winner comes first by now
                scores[at] += 1.0
            elif t == 0.0:
                scores[at] += outcome
            x = (mu0 - mu1 - margin) / c
            y = -half * x
            if y < nearest:
                v = density * exp(-y * y) / erfc(y)
                w = v * (v + x)
            else:
                v, w = _far_upset(-x)
        share = v / c
        mus[first] = mu0 + variance0 * share
        mus[second] = mu1 - variance1 * share
        share = w / c2
        variances[first] = variance0 * (1.0 - variance0 * share)
        variances[second] = variance1 * (1.0 - variance1 * share)


def drawn(t: float, e: float) -> tuple[float, float]:
    """(v, w) after a draw; `t`, `e` in units of c."""
    ahead = abs(t)
    if e < _NARROW and ahead * e < 1.0:
        v, w = _drawn_narrowly(ahead, e)
    elif ahead < _FAR_TAIL:
        v, w = _drawn_near(ahead, e)
    else:
        v, w = _drawn_far(ahead, e)
    return (v, w) if t >= 0.0 else (-v, w)


def _drawn_near(t: float, e: float) -> tuple[float, float]:
    root = math.sqrt(0.5)
    mass = (math.erfc((t - e) * root) - math.erfc((t + e) * root)) / 2.0
    nearer = math.exp(-((t - e) ** 2) / 2.0) / math.sqrt(2.0 * math.pi) / mass
    return _moments(t, e, nearer)


def _drawn_far(t: float, e: float) -> tuple[float, float]:
    """All in units of the density at the nearer edge, which itself may be too small for a float."""
    if 2.0 * t * e > _NEVER:
        v, w = _far_upset(t - e)
        return -v, w
    return _moments(t, e, 1.0 / (_mills(t - e) - math.exp(-2.0 * t * e) * _mills(t + e)))


def _moments(t: float, e: float, nearer: float) -> tuple[float, float]:
    """From `nearer`, the density at the nearer edge over the mass within the margin."""
    v = nearer * math.expm1(-2.0 * t * e)
    return v, v * v + nearer * (e - t + (e + t) * math.exp(-2.0 * t * e))


def _drawn_narrowly(t: float, e: float) -> tuple[float, float]:
    """By Gauss and Legendre's rule: the quotients would be differences of nearly equal numbers."""
    mass = first = second = 0.0
    for node, weight in _LEGENDRE:
        s = e * node
        density = weight * math.exp(s * (t - s / 2.0))
        mass += density
        first += density * s
        second += density * s * s
    mean = first / mass
    return mean - t, 1.0 - (second / mass - mean * mean)


def _mills(x: float) -> float:
    """(1 − Φ(x))/φ(x)."""
    if x >= _FAR_TAIL:
        return 1.0 / (x + _excess(x))
    return math.erfc(x * math.sqrt(0.5)) * math.sqrt(math.pi / 2.0) * math.exp(x * x / 2.0)


def _far_upset(x: float) -> tuple[float, float]:
    """(v, w) when the winner was x behind: v = φ(x)/(1 − Φ(x)), w = v(v − x)."""
    excess = _excess(x)
    return x + excess, (x + excess) * excess


def _excess(x: float) -> float:
    """φ(x)/(1 − Φ(x)) − x = 1/(x + 2/(x + 3/(x + …))), Laplace's continued fraction; x from 6
    on.
    """
    tail = 0.0
    for n in range(_TERMS, 0, -1):
        tail = n / (x + tail)
    return tail
