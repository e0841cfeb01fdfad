"""Rates mixtures of rated players."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from league.stats.ratings.belief import BETA


def rating_of(
    weights: Mapping[str, float], mus: Mapping[str, float], field: Sequence[float]
) -> float:
    """Finds the rating at which a single player would have the same expected score as the mixture.

    Expected scores are averaged over the players of a league. Against player j the score is Φ((μ −
    μ_j) / √2β).

    Args:
        weights: shares of the mixture's members.
        mus: ratings of the members.
        field: ratings of the league's players.
    """
    field_N, spread = np.array(field), 2.0**0.5 * BETA

    def scores(mu: float) -> float:
        return float(ndtr((mu - field_N) / spread).mean())

    scored = sum(share * scores(mus[name]) for name, share in weights.items())
    low, high = (bound(mus[name] for name in weights) for bound in (min, max))
    if low == high:
        return low
    return float(brentq(lambda mu: scores(mu) - scored, low, high))
