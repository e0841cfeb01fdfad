"""Learners that learn together: each plays matches of its own, and all make one and the same update.

A rank's gradient is its share of the whole minibatch's, so what ranks do with gradients is add them up.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, distributed


class Ranks:
    """All the processes of `torch.distributed`'s default group, or this one alone when there is none."""

    def __init__(self) -> None:
        together = distributed.is_available() and distributed.is_initialized()
        self.rank = distributed.get_rank() if together else 0
        self.count = distributed.get_world_size() if together else 1

    def add_up(self, numbers: Tensor) -> Tensor:
        """The sum over all ranks, the same on each; alone, `numbers`."""
        if self.count > 1:
            numbers = numbers.clone()
            distributed.all_reduce(numbers)
        return numbers

    def any(self, flag: bool) -> bool:
        """Whether it is true on some rank."""
        return flag if self.count == 1 else bool(self.add_up(torch.tensor(float(flag))) > 0)

    def add_up_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Makes every gradient the sum over all ranks; a missing one counts as zeros. One message."""
        if self.count == 1:
            return
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        for parameter in trained:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [parameter.grad for parameter in trained if parameter.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        distributed.all_reduce(flat)
        for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))
