"""PPO's loss terms: known answers, and which parameters each one moves."""

import math

import pytest
import torch

from learner.ppo.loss import clipped_policy_loss, value_loss


def clipped(log_ratio, advantage=1.0):
    old = torch.full_like(log_ratio, -1.0)
    return clipped_policy_loss(old + log_ratio, old, torch.full_like(old, advantage), 0.2)


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected"),
    [
        (1.0, 2.0, -2.0),
        (1.5, 2.0, -2.4),  # a gain is clipped at 1.2
        (0.5, 2.0, -1.0),  # a loss of probability is not
        (0.5, -2.0, 1.6),  # clipped at 0.8
        (1.5, -2.0, 3.0),
    ],
)
def test_clipped_objective(ratio, advantage, expected):
    loss = clipped(torch.tensor([ratio]).log(), advantage).loss
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_clip_removes_the_gradient_only_beyond_a_gain():
    cases = [(1.5, 1.0, False), (0.5, 1.0, True), (0.5, -1.0, False), (1.1, 1.0, True)]
    for ratio, advantage, moves in cases:
        log_ratio = torch.tensor([ratio]).log().requires_grad_()
        clipped(log_ratio, advantage).loss.backward()
        assert (log_ratio.grad.abs().item() > 0) == moves


def test_kl_estimate_is_zero_for_equal_and_positive_for_different_policies():
    assert clipped(torch.zeros(2)).approx_kl.item() == 0.0
    for change in (0.3, -0.3):
        known = pytest.approx(math.exp(change) - 1.0 - change, rel=1e-4)
        assert clipped(torch.full((2,), change)).approx_kl.item() == known


def test_clip_fraction_counts_ratios_outside():
    log_ratio = torch.tensor([1.0, 1.1, 0.9, 0.7]).log()
    for one in (log_ratio, -log_ratio):
        assert clipped(one).clip_fraction.item() == 0.25


def test_value_loss_is_the_mean_square():
    assert value_loss(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 0.0])).item() == 5.0
