"""PPO's loss terms: known answers, and which parameters each one moves."""

import math

import pytest
import torch

from learner.ppo.loss import advantage_sums, clipped_policy_loss, normalised, value_loss


def loss_of(ratio, advantage):
    log_prob = torch.log(torch.tensor([ratio], requires_grad=True))
    old = torch.zeros(1)
    out = clipped_policy_loss(log_prob, old, torch.tensor([advantage]), 0.2)
    return out


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
    assert loss_of(ratio, advantage).loss.item() == pytest.approx(expected, rel=1e-5)


def test_clip_removes_the_gradient_only_beyond_a_gain():
    for ratio, advantage, moves in [
        (1.5, 1.0, False),
        (0.5, 1.0, True),
        (0.5, -1.0, False),
        (1.1, 1.0, True),
    ]:
        log_prob = torch.tensor([ratio]).log().requires_grad_()
        clipped_policy_loss(
            log_prob, torch.zeros(1), torch.tensor([advantage]), 0.2
        ).loss.backward()
        assert (log_prob.grad.abs().item() > 0) == moves


def test_kl_estimate_is_zero_for_equal_and_positive_for_different_policies():
    old = torch.tensor([-1.0, -2.0])
    assert clipped_policy_loss(old, old, torch.ones(2), 0.2).approx_kl.item() == 0.0
    for change in (0.3, -0.3):
        known = pytest.approx(math.exp(change) - 1.0 - change, rel=1e-4)
        assert clipped_policy_loss(old + change, old, torch.ones(2), 0.2).approx_kl.item() == known


def test_clip_fraction_counts_ratios_outside():
    log_prob = torch.tensor([1.0, 1.1, 0.9, 0.7]).log()
    assert (
        clipped_policy_loss(log_prob, torch.zeros(4), torch.ones(4), 0.2).clip_fraction.item()
        == 0.25
    )
    assert (
        clipped_policy_loss(-log_prob, torch.zeros(4), torch.ones(4), 0.2).clip_fraction.item()
        == 0.25
    )


def test_normalised_has_mean_zero_and_deviation_one():
    raw = torch.tensor([1.0, 5.0, -3.0, 9.0])
    advantage = normalised(raw, advantage_sums(raw))
    assert advantage.mean().item() == pytest.approx(0.0, abs=1e-6)
    assert advantage.std().item() == pytest.approx(1.0, rel=1e-5)


def test_value_loss_is_the_mean_square():
    assert value_loss(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 0.0])).item() == 5.0
