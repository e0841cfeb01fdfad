"""Makes optimizer steps. A minibatch can be divided among the learner's processes (ranks), and
further into parts whose gradients are computed one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from league.errors import NumericalFault
from learner.distributed.rank_group import RankGroup
from learner.ppo.loss import WeightedMeans

SMALLEST_SCALE = 1.0
"""Smallest loss scale. If the gradient still overflows at this scale, the unscaled gradient is
infinite.
"""
SMALLEST_RATE = 1.0 / 64.0


def compute_type(precision: str, device: torch.device) -> torch.dtype:
    """Chooses the number type in which an update computes matrix products.

    Args:
        precision: auto, float32, bfloat16 or float16. `auto` is bfloat16 on a GPU that has it,
            float16 on other GPUs, and float32 on a CPU.
    """
    types = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if precision != "auto":
        return types[precision]
    if device.type != "cuda":
        return torch.float32
    return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16


class AdaptiveRate:
    """Keeps the KL divergence of each update near a desired value. The scheduled learning rate is
    multiplied by a factor between 1/64 and 1, which adapts.

    If an update's KL divergence is more than 1.5 times the desired value, the factor is divided by
    1.2. If the divergence is less than the desired value divided by 1.5, the factor is multiplied
    by 1.2. This is the rule of PPO's adaptive penalty (Schulman et al. 2017, arXiv 1707.06347,
    section 4). No single learning rate fits a whole curriculum (docs/benchmarks.md).
    """

    def __init__(self, desired_kl: float | None) -> None:
        self.desired_kl, self.scale = desired_kl, 1.0

    def adapt(self, kl: float) -> None:
        """Adapts the factor to the mean KL divergence of an update."""
        if self.desired_kl is None:
            return
        if kl > self.desired_kl * 1.5:
            self.scale = max(self.scale / 1.2, SMALLEST_RATE)
        elif kl < self.desired_kl / 1.5:
            self.scale = min(self.scale * 1.2, 1.0)


class GradientStep:
    """Accumulates the gradients of a minibatch's parts and makes an optimizer step.

    Args:
        network: everything that is trained.
        optimizer: updates the network's parameters.
        max_norm: largest norm of the gradient of all parameters together.
        precision: auto, float32, bfloat16 or float16. float16 scales the loss.
        device: device that computes.
        group: ranks whose gradients add up.
    """

    def __init__(
        self,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        max_norm: float,
        precision: str,
        device: torch.device,
        group: RankGroup,
    ) -> None:
        self._network, self._optimizer, self._max_norm = network, optimizer, max_norm
        self._device, self._group = device, group
        self.type = compute_type(precision, device)
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.type == torch.float16)
        self._terms: dict[str, Tensor] = {}
        self._total = 0.0

    def autocast(self) -> AbstractContextManager[None]:
        """Returns a context in which matrix products are computed in the lower precision."""
        lower = self.type != torch.float32
        return torch.autocast(self._device.type, self.type if lower else None, enabled=lower)

    def begin(self) -> None:
        """Starts a minibatch."""
        self._optimizer.zero_grad(set_to_none=True)
        self._terms, self._total = {}, 0.0

    def add(self, total: Tensor, terms: Mapping[str, Tensor]) -> None:
        """Adds the gradient of a part's loss.

        Args:
            total: the loss.
            terms: the loss's terms by name. If a term is not finite, the error names it.
        """
        self.scaler.scale(total).backward()
        self._total += float(total.detach())
        for name, term in terms.items():
            self._terms[name] = self._terms.get(name, 0.0) + term.detach()

    def reduce(self, means: WeightedMeans, stop: bool = False) -> tuple[dict[str, float], bool]:
        """Adds up the gradients of all ranks and removes the loss scale from them.

        Args:
            means: this rank's means.
            stop: whether this rank was asked to stop.

        Returns:
            The means and the loss over all ranks, and whether at least one rank was asked to stop.
        """
        sums = means.sums()
        extra = torch.tensor([self._total, float(stop)], dtype=torch.float64)
        extra = self._group.sum_gradients(
            self._network.parameters(), torch.cat([sums.flatten(), extra])
        )
        self.scaler.unscale_(self._optimizer)
        self._total = float(extra[-2])
        values = means.means(extra[:-2].view_as(sums))
        return {**values, "loss/total": self._total}, bool(extra[-1] > 0)

    def finish(self, step: int) -> float:
        """Clips the gradient and updates the weights.

        Args:
            step: step of the training, for the error message.

        Returns:
            The gradient's norm before clipping.

        Raises:
            NumericalFault: a number is NaN or infinite. No weight has changed. The message names
                the tensor.
        """
        parameters = list(self._network.parameters())
        norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
        finite = math.isfinite(float(norm)) and math.isfinite(self._total)
        if not finite and not self._is_overflow():
            raise NumericalFault(
                f"{self._culprit()} is not finite at step {step}: the update was not made and the "
                "last good weights are kept; continue with a lower learner.learning_rate"
            )
        torch.nn.utils.clip_grads_with_norm_(parameters, self._max_norm, norm)
        self.scaler.step(self._optimizer)  # skips the step when a scaled gradient overflowed
        self.scaler.update()
        return float(norm)

    def _is_overflow(self) -> bool:
        """Returns whether the gradient is infinite only because the loss scale is too large. In
        this case the scaler halves the loss scale.
        """
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
