"""Plays with two perceptrons, one for the logits and one for the value.

This is the architecture of Stable-Baselines3's MlpPolicy. With LSTMs in front of the perceptrons,
it is the architecture of sb3-contrib's MlpLstmPolicy.

    both players now ─┬─ (LSTM) ─ policy layers → logits of the keys
                      └─ (LSTM) ─ value layers  → value

With the weights of such a policy, this network computes the same outputs as the policy. A policy
that was trained with plain Stable-Baselines3 can therefore play in the league like any other member
(`learner.sb3.publish`).

Shape suffixes: B matches, O observation, A keys, H memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from league.agent.config import NetworkConfig
from league.agent.contract import AgentState, PlayingNetwork, StepOutput
from league.agent.heads import Head
from league.agent.layers import Linear

PERCEPTRON = "perceptron"
ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "elu": functional.elu,
    "gelu": functional.gelu,
    "leaky_relu": functional.leaky_relu,
    "relu": torch.relu,
    "silu": functional.silu,
    "tanh": torch.tanh,
}
"""Activation functions by their names on a snapshot's card, with the usual constants."""
OWN, SHARED, LINEAR = "own", "shared", "linear"


@dataclass(frozen=True, kw_only=True)
class PerceptronConfig(NetworkConfig):
    """Holds the sizes of a `PerceptronNetwork`.

    Attributes:
        policy_widths: hidden layers before the logits.
        value_widths: hidden layers before the value.
        activation: function after every hidden layer, from `ACTIVATIONS`.
        memory: width of the LSTM in front of the policy layers, or 0 without an LSTM.
        memory_layers: number of layers of the LSTM.
        value_memory: the layer in front of the value layers if the policy has an LSTM. `OWN` is
            another LSTM of the same size, `SHARED` the policy's LSTM, and `LINEAR` a linear layer.
    """

    MOST: ClassVar = {**NetworkConfig.MOST, "memory_layers": 16}
    LEAST: ClassVar = {**NetworkConfig.LEAST, "memory": 0}
    KINDS: ClassVar = {
        **NetworkConfig.KINDS,
        "activation": ACTIVATIONS,
        "value_memory": (OWN, SHARED, LINEAR),
    }

    policy_widths: tuple[int, ...] = (64, 64)
    value_widths: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    memory: int = 0
    memory_layers: int = 1
    value_memory: str = OWN

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values for a snapshot's card, with the name of the architecture."""
        return {"architecture": PERCEPTRON, **super().to_dict()}


class TorchLSTM(nn.Module):
    """Computes a step of torch's `nn.LSTM` with the same parameters, also with stacked weights.

    `league.agent.memory.Memory` orders its gates differently, and has only a single bias.
    """

    def __init__(self, inputs: int, width: int, layers: int) -> None:
        super().__init__()
        sizes = [inputs, *[width] * (layers - 1)]
        self.input = nn.ModuleList(Linear(size, 4 * width) for size in sizes)
        self.recurrent = nn.ModuleList(Linear(width, 4 * width) for _ in sizes)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the last layer's output, and the next h and c, concatenated over all layers.

        Args:
            x: inputs.
            h: outputs of all layers before the step.
            c: cells of all layers before the step.
        """
        layers, after = len(self.input), []
        states = zip(h.chunk(layers, -1), c.chunk(layers, -1), strict=True)
        for enter, recur, (h_l, c_l) in zip(self.input, self.recurrent, states, strict=True):
            i, f, g, o = (enter(x) + recur(h_l)).chunk(4, -1)
            c_l = torch.sigmoid(f) * c_l + torch.sigmoid(i) * torch.tanh(g)
            x = torch.sigmoid(o) * torch.tanh(c_l)
            after.append((x, c_l))
        h, c = (torch.cat(parts, -1) for parts in zip(*after, strict=True))
        return x, h, c


class PerceptronNetwork(PlayingNetwork):
    """Decides from the current observation and the memory of its LSTM.

    The states h and c hold the state of the policy's LSTM, followed by the state of the value's
    LSTM. The value's LSTM makes no step if `step` is called without `time_left_B`. So pass
    `time_left_B` at every step of a match, or never.
    """

    config: PerceptronConfig

    def __init__(self, config: PerceptronConfig) -> None:
        super().__init__()
        self.config = config
        inputs, activation = config.observation_size, ACTIVATIONS[config.activation]
        if config.memory:
            sizes = (inputs, config.memory, config.memory_layers)
            self.memory = TorchLSTM(*sizes)
            if config.value_memory == OWN:
                self.critic_memory = TorchLSTM(*sizes)
            elif config.value_memory == LINEAR:
                self.critic_input = Linear(inputs, config.memory)
            inputs = config.memory
        self.actor = Head(inputs, config.policy_widths, config.action_size, 0.01, activation)
        self.critic = Head(inputs, config.value_widths, 1, 1.0, activation)

    def initial_state(self, batch: int) -> AgentState:
        device, config = self.device, self.config
        age_B = torch.zeros(batch, dtype=torch.int64, device=device)
        layers, pool = (torch.zeros(batch, *([0] * axes), device=device) for axes in (3, 2))
        width = config.memory * config.memory_layers * (2 if config.value_memory == OWN else 1)
        h_BH = torch.zeros(batch, width, device=device)
        return AgentState(layers, pool, age_B, h_BH, h_BH.clone())

    def step(
        self, obs_BO: Tensor, starts_B: Tensor, state: AgentState, time_left_B: Tensor | None
    ) -> StepOutput:
        config = self.config
        obs_BO = obs_BO[..., : config.observation_size]
        keep_B = torch.logical_not(starts_B)
        state = state._replace(age_B=state.age_B * keep_B + 1)
        policy_in = value_in = obs_BO
        if config.memory:
            gate_B1 = keep_B.unsqueeze(-1).to(obs_BO.dtype)
            width = config.memory * config.memory_layers
            h, c = (list((x * gate_B1).split(width, -1)) for x in (state.h_BH, state.c_BH))
            policy_in, h[0], c[0] = self.memory(obs_BO, h[0], c[0])
            if config.value_memory == SHARED:
                value_in = policy_in
            elif config.value_memory == LINEAR:
                value_in = self.critic_input(obs_BO)
            elif time_left_B is not None:
                value_in, h[1], c[1] = self.critic_memory(obs_BO, h[1], c[1])
            state = state._replace(h_BH=torch.cat(h, -1), c_BH=torch.cat(c, -1))
        value_B = obs_BO.new_zeros(starts_B.shape)
        if time_left_B is not None:
            value_B = self.critic(value_in).squeeze(-1)
        return StepOutput(self.actor(policy_in), value_B, state, obs_BO[..., :0])
