"""Pooling the encoder's last outputs into the strategy latent and into what matters now.

Shape suffixes: T steps, B matches, D width, P pooled outputs, h heads.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from league.agent.config import AgentConfig
from league.agent.layers import Linear, attend, glorot, mix


class Pooled(NamedTuple):
    """Two readings of the same outputs, and the attention weights that made them `[..., P, heads]`."""

    latent: Tensor
    context: Tensor
    latent_weights: Tensor
    context_weights: Tensor


class Pooling(nn.Module):
    """Attention over the last P outputs, twice: with a learned query and with one's own observation.

    A learned query is the same for every input, so its product with a key is one learned linear score
    a head, and the keys of the first reading need not be kept: an output is *described* once by
    `[scores h | values D | conditioned keys D | conditioned values D]`, which is what a step caches.
    """

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.heads, self.width = config.attention_heads, config.width
        self.describe = glorot(Linear(self.width, self.heads + 3 * self.width))
        self.query = glorot(Linear(config.own_size, self.width))
        self.latent_bias = nn.Parameter(torch.zeros(config.pool, self.heads))
        self.context_bias = nn.Parameter(torch.zeros(config.pool, self.heads))
        self.latent_out = glorot(Linear(self.width, self.width))
        self.context_out = glorot(Linear(self.width, self.width))

    @property
    def described_size(self) -> int:
        """Width of one described output."""
        return self.heads + 3 * self.width

    def forward(self, own: Tensor, described: Tensor, empty: Tensor) -> Pooled:
        """Reads `described [..., P, described_size]` for `own [..., own_size]`; `empty [..., P, 1]`."""
        sizes = [self.heads, self.width, self.width, self.width]
        scores, values, keys, context_values = described.split(sizes, -1)
        latent_weights = torch.softmax(scores + (self.latent_bias.unsqueeze(-3) + empty), -2)
        latent = self.latent_out(mix(latent_weights, values))
        bias = self.context_bias.unsqueeze(-3) + empty
        context, context_weights = attend(self.query(own), keys, context_values, bias)
        return Pooled(latent, self.context_out(context), latent_weights, context_weights)
