"""Measures how much latents reveal about the opponent, compared with chance. All functions are
pure.

A probe is a classifier that names the opponent from a latent. The probe is tested on seeds that it
was not trained on: all matches of a seed, from both seats, are held out together. So the probe
can't profit from remembering a match, a seed or a seat. To find the value that a measure has by
chance, the opponents of each seed are shuffled and the measure is computed again.

Shape suffixes: M matches, T decisions of a match, N rows (moments of all matches), D width, K
opponents, S seeds, B blocks of a match.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import stdtrit

Floats = NDArray[np.float64]
Parts = Sequence[NDArray[np.floating]]
"""An array `[T, D]` for each match, with a row for each decision."""

FOLDS: Final = 5
SHUFFLES: Final = 200
SHRINKAGE: Final = 0.001
"""Number added to the variances in the probe's covariance matrix. The number is small compared with
1, the variance of the probe's scaled inputs.
"""
BLOCKS: Final = 8
"""Number of equal parts into which `drift` divides a match."""
DRIFT_BY_CHANCE: Final = 1 / (BLOCKS - 1)


@dataclass(frozen=True)
class Labels:
    """The opponent (0 … K - 1) and the seed of each match."""

    opponent_M: NDArray[np.int64]
    seed_M: NDArray[np.int64]

    @property
    def met(self) -> NDArray[np.int64]:
        """The opponents that occur in these matches."""
        return np.unique(self.opponent_M)

    def kept(self, where_M: NDArray[np.bool_]) -> Labels:
        """Returns the labels of the matches for which `where_M` is true."""
        return Labels(self.opponent_M[where_M], self.seed_M[where_M])

    def shuffled(self, rng: np.random.Generator) -> Labels:
        """Shuffles the opponents of each seed. Matches of a seed against the same opponent get the
        same new opponent.
        """
        opponent_M = self.opponent_M.copy()
        for seed in np.unique(self.seed_M):
            here_M = self.seed_M == seed
            met, place_M = np.unique(self.opponent_M[here_M], return_inverse=True)
            opponent_M[here_M] = rng.permutation(met)[place_M]
        return Labels(opponent_M, self.seed_M)


class Points(NamedTuple):
    """Rows of several matches, one match after another. `match_N` has the index of each row's
    match.
    """

    x_ND: Floats
    match_N: NDArray[np.int64]

    def mean_of_matches(self, value_NX: Floats) -> Floats:
        """Returns for each match the mean over its rows."""
        starts_M = np.flatnonzero(np.diff(self.match_N, prepend=-1))
        return np.add.reduceat(value_NX, starts_M) / np.bincount(self.match_N)[:, None]


def moments(parts: Parts, count: int) -> Points:
    """Chooses `count` evenly spread moments of each match, or all moments of a shorter match."""
    rows = []
    for part in parts:
        wanted = min(count, len(part))
        rows.append(part[((np.arange(wanted) + 0.5) * len(part) / wanted).astype(int)])
    match_N = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    return Points(np.concatenate(rows).astype(np.float64), match_N)


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A mean over matches with its 95 % interval (jackknife over seeds), compared with chance.

    Attributes:
        chance_low, chance_high: the range that holds 95 % of the values for shuffled opponents.
        p_value: the share of shuffles that give at least `value`. The unshuffled opponents count as
            a further shuffle.
    """

    value: float
    low: float
    high: float
    chance_low: float
    chance_high: float
    p_value: float


def probe(
    points: Points, labels: Labels, *, seed: int = 0, shuffles: int = SHUFFLES
) -> tuple[Compared, Floats]:
    """Measures how often a linear probe names the right opponent, in matches on which the probe was
    not trained.

    The probe is a linear discriminant analysis: it names the opponent whose mean input is nearest.
    The distance uses the same covariance for all opponents. The share of right answers is averaged
    over the moments of each match, then over the matches against each opponent, then over
    opponents. So the share of random answers is 1 / K.

    Returns:
        The share of right answers, and all answers `[M, K]`: for each match and opponent, the share
        of the match's moments at which the probe names this opponent.
    """
    folds, count = _folds(points, labels), int(labels.opponent_M.max()) + 1

    def named(labels: Labels) -> Floats:
        named_NK = np.zeros((len(points.x_ND), count))
        for fold in folds:
            opponents, scores_NK = fold.scores(labels)
            named_NK[fold.test_rows, opponents[scores_NK.argmax(1)]] = 1.0
        return points.mean_of_matches(named_NK)

    def right(labels: Labels) -> Floats:
        return right_of(named(labels), labels)

    result = _compared(right, labels, seed, shuffles)
    result = replace(result, low=max(result.low, 0.0), high=min(result.high, 1.0))
    return result, named(labels)


def right_of(named_MK: Floats, labels: Labels) -> Floats:
    """Returns for each match the share of moments at which the probe names the right opponent."""
    return np.take_along_axis(named_MK, labels.opponent_M[:, None], 1)[:, 0]


def by_opponent(value_MX: Floats, labels: Labels) -> Floats:
    """Averages over the matches against each opponent, `[K, ...]`. The average is NaN if there is
    no match.
    """
    means = np.full((int(labels.opponent_M.max()) + 1, *value_MX.shape[1:]), np.nan)
    for opponent in labels.met:
        means[opponent] = value_MX[labels.opponent_M == opponent].mean(0)
    return means


@dataclass(frozen=True)
class _Fold:
    """The probe of a cross-validation fold, except for the parts that depend on the labels."""

    train_M: NDArray[np.bool_]
    test_rows: NDArray[np.intp]
    x_ND: Floats
    mean_MD: Floats
    total_DD: Floats

    def scores(self, labels: Labels) -> tuple[NDArray[np.int64], Floats]:
        """Returns the opponents in the fold's training matches, and their scores for each row of
        the fold's test matches.
        """
        met, place_M = np.unique(labels.opponent_M[self.train_M], return_inverse=True)
        member_MK = np.eye(len(met))[place_M]
        mean_KD = member_MK.T @ self.mean_MD[self.train_M] / member_MK.sum(0)[:, None]
        between_DD = (mean_KD.T * member_MK.mean(0)) @ mean_KD
        within_DD = self.total_DD - between_DD + SHRINKAGE * np.eye(len(between_DD))
        weight_DK = np.linalg.solve(within_DD, mean_KD.T)
        scores_NK = self.x_ND @ weight_DK - 0.5 * (weight_DK * mean_KD.T).sum(0)
        return met, scores_NK.round(9)  # rounding errors must not decide


def _folds(points: Points, labels: Labels) -> list[_Fold]:
    mean_MD = points.mean_of_matches(points.x_ND)
    weight_N = 1 / np.bincount(points.match_N)[points.match_N]
    seeds, place_M = np.unique(labels.seed_M, return_inverse=True)
    fold_M = place_M % min(FOLDS, len(seeds))
    least = 1e-6 * float(np.abs(points.x_ND).max()) + 1e-30  # smaller values are rounding errors
    folds = []
    for number in range(int(fold_M.max()) + 1):
        train_M = fold_M != number
        train_N = train_M[points.match_N]
        centre_D = mean_MD[train_M].mean(0)
        x_ND = points.x_ND - centre_D
        total_DD = (x_ND[train_N].T * weight_N[train_N]) @ x_ND[train_N] / train_M.sum()
        scale_D = np.maximum(np.sqrt(np.diagonal(total_DD)), least)
        folds.append(
            _Fold(
                train_M=train_M,
                test_rows=np.flatnonzero(~train_N),
                x_ND=x_ND[~train_N] / scale_D,
                mean_MD=(mean_MD - centre_D) / scale_D,
                total_DD=total_DD / np.outer(scale_D, scale_D),
            )
        )
    return folds


def silhouette(
    points: Points, labels: Labels, *, seed: int = 0, shuffles: int = SHUFFLES
) -> tuple[Compared, Floats]:
    """Computes Rousseeuw's silhouette (J. Comput. Appl. Math. 20, 1987). All moments against the
    same opponent are treated as a cluster.

    The silhouette of a moment is (b - a) / max(a, b). Here a is the mean distance to moments of the
    same opponent, and b is the mean distance to moments of the nearest other opponent. 1 means a
    separate cluster, and 0 no cluster. A negative value means that the moment is nearer to another
    opponent's moments. Distances within a seed are left out, because the moments of a match are
    close to each other anyway.

    Returns:
        The mean over matches and opponents, and the mean of each match `[M]`.
    """
    count = int(labels.opponent_M.max()) + 1
    counts_M = np.bincount(points.match_N)
    starts_M = np.flatnonzero(np.diff(points.match_N, prepend=-1))
    sums_NM = np.add.reduceat(cdist(points.x_ND, points.x_ND), starts_M, axis=1)
    other_NM = labels.seed_M[points.match_N, None] != labels.seed_M
    sums_NM *= other_NM

    def widths(labels: Labels) -> Floats:
        member_MK = np.eye(count)[labels.opponent_M]
        with np.errstate(invalid="ignore"):
            mean_NK = (sums_NM @ member_MK) / (other_NM @ (member_MK * counts_M[:, None]))
        own_N = labels.opponent_M[points.match_N]
        rows = np.arange(len(own_N))
        a_N, others_NK = mean_NK[rows, own_N], mean_NK.copy()
        others_NK[rows, own_N] = np.nan
        b_N = np.nanmin(others_NK, axis=1)
        width_N = (b_N - a_N) / np.maximum(np.maximum(a_N, b_N), 1e-30)
        return points.mean_of_matches(width_N[:, None])[:, 0]

    return _compared(widths, labels, seed, shuffles), widths(labels)


def _compared(
    value_of: Callable[[Labels], Floats], labels: Labels, seed: int, shuffles: int
) -> Compared:
    """Averages the values that `value_of` returns for the matches: first over the matches against
    each opponent, then over opponents. Compares this mean with the means for shuffled opponents.
    """
    rng = np.random.default_rng(seed)

    def mean(labels: Labels) -> float:
        return float(np.nanmean(by_opponent(value_of(labels), labels)))

    value = mean(labels)
    chance = np.array([mean(labels.shuffled(rng)) for _ in range(shuffles)])
    low, high = interval(value_of(labels), np.ones(len(labels.seed_M)), labels)
    chance_low, chance_high = np.quantile(chance, (0.025, 0.975)).tolist()
    return Compared(
        value=value,
        low=low,
        high=high,
        chance_low=chance_low,
        chance_high=chance_high,
        p_value=float((1 + (chance >= value - 1e-12).sum()) / (1 + shuffles)),
    )


def interval(over_M: Floats, under_M: Floats, labels: Labels) -> tuple[float, float]:
    """Returns the 95 % interval of a mean ratio. For each opponent, the ratio is the sum of
    `over_M` divided by the sum of `under_M`, and the mean is taken over the opponents. The interval
    comes from the jackknife over seeds, with Student's t.
    """
    seeds, seed_M = np.unique(labels.seed_M, return_inverse=True)
    met, opponent_M = np.unique(labels.opponent_M, return_inverse=True)
    sums_2SK = np.zeros((2, len(seeds), len(met)))
    for sums_SK, value_M in zip(sums_2SK, (over_M, under_M), strict=True):
        np.add.at(sums_SK, (seed_M, opponent_M), value_M)
    over_K, under_K = sums_2SK.sum(1)
    with np.errstate(invalid="ignore"):  # one seed may hold all matches against an opponent
        without_SK = (over_K - sums_2SK[0]) / (under_K - sums_2SK[1])
    without_S, freedom = np.nanmean(without_SK, axis=1), len(seeds) - 1
    error = float(np.sqrt(freedom * without_S.var()))
    value, half = float(np.mean(over_K / under_K)), float(stdtrit(freedom, 0.975)) * error
    return value - half, value + half


@dataclass(frozen=True, kw_only=True)
class Drift:
    """Says how much latents change within a match.

    Attributes:
        moved: root mean square distance between the mean latents of a match's two halves, divided
            by the root mean square distance between two moments drawn from all matches. 0 means
            that latents stay the same. 1 means that the two halves are as far apart as two random
            moments.
        share: how lasting the changes are. Each match is cut into eighths, and each eighth has a
            mean latent. `share` is the share of the variance of these eight means that lies between
            the match's two halves. A single lasting change at half time gives 1. Eighths in random
            order give 1/7 on average (`DRIFT_BY_CHANCE`).
        low, high: 95 % interval of `share`.
        matches: number of matches with at least `BLOCKS` decisions.
    """

    moved: float
    share: float
    low: float
    high: float
    matches: int


def drift(parts: Parts, labels: Labels) -> list[Drift | None]:
    """Computes the drift in the matches against each opponent, and as the last entry the drift in
    all matches. A drift is None if all of its matches are too short or have the same seed.

    A match is cut into B equal blocks. Let x_i be the mean latents of the blocks, x̄ the mean of all
    x_i, and d the difference between the means of the match's two halves. Then `Drift.share` is
    |d|² B / 4 divided by the sum of |x_i - x̄|². Blocks in random order have an average share of
    1 / (B - 1).
    """
    between_M, within_M = np.zeros((2, len(parts)))
    for match, part in enumerate(parts):
        if len(part) >= BLOCKS:
            blocks_BD = np.stack([block.mean(0) for block in np.array_split(part, BLOCKS)])
            halves_2D = blocks_BD.reshape(2, BLOCKS // 2, -1).mean(1)
            between_M[match] = np.square(halves_2D[1] - halves_2D[0]).sum()
            within_M[match] = np.square(blocks_BD - blocks_BD.mean(0)).sum() * 4 / BLOCKS
    anywhere = 2 * float(moments(parts, 2 * BLOCKS).x_ND.var(0).sum())

    def over(where_M: NDArray[np.bool_]) -> Drift | None:
        where_M = where_M & (within_M > 0)
        if len(np.unique(labels.seed_M[where_M])) < 2:
            return None
        above_M, below_M, here = between_M[where_M], within_M[where_M], labels.kept(where_M)
        shares_K = by_opponent(above_M, here) / by_opponent(below_M, here)
        low, high = interval(above_M, below_M, here)
        return Drift(
            moved=float(np.sqrt(np.nanmean(by_opponent(above_M, here)) / anywhere)),
            share=float(np.nanmean(shares_K)),
            low=max(low, 0.0),
            high=min(high, 1.0),
            matches=int(where_M.sum()),
        )

    of_opponents = [over(labels.opponent_M == k) for k in range(int(labels.opponent_M.max()) + 1)]
    return [*of_opponents, over(labels.opponent_M >= 0)]
