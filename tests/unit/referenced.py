"""Learners that are held near references, for the tests of references."""

import test_choice_learning as choice_learning
import torch
from learning import MATCHES, STEPS, make_env, make_model
from rollouts import prepared

from learner.ppo import references
from learner.settings import RegularisationSettings

ALPHA = 0.5


def regularised(env=None, *, options=None, portfolio_interval=None, **settings):
    fresh = env is None
    env = env or make_env(max_frames=60)
    model = make_model(env, **held(**settings), **(options or {}))
    if model.references is not None and portfolio_interval is not None:
        model.references.portfolio_interval = portfolio_interval
    return prepared(model) if fresh else model


def held(**settings):
    """Keywords of a learner that is held near references in all matches, or in a share."""
    references.MATCH_SHARE = settings.pop("match_share", 1.0)
    settings = {"alpha": ALPHA, "reference_interval": 0, **settings}
    return {"regularisation": RegularisationSettings(**settings)}


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
    interval = settings.pop("portfolio_interval", None)
    env = choice_learning.make_env("leduc", ("random", "live"), count=1000)
    model = choice_learning.make_model(env, **held(form=form, **settings), learning_rate=3e-3)
    if interval is not None:
        model.references.portfolio_interval = interval
    return prepared(model)
