"""The contract of every architecture: a network that plays step by step, alone or in a stack.

A new one is a `NetworkConfig` and a `PlayingNetwork`, both named in `league.agent.architectures`.
`league.agent.batched_policy` can stack it when it is made of the layers of `league.agent.layers`
and of plain parameters.

Shape suffixes: B matches, O observation, A keys, H memory, D width; L, S, P, E as in
`league.agent.encoder`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from league.agent.config import NetworkConfig


class AgentState(NamedTuple):
    """What a step needs of the past, batch first; all zero is an empty history.

    An architecture that remembers less has parts of no width.

    Attributes:
        layers_BLSE: keys and values of each encoder layer's last `span - 1` entries.
        pool_BPE: what the pooling reads of the last `pool - 1` outputs.
        age_B: entries of the episode so far, int64.
        h_BH, c_BH: the LSTM's state.
    """

    layers_BLSE: Tensor
    pool_BPE: Tensor
    age_B: Tensor
    h_BH: Tensor
    c_BH: Tensor


class StepOutput(NamedTuple):
    logits_BA: Tensor
    value_B: Tensor
    state: AgentState
    latent_BD: Tensor


class PlayingNetwork(nn.Module, ABC):
    """A network that plays. With weights stacked `[M, ...]`, `step` takes inputs `[M, G, ...]`."""

    config: NetworkConfig

    @property
    def device(self) -> torch.device:
        """Where the weights lie."""
        return next(self.parameters()).device

    @abstractmethod
    def initial_state(self, batch: int) -> AgentState:
        """The state of `batch` rows before any entry, all zero, on the network's device."""

    @abstractmethod
    def step(
        self, obs_BO: Tensor, starts_B: Tensor, state: AgentState, time_left_B: Tensor | None
    ) -> StepOutput:
        """One decision for each row.

        Args:
            obs_BO: observations.
            starts_B: bool, where this observation begins an episode: the state is cleared first.
            state: as the step before returned it.
            time_left_B: share of the match still to come, for the critic alone. None: the value is
                not needed, and 0.
        """
