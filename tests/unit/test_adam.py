"""`learner.adam` updates as torch's Adam does, and loads no compiler."""

import subprocess
import sys

import pytest
import torch

from learner.adam import Adam

SCRIPT = """
import sys, torch
from learner.adam import Adam
weights = torch.nn.Parameter(torch.ones(3))
optimizer = Adam([weights], fused=True)
optimizer.zero_grad()
weights.grad = torch.ones(3)
scaler = torch.amp.GradScaler("cpu", enabled=False)
scaler.step(optimizer)
optimizer.load_state_dict(optimizer.state_dict())
print("torch._dynamo" in sys.modules)
"""


@pytest.mark.parametrize("fused", [False, True])
def test_it_updates_as_torchs_own(fused: bool) -> None:
    generator = torch.Generator().manual_seed(3)
    start = torch.randn(2, 5, generator=generator)
    updated = []
    for kind in (Adam, torch.optim.Adam):
        gradients = torch.Generator().manual_seed(7)
        weights, more = torch.nn.Parameter(start.clone()), torch.nn.Parameter(torch.zeros(4))
        optimizer = kind([weights], lr=0.01, eps=1e-5, fused=fused)
        optimizer.add_param_group({"params": [more], "lr": 0.1})
        for step in range(20):
            optimizer.zero_grad()
            assert weights.grad is None
            weights.grad = torch.randn(2, 5, generator=gradients)
            more.grad = torch.randn(4, generator=gradients)
            if step == 10:
                saved = optimizer.state_dict()
                optimizer = kind([{"params": [weights]}, {"params": [more]}], fused=fused)
                optimizer.load_state_dict(saved)
            optimizer.step()
        assert weights.requires_grad
        assert weights.is_leaf
        updated.append((weights.detach(), more.detach()))
    assert torch.equal(updated[0][0], updated[1][0])
    assert torch.equal(updated[0][1], updated[1][1])


def test_it_loads_no_compiler() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
