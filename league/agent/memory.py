"""The agent's LSTM, written with matrix products: a step that batches over models, and an unroll over T.

Gate order: input i, forget f, output o, candidate g. Equations (Hochreiter & Schmidhuber 1997, with the
forget gate of Gers et al. 2000): `c_t = σ(f) c_tm1 + σ(i) tanh(g)`, `h_t = σ(o) tanh(c_t)`.

Shape suffixes: T steps, B matches, I input width, H memory width, G = 4H gates.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from league.agent.layers import Linear


class Memory(nn.Module):
    """One LSTM layer shared by actor and critic."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.input = Linear(inputs, 4 * width)
        self.recurrent = nn.Parameter(torch.empty(4 * width, width))
        for block in (*self.input.weight.detach().split(width), *self.recurrent.detach().split(width)):
            nn.init.orthogonal_(block)
        nn.init.zeros_(self.input.bias)
        # An open forget gate keeps the past from the first update on (Jozefowicz et al. 2015).
        nn.init.ones_(self.input.bias.detach()[width : 2 * width])

    def step(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """One step for every row `[..., I]`, also with weights stacked by model."""
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
        """All steps; h and c are cleared before a step that starts an episode.

        Returns:
            The outputs `[T, B, H]`, the last h and the last c.
        """
        # Mixed precision ends here: rounding errors would add up along the sequence.
        with torch.autocast(x_TBI.device.type, enabled=False):
            x_TBI = x_TBI.to(self.recurrent.dtype)
            weights = (self.input.weight, self.input.bias, self.recurrent)
            h_TBH, c = _Unroll.apply(x_TBI, *weights, starts_TB, h_BH, c_BH)
        return h_TBH, h_TBH[-1], c


class _Unroll(torch.autograd.Function):
    """The recurrence with a hand-written gradient: a third of the calls that autograd would make a step.

    What does not depend on the step before (input products, derivative factors, the gradients of the
    weights) is computed for all T at once.
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
        # Row t is the state before step t (cleared where an episode starts), row T the last one.
        h = gates.new_empty(steps + 1, batch, width)
        c = torch.empty_like(h)
        h[0], c[0] = h_BH, c_BH
        h_out, tanh_c = (gates.new_empty(steps, batch, width) for _ in range(2))
        started = starts_TB.any(1).tolist()
        keep_TB1 = (~starts_TB).to(gates.dtype).unsqueeze(-1)
        for t in range(steps):
            if started[t]:
                h[t].mul_(keep_TB1[t])
                c[t].mul_(keep_TB1[t])
            row = gates[t].addmm_(h[t], weight_HG)
            row[:, : 3 * width].sigmoid_()
            row[:, 3 * width :].tanh_()
            i, f, o, g = row.split(width, 1)
            torch.mul(f, c[t], out=c[t + 1])
            c[t + 1].addcmul_(i, g)
            torch.tanh(c[t + 1], out=tanh_c[t])
            torch.mul(o, tanh_c[t], out=h_out[t])
            h[t + 1] = h_out[t]
        ctx.save_for_backward(x_TBI, weight_GI, recurrent_GH, gates, h, c, h_out, tanh_c, keep_TB1)
        ctx.started = started
        return h_out, c[steps].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_h_TBH: Tensor, d_c_BH: Tensor) -> tuple[Tensor | None, ...]:
        x_TBI, weight_GI, recurrent_GH, gates, h, c, h_out, tanh_c, keep_TB1 = ctx.saved_tensors
        steps, _, width = tanh_c.shape
        f = gates[..., width : 2 * width]
        d_gates, c_to_h = _derivatives(gates, c[:steps], h_out, tanh_c)
        by_if, by_o, by_g = d_gates.split([2 * width, width, width], -1)
        d_c = d_c_BH.clone()
        d_h = torch.zeros_like(d_c)
        for t in range(steps - 1, -1, -1):
            d_h += d_h_TBH[t]
            d_c.addcmul_(d_h, c_to_h[t])
            by_if[t].unflatten(1, (2, width)).mul_(d_c.unsqueeze(1))
            by_o[t].mul_(d_h)
            by_g[t].mul_(d_c)
            d_c *= f[t]
            d_h = d_gates[t] @ recurrent_GH
            if ctx.started[t]:
                d_h *= keep_TB1[t]
                d_c *= keep_TB1[t]
        flat_NG = d_gates.flatten(0, 1)
        d_weight = flat_NG.t() @ x_TBI.flatten(0, 1)
        d_recurrent = flat_NG.t() @ h[:steps].flatten(0, 1)
        return d_gates @ weight_GI, d_weight, flat_NG.sum(0), d_recurrent, None, d_h, d_c


def _derivatives(gates: Tensor, c_tm1: Tensor, h: Tensor, tanh_c: Tensor) -> tuple[Tensor, Tensor]:
    """Derivatives by the pre-activations, of c_t for i, f and g and of h_t for o; and of h_t by c_t.

    With σ' = σ - σ² and tanh' = 1 - tanh².
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
