"""Learners that are held near references, for the tests of references."""

import numpy as np
import test_choice_learning as choice_learning
import torch
from learning import MATCHES, STEPS, make_env, make_model
from test_league_ppo import prepared

from learner.settings import RegularisationSettings

ALPHA = 0.5


def regularised(env=None, *, options=None, **settings):
    settings = {"alpha": ALPHA, "match_share": 1.0, "reference_interval": 0, **settings}
    fresh = env is None
    env = env or make_env(max_frames=60)
    model = make_model(env, regularisation=RegularisationSettings(**settings), **(options or {}))
    return prepared(model) if fresh else model


def whole_batch(model):
    return next(model.buffer.minibatches(MATCHES, np.random.default_rng(0)))


class Alongside:
    """Plays a copy of a network step by step over what the learner saw in each of its rollouts."""

    def __init__(self, network, matches=MATCHES):
        self.network, self.state = network, network.initial_state(matches)

    @torch.no_grad()
    def play(self, obs_TNO, starts_TN):
        logits = []
        for obs_NO, starts_N in zip(obs_TNO, starts_TN, strict=True):
            out = self.network.step(obs_NO, starts_N, self.state, torch.zeros(len(obs_NO)))
            self.state = out.state
            logits.append(out.logits_BA)
        return torch.stack(logits)

    def play_rollout(self, buffer, steps=STEPS):
        rows = slice(buffer.context, buffer.context + steps)
        return self.play(buffer.obs_XNO[rows], buffer.starts_XN[rows])


def steps_of(model):
    return [reference.step for reference in model.references.members]


def memories(reference):
    return [*reference.own, *(reference.other or ())]


def choosing(form, **settings):
    held = RegularisationSettings(alpha=ALPHA, form=form, match_share=1.0, **settings)
    env = choice_learning.make_env("leduc", ("random", "live"), count=1000)
    return prepared(choice_learning.make_model(env, regularisation=held, learning_rate=3e-3))
