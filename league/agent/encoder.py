"""The streaming strategy encoder: causal local attention, so an entry is encoded once and then
reused.

Each layer attends to the `span` newest entries through a learned relative bias (no absolute
positions), and the pooling reads the last `pool` outputs, so an entry's influence ends exactly
after `1 + layers (span - 1) + (pool - 1) = sequence_length` entries.

Shape suffixes: X rows (history and steps), T steps, B matches, E entry width, D width, L layers,
S slots of a ring, P pooled outputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from league.agent.config import AgentConfig
from league.agent.layers import LayerNorm, Linear, attend, embedding, empty_slots, glorot
from league.agent.local import feature_major, last_columns, window_mix, window_scores
from league.agent.pooling import Pooled, Pooling


class Rings(NamedTuple):
    """What a step needs of earlier ones, newest last. Which slots count is told by the entries'
    age.
    """

    layers_BLSE: Tensor
    pool_BPE: Tensor


class Block(nn.Module):
    """A pre-norm transformer layer but for its attention, which its two kinds do differently."""

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
        """The rest of the layer after attention: both residual branches."""
        x = x + self.out(attended)
        return x + self.ff_out(functional.gelu(self.ff_in(self.ff_norm(x))))


class LocalLayer(Block):
    """A layer that attends to the `span` newest entries."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__(config, config.span)
        self.span = config.span

    def step(self, x: Tensor, ring: Tensor, empty: Tensor) -> tuple[Tensor, Tensor]:
        """One entry `[..., D]` on the ring of keys and values `[..., S, 2D]`; returns both,
        moved on.
        """
        q, kv = self.qkv(self.attention_norm(x)).split([self.width, 2 * self.width], -1)
        slots = torch.cat([ring, kv.unsqueeze(-2)], -2)
        keys, values = slots.split(self.width, -1)
        attended, _ = attend(q, keys, values, self.bias.unsqueeze(-3) + empty)
        return self.finish(x, attended), slots[..., 1:, :]

    def unroll(self, x_XBD: Tensor, rows: int, empty_SN: Tensor) -> Tensor:
        """The layer's outputs at the last `rows` rows; earlier rows only serve as keys and
        values.
        """
        batch, width, span = x_XBD.shape[1], self.width, self.span
        normal_KD = self.attention_norm(x_XBD).flatten(0, 1)
        weight, bias = self.qkv.weight, self.qkv.bias
        q_DN = feature_major(normal_KD[-rows * batch :], weight[:width], bias[:width])
        kv_EK = feature_major(normal_KD, weight[width:], bias[width:])
        kv_EK = last_columns(kv_EK, (rows + span - 1) * batch)
        q, k, v = (
            part.unflatten(0, (self.heads, -1)) for part in (q_DN, kv_EK[:width], kv_EK[width:])
        )
        scores_ShN = window_scores(q * q.shape[1] ** -0.5, k, span, batch)
        shift = self.bias.unsqueeze(-1) + empty_SN[:, None, -rows * batch :]
        attended = window_mix(torch.softmax(scores_ShN + shift, 0), v, batch)
        attended_RBD = attended.flatten(0, 1).t().unflatten(0, (rows, batch))
        return self.finish(x_XBD[-rows:], attended_RBD)


class StreamingEncoder(nn.Module):
    """The opponent's entries → strategy latent and conditioned context."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = embedding(config.entry_size, config.width)
        self.layers = nn.ModuleList(LocalLayer(config) for _ in range(config.layers))
        self.norm = LayerNorm(config.width)
        self.pooling = Pooling(config)

    def initial(self, batch: int, device: torch.device) -> Rings:
        """Empty rings."""
        config = self.config
        layers = torch.zeros(batch, config.layers, config.span - 1, 2 * config.width, device=device)
        pool = torch.zeros(batch, config.pool - 1, self.pooling.described_size, device=device)
        return Rings(layers, pool)

    def step(self, entry: Tensor, own: Tensor, rings: Rings, age: Tensor) -> tuple[Pooled, Rings]:
        """Takes in one entry. `age [...]` counts the episode's entries with this one."""
        x, moved = self.embed(entry), []
        empty = empty_slots(age, self.config.span)
        for index, layer in enumerate(cast(Iterable[LocalLayer], self.layers)):
            x, ring = layer.step(x, rings.layers_BLSE[..., index, :, :], empty)
            moved.append(ring)
        described = self.pooling.describe(self.norm(x)).unsqueeze(-2)
        pool = torch.cat([rings.pool_BPE, described], -2)
        pooled = self.pooling(own, pool, empty_slots(age, self.config.pool))
        return pooled, Rings(torch.stack(moved, -3), pool[..., 1:, :])

    def unroll(self, entry_XBE: Tensor, own_TBE: Tensor, age_XB: Tensor) -> Pooled:
        """All steps at once. A layer computes only the rows that a later one or the pooling
        still reads.
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
