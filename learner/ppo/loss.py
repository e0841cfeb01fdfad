"""The terms of PPO's loss: tensors in, tensors out (Schulman et al. 2017, arXiv 1707.06347)."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


class PolicyLoss(NamedTuple):
    """`loss` has a gradient; the other two are diagnostics."""

    loss: Tensor
    approx_kl: (
        # mean of (ratio - 1) - log ratio, an unbiased and never negative estimate of KL(old, new)
        Tensor
    )
    clip_fraction: Tensor


def weighted_mean(x: Tensor, weight: Tensor | None) -> Tensor:
    """Mean of `x` over all, or by `weight` of its shape (0 where all weights are 0)."""
    if weight is None:
        return x.mean()
    return (x * weight).sum() / weight.sum().clamp_min(1e-8)


def clipped_policy_loss(
    log_prob: Tensor,
    old_log_prob: Tensor,
    advantage: Tensor,
    clip_range: float,
    weight: Tensor | None = None,
) -> PolicyLoss:
    """-E[min(ratio A, clip(ratio, 1 - c, 1 + c) A)], eq. 7 of the paper; the mean by `weight`."""
    log_ratio = log_prob - old_log_prob
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - clip_range, 1.0 + clip_range)
    loss = -weighted_mean(torch.min(ratio * advantage, clipped * advantage), weight)
    with torch.no_grad():
        approx_kl = weighted_mean(ratio - 1.0 - log_ratio, weight)
        clip_fraction = weighted_mean(((ratio - 1.0).abs() > clip_range).float(), weight)
    return PolicyLoss(loss, approx_kl, clip_fraction)


def value_loss(value: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    """Mean squared error of the critic, by `weight`."""
    return weighted_mean((value - target).square(), weight)


def advantage_sums(advantage: Tensor, weight: Tensor | None = None) -> Tensor:
    """Number, sum and sum of squares of the advantages (that have weight), float64 `[3]` on the
    CPU.

    Those of a minibatch's parts, or of several ranks, add up to those of the whole.
    """
    counted = (advantage if weight is None else advantage[weight > 0]).double()
    sums = [counted.new_tensor(float(counted.numel())), counted.sum(), counted.square().sum()]
    return torch.stack(sums).cpu()


def normalised(advantage: Tensor, sums: Tensor) -> Tensor:
    """Advantages shifted and scaled by what has mean 0 and standard deviation 1 over all of
    `sums`.
    """
    number, total, squares = sums.tolist()
    if number < 2:
        return advantage
    mean = total / number
    deviation = math.sqrt(max(0.0, squares - total * mean) / (number - 1))
    return (advantage - mean) / (deviation + 1e-8)
