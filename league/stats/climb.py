"""Estimates a learner's present win rate against an opponent from all its matches so far.

The logit of the win rate is modelled as a Gaussian process along the training steps: a random walk
whose slope is a random walk too. The number of wins is binomial, and a draw does not count as a
win. The posterior is Laplace's approximation (C. E. Rasmussen and C. K. I. Williams, "Gaussian
Processes for Machine Learning", 2006, algorithms 3.1 and 3.2, with the kernel of their equation
6.28 for the slope). The step sizes of the two walks are unknown. So the posteriors for a small grid
of step sizes are averaged, weighted by their evidence. For a fast learner, the estimate thus relies
on recent matches. For a slow learner, it averages over more matches.

Shapes: N points along the steps, G sizes of the two walks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, logit

from league.errors import InvalidInput
from league.ids import SnapshotName, lineage_of
from league.metrics import Interval
from league.players import PayoffCell
from league.stages import Stage

Array = NDArray[np.float64]

FEWEST_MATCHES = 30
"""Fewest matches on which an estimate must be based to end a stage of a curriculum."""
MOST_POINTS = 64
"""Largest number of points that an estimate uses, newest first. Each snapshot gives two points: its
clean matches (both players frozen) and its learner's training matches until the next snapshot. So
the last 32 snapshots count.
"""
FIRST_SD, FIRST_SLOPE_SD = 2.0, 0.3
"""Standard deviations of the priors of the logit and of its slope at the first point. Both priors
have the mean 0, and a logit of 0 means even matches. The slope is the change of the logit over the
mean distance between two points.
"""
LEVEL_SD_G, SLOPE_SD_G = (
    size.ravel()[:, None, None] for size in np.meshgrid((0.03, 0.1, 0.3), (0.0, 0.03, 0.1))
)
"""Step sizes of the two random walks, of shape (G, 1, 1). Over the mean distance between two
points, the logit and its slope change by these standard deviations.
"""
_ITERATIONS, _CLOSE = 50, 1e-4


@dataclass(frozen=True, kw_only=True)
class WinRate:
    """Describes the posterior of a win rate, estimated from `matches` matches. The logit of the win
    rate is normal.
    """

    mean: float
    sd: float
    matches: int

    @property
    def estimate(self) -> float:
        """Returns the median of the posterior. The win rate is as likely above as below it."""
        return float(expit(self.mean))

    def interval(self, confidence: float = 0.95) -> Interval:
        """Returns the bounds that contain the win rate with probability `confidence`."""
        half = self.sd * NormalDist().inv_cdf((1.0 + confidence) / 2.0)
        return Interval(float(expit(self.mean - half)), float(expit(self.mean + half)))

    def sentence(self, player: str, opponent: str) -> str:
        """Returns the estimate and its 95 % interval in words."""
        bounds = self.interval()
        return (
            f"{player} wins an estimated {100 * self.estimate:.0f} % ({100 * bounds.low:.0f} to "
            f"{100 * bounds.high:.0f} %) of its matches against {opponent}, from "
            f"{self.matches:,} of its own"
        )


def goal_reached(stage: Stage, win_rate: WinRate | None) -> bool:
    """Returns whether a learner has probably reached the win rate that its curriculum's stage
    demands (with a probability of at least ½).

    The estimate must be based on at least `FEWEST_MATCHES` matches.
    """
    return (
        win_rate is not None
        and win_rate.matches >= FEWEST_MATCHES
        and win_rate.estimate >= stage.until_win_rate
    )


def win_rate_now(
    player: str,
    clean: Iterable[PayoffCell],
    training: Iterable[PayoffCell],
    now: int,
    *,
    after: int = -1,
    least: int = 0,
) -> WinRate | None:
    """Estimates a learner's win rate against an opponent at its present step.

    Args:
        player: the learner.
        clean: counts of the learner's snapshots against the opponent in clean matches (both players
            frozen). Each snapshot's matches are placed at its step.
        training: counts of the learner's training matches, grouped by the last snapshot that it had
            frozen (`MatchmakerClient.payoff` with `climb`). A count is placed halfway between the
            step of that snapshot and the step of the next snapshot, or halfway to `now` if there is
            no next snapshot.
        now: the learner's present step. Snapshots with later steps don't count, because a restart
            has undone these steps.
        after: a step. Snapshots up to this step don't count.
        least: least number of training matches. If there are fewer, the training matches are
            ignored. When a learner begins to meet an opponent, the short matches end first. Most
            short matches are wins, so the first results would overstate the win rate.

    Returns:
        The estimate, None without matches.
    """
    snapshots = _counted(player, clean, after, now)
    stretches = _counted(player, training, after, now)
    if sum(cell.games for _, cell in stretches) < least:
        stretches = []
    ends = sorted({step for step, _ in [*snapshots, *stretches]} | {now})
    points = [(float(step), cell) for step, cell in snapshots]
    for step, cell in stretches:
        end = next((later for later in ends if later > step), now)
        points.append(((step + end) / 2, cell))
    if not points:
        return None
    points.sort(key=lambda point: point[0])
    steps, cells = zip(*points[-MOST_POINTS:], strict=True)
    wins, games = [cell.wins for cell in cells], [cell.games for cell in cells]
    return win_rate_at(now, steps, wins, games)


def _counted(
    player: str, cells: Iterable[PayoffCell], after: int, now: int
) -> list[tuple[int, PayoffCell]]:
    """Selects the counts of a learner's snapshots with steps above `after` and up to `now`.
    Snapshots of all generations of an exploiter count. Returns (step, counts) of each snapshot.
    """
    rows = [cell for cell in cells if cell.row.startswith((f"{player}@", f"{player}."))]
    snapshots = [(SnapshotName.parse(cell.row).step, cell) for cell in rows if lineage_of(cell.row)]
    return [(step, cell) for step, cell in snapshots if after < step <= now]


def win_rate_at(now: float, step_N: ArrayLike, wins_N: ArrayLike, games_N: ArrayLike) -> WinRate:
    """Computes the posterior of a win rate at step `now` from counts at steps up to `now`.

    Args:
        now: the present step.
        step_N: steps in order.
        wins_N: matches won at each step.
        games_N: matches played at each step.

    Raises:
        InvalidInput: the counts or their order are impossible.
    """
    x_N, won_N, played_N = (np.asarray(array, np.float64) for array in (step_N, wins_N, games_N))
    if not x_N.ndim == won_N.ndim == played_N.ndim == 1 <= len(x_N):
        raise InvalidInput(f"points of shape {x_N.shape}: give one step, wins and games for each")
    if not len(x_N) == len(won_N) == len(played_N):
        raise InvalidInput(f"{len(x_N)} steps, {len(won_N)} wins and {len(played_N)} games differ")
    if (np.diff(np.append(x_N, now)) < 0).any() or ((won_N < 0) | (won_N > played_N)).any():
        raise InvalidInput("give steps in order up to the present one, and 0 <= wins <= games")
    unit = (now - x_N[0]) / len(x_N) or 1.0
    t_M = (np.append(x_N, now) - x_N[0]) / unit  # the points and the present
    low_MM, high_MM = np.minimum(t_M[:, None], t_M), np.maximum(t_M[:, None], t_M)
    line_MM = FIRST_SD**2 + FIRST_SLOPE_SD**2 * low_MM * high_MM
    walk_MM, spline_MM = low_MM, low_MM**2 * (3.0 * high_MM - low_MM) / 6.0
    kernel_GMM = line_MM + LEVEL_SD_G**2 * walk_MM + SLOPE_SD_G**2 * spline_MM
    mean_G, variance_G, evidence_G = _laplace(kernel_GMM, won_N, played_N)
    weight_G = np.exp(evidence_G - evidence_G.max())
    weight_G /= weight_G.sum()
    mean = weight_G @ mean_G
    variance = weight_G @ (variance_G + (mean_G - mean) ** 2)
    return WinRate(mean=float(mean), sd=float(np.sqrt(variance)), matches=int(played_N.sum()))


def _laplace(kernel_GMM: Array, won_N: Array, played_N: Array) -> tuple[Array, Array, Array]:
    """Returns the mean and variance of the last point's logit, and the log evidence.

    The last point is the present, which has no counts.
    """
    prior_GNN, cross_GN = kernel_GMM[:, :-1, :-1], kernel_GMM[:, :-1, -1]
    logit_GN = np.tile(logit((won_N + 0.5) / (played_N + 1.0)), (len(kernel_GMM), 1))
    identity_NN = np.eye(len(won_N))
    for _ in range(_ITERATIONS):  # Newton's method
        rate_GN = expit(logit_GN)
        weight_GN = played_N * rate_GN * (1.0 - rate_GN)
        root_GN = np.sqrt(weight_GN)
        matrix_GNN = identity_NN + root_GN[:, :, None] * prior_GNN * root_GN[:, None, :]
        target_GN = weight_GN * logit_GN + won_N - played_N * rate_GN
        pull_GN = root_GN * np.einsum("gij,gj->gi", prior_GNN, target_GN)
        dual_GN = target_GN - root_GN * np.linalg.solve(matrix_GNN, pull_GN[..., None])[..., 0]
        before_GN, logit_GN = logit_GN, np.einsum("gij,gj->gi", prior_GNN, dual_GN)
        if np.abs(logit_GN - before_GN).max() < _CLOSE:
            break
    half_GN = np.linalg.solve(matrix_GNN, (root_GN * cross_GN)[..., None])[..., 0]
    mean_G = (cross_GN * dual_GN).sum(axis=1)
    variance_G = kernel_GMM[:, -1, -1] - (root_GN * cross_GN * half_GN).sum(axis=1)
    likelihood_GN = won_N * log_expit(logit_GN) + (played_N - won_N) * log_expit(-logit_GN)
    _, size_G = np.linalg.slogdet(matrix_GNN)
    evidence_G = likelihood_GN.sum(axis=1) - 0.5 * (dual_GN * logit_GN).sum(axis=1) - 0.5 * size_G
    return mean_G, variance_G, evidence_G
