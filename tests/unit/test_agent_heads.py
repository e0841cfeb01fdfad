"""The distributions over keys and over legal choices, against torch.distributions."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Bernoulli, Independent, OneHotCategorical

from league.agent.heads import BernoulliKeys, MaskedChoice, action_distribution

LEGAL = torch.tensor([True, False, True, True])
KINDS = pytest.mark.parametrize("kind", ["keys", "choice"])
LOGITS = torch.randn(6, 3, 4, generator=torch.Generator().manual_seed(0)) * 2


def ours(kind: str, logits: torch.Tensor) -> BernoulliKeys | MaskedChoice:
    return action_distribution(kind, logits, LEGAL if kind == "choice" else None)


def theirs(kind: str, logits: torch.Tensor) -> Independent | OneHotCategorical:
    if kind == "keys":
        return Independent(Bernoulli(logits=logits), 1)
    return OneHotCategorical(logits=logits.masked_fill(~LEGAL, -torch.inf))


@KINDS
def test_log_prob_and_entropy_are_torchs(kind: str) -> None:
    mine, wanted = ours(kind, LOGITS), theirs(kind, LOGITS)
    actions = wanted.sample()
    torch.testing.assert_close(mine.log_prob(actions.to(torch.uint8)), wanted.log_prob(actions))
    torch.testing.assert_close(mine.entropy(), wanted.entropy())


@KINDS
def test_samples_follow_the_probabilities_and_the_generator(kind: str) -> None:
    logits = torch.tensor([-1.5, 9.0, 0.0, 2.0])
    drawn = ours(kind, logits.expand(20_000, 4))
    first, again = (drawn.sample(torch.Generator().manual_seed(3)) for _ in range(2))
    assert first.dtype == torch.uint8
    assert torch.equal(first, again)
    wanted = theirs(kind, logits).mean
    torch.testing.assert_close(first.float().mean(0), wanted, atol=0.012, rtol=0)


def test_greedy_takes_the_likeliest() -> None:
    logits = torch.tensor([-0.1, 0.0, 1e-12, 5.0])
    assert BernoulliKeys(logits).greedy().tolist() == [0, 0, 1, 1]
    assert MaskedChoice(logits, LEGAL.flip(0)).greedy().tolist() == [0, 0, 0, 1]
    assert MaskedChoice(logits, ~LEGAL).greedy().tolist() == [0, 1, 0, 0]


def test_keys_stay_finite_for_extreme_logits() -> None:
    logits = torch.tensor([[200.0, -200.0]], requires_grad=True)
    keys, pressed = BernoulliKeys(logits), torch.tensor([[0, 1]], dtype=torch.uint8)
    assert keys.log_prob(pressed).item() == -400.0
    total = keys.log_prob(pressed) + keys.entropy()
    total.sum().backward()
    assert torch.isfinite(total).all()
    assert torch.isfinite(logits.grad).all()


def test_without_a_mask_and_with_nothing_legal_everything_is() -> None:
    free, none = MaskedChoice(LOGITS), MaskedChoice(LOGITS, torch.zeros(4, dtype=torch.bool))
    torch.testing.assert_close(free.entropy(), OneHotCategorical(logits=LOGITS).entropy())
    assert torch.equal(free.log_probs, none.log_probs)


def test_an_illegal_choice_is_never_made_and_has_no_gradient() -> None:
    logits = torch.tensor([[1.0, 50.0, 0.0, -1.0]]).expand(5000, 4).clone().requires_grad_()
    choice = MaskedChoice(logits, LEGAL)
    made = choice.sample(torch.Generator().manual_seed(1))
    assert made.sum(-1).eq(1).all()
    assert made[:, 1].sum() == 0
    (choice.log_prob(made) + choice.entropy()).sum().backward()
    assert torch.isfinite(logits.grad).all()
    assert logits.grad[:, 1].abs().max() == 0
    assert logits.grad[:, 0].abs().max() > 0


def test_a_forced_move_has_no_entropy_and_no_gradient() -> None:
    logits = torch.randn(8, 4, requires_grad=True)
    choice = MaskedChoice(logits, torch.tensor([True, False, False, False]))
    assert choice.entropy().abs().max() == 0
    choice.log_prob(choice.sample()).sum().backward()
    assert logits.grad.abs().max() == 0
