"""Maps the LSTM's output to actions and values, with distributions over keys or legal choices.

Actions of both kinds are uint8 `[..., A]` of zeros and ones.

Shape suffixes: A keys or choices, H width of the LSTM.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from league.agent.layers import Linear, orthogonal
from league.games.base import CHOICE


class MaskedChoice:
    """Chooses among A choices with the softmax over the legal choices. Actions are one-hot.

    An illegal choice has a probability of exactly 0 and no gradient. If no choice is legal, all
    choices of the row are treated as legal.

    Args:
        logits: logits `[..., A]`.
        legal: bool `[..., A]`. None means that all choices are legal.
    """

    def __init__(self, logits: Tensor, legal: Tensor | None = None) -> None:
        if legal is not None:
            self.legal = legal | ~legal.any(-1, keepdim=True)
            logits = logits.masked_fill(~self.legal, -torch.inf)
        else:
            self.legal = torch.ones_like(logits, dtype=torch.bool)
        self.log_probs = torch.log_softmax(logits, -1)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Draws a choice at temperature 1. Returns it one-hot, uint8 `[..., A]`."""
        log_probs = self.log_probs.detach()
        uniform = torch.rand(log_probs.shape, generator=generator, device=log_probs.device)
        return choose(log_probs, uniform)

    def greedy(self) -> Tensor:
        """Returns the likeliest choice, or the first of equally likely choices, one-hot: uint8
        `[..., A]`.
        """
        return one_hot_maximum(self.log_probs.detach())

    def log_prob(self, actions: Tensor) -> Tensor:
        """Returns the log-probabilities `log P(a)`, `[...]`, of one-hot choices `[..., A]`. For
        illegal choices they are -inf.
        """
        return torch.where(actions > 0, self.log_probs, 0.0).sum(-1)

    def entropy(self) -> Tensor:
        """Returns the entropies `-Σ_a P(a) log P(a)` over the legal choices, `[...]` in nats."""
        finite = torch.where(self.legal, self.log_probs, 0.0)
        return -(self.log_probs.exp() * finite).sum(-1)


def choose(log_probs: Tensor, uniform: Tensor) -> Tensor:
    """Draws with the Gumbel-max trick (Gumbel 1954): the argmax of `log p - log(-log u)` by row.

    Args:
        log_probs: log-probabilities `[..., A]`.
        uniform: uniform random numbers of the same shape.

    Returns:
        One-hot uint8 `[..., A]`.
    """
    tiny = torch.finfo(uniform.dtype).tiny
    return one_hot_maximum(log_probs - torch.log(-torch.log(uniform.clamp_min(tiny))))


def one_hot_maximum(scores: Tensor) -> Tensor:
    """Returns an array of uint8 with 1 at the first maximum of each row and 0 elsewhere."""
    chosen = torch.zeros(scores.shape, dtype=torch.uint8, device=scores.device)
    return chosen.scatter_(-1, scores.argmax(-1, keepdim=True), 1)


class BernoulliKeys:
    """Presses independent Bernoulli keys with logits `[..., A]`: P(key a is down) = σ(logits_a).

    Everything is computed with `softplus`, so that it stays finite for any finite logits.
    """

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Draws keys at temperature 1: uint8 `[..., A]`."""
        logits = self.logits.detach()
        uniform = torch.rand(logits.shape, generator=generator, device=logits.device)
        return (uniform < torch.sigmoid(logits)).to(torch.uint8)

    def greedy(self) -> Tensor:
        """Returns each key's likelier state: uint8 `[..., A]`."""
        return (self.logits.detach() > 0).to(torch.uint8)

    def log_prob(self, actions: Tensor) -> Tensor:
        """Returns the log-probabilities of keys `[..., A]`: `Σ_a x_a l_a - softplus(l_a)`, `[...]`.

        Here x_a is 1 if key a is down, else 0, and l_a is the key's logit.
        """
        return (actions.to(self.logits.dtype) * self.logits - functional.softplus(self.logits)).sum(
            -1
        )

    def entropy(self) -> Tensor:
        """Returns the entropies `Σ_a softplus(l_a) - σ(l_a) l_a`, `[...]` in nats."""
        return (functional.softplus(self.logits) - torch.sigmoid(self.logits) * self.logits).sum(-1)


def action_distribution(
    kind: str, logits: Tensor, legal: Tensor | None = None
) -> MaskedChoice | BernoulliKeys:
    """Makes the distribution over an agent's actions.

    Args:
        kind: kind of actions (`AgentConfig.action_kind`).
        logits: logits `[..., A]`.
        legal: legal choices, or None in games of keys.
    """
    return MaskedChoice(logits, legal) if kind == CHOICE else BernoulliKeys(logits)


class Head(nn.Module):
    """Stacks linear layers with `activation` between them.

    `gain` scales the initial weights of the last layer.
    """

    def __init__(
        self,
        inputs: int,
        hidden: tuple[int, ...],
        outputs: int,
        gain: float,
        activation: Callable[[Tensor], Tensor] = torch.relu,
    ) -> None:
        super().__init__()
        sizes = [inputs, *hidden]
        self.hidden = nn.ModuleList(orthogonal(Linear(a, b)) for a, b in pairwise(sizes))
        self.last = orthogonal(Linear(sizes[-1], outputs), gain)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.hidden:
            x = self.activation(layer(x))
        return self.last(x)
