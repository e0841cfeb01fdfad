"""Pooling the encoder's last outputs into the strategy latent and into what matters now.

Shape suffixes: T steps, B matches, D width, P pooled outputs, h heads.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from league.agent.config import AgentConfig
from league.agent.layers import Linear, attend, glorot, mix
from league.agent.local import feature_major, last_columns, window_mix, window_scores


class Pooled(NamedTuple):
    """Two readings of the same outputs, and the attention weights that made them `[..., P,
    heads]`.
    """

    latent: Tensor
    context: Tensor
    latent_weights: Tensor
    context_weights: Tensor


class Pooling(nn.Module):
    """Attention over the last P outputs, twice: with a learned query and with one's own
    observation.

    A learned query is the same for every input, so its product with a key is one learned linear
    score a head, and the keys of the first reading need not be kept: an output is *described* once
    by `[scores h | values D | conditioned keys D | conditioned values D]`, which is what a step
    caches.
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
        """Reads `described [..., P, described_size]` for `own [..., own_size]`; `empty [..., P,
        1]`.
        """
        sizes = [self.heads, self.width, self.width, self.width]
        scores, values, keys, context_values = described.split(sizes, -1)
        latent_weights = torch.softmax(scores + (self.latent_bias.unsqueeze(-3) + empty), -2)
        latent = self.latent_out(mix(latent_weights, values))
        bias = self.context_bias.unsqueeze(-3) + empty
        context, context_weights = attend(self.query(own), keys, context_values, bias)
        return Pooled(latent, self.context_out(context), latent_weights, context_weights)

    def unroll(self, own_TBE: Tensor, output_RBD: Tensor, empty_TBP1: Tensor) -> Pooled:
        """Reads for T steps at once the outputs of R rows, of which the last T are the steps'
        own.
        """
        steps, batch = own_TBE.shape[:2]
        slots, columns = empty_TBP1.shape[-2], steps * batch
        described_EK = feature_major(
            output_RBD.flatten(0, 1), self.describe.weight, self.describe.bias
        )
        described_EK = last_columns(described_EK, columns + (slots - 1) * batch)
        scores_hK, *parts = described_EK.split([self.heads, self.width, self.width, self.width])
        values, keys, context_values = (part.unflatten(0, (self.heads, -1)) for part in parts)
        latent_scores = torch.stack(
            [scores_hK[:, s * batch : s * batch + columns] for s in range(slots)]
        )
        q_DN = feature_major(own_TBE.flatten(0, 1), self.query.weight, self.query.bias)
        q = q_DN.unflatten(0, (self.heads, -1))
        context_scores = window_scores(q * q.shape[1] ** -0.5, keys, slots, batch)
        readings = []
        for scores, bias, v in (
            (latent_scores, self.latent_bias, values),
            (context_scores, self.context_bias, context_values),
        ):
            shift_PhN = bias.unsqueeze(-1) + empty_TBP1.flatten(0, 1).movedim(0, -1)
            weights_PhN = torch.softmax(scores + shift_PhN, 0)
            mixed_DN = window_mix(weights_PhN, v, batch).flatten(0, 1)
            weights = weights_PhN.movedim(-1, 0).unflatten(0, (steps, batch))
            readings.append((mixed_DN.t().unflatten(0, (steps, batch)), weights))
        (latent, latent_weights), (context, context_weights) = readings
        return Pooled(
            self.latent_out(latent), self.context_out(context), latent_weights, context_weights
        )
