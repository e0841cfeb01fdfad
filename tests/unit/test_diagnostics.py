"""What an update logs apart from its losses: known answers for latent and attention, and where they
are read.
"""

import math

import numpy as np
import pytest
import torch
from learning import MATCHES, STEPS, make_env, make_model
from rollouts import prepared, updates

from learner.ppo import diagnostics as latent
from learner.ppo.diagnostics import Diagnostics


def test_attention_that_sees_all_alike_has_the_largest_entropy_and_a_peak_has_none():
    even = torch.full((3, 2, 4, 1), 0.25)
    assert float(latent.attention_entropy(even)) == pytest.approx(math.log(4))
    assert float(latent.largest_entropy(torch.full((3, 2), 9), 4)) == pytest.approx(math.log(4))
    peak = torch.zeros(3, 2, 4, 1)
    peak[:, :, 1] = 1.0
    assert float(latent.attention_entropy(peak)) == 0.0


def test_the_age_of_attention_counts_frames_from_the_newest_entry():
    peak = torch.zeros(1, 1, 5, 2)
    peak[..., 1, :] = 1.0  # slots 4 3 2 1 0 entries old, so this one is 3
    assert float(latent.attention_age(peak, stride=4)) == pytest.approx(12.0)


def test_drift_is_0_for_what_stays_and_about_1_for_what_forgets():
    generator = torch.Generator().manual_seed(0)
    still = torch.randn(1, 200, 6, generator=generator).expand(10, 200, 6)
    everyone = torch.ones(200, dtype=torch.bool)
    assert float(latent.drift(still, everyone)) == 0.0
    anew = torch.randn(10, 200, 6, generator=generator)
    assert float(latent.drift(anew, everyone)) == pytest.approx(1.0, abs=0.06)
    assert math.isnan(float(latent.drift(anew, torch.zeros(200, dtype=torch.bool))))


def test_drift_leaves_out_matches_that_began_in_between():
    moved = torch.zeros(4, 2, 3)
    moved[-1, 1] = 5.0
    assert float(latent.drift(moved, torch.tensor([True, False]))) == 0.0
    assert float(latent.drift(moved, torch.tensor([False, True]))) > 1.0


def test_separation_is_1_for_clusters_and_0_on_average_for_labels_that_mean_nothing():
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.eye(3), 20, axis=0)
    kinds = ["a"] * 20 + ["b"] * 20 + ["c"] * 20
    assert latent.separation(clusters, kinds) == pytest.approx(1.0)
    by_chance = [
        latent.separation(rng.normal(size=(60, 4)), list(rng.permutation(kinds))) for _ in range(40)
    ]
    assert abs(np.mean(by_chance)) < 0.01  # uncorrected it would be 2 / 59 = 0.034


def test_separation_is_unknown_without_two_kinds_met_twice():
    assert math.isnan(latent.separation(np.eye(3), ["a", "a", "b"]))
    alone = np.array([[0.0], [0.0], [1.0], [1.0], [50.0]])
    assert latent.separation(alone, ["a", "a", "b", "b", "c"]) == pytest.approx(1.0)
    mixed = np.array([[0.0], [1.0], [1.0], [2.0], [50.0]])
    without = latent.separation(mixed[:4], ["a", "a", "b", "b"])
    assert latent.separation(mixed, ["a", "a", "b", "b", "c"]) == without


def test_an_update_reads_gradients_of_every_module_latent_and_attention():
    model = prepared(make_model(make_env()))
    updates(model, 2)  # a history fills
    told = model.logger.name_to_value
    gradients = [
        told[f"gradient/{name}"] for name in ("encoder", "observation", "memory", "actor", "critic")
    ]
    assert all(value > 0 for value in gradients)
    assert 0 < told["latent/spread"] <= told["latent/norm"]
    assert 0 < told["attention/entropy_share"] <= 1.0
    assert 0 < told["context/entropy_share"] <= 1.0
    assert 0 < told["attention/age_frames"] < 4 * 17
    assert told["policy/first_kl"] < 1e-6 < told["policy/approx_kl"]
    minibatches = MATCHES * STEPS // model.batch_size * model.n_epochs
    assert told["policy/lag_updates"] == (minibatches - 1) / 2


def test_what_older_weights_remembered_stays_near_what_newer_ones_would():
    """The memory that a rollout begins with is of weights before the update: near, and never the
    same.
    """
    model = prepared(make_model(make_env(max_frames=4000)))
    apart, moved = [], []
    for _ in range(6):
        updates(model, 1)
        told = model.logger.name_to_value
        apart.append(told["policy/first_kl"])
        moved.append(told["policy/approx_kl"])
    assert apart[0] < 1e-6
    assert all(1e-8 < one < 1e-3 for one in apart[1:])
    assert np.mean(apart[1:]) < np.mean(moved) / 5


def test_gradient_norms_of_the_modules_make_up_the_whole():
    model = prepared(make_model(make_env(), n_epochs=1, batch_size=MATCHES * STEPS))
    updates(model, 1)
    told = model.logger.name_to_value
    parts = [value for name, value in told.items() if name.startswith("gradient/")]
    assert math.sqrt(sum(value**2 for value in parts)) == pytest.approx(
        told["learning/gradient_norm"], rel=1e-4
    )


def test_reading_changes_nothing_of_what_is_learnt(monkeypatch):
    weights = []
    for silent in (False, True):
        if silent:
            for name in ("rollout_ends", "gradient", "update_ends"):
                monkeypatch.setattr(Diagnostics, name, lambda *_: None)
        model = prepared(make_model(make_env()))
        updates(model, 1)
        weights.append(torch.cat([p.detach().flatten() for p in model.policy.network.parameters()]))
    assert torch.equal(*weights)
