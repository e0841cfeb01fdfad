"""The windowed strategy encoder: bidirectional, the whole window encoded afresh at every step.

The reference that `league.agent.encoder` is compared with: the same depth, width and pooling at
`sequence_length` times the work.

Shape suffixes: as in `league.agent.encoder`; N windows, W entries of a window, h heads.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from league.agent.config import AgentConfig
from league.agent.encoder import Block, Rings
from league.agent.layers import LayerNorm, embedding, empty_slots, windows
from league.agent.pooling import Pooled, Pooling


class WindowLayer(Block):
    """A layer over a whole window; its relative bias looks both ways."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__(config, 2 * config.sequence_length - 1)

    def forward(self, x: Tensor, empty: Tensor) -> Tensor:
        """`x [..., W, D]`, `empty [..., W, 1]` → `[..., W, D]`."""
        length = x.shape[-2]
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(-3, -2)
            for part in self.qkv(self.attention_norm(x)).split(self.width, -1)
        )
        place = torch.arange(length, device=x.device)
        offset = place - place.unsqueeze(-1) + length - 1
        bias = self.bias[..., offset, :].movedim(-1, -3).unsqueeze(-4)
        scores = (q @ k.mT) / math.sqrt(q.shape[-1]) + bias + empty.mT.unsqueeze(-3)
        attended = (torch.softmax(scores, -1) @ v).transpose(-3, -2).flatten(-2)
        return self.finish(x, attended)


class WindowEncoder(nn.Module):
    """The opponent's last `sequence_length` entries → strategy latent and conditioned context."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = embedding(config.entry_size, config.width)
        self.layers = nn.ModuleList(WindowLayer(config) for _ in range(config.layers))
        self.norm = LayerNorm(config.width)
        self.pooling = Pooling(config)

    def initial(self, batch: int, device: torch.device) -> Rings:
        """An empty ring of raw entries; the layers keep nothing."""
        layers = torch.zeros(batch, 0, 0, 0, device=device)
        return Rings(
            layers, torch.zeros(batch, self.config.context, self.config.entry_size, device=device)
        )

    def step(self, entry: Tensor, own: Tensor, rings: Rings, age: Tensor) -> tuple[Pooled, Rings]:
        """Takes in one entry. `age [...]` counts the episode's entries with this one."""
        window = torch.cat([rings.pool_BPE, entry.unsqueeze(-2)], -2)
        return self._encode(window, own, age), Rings(rings.layers_BLSE, window[..., 1:, :])

    def unroll(self, entry_XBE: Tensor, own_TBE: Tensor, age_XB: Tensor) -> Pooled:
        """All steps at once: T·B windows."""
        steps = own_TBE.shape[0]
        window_TBWE = windows(entry_XBE, steps, self.config.sequence_length)
        flat = window_TBWE.reshape(-1, *window_TBWE.shape[2:])
        pooled = self._encode(flat, own_TBE.flatten(0, 1), age_XB[-steps:].flatten())
        return Pooled(*(part.unflatten(0, own_TBE.shape[:2]) for part in pooled))

    def _encode(self, window: Tensor, own: Tensor, age: Tensor) -> Pooled:
        empty = empty_slots(age, self.config.sequence_length)
        x = self.embed(window)
        for layer in self.layers:
            x = layer(x, empty)
        return self.pooling(own, self.pooling.describe(self.norm(x)), empty)
