"""Two perceptrons without memory, for the logits and for the value: Stable-Baselines3's MlpPolicy.

    both players now ─┬─ policy layers → logits of the keys
                      └─ value layers  → value

With the weights of an `ActorCriticPolicy` it gives the same numbers, so a policy that plain
Stable-Baselines3 trained plays in the league as any other member does (`learner.sb3.publish`).

Shape suffixes: B matches, O observation, A keys.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from league.agent.contract import AgentState, PlayingNetwork, StepOutput
from league.agent.layers import Linear, orthogonal
from league.errors import ConfigError, DataCorrupt
from league.games.base import CHOICE, KEYS

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
class PerceptronConfig:
    """Sizes of one `PerceptronNetwork`. Raises `ConfigError`.

    Attributes:
        observation_size: width of an observation.
        action_size, action_kind: as in `AgentConfig`.
        policy_widths, value_widths: hidden layers before the logits and before the value.
        activation: after every hidden layer, one of `ACTIVATIONS`.
    """

    observation_size: int
    action_size: int
    action_kind: str = KEYS
    policy_widths: tuple[int, ...] = (64, 64)
    value_widths: tuple[int, ...] = (64, 64)
    activation: str = "tanh"

    def __post_init__(self) -> None:
        if not 0 < self.observation_size <= 1 << 16 or not 0 < self.action_size <= 1 << 12:
            raise ConfigError(
                f"perceptron sizes observation {self.observation_size}, actions {self.action_size} "
                "can't be used"
            )
        if self.action_kind not in (KEYS, CHOICE):
            raise ConfigError(
                f"perceptron action_kind = {self.action_kind!r} is unknown: keys and choice are "
                "known"
            )
        if self.activation not in ACTIVATIONS:
            raise ConfigError(
                f"perceptron activation = {self.activation!r} is unknown: {', '.join(ACTIVATIONS)} "
                "are known"
            )
        for widths in (self.policy_widths, self.value_widths):
            if len(widths) > 16 or not all(1 <= width <= 32768 for width in widths):
                raise ConfigError(
                    f"perceptron widths {widths} can't be used: up to 16 of 1 to 32768 can"
                )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a card."""
        values = dataclasses.asdict(self)
        lists = {name: list(values[name]) for name in ("policy_widths", "value_widths")}
        return {"architecture": PERCEPTRON, **values, **lists}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PerceptronConfig:
        """The reverse of `to_dict`; raises `DataCorrupt`."""
        try:
            given = dict(values)
            for name in ("policy_widths", "value_widths"):
                given[name] = tuple(int(width) for width in given[name])
            for name in ("observation_size", "action_size"):
                given[name] = int(given[name])
            return cls(**given)
        except (KeyError, TypeError, ValueError, ConfigError) as error:
            raise DataCorrupt(
                f"a card's perceptron can't be read ({error}): take the snapshot again"
            ) from None


class PerceptronNetwork(PlayingNetwork):
    """Plays by what it sees now; its state is the episode's age alone."""

    config: PerceptronConfig

    def __init__(self, config: PerceptronConfig) -> None:
        super().__init__()
        self.config = config
        self.policy_layers = _layers(config.observation_size, config.policy_widths)
        self.value_layers = _layers(config.observation_size, config.value_widths)
        self.actor = orthogonal(
            Linear((config.observation_size, *config.policy_widths)[-1], config.action_size), 0.01
        )
        self.critic = orthogonal(
            Linear((config.observation_size, *config.value_widths)[-1], 1), 1.0
        )

    def initial_state(self, batch: int) -> AgentState:
        device = self.device
        age_B = torch.zeros(batch, dtype=torch.int64, device=device)
        layers, pool, h = (torch.zeros(batch, *([0] * axes), device=device) for axes in (3, 2, 1))
        return AgentState(layers, pool, age_B, h, h.clone())

    def step(
        self, obs_BO: Tensor, starts_B: Tensor, state: AgentState, time_left_B: Tensor | None
    ) -> StepOutput:
        age_B = state.age_B * torch.logical_not(starts_B) + 1
        logits_BA = self.actor(self._through(self.policy_layers, obs_BO))
        value_B = obs_BO.new_zeros(starts_B.shape)
        if time_left_B is not None:
            value_B = self.critic(self._through(self.value_layers, obs_BO)).squeeze(-1)
        return StepOutput(logits_BA, value_B, state._replace(age_B=age_B), obs_BO[..., :0])

    def _through(self, layers: nn.ModuleList, x: Tensor) -> Tensor:
        activation = ACTIVATIONS[self.config.activation]
        for layer in layers:
            x = activation(layer(x))
        return x


def _layers(inputs: int, widths: tuple[int, ...]) -> nn.ModuleList:
    return nn.ModuleList(orthogonal(Linear(a, b)) for a, b in pairwise((inputs, *widths)))
