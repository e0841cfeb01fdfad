"""The agent's LSTM, written with matrix products: a step that batches over models, and an unroll over T.

Gate order: input i, forget f, output o, candidate g. Equations (Hochreiter & Schmidhuber 1997, with the
forget gate of Gers et al. 2000): `c_t = σ(f) c_tm1 + σ(i) tanh(g)`, `h_t = σ(o) tanh(c_t)`.

Shape suffixes: T steps, B matches, I input width, H memory width, G = 4H gates.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

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
        gates_TBG = self.input(x_TBI)
        h_TBH, c = _Unroll.apply(gates_TBG, self.recurrent, starts_TB, h_BH, c_BH)
        return h_TBH, h_TBH[-1], c


class _Unroll(torch.autograd.Function):
    """The recurrence with a hand-written gradient: a third of the calls that autograd would make a step.

    What does not depend on the step before (input products, derivative factors, the gradient of the
    recurrent weights) is computed for all T at once.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        gates_TBG: Tensor,
        recurrent_GH: Tensor,
        starts_TB: Tensor,
        h_BH: Tensor,
        c_BH: Tensor,
    ) -> tuple[Tensor, Tensor]:
        steps, batch, _ = gates_TBG.shape
        width = h_BH.shape[-1]
        with torch.autocast(gates_TBG.device.type, enabled=False):
            gates = gates_TBG.float().clone()
            weight_HG = recurrent_GH.float().t().contiguous()
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
        ctx.save_for_backward(gates, h, c, tanh_c, keep_TB1, recurrent_GH)
        ctx.started = started  # type: ignore[attr-defined]
        return h_out, c[steps].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, d_h_TBH: Tensor, d_c_BH: Tensor) -> tuple[Tensor | None, ...]:
        gates, h, c, tanh_c, keep_TB1, recurrent_GH = ctx.saved_tensors  # type: ignore[attr-defined]
        started: list[bool] = ctx.started  # type: ignore[attr-defined]
        steps, batch, width = tanh_c.shape
        i, f, o, g = gates.split(width, -1)
        # Derivatives of c_t by the gates i, f, g, of h_t by o, and of h_t by c_t.
        by_gate = torch.empty_like(gates)
        by_i, by_f, by_o, by_g = by_gate.split(width, -1)
        torch.mul(i * g, 1 - i, out=by_i)
        torch.mul(c[:steps] * f, 1 - f, out=by_f)
        torch.mul(tanh_c * o, 1 - o, out=by_o)
        torch.mul(i, 1 - g * g, out=by_g)
        h_by_c = o * (1 - tanh_c * tanh_c)
        weight_GH = recurrent_GH.float()
        d_gates = by_gate
        d_c = d_c_BH.clone()
        d_h = torch.zeros_like(d_c)
        for t in range(steps - 1, -1, -1):
            d_h += d_h_TBH[t]
            d_c.addcmul_(d_h, h_by_c[t])
            d_gates[t, :, : 2 * width].view(batch, 2, width).mul_(d_c.unsqueeze(1))
            by_o[t].mul_(d_h)
            by_g[t].mul_(d_c)
            d_c *= f[t]
            d_h = d_gates[t] @ weight_GH
            if started[t]:
                d_h *= keep_TB1[t]
                d_c *= keep_TB1[t]
        d_recurrent = d_gates.flatten(0, 1).t() @ h[:steps].flatten(0, 1)
        return d_gates, d_recurrent.to(recurrent_GH.dtype), None, d_h, d_c
