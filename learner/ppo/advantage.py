"""Returns and advantages: pure functions and one running statistic, indexed in time.

Shape suffixes: T steps, N matches.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from league.errors import InvalidInput
from learner.distributed.ranks import Ranks

FloatArray = NDArray[np.float32]


def generalised_advantage(
    r_TN: FloatArray,
    v_TN: FloatArray,
    ended_TN: NDArray[np.bool_],
    bootstrap_N: FloatArray,
    gamma: float,
    lambda_: float,
) -> tuple[FloatArray, FloatArray]:
    """Advantages and value targets of a rollout.

    delta_t = r_t + d_t v_{t+1} - v_t and A_t = delta_t + lambda d_t A_{t+1}, where the discount d_t
    is `gamma`, and 0 when the match ended in step t; the rollout's cut-off bootstraps from
    `bootstrap_N` (Schulman et al. 2016, arXiv 1506.02438, eq. 16). Targets are A_t + v_t.
    """
    if not r_TN.shape == v_TN.shape == ended_TN.shape or bootstrap_N.shape != r_TN.shape[1:]:
        raise InvalidInput(
            f"shapes differ: r {r_TN.shape}, v {v_TN.shape}, bootstrap {bootstrap_N.shape}"
        )
    discount_TN = gamma * (1.0 - ended_TN.astype(np.float32))
    advantage_TN = np.zeros_like(v_TN)
    v_next_N, advantage_next_N = bootstrap_N, np.zeros_like(bootstrap_N)
    for t in range(len(r_TN) - 1, -1, -1):
        delta_N = r_TN[t] + discount_TN[t] * v_next_N - v_TN[t]
        advantage_next_N = delta_N + lambda_ * discount_TN[t] * advantage_next_N
        advantage_TN[t] = advantage_next_N
        v_next_N = v_TN[t]
    return advantage_TN, advantage_TN + v_TN


def explained_variance(
    value: Tensor, target: Tensor, add_up: Callable[[Tensor], Tensor] = lambda sums: sums
) -> float:
    """1 - Var[target - value] / Var[target], NaN where targets do not vary.

    `add_up` makes sums over one rollout sums over those of all ranks (`Ranks.add_up`).
    """
    pair = torch.stack([target.flatten(), (target - value).flatten()]).double()
    sums = add_up(torch.cat([pair.sum(1), pair.new_tensor([float(target.numel())])]))
    apart = pair - (sums[:2] / sums[2])[:, None]
    of_targets, of_errors = add_up(apart.square().sum(1)).tolist()
    return 1.0 - of_errors / of_targets if of_targets > 0 else math.nan


class ReturnScale:
    """Running standard deviation of the discounted return, by which rewards are divided.

    The return R_t = gamma R_{t-1} + r_t is followed per match and starts anew with each match; its
    variance over all steps so far, of all `ranks`, is kept by the parallel update of Chan et al.
    (1979). Nothing is clipped: a win counts as much more than a step as its weight says.
    """

    def __init__(self, num_matches: int, gamma: float, ranks: Ranks | None = None) -> None:
        self.gamma, self._ranks = gamma, ranks or Ranks()
        self.return_N = np.zeros(num_matches, np.float64)
        self.count, self.mean, self.m2 = 0.0, 0.0, 0.0

    def update(self, r_TN: FloatArray, ended_TN: NDArray[np.bool_]) -> None:
        """Takes in a rollout's raw rewards."""
        returns = np.empty(r_TN.shape, np.float64)
        for t in range(len(r_TN)):
            self.return_N = self.gamma * self.return_N + r_TN[t]
            returns[t] = self.return_N
            self.return_N = np.where(ended_TN[t], 0.0, self.return_N)
        # About the mean so far, which all ranks share, so that no digits are lost in the squares.
        apart = returns - self.mean
        sums = torch.tensor(
            [returns.size, apart.sum(), np.square(apart).sum()], dtype=torch.float64
        )
        count, total, squares = self._ranks.add_up(sums).tolist()
        self._merge(count, self.mean + total / count, squares - total * total / count)

    def _merge(self, count: float, mean: float, m2: float) -> None:
        total = self.count + count
        shift = mean - self.mean
        self.m2 += m2 + shift * shift * self.count * count / total
        self.mean += shift * count / total
        self.count = total

    @property
    def scale(self) -> float:
        """Rewards are divided by this; 1 until something was seen."""
        return float(np.sqrt(self.m2 / self.count + 1e-8)) if self.count else 1.0

    def state(self) -> dict[str, object]:
        """Plain values for the checkpoint."""
        return {
            "return_N": self.return_N.tolist(),
            "count": self.count,
            "mean": self.mean,
            "m2": self.m2,
        }

    def load(self, state: dict[str, object]) -> None:
        """Continues from `state`; a different number of matches starts their returns at 0."""
        returns = np.asarray(state["return_N"], np.float64)
        self.return_N = (
            returns if returns.shape == self.return_N.shape else np.zeros_like(self.return_N)
        )
        self.count, self.mean, self.m2 = (float(state[key]) for key in ("count", "mean", "m2"))  # type: ignore[arg-type]
