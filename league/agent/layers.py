"""Defines layers that can also run many networks in a single matrix product, and attention over
windows of rows.

With plain weights the layers are `nn.Linear` and `nn.LayerNorm`. If `league.agent.batched_policy`
replaces the weights with stacks `[M, ...]`, the same code takes inputs `[M, G, ...]`: M models with
G rows each.

In the window products at the end of this module, each row (a time step) has a window of S slots:
the S-1 rows before it and the row itself. The products compute all rows at once and copy no window.
Their operands are feature-major, `x [h, d, N]`. The N = rows·B columns are ordered by row, with B
columns (matches) per row, so the row that is `s` rows earlier begins `s·B` columns earlier. For all
rows together, a slot of the window is therefore a contiguous slice. Memory and work are linear in
the number of rows.

The gradient of `scores` consists of `mix` and `scatter` products, the gradient of `mix` of `scores`
and `scatter` products. Here `k_s` is the slice of k for slot s. Slot 0 is the oldest, and slot S-1
is the row itself.

    scores(q, k)[s] = Σ_d q · k_s     mix(w, v) = Σ_s w[s] · v_s     scatter(w, x)_s += w[s] · x

Shape suffixes: h heads, d width of a head, N columns of the computed rows, K = N + (S-1)·B columns
of the rows that the windows read, S slots.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional


class Linear(nn.Linear):
    """Computes `y = x Wᵀ + b`. Stacked weights `[M, out, in]` apply to inputs `[M, ..., in]`, model
    by model.
    """

    def forward(self, x: Tensor) -> Tensor:
        if self.weight.dim() == 2:
            return functional.linear(x, self.weight, self.bias)
        models = self.weight.shape[0]
        rows = x.reshape(models, -1, x.shape[-1])
        product = torch.baddbmm(self.bias.unsqueeze(1), rows, self.weight.mT)
        return product.view(*x.shape[:-1], self.weight.shape[1])


class LayerNorm(nn.LayerNorm):
    """Normalises over the last axis. Stacked weights `[M, D]` apply model by model."""

    def forward(self, x: Tensor) -> Tensor:
        if self.weight.dim() == 1:
            return functional.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        shape = (x.shape[0], *([1] * (x.dim() - 2)), x.shape[-1])
        normal = functional.layer_norm(x, self.normalized_shape, None, None, self.eps)
        return torch.addcmul(self.bias.view(shape), normal, self.weight.view(shape))


class Embedding(nn.Embedding):
    """Looks up rows of a table. Stacked tables `[M, words, D]` apply to ids `[M, ...]`, model by
    model.
    """

    def __init__(self, words: int, width: int) -> None:
        super().__init__(words, width)
        nn.init.normal_(self.weight, std=0.1)

    def forward(self, ids: Tensor) -> Tensor:
        if self.weight.dim() == 2:
            return functional.embedding(ids, self.weight)
        models = torch.arange(self.weight.shape[0], device=ids.device)
        return self.weight[models.view(-1, *([1] * (ids.dim() - 1))), ids]


def orthogonal(layer: Linear, gain: float = math.sqrt(2.0)) -> Linear:
    """Gives `layer` orthogonal weights and zero biases, as is usual for PPO networks."""
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def glorot(layer: Linear, gain: float = 1.0) -> Linear:
    """Gives `layer` Glorot-uniform weights and zero biases, as is usual for transformers."""
    nn.init.xavier_uniform_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def embedding(inputs: int, width: int) -> Linear:
    """Makes the layer that maps entries to features. Its biases are random instead of zero.

    With zero biases, an entry of zeros (in a game whose opponent shows nothing yet) would reach the
    layer norms as zeros. The derivative of a layer norm at zero is 1/sqrt(eps), and over several
    layers the first gradients would have norm 1e8.
    """
    layer = glorot(Linear(inputs, width))
    nn.init.uniform_(layer.bias, -(inputs**-0.5), inputs**-0.5)  # the bound of torch's own Linear
    return layer


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Lets each query attend to its own S slots.

    Args:
        q: queries `[..., D]`.
        k: keys `[..., S, D]`.
        v: values `[..., S, D]`.
        bias: biases of the scores `[..., S, heads]`, -inf for empty slots.

    Returns:
        The mixture `[..., D]` and the weights `[..., S, heads]`.
    """
    heads = bias.shape[-1]
    width = q.shape[-1] // heads
    scores = (q.unsqueeze(-2) * k).unflatten(-1, (heads, width)).sum(-1)
    weights = torch.softmax(torch.add(bias, scores, alpha=1.0 / math.sqrt(width)), -2)
    return mix(weights, v), weights


def mix(weights: Tensor, v: Tensor) -> Tensor:
    """Averages values `[..., S, D]` with weights `[..., S, heads]`. Returns `[..., D]`."""
    by_head = v.unflatten(-1, (weights.shape[-1], -1))
    return (weights.unsqueeze(-1) * by_head).sum(-3).flatten(-2)


def empty_slots(age: Tensor, slots: int) -> Tensor:
    """Returns a bias for attention scores, `[..., slots, 1]`: 0 for slots with an entry of this
    episode, and -inf for empty slots.

    Args:
        age: number of entries of the episode so far, including the current entry, `[...]`.
        slots: number of slots. The newest entry is in the last slot.
    """
    offset = torch.arange(slots - 1, -1, -1, device=age.device)
    empty = offset >= age.unsqueeze(-1)
    return torch.zeros(empty.shape, device=age.device).masked_fill_(empty, -math.inf).unsqueeze(-1)


def _scores(q_hdN: Tensor, k_hdK: Tensor, slots: int, stride: int) -> Tensor:
    heads, _, columns = q_hdN.shape
    scores_ShN = q_hdN.new_empty(slots, heads, columns)
    product = torch.empty_like(q_hdN)
    for slot in range(slots):
        torch.mul(q_hdN, k_hdK[..., slot * stride : slot * stride + columns], out=product)
        torch.sum(product, 1, out=scores_ShN[slot])
    return scores_ShN


def _mix(weights_ShN: Tensor, v_hdK: Tensor, stride: int) -> Tensor:
    slots, _, columns = weights_ShN.shape
    mixed = weights_ShN[0].unsqueeze(1) * v_hdK[..., :columns]
    for slot in range(1, slots):
        mixed.addcmul_(
            weights_ShN[slot].unsqueeze(1), v_hdK[..., slot * stride : slot * stride + columns]
        )
    return mixed


def _scatter(weights_ShN: Tensor, x_hdN: Tensor, stride: int) -> Tensor:
    slots, heads, columns = weights_ShN.shape
    sums = x_hdN.new_zeros(heads, x_hdN.shape[1], columns + (slots - 1) * stride)
    for slot in range(slots):
        sums[..., slot * stride : slot * stride + columns].addcmul_(
            weights_ShN[slot].unsqueeze(1), x_hdN
        )
    return sums


class _WindowScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q_hdN: Tensor, k_hdK: Tensor, slots: int, stride: int) -> Tensor:
        ctx.save_for_backward(q_hdN, k_hdK)
        ctx.stride = stride
        return _scores(q_hdN, k_hdK, slots, stride)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_scores_ShN: Tensor) -> tuple[Tensor | None, ...]:  # pyrefly: ignore[bad-override]
        q_hdN, k_hdK = ctx.saved_tensors
        d_q = _mix(d_scores_ShN, k_hdK, ctx.stride)
        return d_q, _scatter(d_scores_ShN, q_hdN, ctx.stride), None, None


class _WindowMix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights_ShN: Tensor, v_hdK: Tensor, stride: int) -> Tensor:
        ctx.save_for_backward(weights_ShN, v_hdK)
        ctx.stride = stride
        return _mix(weights_ShN, v_hdK, stride)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_mixed_hdN: Tensor) -> tuple[Tensor | None, ...]:  # pyrefly: ignore[bad-override]
        weights_ShN, v_hdK = ctx.saved_tensors
        d_weights = _scores(d_mixed_hdN, v_hdK, weights_ShN.shape[0], ctx.stride)
        return d_weights, _scatter(weights_ShN, d_mixed_hdN, ctx.stride), None


def window_scores(q_hdN: Tensor, k_hdK: Tensor, slots: int, stride: int) -> Tensor:
    """Returns `Σ_d q · k_s` for every slot, `[S, h, N]`. `stride` is B, the columns per row."""
    scores: Tensor = _WindowScores.apply(q_hdN, k_hdK, slots, stride)
    return scores


def window_mix(weights_ShN: Tensor, v_hdK: Tensor, stride: int) -> Tensor:
    """Returns `Σ_s w[s] · v_s`, `[h, d, N]`."""
    mixed: Tensor = _WindowMix.apply(weights_ShN, v_hdK, stride)
    return mixed


def feature_major(x_ND: Tensor, weight_ED: Tensor, bias_E: Tensor) -> Tensor:
    """Computes `W x + b` in the weights' dtype. The result is feature-major, `[E, N]`."""
    return torch.addmm(bias_E.unsqueeze(1), weight_ED, x_ND.t()).to(weight_ED.dtype)


def last_columns(x_EK: Tensor, columns: int) -> Tensor:
    """Returns the last `columns` columns. If there are fewer columns, zeros are put in front, which
    only masked slots read.
    """
    missing = columns - x_EK.shape[-1]
    if missing > 0:
        return torch.nn.functional.pad(x_EK, (missing, 0))
    return x_EK[..., -missing:] if missing else x_EK
