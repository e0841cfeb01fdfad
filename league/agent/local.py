"""Products of a row with its own window of earlier rows, for all rows at once, without copying
windows.

Everything is feature-major: `x [h, d, N]` with N = rows·B columns, row after row. The rows `s`
before or after then begin `s·B` columns further, so a window's slot is one contiguous slice, and
each pass below runs over long contiguous vectors. Memory and work are linear in the rows.

The three products are each other's gradients:

    scores(q, k)[s] = Σ_d q · k_s        mix(w, v) = Σ_s w[s] · v_s        scatter(w, x)_s += w[s] ·
    x

where `k_s` is k's slice for slot s (0 the oldest, S-1 the row itself).

Shape suffixes: h heads, d width of a head, N columns of the rows asked for, K = N + (S-1)·B columns
of the rows that are looked at, S slots.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


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
    def backward(ctx: Any, d_scores_ShN: Tensor) -> tuple[Tensor | None, ...]:
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
    def backward(ctx: Any, d_mixed_hdN: Tensor) -> tuple[Tensor | None, ...]:
        weights_ShN, v_hdK = ctx.saved_tensors
        d_weights = _scores(d_mixed_hdN, v_hdK, weights_ShN.shape[0], ctx.stride)
        return d_weights, _scatter(weights_ShN, d_mixed_hdN, ctx.stride), None


def window_scores(q_hdN: Tensor, k_hdK: Tensor, slots: int, stride: int) -> Tensor:
    """`Σ_d q · k_s` for every slot: `[S, h, N]`. `stride` is B, the columns of one row."""
    scores: Tensor = _WindowScores.apply(q_hdN, k_hdK, slots, stride)
    return scores


def window_mix(weights_ShN: Tensor, v_hdK: Tensor, stride: int) -> Tensor:
    """`Σ_s w[s] · v_s`: `[h, d, N]`."""
    mixed: Tensor = _WindowMix.apply(weights_ShN, v_hdK, stride)
    return mixed


def feature_major(x_ND: Tensor, weight_ED: Tensor, bias_E: Tensor) -> Tensor:
    """The linear map `W x + b`, laid out feature by feature: `[E, N]`, in the weights' own type."""
    return torch.addmm(bias_E.unsqueeze(1), weight_ED, x_ND.t()).to(weight_ED.dtype)


def last_columns(x_EK: Tensor, columns: int) -> Tensor:
    """The last `columns` columns; zeros stand for those before the first (their slots are
    masked).
    """
    missing = columns - x_EK.shape[-1]
    if missing > 0:
        return torch.nn.functional.pad(x_EK, (missing, 0))
    return x_EK[..., -missing:] if missing else x_EK
