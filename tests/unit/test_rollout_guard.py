"""NaN or infinity stops a rollout where it comes up, with the name of its source."""

import numpy as np
import pytest
import torch
from learning import assignments, make_env, make_model
from rollouts import collect, prepared

from league.errors import NumericalFault


def test_an_observation_that_is_nan_names_match_seat_and_number():
    env = make_env()
    env.reset()
    env.game.observations_N2O[4, 1, 33] = np.nan
    met = assignments(5)[4]
    with pytest.raises(NumericalFault, match=rf"\b33\b.*seat 1.*nan.*{met.match_id}"):
        env.observations()


def test_a_reward_term_that_is_infinite_is_named_before_it_counts(monkeypatch):
    env = make_env()
    env.reset()
    step = env.game.step

    def breaks(actions, frames):
        step(actions, frames)
        env.game.reward_terms_N2K[2, env.seat_N[2], 0] = np.inf

    monkeypatch.setattr(env.game, "step", breaks)
    with pytest.raises(NumericalFault, match=r"damage.*inf.*match-2.*random"):
        env.step_arrays(np.zeros((6, 10), np.uint8))
    assert np.isfinite(env.terms_NK).all()


@pytest.mark.parametrize(("head", "culprit"), [("actor", "logits"), ("critic", "value")])
def test_a_network_that_answers_nan_is_found_before_it_acts(head, culprit):
    model = prepared(make_model(make_env()))
    with torch.no_grad():
        getattr(model.policy.network, head).last.bias[0] = float("nan")
    with pytest.raises(NumericalFault, match=rf"{culprit}.*\b0\b"):
        collect(model)
    assert model.env.learner_step == 0
