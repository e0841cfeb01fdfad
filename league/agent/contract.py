"""Defines `PlayingNetwork`, the interface that the networks of all architectures implement.

A new architecture consists of a `NetworkConfig` and a `PlayingNetwork`, and needs an entry in
`league.agent.architectures`.

`league.agent.batched_policy` stacks the weights of several networks, so that a single `step` runs
all of them. For this stacking, a network may only use the layers in `league.agent.layers` and plain
parameters.

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
    """Holds everything that a network remembers from earlier steps.

    The first axis of each tensor is the batch. Zeros mean an empty history. A part that an
    architecture doesn't use has width 0.

    Attributes:
        layers_BLSE: attention keys and values of the last `span - 1` entries, for each encoder
            layer.
        pool_BPE: the encoder's last `pool - 1` outputs, as `Pooling.describe` maps them.
        age_B: number of entries of the episode so far, int64.
        h_BH: the LSTM's output.
        c_BH: the LSTM's cell state.
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
    """Decides step by step. If the weights of M networks are stacked as `[M, ...]`, `step` takes
    inputs `[M, G, ...]`: G rows for each network.
    """

    config: NetworkConfig

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device

    @abstractmethod
    def initial_state(self, batch: int) -> AgentState:
        """Returns the state before the first step: all zero, for `batch` rows, on the network's
        device.
        """

    @abstractmethod
    def step(
        self, obs_BO: Tensor, starts_B: Tensor, state: AgentState, time_left_B: Tensor | None
    ) -> StepOutput:
        """Makes a decision for each row of the batch.

        Args:
            obs_BO: observations.
            starts_B: bool, true in rows whose observation begins an episode. The state of these
                rows is cleared first.
            state: the state that the previous step returned.
            time_left_B: remaining share of the match's time, which only the critic sees. If
                `time_left_B` is None, the value isn't computed, and 0 is returned in its place.

        Returns:
            The logits of the actions, the critic's value, the next state, and the strategy latent.
        """
