"""Finds near-copies: players with similar scores against all others. Near-copies share one weight.

Shapes: N players, M columns of opponents. `x_NM[i, j]` is the value of player i against opponent j.

The distance of two players is the root mean square difference of their shares of the points against
the opponents that at least one of them has met. By chance alone, shares after n matches differ by
√(2 p (1 − p) / n). So the expected square of this noise is subtracted from the squared difference.
The standard error of the result is then added, so that a player with few matches does not count as
a copy. If only one of the two players has met an opponent, the ratings' prediction replaces the
other player's share.

The clusters are complete-linkage clusters: no two players of a cluster are farther apart than
`within`. (Single linkage would put a whole run into a cluster, as each snapshot resembles the
previous snapshot.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from league.stats.structure.table import Matrix, Table

WITHIN = 0.1
"""Largest distance of two players of a cluster: ten percentage points of the score."""
FAR = 2.0
"""Distance of two players who have not met any opponent, above the largest difference of two shares
(1).
"""


@dataclass(frozen=True)
class Clusters:
    """Holds clusters of players. `cluster_N` is the number of each player's cluster. Clusters are
    numbered in the order of their first members. `weight_N` is 1 / the size of the player's
    cluster.
    """

    cluster_N: NDArray[np.intp]
    weight_N: Matrix

    @property
    def count(self) -> int:
        return int(self.cluster_N.max(initial=-1)) + 1

    def members(self) -> list[list[int]]:
        """Returns the indices of each cluster's players, cluster by cluster."""
        return [np.flatnonzero(self.cluster_N == number).tolist() for number in range(self.count)]


def clusters_of(table: Table) -> Clusters:
    """Returns the clusters of a table's players, by their shares of the points against the players
    that they have met.
    """
    known_NN = table.known_NN | np.eye(len(table.names), dtype=bool)  # ½ against oneself
    return clustered(distances(table.chance_NN, table.variance_NN, known_NN))


def clustered(distance_NN: Matrix, within: float = WITHIN) -> Clusters:
    """Finds complete-linkage clusters.

    Args:
        distance_NN: symmetric distances, 0 on the diagonal.
        within: largest distance of two players of a cluster.
    """
    count = len(distance_NN)
    if count < 2:
        return Clusters(np.zeros(count, np.intp), np.ones(count))
    tree = linkage(squareform(distance_NN, checks=False), method="complete")
    flat = fcluster(tree, within, criterion="distance")
    _, first, number_N = np.unique(flat, return_index=True, return_inverse=True)
    cluster_N = np.argsort(np.argsort(first))[number_N.reshape(-1)]
    return Clusters(cluster_N, 1.0 / np.bincount(cluster_N)[cluster_N])


def distances(share_NM: Matrix, variance_NM: Matrix, known_NM: NDArray[np.bool_]) -> Matrix:
    """Computes the distance of every two players, plus its standard error.

    Let Δ_j be the difference of the shares against opponent j, v_j the sum of their variances, and
    m the number of opponents that either player has met. The squared distance is
    (max(Σ Δ² − v, 0) + √(Σ 2v² + 4v·max(Δ² − v, 0))) / m: an unbiased estimate plus its standard
    error. Single precision suffices and takes half the time.

    Args:
        share_NM: shares of the points.
        variance_NM: variances of the shares.
        known_NM: whether the pair has met.

    Returns:
        The N × N distances, symmetric with 0 on the diagonal.
    """
    mask = known_NM.astype(np.float32)
    share, variance = share_NM.astype(np.float32), variance_NM.astype(np.float32)
    ones = np.ones_like(share)
    opponents_NN = np.maximum(_summed(ones, ones, mask), 0.0)
    square_NN, noise_NN, noise2_NN = (
        one_NN + one_NN.T
        for one_NN in (_summed(x, ones, mask) for x in (share**2, variance, variance**2))
    )
    square_NN -= 2.0 * _summed(share, share, mask)
    noise2_NN += 2.0 * _summed(variance, variance, mask)
    excess_NN = np.clip(square_NN - noise_NN, 0.0, None)
    # Approximates Σ v·max(Δ² − v, 0) by the means of its factors, because the exact sum needs N²·M
    # numbers at once.
    mixed_NN = noise_NN * excess_NN / np.maximum(opponents_NN, 1.0)
    doubt_NN = np.sqrt(2.0 * noise2_NN + 4.0 * mixed_NN)
    distance_NN = np.sqrt((excess_NN + doubt_NN) / np.maximum(opponents_NN, 1.0))
    distance_NN = np.where(opponents_NN > 0, distance_NN, FAR).astype(np.float64)
    distance_NN = 0.5 * (distance_NN + distance_NN.T)
    np.fill_diagonal(distance_NN, 0.0)
    return distance_NN


def _summed(one_NM: Any, other_NM: Any, known_NM: Any) -> Any:
    """Returns Σ_j one_ij · other_kj over the opponents j that i or k has met."""
    one_met = one_NM * known_NM
    return one_met @ other_NM.T + (one_NM - one_met) @ (other_NM * known_NM).T
