"""Computes a policy's exact KL divergence from fixed policies, or from the closest of them in each
state.

Shape suffixes: M fixed policies, T steps, B matches, A keys or choices. M is the first axis. Any
number of axes may lie between M and A.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from league.agent.heads import MaskedChoice
from league.games.base import CHOICE


class Divergence(NamedTuple):
    """Holds a divergence and numbers for the log.

    Attributes:
        loss: the divergence, with a gradient.
        kl_M: the mean KL from each fixed policy.
        closest_M: the share of states in which each fixed policy was the closest.
        here: the total weight of the states over which `kl_M` and `closest_M` are averaged.
    """

    loss: Tensor
    kl_M: Tensor
    closest_M: Tensor
    here: Tensor


def kl_to_fixed(kind: str, logits: Tensor, fixed: Tensor, legal: Tensor | None = None) -> Tensor:
    """Computes the exact KL(π ‖ π_fixed) in nats.

    Keys are independent, so their divergences add up. Choices are compared over the legal choices.
    The gradient with respect to the logits l is `Σ_a ∂π_a/∂l (log π_a - log π_fixed,a)`. The term
    `Σ_a ∂π_a/∂l` is left out, because it is 0. So both value and gradient are exactly 0 if the
    policies are equal.

    Args:
        kind: KEYS or CHOICE (`league.games.base`).
        logits: the policy's logits `[..., A]`.
        fixed: the fixed policies' logits `[M, ..., A]`.
        legal: legal choices `[..., A]`, None if the actions are keys.
    """
    if kind == CHOICE:
        mine, theirs = MaskedChoice(logits, legal), MaskedChoice(fixed, legal)
        ratio = torch.where(mine.legal, mine.log_probs - theirs.log_probs, 0.0)
        return (mine.log_probs.exp() * ratio.detach()).sum(-1)
    apart = (logits - fixed).detach()
    remainder = (functional.softplus(fixed) - functional.softplus(logits)).detach()
    return (torch.sigmoid(logits) * apart + remainder).sum(-1)


def closest_divergence(kl_MTB: Tensor, weight_TB: Tensor, states: float) -> Divergence:
    """Averages the divergence from the closest policy, `min_m KL_m`, over the states.

    Args:
        kl_MTB: KL from each fixed policy in each state.
        weight_TB: 0 in states that don't count.
        states: the divisor of the weighted sum: the total of `weight_TB`, or the expected value of
            this total if the matches are a random sample.
    """
    kl_TB, closest_TB = kl_MTB.min(0)
    here = weight_TB.sum().clamp_min(1e-8)
    chosen_MTB = torch.arange(len(kl_MTB), device=kl_MTB.device)[:, None, None] == closest_TB
    return Divergence(
        (kl_TB * weight_TB).sum() / max(states, 1e-8),
        (kl_MTB.detach() * weight_TB).sum((1, 2)) / here,
        (chosen_MTB * weight_TB).sum((1, 2)) / here,
        here,
    )


def pairwise_kl(
    kind: str, logits_MTBA: Tensor, legal_TBA: Tensor | None, weight_TB: Tensor
) -> Tensor:
    """Computes the mean KL(π_i ‖ π_j) over a batch of states for all pairs of policies.

    Args:
        kind: KEYS or CHOICE (`league.games.base`).
        logits_MTBA: the policies' logits.
        legal_TBA: legal choices, None if the actions are keys.
        weight_TB: 0 in states that don't count.

    Returns:
        The divergences `[M, M]`, 0 on the diagonal.
    """
    here = weight_TB.sum().clamp_min(1e-8)
    rows = [kl_to_fixed(kind, logits_TBA, logits_MTBA, legal_TBA) for logits_TBA in logits_MTBA]
    return torch.stack([(kl_MTB * weight_TB).sum((1, 2)) / here for kl_MTB in rows])


def log_prob_ratio(
    kind: str, logits_TBA: Tensor, fixed_MTBA: Tensor, actions_TBA: Tensor, legal_TBA: Tensor | None
) -> Tensor:
    """Computes `log π(a) - log π_fixed(a)` of the actions, where π_fixed is the fixed policy that
    is closest to π in the state.

    Args:
        kind: KEYS or CHOICE (`league.games.base`).
        logits_TBA: the policy's logits.
        fixed_MTBA: the fixed policies' logits.
        actions_TBA: the actions.
        legal_TBA: legal choices, None if the actions are keys.

    Returns:
        The ratios `[T, B]`.
    """
    kl_MTB = kl_to_fixed(kind, logits_TBA, fixed_MTBA, legal_TBA)
    nearest_1TB1 = kl_MTB.argmin(0)[None, :, :, None].expand(1, *fixed_MTBA.shape[1:])
    nearest_TBA = fixed_MTBA.gather(0, nearest_1TB1)[0]
    if kind == CHOICE:
        mine, theirs = MaskedChoice(logits_TBA, legal_TBA), MaskedChoice(nearest_TBA, legal_TBA)
        return torch.where(actions_TBA > 0, mine.log_probs - theirs.log_probs, 0.0).sum(-1)
    pressed = actions_TBA.to(logits_TBA.dtype)
    remainder = functional.softplus(nearest_TBA) - functional.softplus(logits_TBA)
    return (pressed * (logits_TBA - nearest_TBA) + remainder).sum(-1)
