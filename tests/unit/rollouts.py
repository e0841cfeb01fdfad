"""Rollouts and updates of a learner outside of `learn`."""

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback


class NoCallback(BaseCallback):
    def _on_step(self):
        return True


def collect(model, rollouts=1):
    """Plays whole rollouts without an update."""
    callback = NoCallback()
    callback.init_callback(model)
    for _ in range(rollouts):
        assert model.collect_rollouts(model.env, callback, None, model.n_steps)


def prepared(model):
    """What `learn` would set up: a logger and the share of the steps to come."""
    model._setup_learn(10**6, None, reset_num_timesteps=False)
    return model


def updates(model, count):
    for _ in range(count):
        collect(model)
        model.train()


def whole_batch(model):
    return next(model.buffer.minibatches(model.n_envs, np.random.default_rng(0)))
