"""Converts ratings to Elo, the scale that people know. Elo is linear in TrueSkill's points.

In Elo's model a player that is D points stronger is expected to score 1/(1 + 10^(−D/400)), where a
draw is half a point (Elo 1978, The rating of chessplayers, past and present, section 8.4). This is
Bradley and Terry's model (1952), in which a logit is 400/ln 10 Elo. So the fit of all games
(`league.stats.ratings.fit`) is a fit of Elo, too. The fit's points are scaled so that the fit and
TrueSkill expect a score of 0.9 at the same gap of ratings, whatever the share of draws. Elo's scale
is chosen in the same way. Without draws, Elo and the fit expect the same scores. If equal players
draw 10 % (30 %) of their games, the scores that Elo and the fit expect differ by at most .004
(.014).
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from league.stats.ratings.belief import BETA, MU

if TYPE_CHECKING:  # scipy takes half a second to load
    from league.stats.ratings.fit import Fit, PairCounts

Array = NDArray[np.float64]
SIGMAS = 2.0
"""Half the width that pages show around a rating, in units of TrueSkill's σ. μ ± 2 σ is no 95 %
interval, because σ leaves out errors that players share. The fit's intervals include them
(docs/ratings.md).
"""
Points = TypeVar("Points", float, Array)
MEAN = 1500.0
"""Elo of a newcomer, and mean Elo of the players of a fit without anchors (fixed ratings)."""
PER_POINT = 400.0 * math.log10(9.0) / (math.sqrt(2.0) * BETA * NormalDist().inv_cdf(0.9))
"""Elo per TrueSkill point: 50.5."""


def elo(points: Points) -> Points:
    """Converts TrueSkill's points, such as a μ or a rating of the fit, to Elo."""
    return MEAN + PER_POINT * (points - MU)


def samples(fit: Fit, counts: PairCounts, rng: np.random.Generator, draws: int = 4_000) -> Array:
    """Draws ratings from the posterior of a fit. The fit must have no anchors (fixed ratings) and
    no blocks (joint priors).

    The intervals of `Fit` are symmetric. For a player that won or lost (nearly) all its games the
    posterior is skewed. After 20 wins in 20 games, a symmetric interval would still include ratings
    at which the winner is the weaker player.

    The samples follow the skewed posterior. They come from elliptical slice sampling (Murray, Adams
    and MacKay 2010) around the fit's Gaussian (Nishihara, Murray and Adams 2014), with the fit's s
    (spread of strengths) and ν (rate of draws). The samples' distances from the fitted ratings are
    multiplied by `Fit.widening`, as are the widths of the intervals of `Fit`.

    Args:
        fit: the fit of `counts`.
        counts: the games.
        rng: the source of random numbers.
        draws: S, the number of samples.

    Returns:
        Ratings in points, of shape [S, N]. The mean of each sample is 25.
    """
    from league.stats.ratings.fit import log_probabilities

    square_K, axes_NK = np.linalg.eigh(fit.covariance_NN)
    kept_K = square_K > 1e-9 * square_K.max(initial=0.0)  # all but the mean, which games don't show
    axes_NK = axes_NK[:, kept_K] * np.sqrt(square_K[kept_K])
    log_nu = math.log(fit.nu)

    def ratings(z_K: Array) -> Array:
        return np.asarray(fit.rating_N - MU + axes_NK @ z_K)

    def residual(z_K: Array) -> float:
        """Returns the log posterior at a point minus the log density of the fit's Gaussian."""
        points_N = ratings(z_K)
        gap_P = (points_N[counts.first_P] - points_N[counts.second_P]) / fit.points_per_logit
        win_P, draw_P, loss_P = log_probabilities(gap_P, log_nu)
        total = counts.wins_P @ win_P + counts.draws_P @ draw_P + counts.losses_P @ loss_P
        return float(total - points_N @ points_N / fit.spread**2 / 2.0 + z_K @ z_K / 2.0)

    z_K, found_SN = np.zeros(axes_NK.shape[1]), np.empty((draws, len(fit.rating_N)))
    height = residual(z_K)
    for sample in range(draws):
        least, other_K = height + math.log(1.0 - rng.random()), rng.standard_normal(len(z_K))
        angle = rng.uniform(0.0, math.tau)
        low, high = angle - math.tau, angle
        while True:
            next_K = z_K * math.cos(angle) + other_K * math.sin(angle)
            height = residual(next_K)
            if height > least or high - low < 1e-9:
                break
            low, high = (angle, high) if angle < 0.0 else (low, angle)
            angle = rng.uniform(low, high)
        z_K = next_K
        found_SN[sample] = ratings(z_K)
    return fit.rating_N + fit.widening * (MU + found_SN - fit.rating_N)
