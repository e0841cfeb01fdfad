"""Computes the shares of a mix's categories, and the weights of the players in a category.

PFSP (prioritised fictitious self-play) follows Vinyals et al. 2019, with a Beta posterior of the
learner's win probability p. The prior mean p₀ is the prediction of the ratings:

    a = k·p₀ + points,  b = k(1 − p₀) + games − points
    E[(1−p)²] = b(b+1)/((a+b)(a+b+1)),  E[p(1−p)] = ab/((a+b)(a+b+1)),  E[1−p] = b/(a+b)

`league/stats/recent.py` provides `games` and `points`, in which old matches count less.

The rule `nash` follows PSRO (Lanctot et al. 2017, arXiv 1711.00832): opponents are drawn from the
Nash mixture of the league's players. `acts.analyse` computes the mixture from clean matches.

Shapes: N candidates, oldest first. Numbers are from the point of view of the learner that asks for
matches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
PRIOR_GAMES = 5.0
"""The prediction of the ratings counts as much as this many games. The prediction keeps a newcomer
from getting most of the matches, and ten actual games outweigh the prediction.
"""
RECENT_COUNT, RECENT_SHARE = 10, 0.99
"""The rule `recent` draws the newest ten snapshots in a share of .99 of the matches."""
VANISHING = 1e-10
"""If the weights sum to less than this, they carry no information and the draw is uniform."""


@dataclass(frozen=True)
class Candidates:
    """Describes players that may be drawn, from the learner's side.

    Attributes:
        names: N names.
        games_N: recent matches of the learner with each player.
        points_N: the learner's points in these matches.
        predicted_N: the learner's win probability by the ratings.
        quality_N: match quality.
        nash_N: shares of the league's Nash mixture.
    """

    names: tuple[str, ...]
    games_N: Array
    points_N: Array
    predicted_N: Array
    quality_N: Array
    nash_N: Array

    def posteriors(self) -> tuple[Array, Array]:
        """Returns the parameters a and b of each win probability's posterior. The prior mean p₀ is
        kept away from 0 and 1, where no Beta distribution exists.
        """
        p_N = np.clip(self.predicted_N, 1e-6, 1.0 - 1e-6)
        a_N = PRIOR_GAMES * p_N + self.points_N
        b_N = PRIOR_GAMES * (1.0 - p_N) + self.games_N - self.points_N
        return a_N, b_N

    def chances(self) -> Array:
        """Returns the posterior means of the win probabilities, shape N."""
        a_N, b_N = self.posteriors()
        return a_N / (a_N + b_N)


def weights_of(rule: str, candidates: Candidates) -> Array:
    """Computes the candidates' weights under a sampling rule.

    Args:
        rule: name of the rule.
        candidates: N candidates.

    Returns:
        N weights, not normalised.
    """
    count = len(candidates.names)
    if rule == "latest":
        return (np.arange(count) == count - 1).astype(np.float64)
    if rule == "recent" and count > RECENT_COUNT:
        older = count - RECENT_COUNT
        shares = [(1.0 - RECENT_SHARE) / older, RECENT_SHARE / RECENT_COUNT]
        return np.repeat(shares, [older, RECENT_COUNT])
    if rule in ("uniform", "recent"):
        return np.ones(count)
    if rule == "quality":
        return candidates.quality_N
    if rule == "nash":
        return candidates.nash_N
    a_N, b_N = candidates.posteriors()
    n_N = a_N + b_N
    if rule == "pfsp_hard":
        return b_N * (b_N + 1.0) / (n_N * (n_N + 1.0))
    if rule == "pfsp_var":
        return a_N * b_N / (n_N * (n_N + 1.0))
    if rule == "pfsp_linear":
        return b_N / n_N
    if rule == "pfsp_capped":  # E[min(½, 1−p)]
        from scipy.special import betainc  # takes a quarter of a second to load

        below_N = b_N / n_N * betainc(b_N + 1.0, a_N, 0.5)
        return np.asarray(below_N + 0.5 * betainc(a_N, b_N, 0.5))
    raise ValueError(f"{rule!r} is not a sampling rule")


def normalised(weights_N: Array) -> Array:
    """Returns probabilities, uniform if the weights vanish or are not finite."""
    total = float(np.sum(weights_N))
    if not math.isfinite(total) or total < VANISHING:
        return np.full(len(weights_N), 1.0 / len(weights_N))
    return weights_N / total


def adapted_mix(
    mix: Mapping[str, float], chances: Mapping[str, float], strength: float
) -> dict[str, float]:
    """Gives the bots of a mix weights in proportion to `w (1 + strength·(1 − p))`.

    The bots' total weight stays the same. So hard bots gain weight only from easier bots, not from
    other categories.

    Args:
        mix: weights w by category.
        chances: the learner's win probability p against each bot.
        strength: relative growth of the weight of a bot that always beats the learner.

    Returns:
        The adapted mix.
    """
    grown = {name: mix[name] * (1.0 + strength * (1.0 - p)) for name, p in chances.items()}
    total = math.fsum(grown.values())
    if not total:
        return dict(mix)
    scale = math.fsum(mix[name] for name in grown) / total
    return dict(mix) | {name: weight * scale for name, weight in grown.items()}
