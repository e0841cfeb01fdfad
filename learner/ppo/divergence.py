"""The exact divergence of a policy from fixed ones, and the closest of them in each state.

Shape suffixes: M fixed policies, T steps, B matches, A keys or choices; M is the first axis, what
stands between it and A is any number of axes.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from league.agent.heads import MaskedChoice
from league.games.base import CHOICE


class Divergence(NamedTuple):
    """`loss` has a gradient; the others are diagnostics, one number for each fixed policy."""

    loss: Tensor
    kl_M: Tensor
    closest_M: Tensor
    """Share of the states in which each was the closest."""
    here: Tensor
    """The weight of the states that the diagnostics are means over."""


def kl_to_fixed(kind: str, logits: Tensor, fixed: Tensor, legal: Tensor | None = None) -> Tensor:
    """KL(π ‖ π_fixed) in nats, exact, of an agent whose actions are of `kind`: `[M, ...]` without
    A.

    Keys are independent, so theirs is the sum over the keys; choices are compared over what is
    `legal`. Written so that the gradient is the analytic one, `Σ_a ∂π_a/∂l (log π_a - log
    π_fixed,a)`, and nothing that only cancels on paper: where both are alike, value and gradient
    are exactly 0.
    """
    if kind == CHOICE:
        mine, theirs = MaskedChoice(logits, legal), MaskedChoice(fixed, legal)
        ratio = torch.where(mine.legal, mine.log_probs - theirs.log_probs, 0.0)
        return (mine.log_probs.exp() * ratio.detach()).sum(-1)
    apart = (logits - fixed).detach()
    rest = (functional.softplus(fixed) - functional.softplus(logits)).detach()
    return (torch.sigmoid(logits) * apart + rest).sum(-1)


def closest_divergence(kl_MTB: Tensor, weight_TB: Tensor, states: float) -> Divergence:
    """The mean over states of the divergence from each state's closest policy, `min_m KL_m`.

    `weight_TB` is 0 in states that don't count, and the sum over the rest is divided by `states`:
    more of them than are here when these stand for others too. The diagnostics are means over what
    is here.
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
    """Mean KL(π_i ‖ π_j) over a batch of states for all pairs: `[M, M]`, 0 on the diagonal."""
    here = weight_TB.sum().clamp_min(1e-8)
    rows = [kl_to_fixed(kind, logits_TBA, logits_MTBA, legal_TBA) for logits_TBA in logits_MTBA]
    return torch.stack([(kl_MTB * weight_TB).sum((1, 2)) / here for kl_MTB in rows])


def log_prob_ratio(
    kind: str, logits_TBA: Tensor, fixed_MTBA: Tensor, actions_TBA: Tensor, legal_TBA: Tensor | None
) -> Tensor:
    """`log π(a) - log π_fixed(a)` of the actions made, to each state's closest fixed policy:
    `[T, B]`.
    """
    kl_MTB = kl_to_fixed(kind, logits_TBA, fixed_MTBA, legal_TBA)
    nearest_1TB1 = kl_MTB.argmin(0)[None, :, :, None].expand(1, *fixed_MTBA.shape[1:])
    nearest_TBA = fixed_MTBA.gather(0, nearest_1TB1)[0]
    if kind == CHOICE:
        mine, theirs = MaskedChoice(logits_TBA, legal_TBA), MaskedChoice(nearest_TBA, legal_TBA)
        return torch.where(actions_TBA > 0, mine.log_probs - theirs.log_probs, 0.0).sum(-1)
    pressed = actions_TBA.to(logits_TBA.dtype)
    rest = functional.softplus(nearest_TBA) - functional.softplus(logits_TBA)
    return (pressed * (logits_TBA - nearest_TBA) + rest).sum(-1)
