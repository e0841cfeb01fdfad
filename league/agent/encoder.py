"""Encodes the opponent's past into a strategy latent and a conditioned context.

Both results are read from the past by attention. The query is learned for the strategy latent, and
it is computed from the player's own observation for the conditioned context.

The streaming encoder uses causal local attention, so an entry is encoded once and then reused. Each
layer attends to the `span` newest entries through a learned relative bias (no absolute positions),
and the pooling reads the last `pool` outputs. So an entry's influence ends exactly after `1 +
layers (span - 1) + (pool - 1) = sequence_length` entries.

The windowed encoder is a reference for comparison. It is bidirectional and encodes the whole window
again at every step. With the same depth, width and pooling it takes `sequence_length` times the
work.

Shape suffixes: X rows (history and steps), T steps, B matches, E entry width, D width, L layers, S
slots of a ring, P pooled outputs, h heads, N columns (rows·B), W entries of a window.
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
    windows,
)

Rings = tuple[Tensor, Tensor]
"""The earlier entries that a step needs (`layers_BLSE` and `pool_BPE` of an `AgentState`)."""


class Pooled(NamedTuple):
    """Holds two readings of the same outputs, with their attention weights `[..., P, heads]`."""

    latent: Tensor
    context: Tensor
    latent_weights: Tensor
    context_weights: Tensor


class Pooling(nn.Module):
    """Attends to the last P outputs twice: with a learned query, and with a query from the player's
    own observation.

    The learned query is the same for every input. So its product with a key is a learned linear
    score for each head, and this first reading needs no keys. An output is *described* once
    by `[scores h | values D | conditioned keys D | conditioned values D]`, and a step caches that
    description.
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
        """Reads the outputs of R rows for T steps at once. The last T rows belong to the steps.

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


class Block(nn.Module):
    """Holds a pre-norm transformer layer without its attention, which the subclasses add."""

    def __init__(self, config: AgentConfig, offsets: int) -> None:
        super().__init__()
        # Residual branches start small enough that their sum keeps the stream's scale.
        width, branch_gain = config.width, 1.0 / math.sqrt(2.0 * config.layers)
        self.width, self.heads = width, config.attention_heads
        self.attention_norm = LayerNorm(width)
        self.qkv = glorot(Linear(width, 3 * width))
        self.bias = nn.Parameter(torch.zeros(offsets, config.attention_heads))
        self.out = glorot(Linear(width, width), branch_gain)
        self.ff_norm = LayerNorm(width)
        self.ff_in = glorot(Linear(width, config.feed_forward))
        self.ff_out = glorot(Linear(config.feed_forward, width), branch_gain)

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        """Adds the residual branches of attention and feed-forward layer to the input `x`."""
        x = x + self.out(attended)
        return x + self.ff_out(functional.gelu(self.ff_in(self.ff_norm(x))))


class LocalLayer(Block):
    """Attends to the `span` newest entries."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__(config, config.span)
        self.span = config.span

    def step(self, x: Tensor, ring: Tensor, empty: Tensor) -> tuple[Tensor, Tensor]:
        """Takes in an entry, and returns the output and the next ring.

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
        """Computes the outputs at the last `rows` rows. Earlier rows only serve as keys and values.

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


class Encoder(nn.Module):
    """Holds the common parts of the streaming and the windowed encoder. `kind` is the class of the
    layers.
    """

    kind: type[LocalLayer] | type[WindowLayer]

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = embedding(config.entry_size, config.width)
        self.layers = nn.ModuleList(self.kind(config) for _ in range(config.layers))
        self.norm = LayerNorm(config.width)
        self.pooling = Pooling(config)


class StreamingEncoder(Encoder):
    """Turns the opponent's entries into the strategy latent and the conditioned context."""

    kind = LocalLayer

    def initial(self, batch: int, device: torch.device) -> Rings:
        """Makes empty rings."""
        config = self.config
        layers = torch.zeros(batch, config.layers, config.span - 1, 2 * config.width, device=device)
        pool = torch.zeros(batch, config.pool - 1, self.pooling.described_size, device=device)
        return layers, pool

    def step(self, entry: Tensor, own: Tensor, rings: Rings, age: Tensor) -> tuple[Pooled, Rings]:
        """Takes in an entry.

        Args:
            entry: the opponent's entry `[..., E]`.
            age: entries of the episode, this entry included, `[...]`.
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
            age_XB: entries of the episode at each row.
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


class WindowLayer(Block):
    """Attends over a whole window. Its relative bias looks both ways."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__(config, 2 * config.sequence_length - 1)

    def forward(self, x: Tensor, empty: Tensor) -> Tensor:
        """Maps `x [..., W, D]` with `empty [..., W, 1]` to `[..., W, D]`."""
        length = x.shape[-2]
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(-3, -2)
            for part in self.qkv(self.attention_norm(x)).split(self.width, -1)
        )
        index = torch.arange(length, device=x.device)
        offset = index - index.unsqueeze(-1) + length - 1
        bias = self.bias[..., offset, :].movedim(-1, -3).unsqueeze(-4)
        scores = (q @ k.mT) / math.sqrt(q.shape[-1]) + bias + empty.mT.unsqueeze(-3)
        attended = (torch.softmax(scores, -1) @ v).transpose(-3, -2).flatten(-2)
        return self.finish(x, attended)


class WindowEncoder(Encoder):
    """Turns the opponent's last `sequence_length` entries into the latent and the context."""

    kind = WindowLayer

    def initial(self, batch: int, device: torch.device) -> Rings:
        """Makes an empty ring of raw entries. The layers keep nothing."""
        entries = torch.zeros(batch, self.config.context, self.config.entry_size, device=device)
        return torch.zeros(batch, 0, 0, 0, device=device), entries

    def step(self, entry: Tensor, own: Tensor, rings: Rings, age: Tensor) -> tuple[Pooled, Rings]:
        """Takes in an entry, as `StreamingEncoder.step` does."""
        window = torch.cat([rings[1], entry.unsqueeze(-2)], -2)
        return self._encode(window, own, age), (rings[0], window[..., 1:, :])

    def unroll(self, entry_XBE: Tensor, own_TBE: Tensor, age_XB: Tensor) -> Pooled:
        """Encodes all steps at once: T·B windows."""
        steps = own_TBE.shape[0]
        window_TBWE = windows(entry_XBE, steps, self.config.sequence_length)
        flat = window_TBWE.reshape(-1, *window_TBWE.shape[2:])
        pooled = self._encode(flat, own_TBE.flatten(0, 1), age_XB[-steps:].flatten())
        return Pooled(*(tensor.unflatten(0, own_TBE.shape[:2]) for tensor in pooled))

    def _encode(self, window: Tensor, own: Tensor, age: Tensor) -> Pooled:
        empty = empty_slots(age, self.config.sequence_length)
        x = self.embed(window)
        for layer in self.layers:
            x = layer(x, empty)
        return self.pooling(own, self.pooling.describe(self.norm(x)), empty)


class NoEncoder(nn.Module):
    """Is the encoder of agents that ignore the opponent's past. Its outputs have width 0."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.heads = config.attention_heads

    def initial(self, batch: int, device: torch.device) -> Rings:
        """Makes rings without slots."""
        return torch.zeros(batch, 0, 0, 0, device=device), torch.zeros(batch, 0, 0, device=device)

    def step(self, entry: Tensor, own: Tensor, rings: Rings, age: Tensor) -> tuple[Pooled, Rings]:
        """Returns empty readings and the same rings."""
        return self._nothing(entry), rings

    def unroll(self, entry_XBE: Tensor, own_TBE: Tensor, age_XB: Tensor) -> Pooled:
        """Returns the empty readings of all steps."""
        return self._nothing(own_TBE)

    def _nothing(self, like: Tensor) -> Pooled:
        reading = like[..., :0]
        weights = like.new_zeros(*like.shape[:-1], 0, self.heads)
        return Pooled(reading, reading, weights, weights)


ENCODERS: Mapping[str, type[StreamingEncoder | WindowEncoder | NoEncoder]] = {
    "streaming": StreamingEncoder,
    "window": WindowEncoder,
    "none": NoEncoder,
}
"""Encoders by their name in a network's sizes."""
