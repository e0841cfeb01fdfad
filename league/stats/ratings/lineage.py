"""Learners in a fit of all games: one strength per stretch of steps, tied by a random walk.

A learner is not one player. Its live games fall into stretches of steps, each with a strength of
its own, and so does every snapshot. In order of steps these nodes are a random walk whose variance
grows by `Drift`, so neighbours share games, the more the closer they are. (Whole-History Rating,
Coulom 2008, has a node per day.) A bot is one node.

In x, the logarithm of steps, a learner's strength is

    start + slope · x + w(x),   start ~ N(25, 25²), slope ~ N(0, 10²) points, w of variance κ·x

Learners climb, and a walk without a slope makes every climb too short; they begin far below the
others, so the start is wide. The node of a stretch is the mean over it, and the covariance of these
means is exact; as points, their walk looks too short by a third.

Shapes: G games, S seats of them (2 G), N nodes, K nodes of one lineage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from league.errors import InvalidInput
from league.stats.ratings.belief import MU, SIGMA, Drift
from league.stats.ratings.fit import Block, Fit, PairCounts, fit

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
STRETCH = 0.05
"""Length of a stretch in x: 2,500 steps at first, 200,000 after four million. In longer ones, a
learner paired by rating meets stronger opponents while it is stronger, which hides the distance.
"""
START_SIGMA = 3.0 * SIGMA
SLOPE_SIGMA = 10.0
"""Points that a learner climbs while its steps grow by e; runs of brawl climb 4 to 5."""
_APART = 1e-4
"""Least variance between two nodes in points², so that two at one step have an inverse."""
_ROUNDS, _SETTLED = 50, 0.01


@dataclass(frozen=True)
class Seats:
    """One seat of G games: the number of the learner (also for its snapshots) or of the bot, the
    steps of the weights (0 for a bot), and whether they were a learner's current ones.
    """

    lineage_G: Numbers
    step_G: Numbers
    is_live_G: NDArray[np.bool_]


@dataclass(frozen=True)
class Nodes:
    """The N strengths to fit, in order of lineage and step, and the nodes that played the games.

    `step_N` is the mean over a stretch's games, `first_N` and `last_N` its earliest and latest
    steps; `is_live_N` is true of stretches, false of snapshots and bots.
    """

    lineage_N: Numbers
    step_N: Array
    first_N: Array
    last_N: Array
    is_live_N: NDArray[np.bool_]
    seat0_G: Numbers
    seat1_G: Numbers
    counts: PairCounts

    def walks(self, settling_steps: int) -> list[Walk]:
        """Returns a walk for each lineage of several nodes."""
        x_3N = np.log(np.array([self.step_N, self.first_N, self.last_N]) + settling_steps)
        lineages = (np.flatnonzero(self.lineage_N == one) for one in np.unique(self.lineage_N))
        return [
            Walk(nodes_K, *(x_3N[:, nodes_K] - x_3N[1, nodes_K].min()))
            for nodes_K in lineages
            if len(nodes_K) > 1
        ]


@dataclass(frozen=True)
class Walk:
    """The K nodes of a lineage, by x: the logarithm of their steps from the earliest one on.

    `x_K` is of the mean step of the node's games; its stretch is from `early_K` to `late_K`.
    """

    nodes_K: Numbers
    x_K: Array
    early_K: Array
    late_K: Array

    def block(self, kappa: float) -> Block:
        """Returns the prior of the nodes."""
        start_KK = np.full((len(self.x_K),) * 2, START_SIGMA**2)
        slope_KK = SLOPE_SIGMA**2 * np.outer(self.x_K, self.x_K)
        apart_KK = _APART * np.eye(len(self.x_K))
        covariance_KK = start_KK + slope_KK + kappa * self.covariance_KK() + apart_KK
        return Block(self.nodes_K, cho_solve(cho_factor(covariance_KK), np.eye(len(self.x_K))))

    def covariance_KK(self) -> Array:
        """Returns the covariance of the means over the stretches of a walk with κ = 1 from x = 0.

        Stretches follow each other, so it is the mean x of the earlier one; a + w/3 of one with
        itself; and (∫ₐᵖ x dx + p(b − p))/(b − a) with a point p within it.
        """
        middle_K, width_K = (self.early_K + self.late_K) / 2.0, self.late_K - self.early_K
        found_KK = np.minimum.outer(middle_K, middle_K)
        columns = (self.early_K[:, None], self.late_K[:, None], middle_K[None, :])
        a_KK, b_KK, p_KK = (np.broadcast_to(x, found_KK.shape) for x in columns)
        is_inside_KK = (width_K[:, None] > 0.0) & (width_K == 0.0) & (a_KK < p_KK) & (p_KK < b_KK)
        a, b, p = a_KK[is_inside_KK], b_KK[is_inside_KK], p_KK[is_inside_KK]
        found_KK[is_inside_KK] = ((p * p - a * a) / 2.0 + p * (b - p)) / (b - a)
        found_KK = np.where(is_inside_KK.T, found_KK.T, found_KK)
        np.fill_diagonal(found_KK, self.early_K + width_K / 3.0)
        return found_KK

    def expected_square(self, found: Fit, kappa: float) -> tuple[float, int]:
        """Returns the sum of E[w²] in units of what κ = 1 gives, and the number of terms.

        Given the strengths, w is N(κKQθ, κK − κ²KQK), K = `covariance_KK` and Q the precision of
        `block`.
        """
        k_KK, q_KK = self.covariance_KK(), self.block(kappa).precision_KK
        theta_K = found.rating_N[self.nodes_K] - MU
        covariance_KK = found.covariance_NN[np.ix_(self.nodes_K, self.nodes_K)]
        qk_KK = q_KK @ k_KK
        walked = float(np.sum((qk_KK @ q_KK) * (np.outer(theta_K, theta_K) + covariance_KK)))
        moves = int(np.sum(np.diagonal(k_KK) > 0.0))
        return kappa * moves + kappa**2 * (walked - float(np.trace(qk_KK))), moves


def nodes_of(
    seat0: Seats, seat1: Seats, outcome_G: Array, settling_steps: int = Drift().settling_steps
) -> Nodes:
    """Cuts live games into stretches and counts the games between nodes; outcomes are seat 0's."""
    lineage_S = np.concatenate([seat0.lineage_G, seat1.lineage_G]).astype(np.int64)
    step_S = np.concatenate([seat0.step_G, seat1.step_G]).astype(np.int64)
    is_live_S = np.concatenate([seat0.is_live_G, seat1.is_live_G]).astype(np.int64)
    stretch_S = (np.log1p(step_S / settling_steps) / STRETCH).astype(np.int64)
    keys_S = np.stack([lineage_S, is_live_S, np.where(is_live_S, stretch_S, step_S)])
    keys_N, node_S = np.unique(keys_S, axis=1, return_inverse=True)
    node_S, nodes = node_S.reshape(-1), keys_N.shape[1]
    step_N = np.bincount(node_S, step_S, nodes) / np.bincount(node_S, minlength=nodes)
    first_N, last_N = np.full(nodes, np.inf), np.zeros(nodes)
    np.minimum.at(first_N, node_S, step_S)
    np.maximum.at(last_N, node_S, step_S)
    order_N = np.lexsort((step_N, keys_N[0]))
    seat0_G, seat1_G = np.split(np.argsort(order_N)[node_S], [len(outcome_G)])
    return Nodes(
        lineage_N=keys_N[0, order_N],
        step_N=step_N[order_N],
        first_N=first_N[order_N],
        last_N=last_N[order_N],
        is_live_N=keys_N[1, order_N].astype(np.bool_),
        seat0_G=seat0_G,
        seat1_G=seat1_G,
        counts=PairCounts.of_games(seat0_G, seat1_G, outcome_G, nodes),
    )


def fit_lineages(nodes: Nodes, drift: Drift) -> Fit:
    """Returns the ratings of all nodes under this drift."""
    return _fit(nodes, nodes.walks(drift.settling_steps), drift.points2_per_fold)


def measured_drift(nodes: Nodes, guess: Drift) -> tuple[Drift, Fit]:
    """Returns the drift under which the games are most likely, and the fit under it.

    By expectation-maximisation, whose steps shrink by a constant factor, so that two of them show
    the limit (Aitken). Raises `InvalidInput` where no learner has two nodes.
    """
    walks = nodes.walks(guess.settling_steps)
    if not walks:
        raise InvalidInput("no learner has two snapshots or stretches: its drift can't be measured")
    log_kappa = math.log(max(guess.points2_per_fold, _APART))
    for _ in range(_ROUNDS):
        before = log_kappa
        once = _improved(nodes, walks, before)
        log_kappa = _improved(nodes, walks, once)
        last = log_kappa - once
        share = last / (once - before) if once != before else 0.0
        if 0.0 < share < 1.0:  # the limit is at most ten more steps like the last away
            log_kappa += last * min(10.0, share / (1.0 - share))
        if abs(log_kappa - before) < _SETTLED:
            break
    drift = Drift(math.exp(log_kappa), guess.settling_steps)
    return drift, _fit(nodes, walks, drift.points2_per_fold)


def _fit(nodes: Nodes, walks: list[Walk], kappa: float) -> Fit:
    return fit(nodes.counts, len(nodes.step_N), blocks=[walk.block(kappa) for walk in walks])


def _improved(nodes: Nodes, walks: list[Walk], log_kappa: float) -> float:
    kappa = math.exp(log_kappa)
    found = _fit(nodes, walks, kappa)
    squares, moves = zip(*(walk.expected_square(found, kappa) for walk in walks), strict=True)
    return math.log(max(_APART, sum(squares) / sum(moves)))
