"""Defines the interface of every architecture: a network that plays step by step.

The weights of several networks can be stacked, so that one step computes all of these networks.

A new architecture consists of a `NetworkConfig` and a `PlayingNetwork`, and needs an entry in
`league.agent.architectures`. `league.agent.batched_policy` can stack networks that are made of the
layers in `league.agent.layers` and of plain parameters.

Shape suffixes: B matches, O observation, A keys, H memory, D width. L, S, P and E are as in
`league.agent.encoder`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from league.agent.config import NetworkConfig


class AgentState(NamedTuple):
    """Holds the past that a step needs, batch first. Zeros mean an empty history.

    A part that an architecture doesn't use has width 0.

    Attributes:
        layers_BLSE: keys and values of each encoder layer's last `span - 1` entries.
        pool_BPE: the encoder's last `pool - 1` outputs, in the form that the pooling reads.
        age_B: number of entries of the episode so far, int64.
        h_BH: the LSTM's output.
        c_BH: the LSTM's cell.
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
    """Plays step by step. If the weights of M networks are stacked as `[M, ...]`, `step` takes
    inputs `[M, G, ...]`: G rows for each network.
    """

    config: NetworkConfig

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device

    @abstractmethod
    def initial_state(self, batch: int) -> AgentState:
        """Returns the state of `batch` rows before any entry, all zero, on the network's device."""

    @abstractmethod
    def step(
        self, obs_BO: Tensor, starts_B: Tensor, state: AgentState, time_left_B: Tensor | None
    ) -> StepOutput:
        """Makes a decision in each row.

        Args:
            obs_BO: observations.
            starts_B: bool, true in rows whose observation begins an episode. The state of these
                rows is cleared first.
            state: the state that the previous step returned.
            time_left_B: remaining share of the match's time, which only the critic sees. If it is
                None, the value isn't computed, and 0 is returned.

        Returns:
            The logits of the actions, the critic's value, the next state, and the strategy latent.
        """
