"""The auxiliary head: from the strategy latent it foretells what the opponent does next.

A step's latent is made of what was seen until the step began, and the target is what the opponent
does in the step itself: at the same time as the learner, so nothing that was seen shows it yet. It
belongs to the same match, also where the match ends with it.

Shape suffixes: T steps, B and N matches, A actions, D latent.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from league.agent.config import AgentConfig
from league.agent.heads import Head, action_distribution
from league.games.base import KEYS
from learner.ppo.loss import weighted_mean
from learner.rollout.buffer import Minibatch, SequenceBuffer


def forecast_head(config: AgentConfig) -> Head:
    """Latent `[..., D]` → a logit for each of the opponent's keys, or choices; it begins where
    play does.
    """
    head = Head(config.width, (config.width,), config.action_size, gain=0.01)
    nn.init.constant_(head.last.bias, config.key_bias if config.action_kind == KEYS else 0.0)
    return head


def forecast_loss(kind: str, logits_TBA: Tensor, batch: Minibatch) -> Tensor:
    """-E[log P(what the opponent does)] in nats, over the steps where that is known.

    Keys: `-Σ_a x_a log p_a + (1 - x_a) log(1 - p_a)`, Bernoulli each. Choices: the cross-entropy
    over what is legal for the opponent.
    """
    assert batch.across_TBA is not None
    foreseen = action_distribution(kind, logits_TBA, batch.across_legal_TBA)
    return -weighted_mean(foreseen.log_prob(batch.across_TBA), batch.known_TB)


@torch.no_grad()
def marginal_loss(kind: str, buffer: SequenceBuffer, add_up: Callable[[Tensor], Tensor]) -> float:
    """The same of who looks at nothing and knows how often each key is down, or choice made, in
    this rollout.

    Rates are counted over all ranks (`add_up`) from one half each (Jeffreys' prior); a choice has
    its share of those that are legal. NaN where nothing is known.
    """
    assert buffer.across_TNA is not None
    known_TN = buffer.known_TN()
    told_TNA = buffer.across_TNA * known_TN.unsqueeze(-1)
    sums = add_up(torch.cat([told_TNA.sum((0, 1)), known_TN.sum().view(1)]).double().cpu())
    counts_A, total = sums[:-1], float(sums[-1])
    if not total:
        return math.nan
    rate_A = (counts_A + 0.5) / (total + 1.0)
    told = float((counts_A * rate_A.log()).sum())
    if kind == KEYS:
        return -(told + float(((total - counts_A) * torch.log1p(-rate_A)).sum())) / total
    assert buffer.across_legal_TNA is not None
    share_TN = (buffer.across_legal_TNA * rate_A.to(known_TN)).sum(-1).clamp_min(1e-12)
    return (float(add_up((share_TN.log() * known_TN).sum().double().cpu().view(1))) - told) / total
