"""What a step of the network is asked about, from the game's arrays to the device.

Shape suffixes: N matches, O observation.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Asked = tuple[Tensor, Tensor, Tensor]
"""Observations `[N, O]`, whether a match begins `[N]` (bool) and the time left in it `[N]`."""


class Feed:
    """Hands over the arrays themselves on the CPU; to a GPU they go in one copy out of page-locked
    memory.

    Such a copy is queued like any work: the CPU goes on at once and orders the network's step
    behind it. The next call writes over that memory, so what was computed from the last one must
    have been read by then: the sampled actions are, in every step of a rollout.
    """

    def __init__(
        self, matches: int, observation: int, device: torch.device, packed: bool = False
    ) -> None:
        self._device = device
        self._packed_NQ: Tensor | None = None
        if packed or device.type != "cpu":
            self._packed_NQ = torch.empty(
                matches, observation + 2, pin_memory=device.type == "cuda"
            )

    def __call__(
        self,
        obs_NO: NDArray[np.float32],
        starts_N: NDArray[np.bool_],
        time_left_N: NDArray[np.float32],
    ) -> Asked:
        if self._packed_NQ is None:
            return torch.as_tensor(obs_NO), torch.as_tensor(starts_N), torch.as_tensor(time_left_N)
        packed_NQ = self._packed_NQ.numpy()
        packed_NQ[:, :-2], packed_NQ[:, -2], packed_NQ[:, -1] = obs_NO, starts_N, time_left_N
        there_NQ = self._packed_NQ.to(self._device, non_blocking=True)
        return there_NQ[:, :-2], there_NQ[:, -2] > 0, there_NQ[:, -1]
