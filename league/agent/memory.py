"""Computes the agent's LSTM: a single step (for many models at once), or an unroll over T steps.

Gate order: input i, forget f, output o, candidate g. Equations (Hochreiter & Schmidhuber 1997, with
the forget gate of Gers et al. 2000): `c_t = σ(f) c_tm1 + σ(i) tanh(g)`, `h_t = σ(o) tanh(c_t)`.

Shape suffixes: T steps, B matches, I input width, H memory width, G = 4H gates, N = T·B rows,
L steps including inserted steps, J = I + 2.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from league.agent.layers import Linear

SATURATED = 1e4
"""A pre-activation whose sigmoid is exactly 1. The sigmoid of its negative is exactly 0."""
HAS_KERNEL = torch.backends.mkldnn.is_available()
"""Whether torch was built with oneDNN, whose LSTM is faster than separate products for each step.
"""
MOST_INSERTED = 1 / 8
"""`_unroll_in_kernel` inserts steps. The function is faster than `_Unroll` as long as no match gets
more inserted steps than this share of its T steps.
"""


class Memory(nn.Module):
    """Holds the LSTM layer that actor and critic share."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.input = Linear(inputs, 4 * width)
        self.recurrent = nn.Parameter(torch.empty(4 * width, width))
        for block in (
            *self.input.weight.detach().split(width),
            *self.recurrent.detach().split(width),
        ):
            nn.init.orthogonal_(block)
        nn.init.zeros_(self.input.bias)
        # With an open forget gate, the LSTM remembers the past from the first update on
        # (Jozefowicz et al. 2015).
        nn.init.ones_(self.input.bias.detach()[width : 2 * width])

    def step(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """Makes a step for every row `[..., I]`. Weights may be stacked by model."""
        width = self.width
        gates = self.input(x) + h @ self.recurrent.mT
        opened = torch.sigmoid(gates[..., : 3 * width])
        candidate = torch.tanh(gates[..., 3 * width :])
        i, f, o = opened.split(width, -1)
        c = torch.addcmul(f * c, i, candidate)
        return o * torch.tanh(c), c

    def unroll(
        self, x_TBI: Tensor, starts_TB: Tensor, h_BH: Tensor, c_BH: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Unrolls all steps. h and c are cleared before a step that starts an episode.

        Returns:
            The outputs `[T, B, H]`, the last h and the last c.
        """
        # Mixed precision is off here, because rounding errors would add up along the sequence.
        with torch.autocast(x_TBI.device.type, enabled=False):
            x_TBI = x_TBI.to(self.recurrent.dtype)
            weights = (self.input.weight, self.input.bias, self.recurrent)
            unroll = _unroll_in_kernel if _kernel_is_faster(x_TBI, starts_TB) else _Unroll.apply
            h_TBH, c = unroll(x_TBI, *weights, starts_TB, h_BH, c_BH)
        return h_TBH, h_TBH[-1], c


def _kernel_is_faster(x_TBI: Tensor, starts_TB: Tensor) -> bool:
    """Returns whether `_unroll_in_kernel` is faster than `_Unroll`.

    The kernel is faster with oneDNN, if no match has many episode starts within the sequence.
    """
    if not HAS_KERNEL or x_TBI.device.type != "cpu" or x_TBI.dtype != torch.float32:
        return False
    most_starts = int(starts_TB[1:].sum(0).max()) if len(starts_TB) > 1 else 0
    return most_starts <= MOST_INSERTED * len(x_TBI)


def _unroll_in_kernel(
    x_TBI: Tensor,
    weight_GI: Tensor,
    bias_G: Tensor,
    recurrent_GH: Tensor,
    starts_TB: Tensor,
    h_BH: Tensor,
    c_BH: Tensor,
) -> tuple[Tensor, Tensor]:
    """Unrolls with torch's LSTM.

    Torch's LSTM can't clear its state where an episode starts. So in each match, this function
    inserts a step before each later start of an episode, and appends steps until all matches have L
    steps. Two additional inputs of the LSTM mark the inserted and the appended steps, and saturate
    gates there. An inserted step has i = f = 0, so that c = 0 and h = o tanh(0) = 0. An appended
    step has i = 0 and f = 1, so that the last c stays. Outputs and gradients are exact.

    Returns:
        The outputs `[T, B, H]` and the last c.
    """
    (steps, batch, inputs), width = x_TBI.shape, h_BH.shape[-1]
    keep_B1 = (~starts_TB[0]).to(x_TBI.dtype).unsqueeze(-1)
    state = tuple((row * keep_B1).unsqueeze(0) for row in (h_BH, c_BH))
    later_TB = starts_TB.clone()
    later_TB[0] = False
    inserted_TB = later_TB.cumsum(0)
    length = steps + int(inserted_TB[-1].max())
    position_TB = torch.arange(steps).unsqueeze(1) + inserted_TB
    clears_LB, is_over_LB = (x_TBI.new_zeros(length, batch) for _ in range(2))
    clears_LB[position_TB[later_TB] - 1, later_TB.nonzero()[:, 1]] = 1.0
    is_over_LB[torch.arange(length).unsqueeze(1) >= steps + inserted_TB[-1]] = 1.0
    row_N = (position_TB * batch + torch.arange(batch)).flatten()
    x_NI = x_TBI.new_zeros(length * batch, inputs).index_copy(0, row_N, x_TBI.flatten(0, 1))
    flags_LB2 = torch.stack([clears_LB, is_over_LB], -1)
    x_LBJ = torch.cat([x_NI.unflatten(0, (length, batch)), flags_LB2], -1)
    flag_weight_G2 = x_TBI.new_zeros(4 * width, 2)
    flag_weight_G2[:width] = -SATURATED
    flag_weight_G2[width : 2 * width, 0] = -SATURATED
    flag_weight_G2[width : 2 * width, 1] = SATURATED
    weights = [
        _in_torchs_order(torch.cat([weight_GI, flag_weight_G2], -1)),
        _in_torchs_order(recurrent_GH),
        _in_torchs_order(bias_G),
        torch.zeros_like(bias_G),
    ]
    h_LBH, _, c_1BH = torch.lstm(x_LBJ, state, weights, True, 1, 0.0, True, False, False)
    h_TBH = h_LBH.flatten(0, 1).index_select(0, row_N).unflatten(0, (steps, batch))
    return h_TBH, c_1BH.squeeze(0)


def _in_torchs_order(gates: Tensor) -> Tensor:
    """Returns weights `[G, ...]` in torch's order of the gates: i, f, g, o."""
    i, f, o, g = gates.chunk(4)
    return torch.cat([i, f, g, o])


class _Unroll(torch.autograd.Function):
    """Computes the LSTM's recurrence with a hand-written gradient, which needs only a third as many
    calls per step as autograd.

    Everything that does not depend on the previous step (input products, factors of derivatives,
    gradients of weights) is computed for all T steps at once.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x_TBI: Tensor,
        weight_GI: Tensor,
        bias_G: Tensor,
        recurrent_GH: Tensor,
        starts_TB: Tensor,
        h_BH: Tensor,
        c_BH: Tensor,
    ) -> tuple[Tensor, Tensor]:
        (steps, batch, _), width = x_TBI.shape, h_BH.shape[-1]
        gates = functional.linear(x_TBI, weight_GI, bias_G)
        weight_HG = recurrent_GH.t().contiguous()
        # Row t is the state before step t (cleared where an episode starts), row T the last state.
        h = gates.new_empty(steps + 1, batch, width)
        c = torch.empty_like(h)
        h[0], c[0] = h_BH, c_BH
        h_out, tanh_c = (gates.new_empty(steps, batch, width) for _ in range(2))
        started = starts_TB.any(1).tolist()
        keep_TB1 = (~starts_TB).to(gates.dtype).unsqueeze(-1)
        # All views of rows are made beforehand, because making a view costs half as much as a
        # product.
        row_T, h_T, c_T, h_out_T, tanh_c_T = (
            tensor.unbind(0) for tensor in (gates, h, c, h_out, tanh_c)
        )
        opened_T, candidate_T = (tensor.unbind(0) for tensor in gates.split([3 * width, width], -1))
        i_T, f_T, o_T, _ = (gate.unbind(0) for gate in gates.split(width, -1))
        for t in range(steps):
            h_tm1, c_tm1, c_t = h_T[t], c_T[t], c_T[t + 1]
            if started[t]:
                h_tm1.mul_(keep_TB1[t])
                c_tm1.mul_(keep_TB1[t])
            row_T[t].addmm_(h_tm1, weight_HG)
            opened_T[t].sigmoid_()
            candidate_T[t].tanh_()
            torch.mul(f_T[t], c_tm1, out=c_t)
            c_t.addcmul_(i_T[t], candidate_T[t])
            torch.tanh(c_t, out=tanh_c_T[t])
            torch.mul(o_T[t], tanh_c_T[t], out=h_out_T[t])
            h_T[t + 1].copy_(h_out_T[t])
        ctx.save_for_backward(x_TBI, weight_GI, recurrent_GH, gates, h, c, h_out, tanh_c, keep_TB1)
        ctx.started = started
        return h_out, c[steps].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_h_TBH: Tensor, d_c_BH: Tensor) -> tuple[Tensor | None, ...]:  # pyrefly: ignore[bad-override]
        x_TBI, weight_GI, recurrent_GH, gates, h, c, h_out, tanh_c, keep_TB1 = ctx.saved_tensors
        steps, _, width = tanh_c.shape
        f = gates[..., width : 2 * width]
        d_gates, c_to_h = _derivatives(gates, c[:steps], h_out, tanh_c)
        by_if, by_o, by_g = d_gates.split([2 * width, width, width], -1)
        by_if_T, d_gates_T = by_if.unflatten(-1, (2, width)).unbind(0), d_gates.unbind(0)
        by_o_T, by_g_T, f_T, d_h_T, c_to_h_T = (
            tensor.unbind(0) for tensor in (by_o, by_g, f, d_h_TBH, c_to_h)
        )
        d_c = d_c_BH.clone()
        d_c_B1H = d_c.unsqueeze(1)
        d_h = torch.zeros_like(d_c)
        for t in range(steps - 1, -1, -1):
            d_h += d_h_T[t]
            d_c.addcmul_(d_h, c_to_h_T[t])
            by_if_T[t].mul_(d_c_B1H)
            by_o_T[t].mul_(d_h)
            by_g_T[t].mul_(d_c)
            d_c *= f_T[t]
            torch.mm(d_gates_T[t], recurrent_GH, out=d_h)
            if ctx.started[t]:
                d_h *= keep_TB1[t]
                d_c *= keep_TB1[t]
        flat_NG = d_gates.flatten(0, 1)
        d_weight = flat_NG.t() @ x_TBI.flatten(0, 1)
        d_recurrent = flat_NG.t() @ h[:steps].flatten(0, 1)
        return d_gates @ weight_GI, d_weight, flat_NG.sum(0), d_recurrent, None, d_h, d_c


def _derivatives(gates: Tensor, c_tm1: Tensor, h: Tensor, tanh_c: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the derivatives with respect to the gates' pre-activations, and ∂h_t/∂c_t.

    For the gates i, f and g, it returns the derivatives of c_t. For the gate o, it returns the
    derivative of h_t. The formulas use σ' = σ - σ² and tanh' = 1 - tanh².
    """
    width = h.shape[-1]
    i, _, o, g = gates.split(width, -1)
    by_gate = gates * gates
    opened = by_gate[..., : 3 * width]
    torch.sub(gates[..., : 3 * width], opened, out=opened)
    by_i, by_f, by_o, by_g = by_gate.split(width, -1)
    by_i *= g
    by_f *= c_tm1
    by_o *= tanh_c
    by_g.neg_().add_(1.0).mul_(i)
    return by_gate, torch.addcmul(o, h, tanh_c, value=-1.0)
