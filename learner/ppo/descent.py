"""One step of the optimizer: a minibatch in parts, in mixed precision, on one rank or on
several.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from league.errors import NumericalFault
from learner.distributed.ranks import Ranks
from learner.ppo.terms import Readings

SMALLEST_SCALE = 1.0
"""Below it a float16 gradient overflows whatever its scale: the gradient itself is not finite."""


def compute_type(precision: str, device: torch.device) -> torch.dtype:
    """The type of an update's products; `auto` is bfloat16 or float16 on a GPU, and float32
    elsewhere.
    """
    if precision != "auto":
        return {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[
            precision
        ]
    if device.type != "cuda":
        return torch.float32
    return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16


class Descent:
    """Adds up the gradients of a minibatch's parts, and makes one step with their sum.

    Args:
        network: all that is learnt, a policy with its network say.
        max_norm: the gradient of all parameters together is scaled down to this norm.
        precision: auto, float32, bfloat16 or float16; the last scales the loss against underflow.
    """

    def __init__(
        self,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        max_norm: float,
        precision: str,
        device: torch.device,
        ranks: Ranks,
    ) -> None:
        self._network, self._optimizer, self._max_norm = network, optimizer, max_norm
        self._device, self._ranks = device, ranks
        self.type = compute_type(precision, device)
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.type == torch.float16)
        self._terms: dict[str, Tensor] = {}
        self._total = 0.0

    def autocast(self) -> AbstractContextManager[None]:
        """Where the network's products are made in the lower precision."""
        lower = self.type != torch.float32
        return torch.autocast(self._device.type, self.type if lower else None, enabled=lower)

    def begin(self) -> None:
        """A new minibatch."""
        self._optimizer.zero_grad(set_to_none=True)
        self._terms, self._total = {}, 0.0

    def add(self, total: Tensor, terms: Mapping[str, Tensor]) -> None:
        """Adds the gradient of a part's loss; `terms` are named when one of them is not finite."""
        self.scaler.scale(total).backward()
        self._total += float(total.detach())
        for name, term in terms.items():
            part = term.detach()
            self._terms[name] = self._terms[name] + part if name in self._terms else part

    def gather(self, readings: Readings, asked: bool = False) -> tuple[dict[str, float], bool]:
        """Adds up the gradients of all ranks, and takes the loss's scale out of them.

        Returns:
            The readings' means and the loss, over all ranks; and whether some rank is `asked` to
            stop.
        """
        sums = readings.sums()
        told = torch.cat(
            [sums.flatten(), torch.tensor([self._total, float(asked)], dtype=torch.float64)]
        )
        told = self._ranks.add_up_gradients(self._network.parameters(), told)
        self.scaler.unscale_(self._optimizer)
        self._total = float(told[-2])
        means = readings.means(told[:-2].view_as(sums))
        return {**means, "loss/total": self._total}, bool(told[-1] > 0)

    def finish(self, step: int) -> float:
        """Clips and steps; returns the gradient's norm before clipping.

        Raises:
            NumericalFault: a number is none; no weight has changed. `step` is told in its sentence.
        """
        gradients = [
            parameter.grad for parameter in self._network.parameters() if parameter.grad is not None
        ]
        norm_of_all = torch.nn.utils.get_total_norm(gradients)
        norm = float(norm_of_all)
        finite = math.isfinite(norm) and math.isfinite(self._total)
        if not finite and not self._is_overflow():
            raise NumericalFault(
                f"{self._culprit()} is not finite at step {step}: the update was "
                "not made and the last good weights are kept; go on with a lower learner.learning_rate"
            )
        # Behind the fault: one gradient that is no number makes all of them none.
        torch.nn.utils.clip_grads_with_norm_(
            self._network.parameters(), self._max_norm, norm_of_all
        )
        self.scaler.step(self._optimizer)  # leaves the step out when a scaled gradient overflowed
        self.scaler.update()
        return norm

    def _is_overflow(self) -> bool:
        """Whether only the scale is too large, which the scaler halves by itself."""
        return (
            self.scaler.is_enabled()
            and math.isfinite(self._total)
            and self.scaler.get_scale() > SMALLEST_SCALE
        )

    def _culprit(self) -> str:
        for name, term in self._terms.items():
            if not torch.isfinite(term).all():
                return f"the {name} loss"
        for name, parameter in self._network.named_parameters():
            if parameter.grad is not None and not torch.isfinite(parameter.grad).all():
                return f"the gradient of {name.removeprefix('network.')}"
        return "the gradient norm"
