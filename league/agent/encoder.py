"""Encodes the opponent's past into two vectors: a strategy latent and a conditioned context.

Both vectors are read from the past by attention. For the strategy latent the query is a learned
constant. For the conditioned context the query is computed from the player's own observation.

At each step, the part of the observation that describes the opponent becomes an entry. The
streaming encoder uses causal local attention, so an entry is encoded once and then reused. Each
layer attends to the `span` newest entries with a learned relative bias (no absolute positions). The
pooling reads the last `pool` outputs. As a result, an entry's influence ends after exactly `1 +
layers (span - 1) + (pool - 1) = sequence_length` entries.

Shape suffixes: X rows (history and steps), T steps, B matches, E entry width, D width, L layers, S
slots of a ring buffer, P pooled outputs, h heads, N columns (rows·B).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from league.agent.config import AgentConfig
from league.agent.layers import (
    LayerNorm,
    Linear,
    attend,
    embedding,
    empty_slots,
    feature_major,
    glorot,
    last_columns,
    mix,
    window_mix,
    window_scores,
)

Rings = tuple[Tensor, Tensor]
"""`layers_BLSE` and `pool_BPE` of an `AgentState`: the earlier entries that a step needs."""


class Pooled(NamedTuple):
    """Holds the two vectors that the pooling reads from the past, with their attention weights
    `[..., P, heads]`.
    """

    latent: Tensor
    context: Tensor
    latent_weights: Tensor
    context_weights: Tensor


class Pooling(nn.Module):
    """Attends to the last P outputs twice: with a learned query, and with a query from the player's
    own observation.

    The learned query is the same for every input, so no keys are computed for it: the product of
    query and key is just a learned linear score for each head. The layer `describe` maps each
    output to a vector `[scores h | values D | conditioned keys D | conditioned values D]`. `step`
    caches these vectors, so that each output is described only once.
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
        """Width of a described output."""
        return self.heads + 3 * self.width

    def forward(self, own: Tensor, described: Tensor, empty: Tensor) -> Pooled:
        """Reads the last P outputs.

        Args:
            own: the player's own observation.
            described: described outputs `[..., P, described_size]`.
            empty: -inf at empty slots `[..., P, 1]`.
        """
        sizes = [self.heads, self.width, self.width, self.width]
        scores, values, keys, context_values = described.split(sizes, -1)
        latent_weights = torch.softmax(scores + (self.latent_bias.unsqueeze(-3) + empty), -2)
        latent = self.latent_out(mix(latent_weights, values))
        bias = self.context_bias.unsqueeze(-3) + empty
        context, context_weights = attend(self.query(own), keys, context_values, bias)
        return Pooled(latent, self.context_out(context), latent_weights, context_weights)

    def unroll(self, own_TBE: Tensor, output_RBD: Tensor, empty_TBP1: Tensor) -> Pooled:
        """Does the work of `forward` for T steps at once. The steps are the last T of R rows.

        Args:
            own_TBE: own observations.
            output_RBD: outputs of the encoder.
            empty_TBP1: -inf at empty slots.
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


class LocalLayer(nn.Module):
    """Computes a pre-norm transformer layer that attends to the `span` newest entries."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        # Residual branches start small, so that their sum keeps the scale of the residual stream.
        width, branch_gain = config.width, 1.0 / math.sqrt(2.0 * config.layers)
        self.width, self.heads, self.span = width, config.attention_heads, config.span
        self.attention_norm = LayerNorm(width)
        self.qkv = glorot(Linear(width, 3 * width))
        self.bias = nn.Parameter(torch.zeros(config.span, config.attention_heads))
        self.out = glorot(Linear(width, width), branch_gain)
        self.ff_norm = LayerNorm(width)
        self.ff_in = glorot(Linear(width, config.feed_forward))
        self.ff_out = glorot(Linear(config.feed_forward, width), branch_gain)

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        """Adds the residual branches of attention and feed-forward layer to the input `x`."""
        x = x + self.out(attended)
        return x + self.ff_out(functional.gelu(self.ff_in(self.ff_norm(x))))

    def step(self, x: Tensor, ring: Tensor, empty: Tensor) -> tuple[Tensor, Tensor]:
        """Takes in an entry, and returns the output and the next ring (the buffer of earlier
        entries).

        Args:
            x: the entry `[..., D]`.
            ring: keys and values of earlier entries `[..., S, 2D]`.
            empty: -inf at empty slots.
        """
        q, kv = self.qkv(self.attention_norm(x)).split([self.width, 2 * self.width], -1)
        slots = torch.cat([ring, kv.unsqueeze(-2)], -2)
        keys, values = slots.split(self.width, -1)
        attended, _ = attend(q, keys, values, self.bias.unsqueeze(-3) + empty)
        return self.finish(x, attended), slots[..., 1:, :]

    def unroll(self, x_XBD: Tensor, rows: int, empty_SN: Tensor) -> Tensor:
        """Computes the outputs of the last `rows` rows. Earlier rows only serve as keys and values.

        Args:
            x_XBD: inputs.
            rows: number of outputs.
            empty_SN: -inf at empty slots.
        """
        batch, width, span = x_XBD.shape[1], self.width, self.span
        normal_KD = self.attention_norm(x_XBD).flatten(0, 1)
        weight, bias = self.qkv.weight, self.qkv.bias
        q_DN = feature_major(normal_KD[-rows * batch :], weight[:width], bias[:width])
        kv_EK = feature_major(normal_KD, weight[width:], bias[width:])
        kv_EK = last_columns(kv_EK, (rows + span - 1) * batch)
        q, k, v = (x.unflatten(0, (self.heads, -1)) for x in (q_DN, kv_EK[:width], kv_EK[width:]))
        scores_ShN = window_scores(q * q.shape[1] ** -0.5, k, span, batch)
        shift = self.bias.unsqueeze(-1) + empty_SN[:, None, -rows * batch :]
        attended = window_mix(torch.softmax(scores_ShN + shift, 0), v, batch)
        attended_RBD = attended.flatten(0, 1).t().unflatten(0, (rows, batch))
        return self.finish(x_XBD[-rows:], attended_RBD)


class StreamingEncoder(nn.Module):
    """Turns the opponent's entries into the strategy latent and the conditioned context."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = embedding(config.entry_size, config.width)
        self.layers = nn.ModuleList(LocalLayer(config) for _ in range(config.layers))
        self.norm = LayerNorm(config.width)
        self.pooling = Pooling(config)

    def initial(self, batch: int, device: torch.device) -> Rings:
        """Makes empty rings, the buffers of earlier entries."""
        config = self.config
        layers = torch.zeros(batch, config.layers, config.span - 1, 2 * config.width, device=device)
        pool = torch.zeros(batch, config.pool - 1, self.pooling.described_size, device=device)
        return layers, pool

    def step(self, entry: Tensor, own: Tensor, rings: Rings, age: Tensor) -> tuple[Pooled, Rings]:
        """Takes in an entry.

        Args:
            entry: the opponent's entry `[..., E]`.
            own: the player's own observation.
            rings: the rings that the previous step returned.
            age: number of entries of the episode, including this entry, `[...]`.
        """
        x, moved, (layers_BLSE, pool_BPE) = self.embed(entry), [], rings
        empty = empty_slots(age, self.config.span)
        for index, layer in enumerate(cast(Iterable[LocalLayer], self.layers)):
            x, ring = layer.step(x, layers_BLSE[..., index, :, :], empty)
            moved.append(ring)
        described = self.pooling.describe(self.norm(x)).unsqueeze(-2)
        pool = torch.cat([pool_BPE, described], -2)
        pooled = self.pooling(own, pool, empty_slots(age, self.config.pool))
        return pooled, (torch.stack(moved, -3), pool[..., 1:, :])

    def unroll(self, entry_XBE: Tensor, own_TBE: Tensor, age_XB: Tensor) -> Pooled:
        """Encodes all steps at once. A layer computes only the rows that later layers read.

        Args:
            entry_XBE: the opponent's entries.
            own_TBE: own observations of the steps.
            age_XB: number of entries of the episode up to each row.
        """
        steps, config = own_TBE.shape[0], self.config
        x, empty_SN = (
            self.embed(entry_XBE),
            empty_slots(age_XB.flatten(), config.span).squeeze(-1).t(),
        )
        for index, layer in enumerate(cast(Iterable[LocalLayer], self.layers)):
            above = config.layers - 1 - index
            rows = min(x.shape[0], steps + config.pool - 1 + above * (config.span - 1))
            x = layer.unroll(x, rows, empty_SN)
        return self.pooling.unroll(own_TBE, self.norm(x), empty_slots(age_XB[-steps:], config.pool))


class NoEncoder(nn.Module):
    """Takes the encoder's place in agents without an encoder. Its outputs have width 0."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.heads = config.attention_heads

    def initial(self, batch: int, device: torch.device) -> Rings:
        """Makes rings without slots."""
        return torch.zeros(batch, 0, 0, 0, device=device), torch.zeros(batch, 0, 0, device=device)

    def step(self, entry: Tensor, own: Tensor, rings: Rings, age: Tensor) -> tuple[Pooled, Rings]:
        """Returns vectors of width 0 and the same rings."""
        return self._nothing(entry), rings

    def unroll(self, entry_XBE: Tensor, own_TBE: Tensor, age_XB: Tensor) -> Pooled:
        """Returns vectors of width 0 for all steps."""
        return self._nothing(own_TBE)

    def _nothing(self, like: Tensor) -> Pooled:
        reading = like[..., :0]
        weights = like.new_zeros(*like.shape[:-1], 0, self.heads)
        return Pooled(reading, reading, weights, weights)


ENCODERS: Mapping[str, type[StreamingEncoder | NoEncoder]] = {
    "streaming": StreamingEncoder,
    "none": NoEncoder,
}
"""Encoders by their names in `AgentConfig.encoder`."""
