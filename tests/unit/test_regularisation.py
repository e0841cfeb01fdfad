"""The pure parts of regularisation: exact divergences with their gradients, and what a portfolio
drops.
"""

import numpy as np
import pytest
import torch
from torch.distributions import Bernoulli, Categorical, kl_divergence

from league.agent.heads import BernoulliKeys, MaskedChoice, action_distribution
from league.games.base import CHOICE, KEYS
from learner.ppo.divergence import closest_divergence, kl_to_fixed, log_prob_ratio, pairwise_kl
from learner.ppo.references import lowest_rated, most_redundant

KINDS = pytest.mark.parametrize("kind", [KEYS, CHOICE])


def states(seed, policies=3, steps=4, batch=5, actions=6):
    rng = np.random.default_rng(seed)
    draw = lambda *shape: torch.from_numpy(rng.normal(0, 3, shape).astype(np.float32))  # noqa: E731
    legal = torch.from_numpy(rng.random((steps, batch, actions)) < 0.6)
    legal[..., 0] = True
    return draw(steps, batch, actions), draw(policies, steps, batch, actions), legal


def textbook(kind, logits, fixed, legal):
    """By torch's own distributions; illegal choices have a logit of -1e30."""
    if kind == KEYS:
        return kl_divergence(Bernoulli(logits=logits), Bernoulli(logits=fixed)).sum(-1)
    only = lambda x: Categorical(logits=x.double().masked_fill(~legal, -1e30))  # noqa: E731
    return kl_divergence(only(logits), only(fixed)).float()


@KINDS
def test_divergence_and_its_gradient_are_those_of_the_textbook(kind):
    logits, fixed, legal = states(0)
    mine, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    made = kl_to_fixed(kind, mine, fixed, legal)
    wanted = torch.stack([textbook(kind, theirs, one, legal) for one in fixed])
    torch.testing.assert_close(made, wanted, atol=2e-5, rtol=1e-5)
    made.square().sum().backward()
    wanted.square().sum().backward()
    torch.testing.assert_close(mine.grad, theirs.grad, atol=1e-3, rtol=1e-4)


@KINDS
@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0])
def test_divergence_from_an_identical_policy_is_exactly_0_with_no_gradient(kind, size):
    logits, _, legal = states(1)
    logits = (logits * size).requires_grad_()
    kl = kl_to_fixed(kind, logits, logits.detach().clone()[None], legal)
    assert (kl == 0).all()
    kl.sum().backward()
    assert (logits.grad == 0).all()


def test_the_closest_policy_of_each_state_counts_and_states_without_weight_do_not():
    kl = torch.tensor([[[1.0, 5.0], [2.0, 9.0]], [[3.0, 4.0], [0.5, 9.0]]])  # [M, T, B]
    weight = torch.tensor([[1.0, 1.0], [1.0, 0.0]])
    found = closest_divergence(kl, weight, states=6.0)
    assert found.loss.item() == pytest.approx((1.0 + 4.0 + 0.5) / 6)
    assert found.kl_M.tolist() == pytest.approx([8 / 3, 7.5 / 3])
    assert found.closest_M.tolist() == pytest.approx([1 / 3, 2 / 3])


def test_only_the_closest_policy_pulls():
    logits = torch.zeros(1, 1, 2, requires_grad=True)
    near, far = torch.tensor([[[0.5, 0.0]]]), torch.tensor([[[0.0, 3.0]]])
    kl = kl_to_fixed(KEYS, logits, torch.stack([far, near]))
    closest_divergence(kl, torch.ones(1, 1), 1.0).loss.backward()
    assert logits.grad[0, 0, 0] < 0, "toward the near one's higher logit"
    assert logits.grad[0, 0, 1] == 0, "the far one differs here alone"


@KINDS
def test_pairs_are_the_means_over_the_states_that_count(kind):
    _, fixed, legal = states(2)
    weight = torch.ones(4, 5)
    weight[2:] = 0
    found = pairwise_kl(kind, fixed, legal, weight)
    for i in range(3):
        for j in range(3):
            wanted = textbook(kind, fixed[i, :2], fixed[j, :2], legal[:2]).mean()
            assert found[i, j].item() == pytest.approx(wanted.item(), abs=1e-4)
    assert found.diagonal().abs().max() == 0


@KINDS
def test_the_ratio_is_that_of_the_actions_made_to_the_closest_policy(kind):
    logits, fixed, legal = states(3)
    torch.manual_seed(0)
    made = action_distribution(kind, logits, legal).sample()
    ratio = log_prob_ratio(kind, logits, fixed, made, legal)
    for t in range(4):
        for b in range(5):
            near = min(
                fixed[:, t, b], key=lambda one: textbook(kind, logits[t, b], one, legal[t, b])
            )
            mine, theirs = (
                BernoulliKeys(x) if kind == KEYS else MaskedChoice(x, legal[t, b])
                for x in (logits[t, b], near)
            )
            wanted = mine.log_prob(made[t, b]) - theirs.log_prob(made[t, b])
            assert ratio[t, b].item() == pytest.approx(wanted.item(), abs=1e-4)


# -- portfolios: tables of cases -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "dropped"),
    [
        ([3.0, 1.0, 2.0], 1),
        ([1.0, 1.0, 2.0], 0),  # of equal ones the older
        ([2.0, 3.0, None], 0),  # the newest has no rating yet: it is not judged
        ([None, 5.0, 4.0], 2),
        ([None, None], 0),  # none is rated: the oldest
        ([-2.0], 0),
        ([0.0, -1.0], 1),
    ],
)
def test_best_drops_the_lowest_rated(scores, dropped):
    assert lowest_rated(scores) == dropped


@pytest.mark.parametrize(
    ("points", "dropped"),
    [
        ([0.0, 1.0, 1.1, 5.0], 1),  # 1.0 and 1.1 are the pair alike: the older of them
        ([0.0, 3.0, 5.0, 5.0], 2),
        ([9.0, 0.0, 20.0, 20.5], 2),
        ([4.0], 0),
        ([4.0, 4.0], 0),
    ],
)
def test_diverse_drops_what_is_most_like_another(points, dropped):
    apart = np.abs(np.subtract.outer(points, points))
    assert most_redundant(apart) == dropped


def test_diverse_reads_rows_as_what_is_lost_without_them():
    lost = np.array([[0.0, 2.0, 3.0], [0.5, 0.0, 3.0], [4.0, 4.0, 0.0]])
    assert most_redundant(lost) == 1, "0 can stand for 1 at a cost of 0.5; 1 for 0 at 2"
