"""Presets `seed`, `fast`, `stable` and `t4` have the figures of the guides that they are named
after.
"""

import pytest

from league.agent.config import SIZES
from league.games.brawl.rewards import reward_weights
from league.settings.base import resolve

ALIKE = {
    "agent": {
        "size": "large",
        "encoder": "streaming",
        "history_stride": 1,
        "history": True,
        "recurrent": True,
    },
    "game": {"name": "brawl", "frame_skip": 1, "match_seconds": 0.0, "reward_weights": {}},
    "regularisation": {"alpha": 0.0},
    "learner": {
        "steps": 10_000_000,
        "gamma": 0.99,
        "gae_lambda": 0.95,
        "max_grad_norm": 0.5,
        "target_kl": None,
        "desired_kl": None,
        "learning_rate_final": None,
        "ent_coef_final": None,
        "clip_range_final": None,
    },
    "matchmaker": {"within_snapshots": "uniform", "adaptive": 0.0},
}
"""What the guides say in one place for all, or do not have at all."""
LENGTHS = {"seed": 65, "fast": 45, "stable": 90, "t4": 90}
PPO = ("learning_rate", "n_epochs", "ent_coef", "clip_range")
FIGURES = {
    "seed": (2.5e-4, 10, 0.01, 0.2),
    "fast": (5e-4, 20, 0.05, 0.3),
    "stable": (1e-4, 5, 0.005, 0.1),
    "t4": (2.5e-4, 10, 0.10, 0.2),
}
MIXES = {
    "seed": {"snapshots": 0.70, "constant": 0.05, "based": 0.15, "random": 0.10},
    "t4": {"snapshots": 0.80, "constant": 0.05, "based": 0.15},
}
ROLLOUTS = {"seed": (512, 64), "fast": (256, 64), "stable": (2048, 128), "t4": (54_000, 128)}
"""Steps of the guides' one environment between updates, and in a minibatch."""
SNAPSHOTS = {"seed": (50_000, 200), "t4": (100_000, 100)}


@pytest.fixture(params=LENGTHS)
def preset(request):
    return request.param


@pytest.fixture
def sections(preset):
    return resolve(preset, environment={})


def test_what_all_guides_have_in_common(sections):
    for section, values in ALIKE.items():
        assert {name: sections[section][name] for name in values} == values


def test_the_network_is_the_guides():
    large = SIZES["large"]
    named = {
        name: large[name]
        for name in ("layers", "attention_heads", "width", "memory", "head_widths")
    }
    wanted = {
        "layers": 6,
        "attention_heads": 8,
        "width": 256,
        "memory": 512,
        "head_widths": (96, 96),
    }
    assert named == wanted


def test_step_size_epochs_exploration_clip_and_length(preset, sections):
    assert tuple(sections["learner"][name] for name in PPO) == FIGURES[preset]
    assert sections["agent"]["sequence_length"] == LENGTHS[preset]


def test_rewards_mix_and_snapshots(preset, sections):
    of = "t4" if preset == "t4" else "seed"
    mix = sections["matchmaker"]["mixes"]["league"]
    assert {name: weight / sum(mix.values()) for name, weight in mix.items()} == pytest.approx(
        MIXES[of]
    )
    kept = sections["learner"]["snapshot_interval"], sections["matchmaker"]["max_saved"]
    assert kept == SNAPSHOTS[of]
    assert sections["game"]["reward"] == ("dense" if preset == "t4" else "sparse")
    assert [stage["mix"] for stage in sections["curriculum"]["stages"]] == ["league"]


def test_the_rewards_are_the_guides():
    assert (
        reward_weights("sparse").tolist()
        == reward_weights("sparse", {"win": 100, "knockout": 50}).tolist()
    )
    events = {
        "win": 50,
        "knockout": 8,
        "combo": 5,
        "damage": 1,
        "danger_zone": 0.5,
        "attack_state": -0.04,
    }
    assert reward_weights("dense").tolist() == reward_weights("dense", events).tolist()


def test_rollouts_and_minibatches_are_the_guides_times_the_matches(preset, sections):
    """So an epoch has as many minibatches as with one environment, as near as whole sequences
    come.
    """
    learner, (steps, batch) = sections["learner"], ROLLOUTS[preset]
    matches, n_steps = learner["matches"], learner["n_steps"]
    if preset == "t4":  # one rollout of whole matches, laid side by side
        assert matches * n_steps == steps
        assert n_steps == 90 * 30
        assert learner["batch_size"] == n_steps == pytest.approx(matches * batch, rel=0.06)
    else:
        assert (n_steps, learner["batch_size"]) == (steps, matches * batch)
        assert matches * n_steps / learner["batch_size"] == steps / batch
