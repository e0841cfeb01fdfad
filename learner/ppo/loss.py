"""The terms of PPO's loss: tensors in, tensors out (Schulman et al. 2017, arXiv 1707.06347)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class PolicyLoss(NamedTuple):
    """`loss` has a gradient; the other two are diagnostics."""

    loss: Tensor
    approx_kl: (
        Tensor  # mean of (ratio - 1) - log ratio, an unbiased and never negative estimate of KL(old, new)
    )
    clip_fraction: Tensor


def clipped_policy_loss(
    log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, clip_range: float
) -> PolicyLoss:
    """-E[min(ratio A, clip(ratio, 1 - c, 1 + c) A)], eq. 7 of the paper."""
    log_ratio = log_prob - old_log_prob
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - clip_range, 1.0 + clip_range)
    loss = -torch.min(ratio * advantage, clipped * advantage).mean()
    with torch.no_grad():
        approx_kl = (ratio - 1.0 - log_ratio).mean()
        clip_fraction = ((ratio - 1.0).abs() > clip_range).float().mean()
    return PolicyLoss(loss, approx_kl, clip_fraction)


def value_loss(value: Tensor, target: Tensor) -> Tensor:
    """Mean squared error of the critic."""
    return torch.nn.functional.mse_loss(value, target)


def normalised(advantage: Tensor) -> Tensor:
    """Advantages with mean 0 and standard deviation 1 over the minibatch."""
    if advantage.numel() < 2:
        return advantage
    return (advantage - advantage.mean()) / (advantage.std() + 1e-8)
