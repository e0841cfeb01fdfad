"""Two perceptrons without memory, for the logits and for the value: Stable-Baselines3's MlpPolicy.

    both players now ─┬─ policy layers → logits of the keys
                      └─ value layers  → value

With the weights of an `ActorCriticPolicy` it gives the same numbers, so a policy that plain
Stable-Baselines3 trained plays in the league as any other member does (`learner.sb3.publish`).

Shape suffixes: B matches, O observation, A keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from league.agent.config import NetworkConfig
from league.agent.contract import AgentState, PlayingNetwork, StepOutput
from league.agent.heads import Head

PERCEPTRON = "perceptron"
ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "elu": functional.elu,
    "gelu": functional.gelu,
    "leaky_relu": functional.leaky_relu,
    "relu": torch.relu,
    "silu": functional.silu,
    "tanh": torch.tanh,
}
"""By the name that a card bears; the functions with their usual constants."""


@dataclass(frozen=True, kw_only=True)
class PerceptronConfig(NetworkConfig):
    """Sizes of one `PerceptronNetwork`.

    Attributes:
        policy_widths, value_widths: hidden layers before the logits and before the value.
        activation: after every hidden layer, one of `ACTIVATIONS`.
    """

    KINDS: ClassVar = {**NetworkConfig.KINDS, "activation": ACTIVATIONS}

    policy_widths: tuple[int, ...] = (64, 64)
    value_widths: tuple[int, ...] = (64, 64)
    activation: str = "tanh"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a card, which name the architecture."""
        return {"architecture": PERCEPTRON, **super().to_dict()}


class PerceptronNetwork(PlayingNetwork):
    """Plays by what it sees now; its state is the episode's age alone."""

    config: PerceptronConfig

    def __init__(self, config: PerceptronConfig) -> None:
        super().__init__()
        self.config = config
        inputs, activation = config.observation_size, ACTIVATIONS[config.activation]
        self.actor = Head(inputs, config.policy_widths, config.action_size, 0.01, activation)
        self.critic = Head(inputs, config.value_widths, 1, 1.0, activation)

    def initial_state(self, batch: int) -> AgentState:
        device = self.device
        age_B = torch.zeros(batch, dtype=torch.int64, device=device)
        layers, pool, h = (torch.zeros(batch, *([0] * axes), device=device) for axes in (3, 2, 1))
        return AgentState(layers, pool, age_B, h, h.clone())

    def step(
        self, obs_BO: Tensor, starts_B: Tensor, state: AgentState, time_left_B: Tensor | None
    ) -> StepOutput:
        obs_BO = obs_BO[..., : self.config.observation_size]
        age_B = state.age_B * torch.logical_not(starts_B) + 1
        value_B = obs_BO.new_zeros(starts_B.shape)
        if time_left_B is not None:
            value_B = self.critic(obs_BO).squeeze(-1)
        return StepOutput(self.actor(obs_BO), value_B, state._replace(age_B=age_B), obs_BO[..., :0])
