"""Players who do alike against everybody: near-copies, to share what one player would get.

Shape suffixes: N players, M matches of rows: `x_NM[i, j]` is of player i against opponent j.

**The distance** of two players is the root mean square difference of their shares of matches
against the opponents that at least one of them has met. In shares, because that is what sampling
and Nash averaging go by, it has a unit anybody can read, and a difference between 99 and 99.9 %
does not look large, as it would in logits. Counts are noisy: by chance alone, shares after n
matches differ by √(2 p (1 − p) / n), so the expected square of that is taken off, and one standard
error of what is left is put on: who has played too little to be known as a copy is none. An
opponent that only one of them met counts with what the ratings predict for the other, and how
little that is; one that neither met says nothing.

**The clusters** are those of complete linkage: no two players of a cluster are farther apart than
`within`. (Single linkage would make one cluster of a whole training run, each snapshot being like
the one before.)
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
"""Ten percentage points of all matches."""
FAR = 2.0
"""Distance of players who have both met nobody; shares differ by 1 at most."""


@dataclass(frozen=True)
class Clusters:
    """`cluster_N`: each player's cluster, from 0 in order of first members. `weight_N`: 1 / its
    size.
    """

    cluster_N: NDArray[np.intp]
    weight_N: Matrix

    @property
    def count(self) -> int:
        return int(self.cluster_N.max(initial=-1)) + 1

    def members(self) -> list[list[int]]:
        """Players of each cluster, in order."""
        return [
            [int(i) for i in np.flatnonzero(self.cluster_N == number)]
            for number in range(self.count)
        ]


def distances(share_NM: Matrix, variance_NM: Matrix, known_NM: NDArray[np.bool_]) -> Matrix:
    """Distance of every two rows, with what is not known of it on top; symmetric, 0 on the
    diagonal.

    With Δ_j the difference against opponent j, v_j the sum of both variances and m opponents that
    either has met, the square is max(mean(Δ² − v), 0) + √(Σ 2v² + 4v·max(Δ² − v, 0)) / m: an
    unbiased estimate and its standard error. Single precision is plenty and takes half the time.
    """
    known = known_NM.astype(np.float32)
    share, variance = share_NM.astype(np.float32), variance_NM.astype(np.float32)
    ones = np.ones_like(share)
    opponents_NN = _summed(ones, ones, known)
    square_NN = _of_both(_summed(share**2, ones, known)) - 2.0 * _summed(share, share, known)
    noise_NN = _of_both(_summed(variance, ones, known))
    noise2_NN = _of_both(_summed(variance**2, ones, known)) + 2.0 * _summed(
        variance, variance, known
    )
    excess_NN = np.clip(square_NN - noise_NN, 0.0, None)
    # Σ v·max(Δ² − v, 0) by the means of its factors: exact would take N² · M numbers at once.
    mixed_NN = noise_NN * excess_NN / np.maximum(opponents_NN, 1.0)
    doubt_NN = np.sqrt(2.0 * noise2_NN + 4.0 * mixed_NN)
    distance_NN = np.sqrt((excess_NN + doubt_NN) / np.maximum(opponents_NN, 1.0))
    distance_NN = np.where(opponents_NN > 0, distance_NN, FAR).astype(np.float64)
    distance_NN = 0.5 * _of_both(distance_NN)
    np.fill_diagonal(distance_NN, 0.0)
    return distance_NN


def _summed(one_NM: Any, other_NM: Any, known_NM: Any) -> Any:
    """Σ_j one_ij · other_kj over opponents j that i or k has met: those of i, and the others of
    k.
    """
    one_met = one_NM * known_NM
    return one_met @ other_NM.T + (one_NM - one_met) @ (other_NM * known_NM).T


def _of_both(x_NN: Any) -> Any:
    """x_ik + x_ki."""
    return x_NN + x_NN.T


def clustered(distance_NN: Matrix, within: float = WITHIN) -> Clusters:
    """Complete-linkage clusters of players at most `within` apart. The same input gives the same
    clusters.
    """
    count = len(distance_NN)
    if count < 2:
        return Clusters(np.zeros(count, np.intp), np.ones(count))
    tree = linkage(squareform(distance_NN, checks=False), method="complete")
    _, first, number_N = np.unique(
        fcluster(tree, within, criterion="distance"), return_index=True, return_inverse=True
    )
    places = np.argsort(np.argsort(first))
    cluster_N = places[number_N.reshape(-1)]
    return Clusters(cluster_N, 1.0 / np.bincount(cluster_N)[cluster_N])


def clusters_of(table: Table, within: float = WITHIN) -> Clusters:
    """Clusters of a table's players, by their posterior shares against those they met."""
    # against oneself it is ½, surely
    known_NN = table.known_NN | np.eye(len(table.names), dtype=bool)
    return clustered(distances(table.chance_NN, table.variance_NN, known_NN), within)
