"""Small agents with telling weights, for the tests of `league.agent`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from league.agent.architectures import network_of
from league.agent.config import SIZES, AgentConfig, NetworkConfig
from league.agent.contract import AgentState, PlayingNetwork, StepOutput
from league.agent.perceptron import PerceptronConfig
from league.games.base import KEYS

TINY = AgentConfig(
    observation_size=64, own_size=32, action_size=10, sequence_length=17, **SIZES["tiny"]
)
# Other depths, spans and an uneven split of the observation: 1 + 3·2 + 3 = 10 entries.
DEEP = AgentConfig(
    observation_size=11,
    own_size=7,
    action_size=3,
    layers=3,
    width=16,
    attention_heads=2,
    feed_forward=24,
    observation_hidden=20,
    memory=12,
    head_widths=(9,),
    span=3,
    sequence_length=10,
    places=(3, 0),
)
CHOICE = replace(
    DEEP, observation_size=14, own_size=5, action_size=7, action_kind="choice", sequence_length=12
)
WITH_IDS = replace(CHOICE, ids=((9, 6, 10), (5, 12)), encoder="none")
CONFIGS = {"deep": DEEP, "choice": CHOICE}
NO_ENCODER, NO_MEMORY = replace(DEEP, encoder="none"), replace(DEEP, recurrent=False)
NOW_ONLY = replace(NO_ENCODER, recurrent=False)
PERCEPTRON = PerceptronConfig(
    observation_size=64, action_size=10, policy_widths=(24, 16), value_widths=(12,)
)
RECURRENT = replace(PERCEPTRON, memory=8, memory_layers=2)
MEMBERS: dict[str, NetworkConfig] = {
    **CONFIGS,
    "perceptron": PERCEPTRON,
    "recurrent": RECURRENT,
    "recurrent, shared": replace(RECURRENT, value_memory="shared"),
    "recurrent, linear": replace(RECURRENT, value_memory="linear"),
}
"""One of every architecture, for what all of them keep."""


def network(config: NetworkConfig = TINY, seed: int = 0) -> Any:
    """A network whose every weight differs from its start, biases too, so that nothing hides at
    zero.
    """
    generator = torch.Generator().manual_seed(seed)
    made = network_of(config)
    with torch.no_grad():
        for parameter in made.parameters():
            scale = 0.7 if parameter.dim() == 1 else 1.5 / parameter.shape[-1] ** 0.5
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(noise * scale + (parameter.dim() == 1) * 0.3)
    return made


def sequence(
    config: NetworkConfig, rows: int, batch: int, seed: int = 1, rate: float = 0.06
) -> dict[str, Any]:
    """Observations, episode starts (every column has one in mid-sequence) and times left."""
    generator = torch.Generator().manual_seed(seed)
    starts_XB = torch.rand(rows, batch, generator=generator) < rate
    starts_XB[0] = True
    for column in range(batch - 1):  # the last column is one long episode
        starts_XB[min(rows // 2 + column % 3, rows - 1), column] = True
    starts_XB[1:, -1] = False
    return {
        "obs": torch.rand(rows, batch, config.observation_size, generator=generator) * 2 - 1,
        "starts": starts_XB,
        "left": torch.rand(rows, batch, generator=generator),
    }


def legal_choices(config: AgentConfig, *shape: int, seed: int = 2) -> Tensor | None:
    """In games of choices some that are legal, at least one a row `[*shape, A]`; None in games
    of keys.
    """
    if config.action_kind == KEYS:
        return None
    generator = torch.Generator().manual_seed(seed)
    legal = torch.rand(*shape, config.action_size, generator=generator) < 0.6
    legal[..., 0] |= ~legal.any(-1)
    return legal


def play(net: PlayingNetwork, data: dict[str, Tensor]) -> tuple[list[StepOutput], list[AgentState]]:
    """Step by step; `states[t]` is the state before step t."""
    states, outputs = [net.initial_state(data["obs"].shape[1])], []
    with torch.no_grad():
        for obs_BO, starts_B, left_B in zip(data["obs"], data["starts"], data["left"], strict=True):
            outputs.append(net.step(obs_BO, starts_B, states[-1], left_B))
            states.append(outputs[-1].state)
    return outputs, states
