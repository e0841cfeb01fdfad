"""A policy of Stable-Baselines3 and the league's network of it give the same numbers."""

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch
from agents import PERCEPTRON
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.dqn.policies import DQNPolicy
from torch import nn

from league.agent.export.sb3 import SnapshotPolicy
from league.agent.snapshot import SnapshotCard, load_snapshot, save_snapshot
from league.errors import InvalidInput
from league.runs.blobs import BlobFolder
from learner.sb3 import perceptron_of

SEEN = gymnasium.spaces.Box(-1.0, 1.0, (14,), np.float32)
KEYS, CHOICES = gymnasium.spaces.MultiBinary(5), gymnasium.spaces.Discrete(4)


class OwnExtractor(FlattenExtractor):
    """Does the same, but who knows that."""


def policy_of(kind=ActorCriticPolicy, actions=KEYS, **options):
    """A policy whose weights are far from their start, biases too."""
    torch.manual_seed(3)
    made = kind(SEEN, actions, lambda _: 1e-3, **options)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4)
    return made


POLICIES = {
    "usual": {},
    "choices": {"actions": CHOICES},
    "maskable": {"kind": MaskableActorCriticPolicy, "actions": CHOICES},
    "relu": {"activation_fn": nn.ReLU, "net_arch": {"pi": [32], "vf": [16, 8, 8]}},
    "one sided": {"activation_fn": nn.LeakyReLU, "net_arch": {"pi": [], "vf": [16]}},
    "linear": {"net_arch": []},
    **{f"{kind.__name__}": {"activation_fn": kind} for kind in (nn.ELU, nn.GELU, nn.SiLU)},
}


@pytest.mark.parametrize("name", POLICIES)
def test_logits_and_values_are_those_of_the_policy_also_after_freezing(name: str, tmp_path) -> None:
    policy = policy_of(**POLICIES[name])
    obs = torch.rand(50, 14) * 2 - 1
    with torch.no_grad():
        logits = policy.get_distribution(obs).distribution.logits
        values = policy.predict_values(obs).squeeze(1)
    blobs, network = BlobFolder(tmp_path), perceptron_of(policy)
    card = SnapshotCard(agent=network.config, game="brawl", game_version="1")
    for net in (network, load_snapshot(blobs, save_snapshot(blobs, network, card))[0]):
        with torch.no_grad():
            mine = net.step(obs, torch.ones(50).bool(), net.initial_state(50), torch.ones(50))
        mine_A = mine.logits_BA
        if policy.action_space is CHOICES:  # SB3 keeps them normalised
            mine_A = torch.log_softmax(mine_A, -1)
        torch.testing.assert_close(mine_A, logits, atol=1e-6, rtol=0)
        torch.testing.assert_close(mine.value_B, values, atol=1e-6, rtol=0)
    assert logits.std() > 0.05
    assert values.std() > 0.05


SMALL = {"kind": RecurrentActorCriticPolicy, "lstm_hidden_size": 12, "net_arch": [16]}
RECURRENT = {
    "usual": SMALL,
    "choices": {**SMALL, "actions": CHOICES},
    "shared": {**SMALL, "shared_lstm": True, "enable_critic_lstm": False},
    "without the critic's": {**SMALL, "enable_critic_lstm": False},
    "two layers": {**SMALL, "n_lstm_layers": 2, "activation_fn": nn.ReLU},
    "two shared": {**SMALL, "n_lstm_layers": 2, "shared_lstm": True, "enable_critic_lstm": False},
    "linear": {**SMALL, "net_arch": {"pi": [], "vf": [8]}},
}


@pytest.mark.parametrize("name", RECURRENT)
@torch.no_grad()
def test_a_recurrent_policys_are_the_same_over_a_sequence(name: str, tmp_path) -> None:
    policy = policy_of(**RECURRENT[name])
    obs_TBO, starts_TB = torch.rand(40, 5, 14) * 2 - 1, torch.rand(40, 5) < 0.1
    starts_TB[20, 0] = True
    starts_TB[1:, 4] = False  # one long episode
    layers = policy.lstm_actor.num_layers
    nothing = (torch.zeros(layers, 5, 12), torch.zeros(layers, 5, 12))
    states, wanted = RNNStates(nothing, nothing), []
    for obs_BO, starts_B in zip(obs_TBO, starts_TB.float(), strict=True):
        actor = policy.get_distribution(obs_BO, states.pi, starts_B)[0].distribution
        _, value_B1, _, states = policy(obs_BO, states, starts_B)
        wanted.append((actor.logits, value_B1.squeeze(1)))
    blobs, network = BlobFolder(tmp_path), perceptron_of(policy)
    card = SnapshotCard(agent=network.config, game="brawl", game_version="1")
    for net in (network, load_snapshot(blobs, save_snapshot(blobs, network, card))[0]):
        state = net.initial_state(5)
        for obs_BO, starts_B, (logits, values) in zip(obs_TBO, starts_TB, wanted, strict=True):
            mine = net.step(obs_BO, starts_B, state, torch.ones(5))
            state, mine_A = mine.state, mine.logits_BA
            if policy.action_space is CHOICES:
                mine_A = torch.log_softmax(mine_A, -1)
            torch.testing.assert_close(mine_A, logits, atol=1e-6, rtol=0)
            torch.testing.assert_close(mine.value_B, values, atol=1e-6, rtol=0)
    assert all(torch.stack(numbers).std() > 0.05 for numbers in zip(*wanted, strict=True))


@pytest.mark.parametrize("options", [{}, *RECURRENT.values()])
def test_it_shares_the_policys_parameters_so_that_training_shows_at_once(options: dict) -> None:
    policy = policy_of(**options)
    network = perceptron_of(policy)
    assert {id(p) for p in network.parameters()} == {id(p) for p in policy.parameters()}
    obs, starts = torch.rand(8, 14), torch.ones(8).bool()
    before = network.step(obs, starts, network.initial_state(8), None).logits_BA
    before.sum().backward()
    policy.optimizer.step()
    after = network.step(obs, starts, network.initial_state(8), None).logits_BA
    assert (after - before).abs().max() > 1e-4


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: policy_of(**SMALL, lstm_kwargs={"bias": False}), "bias"),
        (lambda: policy_of(SnapshotPolicy, agent=PERCEPTRON.to_dict()), "SnapshotPolicy"),
        (lambda: DQNPolicy(SEEN, CHOICES, lambda _: 1e-3), "DQNPolicy"),
        (lambda: policy_of(features_extractor_class=OwnExtractor), "extractor"),
        (lambda: policy_of(activation_fn=nn.Softplus), "activation"),
        (lambda: policy_of(actions=gymnasium.spaces.MultiDiscrete([2, 3])), "MultiDiscrete"),
        (lambda: SimpleNamespace(), "SimpleNamespace"),
    ],
)
def test_other_policies_are_refused_with_the_reason(make, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        perceptron_of(make())
