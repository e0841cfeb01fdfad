"""Settings that move from a first value to a last one: step size, entropy weight and clip range."""

import numpy as np
import pytest
import sick
from learning import MATCHES, STEPS, make_env, make_model
from test_league_ppo import collect, prepared

from learner.doctor.setup import build_model
from learner.settings import LearnerSettings

SCHEDULED = ("learning_rate", "ent_coef", "clip_range")


@pytest.mark.parametrize("name", SCHEDULED)
def test_a_final_value_is_reached_linearly_and_none_keeps_the_first(name):
    constant = LearnerSettings(**{name: 0.4})
    falling = LearnerSettings(**{name: 0.4, f"{name}_final": 0.1})
    at = [0.0, 0.25, 0.5, 1.0]  # share of the steps still to come
    assert [getattr(constant, f"{name}_at")(share) for share in at] == [0.4] * 4
    assert [getattr(falling, f"{name}_at")(share) for share in at] == pytest.approx(
        [0.1, 0.175, 0.25, 0.4]
    )


def test_the_loss_clips_at_the_range_of_the_moment():
    settings = LearnerSettings(clip_range=0.3, clip_range_final=0.1)
    model = prepared(make_model(make_env(), clip_range=settings.clip_range_at))
    collect(model)
    model.buffer.log_prob_TN -= float(np.log(1.2))  # every ratio is 1.2
    batch = next(model.buffer.minibatches(MATCHES, np.random.default_rng(0)))
    clipped = []
    for remaining in (1.0, 0.55, 0.45, 0.0):  # 0.30, 0.21, 0.19, 0.10
        model._current_progress_remaining = remaining
        clipped.append(float(model.loss_terms(batch).policy.clip_fraction))
    assert clipped == [0.0, 0.0, 1.0, 1.0]


def test_an_update_tells_the_range_that_it_clipped_at():
    model = prepared(
        make_model(make_env(), clip_range=LearnerSettings(clip_range_final=0.1).clip_range_at)
    )
    model.num_timesteps = 10**6 // 2 - STEPS * MATCHES
    collect(model)
    model._update_current_progress_remaining(model.num_timesteps, 10**6)
    model.train()
    assert model.logger.name_to_value["policy/clip_range"] == pytest.approx(0.15)


def test_a_learner_made_from_its_settings_has_all_three(tmp_path):
    flags = [
        f"learner.{name}={first}" for name, first in zip(SCHEDULED, (0.001, 0.01, 0.2), strict=True)
    ]
    flags += [
        f"learner.{name}_final={last}"
        for name, last in zip(SCHEDULED, (0.0005, 0.0, 0.1), strict=True)
    ]
    set_up = sick.set_up(*flags, "learner.matches=2", "learner.batch_size=16")
    model = build_model(set_up, set_up.settings, tmp_path)
    model._current_progress_remaining = 0.5
    made = model.lr_schedule(0.5), model.entropy_weight, model.clip_now
    assert made == pytest.approx((0.00075, 0.005, 0.15))
