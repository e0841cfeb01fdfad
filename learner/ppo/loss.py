"""Computes the loss of PPO (Schulman et al. 2017, arXiv 1707.06347) and of the forecast head, which
predicts the opponent's action.

A minibatch can be divided among the learner's processes (ranks), and further into parts whose
gradients are computed one after the other.

Shape suffixes: T steps, B and N matches, A actions, D latent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from league.agent.config import AgentConfig
from league.agent.heads import Head, action_distribution
from league.games.base import KEYS
from learner.ppo.divergence import Divergence
from learner.rollout.buffer import Minibatch, SequenceBuffer


class PolicyLoss(NamedTuple):
    """Holds the policy's loss, and two numbers for the log.

    `approx_kl` is the mean of (ratio - 1) - log ratio, an unbiased estimate of KL(old, new) that is
    never negative.
    """

    loss: Tensor
    approx_kl: Tensor
    clip_fraction: Tensor


def weighted_mean(x: Tensor, weight: Tensor | None) -> Tensor:
    """Returns the mean of `x`, weighted by `weight`.

    Args:
        x: numbers of any shape.
        weight: weights of the same shape. None: all weights are equal.

    Returns:
        The mean, or 0 if all weights are 0.
    """
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
    """Returns -E[min(ratio A, clip(ratio, 1 - c, 1 + c) A)], eq. 7 of the paper.

    Args:
        log_prob: log-probabilities of the actions under the current policy, in nats.
        old_log_prob: log-probabilities of the actions under the policy that acted.
        advantage: advantages.
        clip_range: c.
        weight: weight of each step. None: all weights are equal.
    """
    log_ratio = log_prob - old_log_prob
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - clip_range, 1.0 + clip_range)
    loss = -weighted_mean(torch.min(ratio * advantage, clipped * advantage), weight)
    with torch.no_grad():
        approx_kl = weighted_mean(ratio - 1.0 - log_ratio, weight)
        clip_fraction = weighted_mean(((ratio - 1.0).abs() > clip_range).float(), weight)
    return PolicyLoss(loss, approx_kl, clip_fraction)


def value_loss(value: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    """Returns the weighted mean squared error between the critic's values and their targets."""
    return weighted_mean((value - target).square(), weight)


def advantage_sums(advantage: Tensor, weight: Tensor | None = None) -> Tensor:
    """Returns the number, the sum and the sum of squares of the advantages with a positive weight.

    The results of a minibatch's parts, or of several ranks, add up to the result of the whole.

    Args:
        advantage: advantages of any shape.
        weight: weights of the same shape. None: all weights are positive.

    Returns:
        Float64 `[3]` on the CPU.
    """
    counted = (advantage if weight is None else advantage[weight > 0]).double()
    sums = [counted.new_tensor(float(counted.numel())), counted.sum(), counted.square().sum()]
    return torch.stack(sums).cpu()


def normalised(advantage: Tensor, sums: Tensor) -> Tensor:
    """Scales advantages to mean 0 and standard deviation 1.

    Args:
        advantage: advantages of any shape.
        sums: `advantage_sums` of all advantages that are scaled together.
    """
    number, total, squares = sums.tolist()
    if number < 2:
        return advantage
    mean = total / number
    deviation = math.sqrt(max(0.0, squares - total * mean) / (number - 1))
    return (advantage - mean) / (deviation + 1e-8)


# -- the forecast head ---------------------------------------------------------------------------
# The latent of a step depends only on observations from before the step. The target is the
# opponent's action in the step, which none of these observations shows.


def forecast_head(config: AgentConfig) -> Head:
    """Makes the head that maps the latent `[..., D]` to a logit for each action of the opponent."""
    head = Head(config.width, (config.width,), config.action_size, gain=0.01)
    nn.init.constant_(head.last.bias, config.key_bias if config.action_kind == KEYS else 0.0)
    return head


def forecast_loss(kind: str, logits_TBA: Tensor, batch: Minibatch) -> Tensor:
    """Returns -E[log P(the opponent's action)] in nats, over the steps in which this action is
    known.

    Keys are independent Bernoulli variables. Choices have a categorical distribution over the legal
    choices.

    Args:
        kind: KEYS or CHOICE (`league.games.base`).
        logits_TBA: the forecast.
        batch: the minibatch with the opponents' actions.
    """
    assert batch.across_TBA is not None
    predicted = action_distribution(kind, logits_TBA, batch.across_legal_TBA)
    return -weighted_mean(predicted.log_prob(batch.across_TBA), batch.known_TB)


@torch.no_grad()
def marginal_loss(kind: str, buffer: SequenceBuffer, add_up: Callable[[Tensor], Tensor]) -> float:
    """Returns the `forecast_loss` of a predictor that knows only how frequent each action is, in
    nats. Returns NaN if no action is known.

    Counts start at one half (Jeffreys' prior). The probability of a choice is its frequency
    divided by the sum of the frequencies of all legal choices.

    Args:
        kind: KEYS or CHOICE (`league.games.base`).
        buffer: the rollout with the opponents' actions.
        add_up: sums numbers over all ranks.
    """
    known_TN = buffer.known_TN
    assert buffer.across_TNA is not None
    assert known_TN is not None
    known_TNA = buffer.across_TNA * known_TN.unsqueeze(-1)
    sums = add_up(torch.cat([known_TNA.sum((0, 1)), known_TN.sum().view(1)]).double().cpu())
    counts_A, total = sums[:-1], float(sums[-1])
    if not total:
        return math.nan
    rate_A = (counts_A + 0.5) / (total + 1.0)
    log_prob = float((counts_A * rate_A.log()).sum())
    if kind == KEYS:
        not_pressed = float(((total - counts_A) * torch.log1p(-rate_A)).sum())
        return -(log_prob + not_pressed) / total
    assert buffer.across_legal_TNA is not None
    share_TN = (buffer.across_legal_TNA * rate_A.to(known_TN)).sum(-1).clamp_min(1e-12)
    normaliser = float(add_up((share_TN.log() * known_TN).sum().double().cpu().view(1)))
    return (normaliser - log_prob) / total


# -- all terms together --------------------------------------------------------------------------


class LossTerms(NamedTuple):
    """Holds the loss terms of a minibatch, not yet weighted.

    `kl` is the divergence from the references (frozen copies of the learner, see `References`). It
    is None if no reference plays in the minibatch's matches, or if the divergence is part of the
    rewards. `forecast` is None without a forecast head.
    """

    policy: PolicyLoss
    value: Tensor
    entropy: Tensor
    kl: Divergence | None
    forecast: Tensor | None = None

    def named(self) -> dict[str, Tensor]:
        """Returns the terms by the names that error messages use."""
        named = {"policy": self.policy.loss, "value": self.value, "entropy": self.entropy}
        if self.kl is not None:
            named["KL"] = self.kl.loss
        if self.forecast is not None:
            named["forecast"] = self.forecast
        return named


class WeightedMeans:
    """Computes means over all parts of a minibatch and over all ranks. Each part is weighted by its
    share of the minibatch.

    `names` are fixed at the start. Even if a rank has no value for some of the names, it must send
    as many numbers as the other ranks. A name that has no value on any rank gets no mean.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._sums = {name: [0.0, 0.0] for name in names}

    def add(self, name: str, value: float | Tensor, share: float) -> None:
        """Adds the mean of `name` over a part, weighted by the part's share of the minibatch."""
        number = float(value.detach()) if isinstance(value, Tensor) else value
        self._sums[name][0] += number * share
        self._sums[name][1] += share

    def sums(self) -> Tensor:
        """Returns for each name the sum of weighted values and the sum of weights, float64 `[names,
        2]`. The ranks add up these sums.
        """
        return torch.tensor(list(self._sums.values()), dtype=torch.float64).reshape(-1, 2)

    def means(self, sums: Tensor) -> dict[str, float]:
        """Computes the means from `sums` of this rank, or of all ranks."""
        pairs = zip(self._sums, sums.tolist(), strict=True)
        return {name: total / weight for name, (total, weight) in pairs if weight}
