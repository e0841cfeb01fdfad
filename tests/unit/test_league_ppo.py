"""LeaguePPO on the real game: the ratio before an update, gradients, faults, and exact resume."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from learning import MATCHES, STEPS, assignments, config, make_env, make_model, same, weights
from stable_baselines3.common.callbacks import BaseCallback

from league.agent.heads import BernoulliKeys
from league.errors import NumericalFault
from learner.train.checkpoint import (
    CheckpointFolder,
    algorithm_state,
    environment_state,
    load_algorithm_state,
    load_environment_state,
)


def collect(model, rollouts=1):
    """Plays whole rollouts without an update."""
    callback = NoCallback()
    callback.init_callback(model)
    for _ in range(rollouts):
        assert model.collect_rollouts(model.env, callback, None, model.n_steps)


class NoCallback(BaseCallback):
    def _on_step(self):
        return True


@pytest.mark.parametrize(
    "parts", [{}, {"encoder": "window"}, {"history": False}, {"recurrent": False}], ids=str
)
def test_ratio_is_one_before_the_first_update_across_match_ends(parts):
    env = make_env(max_frames=40)  # a match ends every 10 decisions, in the middle of rollouts
    model = make_model(env, replace(config(), **parts))
    collect(model, rollouts=4)
    assert model.buffer.ended_TN.any()
    batch = next(model.buffer.minibatches(MATCHES, np.random.default_rng(0)))
    out = model.policy.network.unroll(
        batch.obs_XBO,
        batch.starts_XB,
        batch.h_BH,
        batch.c_BH,
        batch.time_left_TB,
        prefix=model.buffer.context,
    )
    keys = BernoulliKeys(out.logits_TBA)
    torch.testing.assert_close(
        keys.log_prob(batch.actions_TBA), batch.log_prob_TB, atol=2e-5, rtol=0
    )
    torch.testing.assert_close(out.value_TB, batch.value_TB, atol=2e-5, rtol=0)


def test_learning_computes_the_very_function_that_acted():
    """Nothing in the network is drawn anew in a pass: a dropout in either would move the ratio."""
    model = make_model(make_env())
    collect(model)
    batch = next(model.buffer.minibatches(MATCHES, np.random.default_rng(0)))
    terms = []
    for training in (False, True, True):
        model.policy.set_training_mode(training)
        terms.append(model.loss_terms(batch))
    for term in terms[1:]:
        assert torch.equal(term.policy.approx_kl, terms[0].policy.approx_kl)
        assert torch.equal(term.value, terms[0].value)


def test_learning_changes_every_parameter_and_counts_steps():
    env = make_env()
    model = make_model(env)
    before = weights(model)
    model.learn(2 * STEPS * MATCHES)
    after = weights(model)
    unchanged = [name for name in before if torch.equal(before[name], after[name])]
    assert unchanged == []
    assert model.num_timesteps == 2 * STEPS * MATCHES == env.learner_step


def test_the_game_gets_the_keys_that_were_sampled():
    env = make_env(max_frames=4000)
    model = make_model(env)
    collect(model)
    played = env._actions_N2A[np.arange(MATCHES), env.seat_N]
    np.testing.assert_array_equal(played, model.buffer.actions_TNA[-1].numpy())
    assert 0 < played.mean() < 0.5


def test_nan_stops_the_update_before_any_weight_changes_and_names_the_tensor():
    model = prepared(make_model(make_env(), batch_size=STEPS * MATCHES))
    collect(model)
    before = weights(model)
    model.buffer.advantage_TN[0, 0] = float("nan")
    with pytest.raises(NumericalFault, match="the policy loss is not finite at step 48"):
        model.train()
    assert same(before, weights(model))


def test_predict_carries_its_state_like_any_recurrent_policy():
    env = make_env()
    model = make_model(env)
    obs = env.reset()
    keys, state = model.predict(obs, deterministic=True)
    assert keys.shape == (MATCHES, 10)
    assert state is not None
    model.predict(obs, state, np.zeros(MATCHES, bool), deterministic=True)
    one, _ = model.predict(obs[0], deterministic=True)
    assert one.shape == (10,)
    np.testing.assert_array_equal(one, keys[0])


def test_stop_leaves_the_context_of_what_was_played():
    whole, cut = make_model(make_env()), make_model(make_env())
    collect(whole, 3)
    collect(cut, 2)
    played = []
    cut.should_stop = lambda: len(played) >= 3
    callback = CountingCallback(played)
    callback.init_callback(cut)
    assert not cut.collect_rollouts(cut.env, callback, None, STEPS)
    context = cut.buffer.context
    expected = torch.cat([whole.buffer.obs_XNO[:context], whole.buffer.obs_XNO[context:]])[
        3 : 3 + context
    ]
    torch.testing.assert_close(cut.buffer.obs_XNO[STEPS:], expected)


class CountingCallback(BaseCallback):
    def __init__(self, played):
        super().__init__()
        self.played = played

    def _on_step(self):
        self.played.append(1)
        return True


def updates(model, count):
    for _ in range(count):
        collect(model)
        model.train()


def prepared(model):
    """What `learn` would set up: a logger and the share of the steps to come."""
    model._setup_learn(10**6, None, reset_num_timesteps=False)
    return model


def test_a_run_resumed_from_a_checkpoint_equals_one_that_never_stopped(tmp_path):
    torch.set_num_threads(1)
    uninterrupted = prepared(make_model(make_env(max_frames=60)))
    updates(uninterrupted, 5)

    first = prepared(make_model(make_env(max_frames=60)))
    updates(first, 3)
    folder = CheckpointFolder(tmp_path)
    folder.write(
        first.num_timesteps,
        {"algorithm": algorithm_state(first), "environment": environment_state(first.env)},
    )
    taken = 200 - len(first.env.source._left)

    saved = folder.read_newest()
    plan = assignments(200)
    by_id = {assignment.match_id: assignment for assignment in plan}
    env = make_env(plan[taken:], max_frames=60)
    second = make_model(env)
    load_algorithm_state(second, saved["algorithm"])
    load_environment_state(
        env, saved["environment"], [by_id[m] for m in saved["environment"]["matches"]]
    )
    second.last_obs_NO = env.observations()
    prepared(second)
    updates(second, 2)

    assert second.num_timesteps == uninterrupted.num_timesteps
    assert same(weights(second), weights(uninterrupted))
    np.testing.assert_array_equal(second.last_obs_NO, uninterrupted.last_obs_NO)
    ended = [(r.match_id, r.outcome, r.frames, r.seats) for r in uninterrupted.env.source.results]
    resumed = [
        (r.match_id, r.outcome, r.frames, r.seats)
        for r in first.env.source.results + env.source.results
    ]
    assert resumed == ended
    assert len(ended) > MATCHES
