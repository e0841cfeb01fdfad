"""The loss of behaviour cloning is the log-loss of what was done, and its baseline that of the
rates.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from agents import network
from recordings import SMALL, made_up, recorded

from league.replay import Replay
from learner.cloning.demonstrations import Demonstration
from learner.cloning.training import (
    Chunk,
    Streams,
    evaluate,
    log_loss,
    marginal_log_loss,
    rates_A,
)


@pytest.fixture(scope="module")
def plain() -> list[tuple[Path, Replay]]:
    return recorded()


def chunk(actions: list[int], legal: list[bool] | None = None) -> Chunk:
    shape = (1, 1, len(actions))
    return Chunk(
        torch.zeros(1, 1, 1),
        torch.ones(1, 1, dtype=torch.bool),
        torch.tensor(actions).float().view(shape),
        None if legal is None else torch.tensor(legal).view(shape),
        torch.ones(1, 1),
        0,
    )


def test_the_loss_of_keys_is_their_log_loss() -> None:
    logits = torch.tensor([0.3, -1.2, 2.0]).view(1, 1, 3)
    p = torch.sigmoid(logits).flatten().tolist()
    wanted = -math.log(p[0]) - math.log(1 - p[1]) - math.log(1 - p[2])
    assert float(log_loss("keys", logits, chunk([1, 0, 0]))) == pytest.approx(wanted, rel=1e-5)


def test_smoothing_keeps_an_unused_key_possible() -> None:
    """The loss has its minimum, a gradient of 0, where the keys have the smoothed rates."""
    logits = torch.logit(torch.tensor([0.05, 0.95])).view(1, 1, 2).requires_grad_()
    log_loss("keys", logits, chunk([0, 1]), smoothing=0.1).sum().backward()
    assert logits.grad is not None
    assert logits.grad.flatten().tolist() == pytest.approx([0.0, 0.0], abs=1e-6)


def test_the_loss_of_a_choice_is_over_the_legal_ones() -> None:
    logits = torch.tensor([1.0, 0.0, 5.0]).view(1, 1, 3).requires_grad_()
    loss = log_loss("choice", logits, chunk([1, 0, 0], [True, True, False]))
    assert float(loss.detach()) == pytest.approx(math.log(1 + math.exp(-1.0)), rel=1e-5)
    smoothed = log_loss("choice", logits, chunk([1, 0, 0], [True, True, False]), smoothing=0.2)
    wanted = 0.9 * math.log(1 + math.exp(-1.0)) + 0.1 * math.log(1 + math.exp(1.0))
    assert float(smoothed.detach()) == pytest.approx(wanted, rel=1e-5)
    smoothed.sum().backward()
    assert logits.grad is not None
    assert float(logits.grad[0, 0, 2]) == 0.0


def test_in_streams_the_loss_is_that_of_playing_step_by_step() -> None:
    """Whatever the streams and sequences: memory and history run over a whole match and never
    beyond it.
    """
    net, found = network(SMALL), made_up([70, 5, 33, 41, 1, 64])
    lost, steps = 0.0, 0
    with torch.no_grad():
        for d in found:
            state = net.initial_state(1)
            for t in range(len(d)):
                out = net.step(
                    torch.from_numpy(d.obs_TO[t : t + 1]),
                    torch.tensor([t == 0]),
                    state,
                    torch.zeros(1),
                )
                state = out.state
                if d.own_T[t]:
                    x = torch.from_numpy(d.actions_TA[t]).float()
                    p = torch.sigmoid(out.logits_BA[0])
                    lost -= float((x * p.log() + (1 - x) * (1 - p).log()).sum())
                    steps += 1
    for streams, sequence in [(1, 16), (3, 7), (6, 200), (50, 32)]:
        found_loss = evaluate(net, Streams(found, streams), sequence)
        assert found_loss == pytest.approx(lost / steps, abs=1e-4)


def test_the_baseline_is_the_entropy_of_the_rates() -> None:
    ones = np.ones(100, np.bool_)
    actions = np.zeros((100, 3), np.uint8)
    actions[:25, 0], actions[:, 1] = 1, 1
    found = [Demonstration(0, np.zeros((100, 4), np.float32), actions, None, ones)]
    assert rates_A(found).tolist() == pytest.approx([25.5 / 101, 100.5 / 101, 0.5 / 101])
    wanted = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert marginal_log_loss(found, found) == pytest.approx(wanted, abs=0.012)
