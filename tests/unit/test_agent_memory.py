"""The hand-written LSTM against torch's, and the windowed products against their definitions."""

import pytest
import torch
from torch import nn

from league.agent.layers import last_columns, window_mix, window_scores
from league.agent.memory import Memory


def doubles(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def as_torch_lstm(memory: Memory, inputs: int) -> nn.LSTM:
    """torch orders its gates i, f, g, o; ours are i, f, o, g."""
    lstm = nn.LSTM(inputs, memory.width).double()

    def reordered(weight: torch.Tensor) -> torch.Tensor:
        i, f, o, g = weight.detach().chunk(4)
        return torch.cat([i, f, g, o])

    with torch.no_grad():
        lstm.weight_ih_l0.copy_(reordered(memory.input.weight))
        lstm.weight_hh_l0.copy_(reordered(memory.recurrent))
        lstm.bias_ih_l0.copy_(reordered(memory.input.bias))
        lstm.bias_hh_l0.zero_()
    return lstm


def test_the_unroll_is_torchs_lstm_within_an_episode() -> None:
    memory = Memory(5, 4).double()
    x, h, c = doubles(7, 3, 5), doubles(3, 4, seed=1), doubles(3, 4, seed=2)
    out, h_last, c_last = memory.unroll(x, torch.zeros(7, 3, dtype=torch.bool), h, c)
    expected, (h_torch, c_torch) = as_torch_lstm(memory, 5)(x, (h[None], c[None]))
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(h_last, h_torch[0])
    torch.testing.assert_close(c_last, c_torch[0])


def test_the_unrolls_gradient_is_right_with_starts_in_the_middle() -> None:
    memory = Memory(3, 4).double()
    starts = torch.tensor([[False, True], [True, False], [False, False], [False, True]])
    inputs = [doubles(4, 2, 3), doubles(2, 4, seed=1), doubles(2, 4, seed=2)]
    weights = [parameter.detach().clone() for parameter in memory.parameters()]
    for tensor in (*inputs, *weights):
        tensor.requires_grad_()
    names = [name for name, _ in memory.named_parameters()]

    def run(x, h, c, *values):
        for name, value in zip(names, values, strict=True):
            owner = memory.get_submodule(name.rpartition(".")[0])
            delattr(owner, name.rpartition(".")[2])
            setattr(owner, name.rpartition(".")[2], value)
        return memory.unroll(x, starts, h, c)

    assert torch.autograd.gradcheck(run, (*inputs, *weights))


@pytest.mark.parametrize("share_of_starts", [0.0, 0.02, 0.5])
@pytest.mark.parametrize("steps", [1, 32])
def test_the_unroll_in_single_precision_is_that_in_double_precision(
    steps: int, share_of_starts: float
) -> None:
    """torch's kernel takes over in single precision, where few steps start an episode."""
    generator = torch.Generator().manual_seed(7)
    starts = torch.rand(steps, 16, generator=generator) < share_of_starts
    starts[0, :3] = share_of_starts > 0
    results = []
    for dtype in (torch.float64, torch.float32):
        torch.manual_seed(3)
        memory = Memory(5, 8).to(dtype)
        inputs = [doubles(steps, 16, 5), doubles(16, 8, seed=1), doubles(16, 8, seed=2)]
        x, h, c = (tensor.to(dtype).requires_grad_() for tensor in inputs)
        outputs = memory.unroll(x, starts, h, c)
        torch.stack([output.sin().sum() for output in outputs]).sum().backward()
        gradients = [tensor.grad for tensor in (x, h, c, *memory.parameters())]
        results.append([*outputs, *gradients])
    for double, single in zip(*results, strict=True):
        torch.testing.assert_close(single, double.float(), rtol=2e-5, atol=2e-5)


def test_a_start_cuts_the_gradient_to_the_past() -> None:
    memory = Memory(3, 4).double()
    x = doubles(4, 1, 3).requires_grad_()
    starts = torch.tensor([[False], [False], [True], [False]])
    out, _, _ = memory.unroll(x, starts, doubles(1, 4), doubles(1, 4))
    out[2:].sum().backward()
    assert x.grad is not None
    assert x.grad[:2].abs().max() == 0
    assert x.grad[2].abs().min() > 0


def test_windowed_products_and_their_gradients() -> None:
    slots, stride, rows = 3, 2, 4
    q = doubles(2, 5, rows * stride).requires_grad_()
    k = doubles(2, 5, (rows + slots - 1) * stride, seed=1).requires_grad_()
    weights = doubles(slots, 2, rows * stride, seed=2).requires_grad_()
    scores, mixed = window_scores(q, k, slots, stride), window_mix(weights, k, stride)
    for row in range(rows):
        for column in range(stride):
            n = row * stride + column
            window = k[:, :, [(row + slot) * stride + column for slot in range(slots)]]
            torch.testing.assert_close(
                scores[:, :, n], torch.einsum("hd,hds->sh", q[:, :, n], window)
            )
            torch.testing.assert_close(
                mixed[:, :, n], torch.einsum("sh,hds->hd", weights[:, :, n], window)
            )
    assert torch.autograd.gradcheck(lambda a, b: window_scores(a, b, slots, stride), (q, k))
    assert torch.autograd.gradcheck(lambda a, b: window_mix(a, b, stride), (weights, k))


def test_columns_before_the_first_are_zeros() -> None:
    x = torch.arange(6.0).view(2, 3)
    assert last_columns(x, 2).tolist() == [[1, 2], [4, 5]]
    assert last_columns(x, 3).tolist() == x.tolist()
    assert last_columns(x, 4).tolist() == [[0, 0, 1, 2], [0, 3, 4, 5]]
