"""LeaguePPO on the real game: the ratio before an update, gradients, faults, and exact resume."""

from dataclasses import replace

import pytest
import torch
from learning import MATCHES, STEPS, config, make_env, make_model, same, weights
from rollouts import NoCallback, collect, prepared, whole_batch

from league.agent.heads import BernoulliKeys
from league.errors import NumericalFault


@pytest.mark.parametrize("parts", [{}, {"encoder": "none"}, {"recurrent": False}], ids=str)
def test_ratio_is_one_before_the_first_update_across_match_ends(parts):
    env = make_env(max_frames=40)  # a match ends every 10 decisions, in the middle of rollouts
    model = make_model(env, replace(config(), **parts))
    collect(model, rollouts=4)
    assert model.buffer.ended_TN.any()
    batch = whole_batch(model)
    out = model.unroll(batch)
    keys = BernoulliKeys(out.logits_TBA)
    torch.testing.assert_close(
        keys.log_prob(batch.actions_TBA), batch.log_prob_TB, atol=2e-5, rtol=0
    )
    torch.testing.assert_close(out.value_TB, batch.value_TB, atol=2e-5, rtol=0)


def test_learning_changes_every_parameter_and_counts_steps():
    env = make_env()
    model = make_model(env)
    before = weights(model)
    model.learn(2 * STEPS * MATCHES)
    after = weights(model)
    unchanged = [name for name in before if torch.equal(before[name], after[name])]
    assert unchanged == []
    assert model.num_timesteps == 2 * STEPS * MATCHES == env.learner_step


def test_nan_stops_the_update_before_any_weight_changes_and_names_the_tensor():
    model = prepared(make_model(make_env(), batch_size=STEPS * MATCHES))
    collect(model)
    before = weights(model)
    model.buffer.advantage_TN[0, 0] = float("nan")
    with pytest.raises(NumericalFault, match=r"policy loss.*\b48\b"):
        model.train()
    assert same(before, weights(model))


def test_stop_leaves_the_context_of_what_was_played():
    whole, cut = make_model(make_env()), make_model(make_env())
    collect(whole, 3)
    collect(cut, 2)
    begun = cut.num_timesteps
    cut.should_stop = lambda: cut.num_timesteps >= begun + 3 * MATCHES
    callback = NoCallback()
    callback.init_callback(cut)
    assert not cut.collect_rollouts(cut.env, callback, None, STEPS)
    context = cut.buffer.context
    expected = torch.cat([whole.buffer.obs_XNO[:context], whole.buffer.obs_XNO[context:]])[
        3 : 3 + context
    ]
    torch.testing.assert_close(cut.buffer.obs_XNO[STEPS:], expected)
