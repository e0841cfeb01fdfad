"""An update in parts, on several ranks or in lower precision is the update that it would be in
one.
"""

from __future__ import annotations

import copy
import re

import numpy as np
import pytest
import torch
from learning import MATCHES, STEPS, make_env, make_model, same
from referenced import held
from rollouts import collect
from stable_baselines3.common.logger import configure

from league.errors import NumericalFault
from learner.distributed.rank_group import RankGroup
from learner.ppo.loss import WeightedMeans, advantage_sums, normalised
from learner.ppo.optimizer import GradientStep
from learner.settings import LearnerSettings

CPU = torch.device("cpu")


def rolled_out(**changes):
    """A model with every term of the loss, after a rollout with a match that failed: means are
    weighted.
    """
    options = {"batch_size": STEPS * MATCHES, **held(match_share=0.5), "forecast_coef": 0.3}
    model = make_model(make_env(max_frames=40), **options, **changes)
    collect(model)
    model.buffer.leave_out(3, np.full(MATCHES, 2), np.arange(MATCHES) == 1)
    with torch.no_grad():  # away from the reference, so that its divergence counts
        for parameter in model.policy.network.parameters():
            parameter.add_(
                0.01 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0))
            )
    return model


def update(model):
    """One step of the optimizer with all matches; its means."""
    rows = torch.arange(MATCHES)
    return model._update(rows, model._sums(rows))[0]


def gradient(model):
    return torch.cat([parameter.grad.flatten() for parameter in model.policy.parameters()])


@pytest.mark.parametrize("parts", [2, MATCHES])
def test_a_minibatch_in_parts_makes_the_step_of_the_whole(parts):
    whole, split = rolled_out(), rolled_out(gradient_parts=parts)
    expected, measured = update(whole), update(split)
    torch.testing.assert_close(gradient(split), gradient(whole), atol=1e-6, rtol=1e-4)
    terms = ("loss/policy", "loss/value", "loss/forecast", "loss/total")
    for name in (*terms, "policy/entropy", "learning/gradient_norm"):
        assert measured[name] == pytest.approx(expected[name], rel=1e-4, abs=1e-6), name


def test_lower_precision_goes_the_same_way():
    exact, lower = rolled_out(), rolled_out(precision="bfloat16")
    expected, measured = update(exact), update(lower)
    cosine = torch.nn.functional.cosine_similarity(gradient(exact), gradient(lower), 0)
    assert 0.99 < cosine < 1 - 1e-7, "alike, and not the same"
    assert measured["loss/value"] == pytest.approx(expected["loss/value"], rel=0.02)
    assert all(parameter.dtype == torch.float32 for parameter in lower.policy.network.parameters())


class OneWeight(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))


def scaled_descent():
    network = OneWeight()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    return network, GradientStep(network, optimizer, 1e9, "float16", CPU, RankGroup())


def test_an_overflow_of_the_scaled_gradient_leaves_the_step_out_and_lowers_the_scale():
    network, descent = scaled_descent()
    scale = descent.scaler.get_scale()
    descent.begin()
    descent.add((network.weight * 1e36).sum(), {})  # finite, and not when it is scaled
    descent.reduce(WeightedMeans(()))
    descent.finish(0)
    assert descent.scaler.get_scale() < scale
    assert network.weight.item() == 1.0
    descent.begin()
    descent.add((2 * network.weight).sum(), {})
    descent.reduce(WeightedMeans(()))
    assert descent.finish(0) == pytest.approx(2.0), "the norm without the scale"
    assert network.weight.item() == pytest.approx(0.8)


def test_a_loss_that_is_no_number_is_a_fault_at_any_scale():
    network, descent = scaled_descent()
    descent.begin()
    loss = (network.weight * float("nan")).sum()
    descent.add(loss, {"value": loss})
    descent.reduce(WeightedMeans(()))
    with pytest.raises(NumericalFault, match=r"value loss.*\b7\b"):
        descent.finish(7)
    assert network.weight.item() == 1.0


def fault_of(spoil):
    """The sentence of an update whose gradients `spoil` changes by name, though every loss is
    finite.

    Neither a weight nor the optimizer's state may have changed.
    """
    model = rolled_out()
    update(model)
    optimizer = model.policy.optimizer
    before, state = copy.deepcopy((model.policy.state_dict(), optimizer.state_dict()["state"]))
    for name, parameter in model.policy.network.named_parameters():
        parameter.register_hook(lambda gradient, name=name: spoil(name, gradient))
    with pytest.raises(NumericalFault) as fault:
        update(model)
    assert same(before, model.policy.state_dict())
    after = optimizer.state_dict()["state"]
    assert after.keys() == state.keys()
    assert all(same(after[index], state[index]) for index in state)
    return str(fault.value)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_gradient_that_is_no_number_is_named_though_it_makes_their_norm_none(number):
    names = [name for name, _ in make_model(make_env()).policy.network.named_parameters()]
    culprit = names[len(names) // 2]

    def spoil(name, gradient):
        if name == culprit:
            gradient = gradient.clone()
            gradient.flatten()[-1] = number
        return gradient

    assert re.search(rf"\b{re.escape(culprit)} .*\b{STEPS * MATCHES}\b", fault_of(spoil))


def test_normalised_over_several_is_normalised_over_all():
    advantage = 1000.0 + torch.arange(10.0).square()
    halves = advantage[:4], advantage[4:]
    sums = advantage_sums(halves[0]) + advantage_sums(halves[1])
    torch.testing.assert_close(sums, advantage_sums(advantage))
    whole = torch.cat([normalised(half, sums) for half in halves])
    assert float(whole.mean()) == pytest.approx(0, abs=1e-6)
    assert float(whole.std()) == pytest.approx(1)
    assert normalised(advantage[:1], advantage_sums(advantage[:1])).tolist() == [1000.0], (
        "of one there is none"
    )


def test_an_update_that_is_asked_to_stop_ends_behind_its_minibatch():
    model = rolled_out(n_epochs=3, desired_kl=1e-9)
    model._logger = configure(None, [])
    before, model.should_stop = model.rate.scale, lambda: True
    model.train()
    assert model._n_updates == 1
    assert model.rate.scale == before, "the KL of a few minibatches says little"
    model.should_stop = lambda: False
    model.train()
    assert model._n_updates == 1 + 3
    assert model.rate.scale < before


def test_rates_keep_their_last_values_beyond_the_planned_steps():
    """A rollout may be longer than all the steps that were asked for."""
    settings = LearnerSettings(
        learning_rate=1e-3, learning_rate_final=1e-5, ent_coef=0.1, ent_coef_final=0.0
    )
    assert settings.learning_rate_at(-1.0) == settings.learning_rate_at(0.0) == 1e-5
    assert settings.ent_coef_at(-1.0) == 0.0
    assert settings.learning_rate_at(1.0) == pytest.approx(1e-3)
