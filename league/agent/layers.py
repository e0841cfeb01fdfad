"""Layers whose weights may carry a leading model axis, so that many networks run as one batched
product.

With plain weights they are `nn.Linear` and `nn.LayerNorm`. When `league.agent.crowd` replaces the
weights by stacks `[M, ...]`, the same code takes inputs `[M, G, ...]`: M models, G rows each.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class Linear(nn.Linear):
    """`y = x Wᵀ + b`, and per model with stacked weights `[M, out, in]` and inputs `[M, ...,
    in]`.
    """

    def forward(self, x: Tensor) -> Tensor:
        if self.weight.dim() == 2:
            return functional.linear(x, self.weight, self.bias)
        models = self.weight.shape[0]
        rows = x.reshape(models, -1, x.shape[-1])
        product = torch.baddbmm(self.bias.unsqueeze(1), rows, self.weight.mT)
        return product.view(*x.shape[:-1], self.weight.shape[1])


class LayerNorm(nn.LayerNorm):
    """Layer normalisation over the last axis, per model with stacked weights `[M, D]`."""

    def forward(self, x: Tensor) -> Tensor:
        if self.weight.dim() == 1:
            return functional.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        shape = (x.shape[0], *([1] * (x.dim() - 2)), x.shape[-1])
        normal = functional.layer_norm(x, self.normalized_shape, None, None, self.eps)
        return torch.addcmul(self.bias.view(shape), normal, self.weight.view(shape))


def orthogonal(layer: Linear, gain: float = math.sqrt(2.0)) -> Linear:
    """`layer` with orthogonal weights and zero biases (the usual start of PPO networks)."""
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def glorot(layer: Linear, gain: float = 1.0) -> Linear:
    """`layer` with Glorot-uniform weights and zero biases (the usual start of transformers)."""
    nn.init.xavier_uniform_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def embedding(inputs: int, width: int) -> Linear:
    """Entries → features; its biases are not zero.

    An entry of zeros (a game whose opponent shows nothing yet) would else reach the layer norms as
    zeros, whose derivative there is 1/sqrt(eps) in every layer: first gradients of norm 1e8.
    """
    layer = glorot(Linear(inputs, width))
    nn.init.uniform_(layer.bias, -(inputs**-0.5), inputs**-0.5)  # the bound of torch's own Linear
    return layer


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Attention of one query over its own S slots.

    Args:
        q: `[..., D]`. k, v: `[..., S, D]`. bias: `[..., S, heads]`, -inf where a slot is empty.

    Returns:
        The mixture `[..., D]` and the weights `[..., S, heads]`.
    """
    heads = bias.shape[-1]
    width = q.shape[-1] // heads
    scores = (q.unsqueeze(-2) * k).unflatten(-1, (heads, width)).sum(-1)
    weights = torch.softmax(torch.add(bias, scores, alpha=1.0 / math.sqrt(width)), -2)
    return mix(weights, v), weights


def mix(weights: Tensor, v: Tensor) -> Tensor:
    """Values `[..., S, D]` averaged with weights `[..., S, heads]`: `[..., D]`."""
    by_head = v.unflatten(-1, (weights.shape[-1], -1))
    return (weights.unsqueeze(-1) * by_head).sum(-3).flatten(-2)


def empty_slots(age: Tensor, slots: int) -> Tensor:
    """0 for a slot that holds an entry of this episode, -inf for one that does not: `[..., slots,
    1]`.

    Args:
        age: entries of the episode so far, the current one included, `[...]`. The newest is the
        last slot.
    """
    offset = torch.arange(slots - 1, -1, -1, device=age.device)
    empty = offset >= age.unsqueeze(-1)
    return torch.zeros(empty.shape, device=age.device).masked_fill_(empty, -math.inf).unsqueeze(-1)


def windows(x_RBE: Tensor, rows: int, span: int) -> Tensor:
    """The last `rows` rows, each with its `span` newest entries: a view `[rows, B, span, E]`.

    Rows before the first count as zeros; `empty_slots` masks them.
    """
    missing = rows + span - 1 - x_RBE.shape[0]
    if missing > 0:
        x_RBE = torch.cat([x_RBE.new_zeros(missing, *x_RBE.shape[1:]), x_RBE])
    return x_RBE[-(rows + span - 1) :].unfold(0, span, 1).movedim(-1, -2)
