"""Actor and critic heads, and the distribution over binary keys.

Shape suffixes: A keys, H memory width.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from league.agent.layers import Linear, orthogonal


class BernoulliKeys:
    """Independent Bernoulli keys with logits `[..., A]`: P(key a is down) = σ(logits_a).

    Everything is written with `softplus`, so that it stays finite for any finite logits.
    """

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Keys drawn at temperature 1: uint8 `[..., A]`."""
        logits = self.logits.detach()
        uniform = torch.rand(logits.shape, generator=generator, device=logits.device)
        return (uniform < torch.sigmoid(logits)).to(torch.uint8)

    def greedy(self) -> Tensor:
        """Each key's likelier state: uint8 `[..., A]`."""
        return (self.logits.detach() > 0).to(torch.uint8)

    def log_prob(self, actions: Tensor) -> Tensor:
        """`Σ_a x_a l_a - softplus(l_a)` of 0/1 keys `[..., A]`, summed over the keys: `[...]`."""
        return (actions.to(self.logits.dtype) * self.logits - functional.softplus(self.logits)).sum(-1)

    def entropy(self) -> Tensor:
        """`Σ_a softplus(l_a) - σ(l_a) l_a`, in nats: `[...]`."""
        return (functional.softplus(self.logits) - torch.sigmoid(self.logits) * self.logits).sum(-1)

    def kl(self, other: BernoulliKeys) -> Tensor:
        """KL(self ‖ other) `= Σ_a σ(l_a)(l_a - m_a) - softplus(l_a) + softplus(m_a)`, in nats: `[...]`."""
        mine, theirs = self.logits, other.logits
        cross = functional.softplus(theirs) - functional.softplus(mine)
        return (torch.sigmoid(mine) * (mine - theirs) + cross).sum(-1)


class Head(nn.Module):
    """A perceptron with ReLU between its layers; `gain` scales the last layer's start."""

    def __init__(self, inputs: int, hidden: tuple[int, ...], outputs: int, gain: float) -> None:
        super().__init__()
        sizes = [inputs, *hidden]
        self.hidden = nn.ModuleList(orthogonal(Linear(a, b)) for a, b in pairwise(sizes))
        self.last = orthogonal(Linear(sizes[-1], outputs), gain)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.last(x)
