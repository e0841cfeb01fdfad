"""Computes returns and advantages from arrays indexed in time.

Shape suffixes: T steps, N matches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from league.errors import InvalidInput
from learner.distributed.rank_group import RankGroup

FloatArray = NDArray[np.float32]


def generalised_advantage(
    r_TN: FloatArray,
    v_TN: FloatArray,
    ended_TN: NDArray[np.bool_],
    bootstrap_N: FloatArray,
    gamma: float,
    lambda_: float,
    played_TN: NDArray[np.bool_] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Computes the advantages and the value targets of a rollout.

    delta_t = r_t + d_t v_{t+1} - v_t and A_t = delta_t + lambda d_t A_{t+1}. The discount d_t is
    `gamma`, or 0 if the match ended in step t. After the last step of the rollout, `bootstrap_N`
    takes the place of v_{t+1} (Schulman et al. 2016, arXiv 1506.02438, eq. 16). The value targets
    are A_t + v_t.

    Args:
        r_TN: rewards.
        v_TN: values before each step.
        ended_TN: true where a match ended in the step.
        bootstrap_N: values after the last step.
        gamma: discount per step.
        lambda_: GAE's lambda, the weight of longer returns, from 0 to 1.
        played_TN: true where row t holds a step of the match. A match that has waited for its
            opponent has unused rows at the end. None: all rows hold steps.

    Returns:
        Advantages and targets, `[T, N]` each. The advantage is 0 in unused rows.

    Raises:
        InvalidInput: the shapes differ.
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
        advantage_N = delta_N + lambda_ * discount_TN[t] * advantage_next_N
        if played_TN is None:
            advantage_next_N, v_next_N = advantage_N, v_TN[t]
        else:
            advantage_next_N = np.where(played_TN[t], advantage_N, advantage_next_N)
            v_next_N = np.where(played_TN[t], v_TN[t], v_next_N)
        advantage_TN[t] = advantage_next_N
    return advantage_TN, advantage_TN + v_TN


def explained_variance(
    value: Tensor, target: Tensor, add_up: Callable[[Tensor], Tensor] = lambda sums: sums
) -> float:
    """Returns 1 - Var[target - value] / Var[target], or NaN if the targets do not vary.

    Args:
        value: predicted values of any shape.
        target: the values' targets, of the same shape.
        add_up: sums numbers over all ranks (`RankGroup.sum`).
    """
    pair = torch.stack([target.flatten(), (target - value).flatten()]).double()
    sums = add_up(torch.cat([pair.sum(1), pair.new_tensor([float(target.numel())])]))
    centred = pair - (sums[:2] / sums[2])[:, None]
    of_targets, of_errors = add_up(centred.square().sum(1)).tolist()
    return 1.0 - of_errors / of_targets if of_targets > 0 else math.nan


class ReturnScale:
    """Tracks the standard deviation of the discounted return, by which rewards are divided.

    N matches are played at once, each in its own row. The return R_t = gamma R_{t-1} + r_t is
    tracked separately in each row, and restarts from 0 when a new match begins in the row. The
    variance of the return is taken over all steps of all rows and ranks, by the parallel update of
    Chan et al. (1979). Nothing is clipped, so that all rewards keep their relative weights.

    Args:
        num_matches: N.
        gamma: discount per step.
        group: ranks that share the variance.
    """

    def __init__(self, num_matches: int, gamma: float, group: RankGroup | None = None) -> None:
        self.gamma, self._group = gamma, group or RankGroup()
        self.return_N = np.zeros(num_matches, np.float64)
        self.count, self.mean, self.m2 = 0.0, 0.0, 0.0

    def update(
        self,
        r_TN: FloatArray,
        ended_TN: NDArray[np.bool_],
        played_TN: NDArray[np.bool_] | None = None,
    ) -> None:
        """Adds a rollout's raw rewards to the running returns and their variance.

        Args:
            r_TN: rewards.
            ended_TN: true where a match ended in the step.
            played_TN: true where row t holds a step of the match. A match that has waited for its
                opponent has unused rows at the end. None: all rows hold steps.
        """
        returns_TN = np.empty(r_TN.shape, np.float64)
        for t in range(len(r_TN)):
            returns_TN[t] = self.gamma * self.return_N + r_TN[t]
            after_N = np.where(ended_TN[t], 0.0, returns_TN[t])
            self.return_N = (
                after_N if played_TN is None else np.where(played_TN[t], after_N, self.return_N)
            )
        # Subtracting the mean so far, which is the same on all ranks, keeps the squares precise.
        centred = (returns_TN if played_TN is None else returns_TN[played_TN]) - self.mean
        sums = torch.tensor(
            [centred.size, centred.sum(), np.square(centred).sum()], dtype=torch.float64
        )
        count, total, squares = self._group.sum(sums).tolist()
        mean, m2 = self.mean + total / count, squares - total * total / count
        everything = self.count + count
        shift = mean - self.mean
        self.m2 += m2 + shift * shift * self.count * count / everything
        self.mean += shift * count / everything
        self.count = everything

    @property
    def scale(self) -> float:
        """The number by which rewards are divided, 1 before the first rollout."""
        return float(np.sqrt(self.m2 / self.count + 1e-8)) if self.count else 1.0

    def state(self) -> dict[str, Any]:
        """Returns plain values for the checkpoint."""
        moments = {"count": self.count, "mean": self.mean, "m2": self.m2}
        return {"return_N": self.return_N.tolist(), **moments}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores the result of `state`. If the number of matches differs, all running returns
        start at 0.
        """
        returns_N = np.asarray(state["return_N"], np.float64)
        same = returns_N.shape == self.return_N.shape
        self.return_N = returns_N if same else np.zeros_like(self.return_N)
        self.count, self.mean, self.m2 = (float(state[key]) for key in ("count", "mean", "m2"))
