"""The terms of a minibatch's loss, and their means for the log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from learner.distributed.ranks import Ranks
from learner.ppo.divergence import Divergence
from learner.ppo.loss import PolicyLoss


class LossTerms(NamedTuple):
    """Of one minibatch; `kl` is None without references in its matches, or where rewards carry
    it, `forecast` without such a head.
    """

    policy: PolicyLoss
    value: Tensor
    entropy: Tensor
    kl: Divergence | None
    forecast: Tensor | None = None

    def named(self) -> dict[str, Tensor]:
        """The terms by the names that a fault is told with."""
        named = {"policy": self.policy.loss, "value": self.value, "entropy": self.entropy}
        if self.kl is not None:
            named["KL"] = self.kl.loss
        if self.forecast is not None:
            named["forecast"] = self.forecast
        return named


class Readings:
    """Means over a minibatch's parts and over all ranks, each part by its share of the whole.

    A part may lack some (no reference may play along in its matches), and ranks can only add up
    what all of them name: so `names` are given beforehand, and what was read nowhere is left out in
    the end.
    """

    def __init__(self, ranks: Ranks, names: Iterable[str]) -> None:
        self._ranks, self._names = ranks, tuple(names)
        # of values by their shares, and of shares
        self._sums = {name: [0.0, 0.0] for name in self._names}

    def add(self, name: str, value: float | Tensor, share: float) -> None:
        """Takes in a part's mean of the reading `name`."""
        number = float(value.detach()) if isinstance(value, Tensor) else value
        pair = self._sums[name]
        pair[0] += number * share
        pair[1] += share

    def sums(self) -> Tensor:
        """What ranks add up, float64 `[names, 2]`."""
        return torch.tensor([self._sums[name] for name in self._names], dtype=torch.float64)

    def means(self, sums: Tensor | None = None) -> dict[str, float]:
        """Of all ranks, the same on each; `sums` where they are added up already."""
        pairs = (self._ranks.add_up(self.sums()) if sums is None else sums).tolist()
        return {
            name: pair[0] / pair[1]
            for name, pair in zip(self._names, pairs, strict=True)
            if pair[1]
        }
