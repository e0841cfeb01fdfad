"""Presets `seed`, `fast`, `stable` and `t4` have the figures of the guides they are named after."""

import pytest

from league.agent.config import SIZES
from league.games.registry import game_spec, reward_weights
from league.settings.base import resolve

ALIKE = {
    "agent": {
        "size": "large",
        "encoder": "streaming",
        "recurrent": True,
    },
    "game": {"name": "brawl", "frame_skip": 1, "match_seconds": 0.0, "reward_weights": {}},
    "regularisation": {"alpha": 0.0},
    "learner": dict(
        steps=10_000_000,
        gamma=0.99,
        **dict.fromkeys(("desired_kl", "learning_rate_final", "ent_coef_final")),
    ),
    "matchmaker": {"within_snapshots": "uniform", "adaptive": 0.0},
}
"""What the guides say in one place for all, or do not have at all."""
PPO = ("learning_rate", "n_epochs", "ent_coef", "clip_range")
SEED_MIX = {"snapshots": 0.70, "constant": 0.05, "based": 0.15, "random": 0.10}
T4_MIX = {"snapshots": 0.80, "constant": 0.05, "based": 0.15}
GUIDES = {
    # length, PPO, rollout and minibatch of one environment, snapshots: interval and kept, mix
    "seed": (65, (2.5e-4, 10, 0.01, 0.2), (512, 64), (50_000, 200), SEED_MIX),
    "fast": (45, (5e-4, 20, 0.05, 0.3), (256, 64), (50_000, 200), SEED_MIX),
    "stable": (90, (1e-4, 5, 0.005, 0.1), (2048, 128), (50_000, 200), SEED_MIX),
    "t4": (90, (2.5e-4, 10, 0.10, 0.2), (54_000, 128), (100_000, 100), T4_MIX),
}


@pytest.mark.parametrize("preset", GUIDES)
def test_a_preset_has_its_guides_figures(preset):
    sections = resolve(preset, environment={})
    learner, mixes = sections["learner"], sections["matchmaker"]["mixes"]["league"]
    length, ppo, (steps, batch), snapshots, mix = GUIDES[preset]
    for section, values in ALIKE.items():
        assert {name: sections[section].get(name) for name in values} == values
    assert sections["agent"]["sequence_length"] == length
    assert tuple(learner[name] for name in PPO) == ppo
    shares = {name: weight / sum(mixes.values()) for name, weight in mixes.items()}
    assert shares == pytest.approx(mix)
    assert (learner["snapshot_interval"], sections["matchmaker"]["max_saved"]) == snapshots
    assert sections["game"]["reward"] == ("dense" if preset == "t4" else "sparse")
    assert [stage["mix"] for stage in sections["curriculum"]["stages"]] == ["league"]
    matches, n_steps = learner["matches"], learner["n_steps"]
    if preset == "t4":  # one rollout of whole matches next to each other
        assert (matches * n_steps, n_steps) == (steps, 90 * 30)
        assert learner["batch_size"] == n_steps == pytest.approx(matches * batch, rel=0.06)
    else:  # minibatches an epoch: those of one environment
        assert (n_steps, learner["batch_size"]) == (steps, matches * batch)


def test_the_network_and_the_rewards_are_the_guides():
    large = SIZES["large"]
    assert [large[name] for name in ("layers", "attention_heads", "width", "memory")] == [
        6, 8, 256, 512,
    ]  # fmt: skip
    assert large["head_widths"] == (96, 96)
    sparse = {"win": 100, "knockout": 50}
    dense = {
        "win": 50,
        "knockout": 8,
        "combo": 5,
        "damage": 1,
        "danger_zone": 0.5,
        "attack_state": -0.04,
    }
    for preset, weights in (("sparse", sparse), ("dense", dense)):
        brawl = game_spec("brawl")
        assert (
            reward_weights(brawl, preset).tolist()
            == reward_weights(brawl, preset, weights).tolist()
        )
