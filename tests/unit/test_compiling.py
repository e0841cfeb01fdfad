"""A compiled step decides as the network does, in a rollout too, and says in a sentence where it
can't.
"""

import numpy as np
import pytest
import torch
from agents import TINY, network, sequence
from learning import MATCHES, make_env, make_model
from test_league_ppo import collect

from league.agent.heads import BernoulliKeys
from league.errors import ConfigError
from learner.ppo import compiling
from learner.ppo.compiling import compiled_step


@pytest.mark.slow
def test_a_compiled_step_gives_the_networks_outputs_and_follows_its_weights() -> None:
    net, data = network(TINY), sequence(TINY, 24, 5)
    step = compiled_step(net, 5)
    for scale in (1.0, 0.5):
        with torch.inference_mode():
            for parameter in net.parameters():
                parameter.mul_(scale)
            plain = compiled = net.initial_state(5)
            for obs_BO, starts_B, left_B in zip(
                data["obs"], data["starts"], data["left"], strict=True
            ):
                wanted = net.step(obs_BO, starts_B, plain, left_B)
                found = step(obs_BO, starts_B, compiled, left_B)
                plain, compiled = wanted.state, found.state
                torch.testing.assert_close(found.logits_BA, wanted.logits_BA, atol=1e-5, rtol=1e-5)
                torch.testing.assert_close(found.value_B, wanted.value_B, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_a_rollout_by_a_compiled_step_is_learnt_from_as_it_was_played() -> None:
    # matches end in the middle of rollouts
    model = make_model(make_env(max_frames=40), compiled=True)
    net = model.policy.network
    with torch.no_grad():  # fresh heads say nearly the same whatever they are shown
        net.actor.last.weight.mul_(100.0)
        net.critic.last.weight.mul_(100.0)
    collect(model, rollouts=4)
    assert model.buffer.ended_TN.any()
    batch = next(model.buffer.minibatches(MATCHES, np.random.default_rng(0)))
    out = net.unroll(
        batch.obs_XBO,
        batch.starts_XB,
        batch.h_BH,
        batch.c_BH,
        batch.time_left_TB,
        model.buffer.context,
    )
    log_prob_TB = BernoulliKeys(out.logits_TBA).log_prob(batch.actions_TBA)
    assert log_prob_TB.std() > 0.1
    torch.testing.assert_close(log_prob_TB, batch.log_prob_TB, atol=1e-4, rtol=0)
    torch.testing.assert_close(out.value_TB, batch.value_TB, atol=1e-4, rtol=1e-4)


def test_what_can_not_be_compiled_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(function, **_options):
        def fails(*_args):
            raise RuntimeError("No working C++ compiler found\nat length")

        return fails

    monkeypatch.setattr(compiling.torch, "compile", refuse)
    with pytest.raises(
        ConfigError, match=r"\(No working C\+\+ compiler found\): set it to false, or install"
    ):
        compiled_step(network(TINY), 3)


def test_a_learner_decides_by_what_was_compiled_when_told_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []

    def counted(function, **_options):
        def step(*args):
            calls.append(args[0].shape[0])
            return function(*args)

        return step

    monkeypatch.setattr(compiling.torch, "compile", counted)
    collect(make_model(make_env()))
    assert not calls
    model = make_model(make_env(), compiled=True)
    calls.clear()
    collect(model)
    # every decision, and the value of the cut-off
    assert calls == [model.n_envs] * (model.n_steps + 1)
