"""The distribution over keys against torch.distributions."""

import pytest
import torch
from torch.distributions import Bernoulli, kl_divergence

from league.agent.heads import BernoulliKeys


@pytest.fixture
def logits() -> torch.Tensor:
    return torch.randn(7, 5, 10, generator=torch.Generator().manual_seed(0)) * 3


def test_log_prob_entropy_and_kl_are_torchs(logits: torch.Tensor) -> None:
    other = logits.flip(0) - 0.5
    keys, theirs = BernoulliKeys(logits), Bernoulli(logits=logits)
    pressed = theirs.sample()
    torch.testing.assert_close(
        keys.log_prob(pressed.to(torch.uint8)), theirs.log_prob(pressed).sum(-1)
    )
    torch.testing.assert_close(keys.entropy(), theirs.entropy().sum(-1))
    torch.testing.assert_close(
        keys.kl(BernoulliKeys(other)), kl_divergence(theirs, Bernoulli(logits=other)).sum(-1)
    )


def test_kl_to_itself_is_exactly_zero_and_never_negative(logits: torch.Tensor) -> None:
    keys = BernoulliKeys(logits)
    assert keys.kl(BernoulliKeys(logits.clone())).abs().max() == 0
    assert keys.kl(BernoulliKeys(logits + 0.01)).min() > 0


def test_everything_stays_finite_for_extreme_logits() -> None:
    logits = torch.tensor([[200.0, -200.0]], requires_grad=True)
    keys = BernoulliKeys(logits)
    pressed = torch.tensor([[0, 1]], dtype=torch.uint8)
    assert keys.log_prob(pressed).item() == -400.0
    total = keys.log_prob(pressed) + keys.entropy() + keys.kl(BernoulliKeys(-logits))
    total.sum().backward()
    assert torch.isfinite(total).all()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()


def test_samples_follow_the_probabilities_and_the_generator() -> None:
    keys = BernoulliKeys(torch.tensor([-1.5, 0.0, 2.0]).expand(20000, 3))
    first, again = (keys.sample(torch.Generator().manual_seed(3)) for _ in range(2))
    assert first.dtype == torch.uint8
    assert torch.equal(first, again)
    torch.testing.assert_close(
        first.float().mean(0), torch.sigmoid(torch.tensor([-1.5, 0.0, 2.0])), atol=0.012, rtol=0
    )


def test_greedy_presses_what_is_likelier_down_than_up() -> None:
    keys = BernoulliKeys(torch.tensor([-0.1, 0.0, 1e-12, 5.0]))
    assert keys.greedy().tolist() == [0, 0, 1, 1]
