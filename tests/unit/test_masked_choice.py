"""The distribution over legal choices, against torch.distributions and by counting."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Categorical, kl_divergence
from torch.nn.functional import one_hot

from league.agent.heads import BernoulliKeys, MaskedChoice, action_distribution

LEGAL = torch.tensor([True, False, True, True])


@pytest.fixture
def logits() -> torch.Tensor:
    return torch.randn(6, 3, 4, generator=torch.Generator().manual_seed(0)) * 2


def only_legal(logits: torch.Tensor) -> Categorical:
    """torch's own distribution over the three legal choices alone."""
    return Categorical(logits=logits[..., LEGAL])


def test_log_prob_entropy_and_kl_are_those_over_the_legal_choices(logits: torch.Tensor) -> None:
    other = logits.flip(0)
    choice, theirs = MaskedChoice(logits, LEGAL), only_legal(logits)
    for place, index in enumerate((0, 2, 3)):
        action = one_hot(torch.full(logits.shape[:-1], index), 4).to(torch.uint8)
        torch.testing.assert_close(choice.log_prob(action), theirs.log_prob(torch.tensor(place)))
    torch.testing.assert_close(choice.entropy(), theirs.entropy())
    torch.testing.assert_close(
        choice.kl(MaskedChoice(other, LEGAL)), kl_divergence(theirs, only_legal(other))
    )


def test_without_a_mask_and_with_nothing_legal_everything_is(logits: torch.Tensor) -> None:
    free, none = MaskedChoice(logits), MaskedChoice(logits, torch.zeros(4, dtype=torch.bool))
    torch.testing.assert_close(free.entropy(), Categorical(logits=logits).entropy())
    assert torch.equal(free.log_probs, none.log_probs)


def test_an_illegal_choice_is_never_made_and_has_no_gradient() -> None:
    logits = torch.tensor([[1.0, 50.0, 0.0, -1.0]]).expand(5000, 4).clone().requires_grad_()
    choice = MaskedChoice(logits, LEGAL)
    made = choice.sample(torch.Generator().manual_seed(1))
    assert made.dtype == torch.uint8
    assert made.sum(-1).eq(1).all()
    assert made[:, 1].sum() == 0
    assert choice.greedy().argmax(-1).eq(0).all()
    (
        choice.log_prob(made).sum()
        + choice.entropy().sum()
        + choice.kl(MaskedChoice(-logits, LEGAL)).sum()
    ).backward()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    assert logits.grad[:, 1].abs().max() == 0
    assert logits.grad[:, 0].abs().max() > 0


def test_a_forced_move_has_no_entropy_and_no_gradient() -> None:
    logits = torch.randn(8, 4, requires_grad=True)
    forced = torch.tensor([True, False, False, False])
    choice = MaskedChoice(logits, forced)
    assert choice.entropy().abs().max() == 0
    choice.log_prob(choice.sample()).sum().backward()
    assert logits.grad is not None
    assert logits.grad.abs().max() == 0


def test_samples_follow_the_probabilities_and_the_generator() -> None:
    logits = torch.tensor([0.3, 9.0, -1.0, 1.2]).expand(40000, 4)
    choice = MaskedChoice(logits, LEGAL)
    first, again = (choice.sample(torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, again)
    wanted = torch.zeros(4)
    wanted[LEGAL] = only_legal(logits[0]).probs
    torch.testing.assert_close(first.float().mean(0), wanted, atol=0.01, rtol=0)


def test_kinds_choose_their_distribution(logits: torch.Tensor) -> None:
    assert isinstance(action_distribution("choice", logits, LEGAL), MaskedChoice)
    assert isinstance(action_distribution("keys", logits), BernoulliKeys)
