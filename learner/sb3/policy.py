"""Turns a policy of Stable-Baselines3 into a network of the league that shares its parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import FlattenExtractor, MlpExtractor
from torch import nn

from league.agent.perceptron import (
    LINEAR,
    OWN,
    SHARED,
    PerceptronConfig,
    PerceptronNetwork,
    TorchLSTM,
)
from league.errors import InvalidInput
from league.games.base import CHOICE, KEYS

_ACTIVATIONS: dict[type[nn.Module], str] = {
    nn.ELU: "elu",
    nn.GELU: "gelu",
    nn.LeakyReLU: "leaky_relu",
    nn.ReLU: "relu",
    nn.SiLU: "silu",
    nn.Tanh: "tanh",
}


def perceptron_of(policy: Any) -> PerceptronNetwork:
    """Makes a network that shares the policy's parameters.

    Args:
        policy: an `MlpPolicy` of PPO, A2C or MaskablePPO, or an `MlpLstmPolicy` of RecurrentPPO.

    Raises:
        InvalidInput: the policy is of another kind, or has options that the league's network lacks.
    """
    is_supported = isinstance(policy, ActorCriticPolicy | MaskableActorCriticPolicy)
    # A snapshot that was exported to Stable-Baselines3 has no `mlp_extractor`.
    if not is_supported or not hasattr(policy, "mlp_extractor"):
        raise _unlike(f"{type(policy).__name__} is another kind")
    if (
        type(policy.features_extractor) is not FlattenExtractor
        or type(policy.mlp_extractor) is not MlpExtractor
    ):
        raise _unlike("it has another extractor")
    policy_layers, policy_activations = _layers(policy.mlp_extractor.policy_net)
    value_layers, value_activations = _layers(policy.mlp_extractor.value_net)
    if len({*policy_activations, *value_activations}) > 1:
        raise _unlike("its activations differ")
    actor: Any = policy.action_net
    config = PerceptronConfig(
        observation_size=int(np.prod(policy.observation_space.shape or (0,))),
        action_size=actor.out_features,
        action_kind=_kind(policy.action_space),
        policy_widths=tuple(layer.out_features for layer in policy_layers),
        value_widths=tuple(layer.out_features for layer in value_layers),
        activation=next(iter({*policy_activations, *value_activations}), "tanh"),
        **_memory(policy),
    )
    with torch.device("meta"):
        network = PerceptronNetwork(config)
    ours: list[Any] = [*network.actor.hidden, network.actor.last]
    ours += [*network.critic.hidden, network.critic.last]
    all_theirs = [*policy_layers, actor, *value_layers, policy.value_net]
    if isinstance(policy, RecurrentActorCriticPolicy):
        _share_lstm(network.memory, policy.lstm_actor)
        if policy.lstm_critic is not None:
            _share_lstm(network.critic_memory, policy.lstm_critic)
        elif config.value_memory == LINEAR:
            ours.append(network.critic_input)
            all_theirs.append(policy.critic)
    for mine, theirs in zip(ours, all_theirs, strict=True):
        mine.weight, mine.bias = theirs.weight, theirs.bias
    return network


def _memory(policy: Any) -> dict[str, Any]:
    """Returns the fields of `PerceptronConfig` that describe the LSTM, or an empty dictionary
    without an LSTM.
    """
    if not isinstance(policy, RecurrentActorCriticPolicy):
        return {}
    if policy.lstm_kwargs:
        raise _unlike(f"its LSTM has the options {policy.lstm_kwargs}")
    alone = SHARED if policy.shared_lstm else LINEAR
    return {
        "memory": policy.lstm_actor.hidden_size,
        "memory_layers": policy.lstm_actor.num_layers,
        "value_memory": OWN if policy.enable_critic_lstm else alone,
    }


def _share_lstm(ours: TorchLSTM, theirs: nn.LSTM) -> None:
    for enter, recur, weights in zip(ours.input, ours.recurrent, theirs.all_weights, strict=True):
        enter.weight, recur.weight, enter.bias, recur.bias = weights


def _layers(net: nn.Module) -> tuple[list[nn.Linear], set[str]]:
    """Returns the hidden layers of a perceptron of SB3, and the names of their activations."""
    modules = list(net.children())
    layers = [layer for layer in modules[::2] if type(layer) is nn.Linear]
    activations = modules[1::2]
    if 2 * len(layers) != len(modules):
        raise _unlike("its layers are not linear ones with an activation after each")
    names = {_ACTIVATIONS.get(type(activation), "") for activation in activations}
    if "" in names:
        raise _unlike(f"its activation is none of {', '.join(_ACTIVATIONS.values())}")
    return layers, names


def _kind(space: spaces.Space) -> str:
    if isinstance(space, spaces.MultiBinary):
        return KEYS
    if isinstance(space, spaces.Discrete):
        return CHOICE
    raise _unlike(f"its actions are {type(space).__name__}")


def _unlike(why: str) -> InvalidInput:
    return InvalidInput(
        f"this policy can't join the league ({why}): "
        "the MlpPolicy of PPO, A2C or MaskablePPO and the MlpLstmPolicy of RecurrentPPO, trained "
        "in a league_env, can"
    )
