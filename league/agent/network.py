"""Builds the agent: an encoder of the opponent's past, an LSTM, and heads for keys and value.

    opponent's past ─ encoder ─┬─ strategy latent ────┐
                               └─ conditioned context ┤
    both players now ─ observation encoder ───────────┴─ LSTM ─┬─ actor → logits of the keys
                                                               └─ critic (and time left) → value

Shape suffixes: X rows (history and steps), T steps, B matches, O observation, A keys, H memory, D
width.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn

from league.agent.config import AgentConfig
from league.agent.contract import AgentState, PlayingNetwork, StepOutput
from league.agent.encoder import ENCODERS, Pooled
from league.agent.heads import Head
from league.agent.layers import Embedding, LayerNorm, Linear, orthogonal
from league.agent.memory import Memory
from league.games.base import KEYS

WAVES: Final = (1, 2, 4, 8)
"""Frequencies of the sines and cosines: the number of half periods between positions 0 and 1."""
ID_WIDTH: Final = 16
"""Width of the embedding of an id."""


class UnrollOutput(NamedTuple):
    logits_TBA: Tensor
    value_TB: Tensor
    h_BH: Tensor
    c_BH: Tensor
    latent_TBD: Tensor


class ObservationEncoder(nn.Module):
    """Encodes the current observation of both players.

    Coordinates are also encoded as sines and cosines, from which a perceptron learns sharp edges
    much faster than from the coordinates alone (Tancik et al. 2020, arXiv 2006.10739).
    """

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.own = list(config.places)
        self.opponent = [config.own_size + index for index in config.places]
        self.ids = [list(places) for _, *places in config.ids]
        ids = {index for places in self.ids for index in places}
        self.numbers = [index for index in range(config.observation_size) if index not in ids]
        self.words = [size for size, *_ in config.ids]
        self.embeddings = nn.ModuleList(Embedding(size, ID_WIDTH) for size in self.words)
        inputs = len(self.numbers) + len(ids) * ID_WIDTH + 3 * len(self.own) * 2 * len(WAVES)
        self.first = orthogonal(Linear(inputs, config.observation_hidden))
        self.first_norm = LayerNorm(config.observation_hidden)
        self.second = orthogonal(Linear(config.observation_hidden, config.width))
        self.second_norm = LayerNorm(config.width)

    def forward(self, obs: Tensor) -> Tensor:
        parts = [*self._numbers_and_embeddings(obs), *self._waves(obs)]
        inputs = torch.cat(parts, -1) if len(parts) > 1 else obs
        hidden = torch.relu(self.first_norm(self.first(inputs)))
        return torch.relu(self.second_norm(self.second(hidden)))

    def _numbers_and_embeddings(self, obs: Tensor) -> list[Tensor]:
        if not self.ids:
            return [obs]
        return [
            obs[..., self.numbers],
            *(
                embed((obs[..., places] * words).round().long().clamp(0, words - 1)).flatten(-2)
                for places, words, embed in zip(self.ids, self.words, self.embeddings, strict=True)
            ),
        ]

    def _waves(self, obs: Tensor) -> list[Tensor]:
        """Returns the sines and cosines of both players' positions and of their differences."""
        if not self.own:
            return []
        own, opponent = obs[..., self.own], obs[..., self.opponent]
        places = torch.cat([own, opponent, own - opponent], -1)
        angles = torch.cat([math.pi * wave * places for wave in WAVES], -1)
        return [angles.sin(), angles.cos()]


class AgentNetwork(PlayingNetwork):
    """Plays with `step` and learns on whole sequences with `unroll`. The outputs of both methods
    agree within 1e-5.
    """

    config: AgentConfig

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = ENCODERS[config.encoder](config)
        self.observation = ObservationEncoder(config)
        readings = 1 if config.encoder == "none" else 3  # encoded observation, latent and context
        self.memory = Memory(readings * config.width, config.memory)
        # The last layer starts near zero, so that at first every key has the bias as its logit, and
        # all choices have equal logits, for any observation.
        self.actor = Head(config.memory, config.head_widths, config.action_size, gain=0.01)
        self.critic = Head(config.memory + 1, config.head_widths, 1, gain=1.0)
        nn.init.constant_(
            self.actor.last.bias, config.key_bias if config.action_kind == KEYS else 0.0
        )

    def initial_state(self, batch: int) -> AgentState:
        """Returns the state of `batch` rows before the first entry, on the network's device."""
        device = self.memory.recurrent.device
        h_BH = torch.zeros(batch, self.config.memory, device=device)
        age_B = torch.zeros(batch, dtype=torch.int64, device=device)
        return AgentState(*self.encoder.initial(batch, device), age_B, h_BH, h_BH.clone())

    def step(
        self, obs_BO: Tensor, starts_B: Tensor, state: AgentState, time_left_B: Tensor | None
    ) -> StepOutput:
        """Makes a decision in each row, as described in `PlayingNetwork.step`.

        The opponent's part of the observation is added to the history.
        """
        obs_BO = obs_BO[..., : self.config.observation_size]
        own, entry = obs_BO.split([self.config.own_size, self.config.entry_size], -1)
        keep = torch.logical_not(starts_B)
        age = state.age_B * keep + 1
        remembered = keep if self.config.recurrent else torch.zeros_like(keep)
        gate = remembered.unsqueeze(-1).to(state.h_BH.dtype)
        pooled, rings = self.encoder.step(entry, own, (state.layers_BLSE, state.pool_BPE), age)
        h, c = self.memory.step(self._inputs(obs_BO, pooled), state.h_BH * gate, state.c_BH * gate)
        value = (
            obs_BO.new_zeros(starts_B.shape) if time_left_B is None else self._value(h, time_left_B)
        )
        return StepOutput(self.actor(h), value, AgentState(*rings, age, h, c), pooled.latent)

    def unroll(
        self,
        obs_XBO: Tensor,
        starts_XB: Tensor,
        h_BH: Tensor,
        c_BH: Tensor,
        time_left_TB: Tensor,
        prefix: int,
    ) -> UnrollOutput:
        """Computes T decisions at once, after `prefix` rows that only serve as history.

        Args:
            obs_XBO: X = prefix + T observations.
            starts_XB: bool, whether a row begins an episode. Rows of an episode don't see rows
                before the episode.
            h_BH: the LSTM's output before row `prefix`.
            c_BH: the LSTM's cell before row `prefix`.
            time_left_TB: remaining share of the match, which only the critic sees.
            prefix: number of rows of history, at most `config.context`. With a smaller `prefix`,
                the first of the T steps may see less history than they saw in `step`. This happens
                if their episode began before the first row.
        """
        obs_XBO = obs_XBO[..., : self.config.observation_size]
        pooled = self.encode(obs_XBO, starts_XB, prefix)
        inputs_TBI = self._inputs(obs_XBO[prefix:], pooled)
        starts_TB = starts_XB[prefix:]
        forgets_TB = starts_TB if self.config.recurrent else torch.ones_like(starts_TB)
        h_TBH, h, c = self.memory.unroll(inputs_TBI, forgets_TB, h_BH, c_BH)
        value_TB = self._value(h_TBH, time_left_TB)
        return UnrollOutput(self.actor(h_TBH), value_TB, h, c, pooled.latent)

    def encode(self, obs_XBO: Tensor, starts_XB: Tensor, prefix: int) -> Pooled:
        """Returns latent, context and attention weights at the last T rows.

        Args:
            obs_XBO: X = prefix + T observations.
            starts_XB: bool, whether a row begins an episode.
            prefix: number of rows of history.
        """
        obs_XBO = obs_XBO[..., : self.config.observation_size]
        own_TBO = obs_XBO[prefix:, :, : self.config.own_size]
        return self.encoder.unroll(obs_XBO[..., self.config.own_size :], own_TBO, ages(starts_XB))

    def _inputs(self, obs: Tensor, pooled: Pooled) -> Tensor:
        return torch.cat([self.observation(obs), pooled.latent, pooled.context], -1)

    def _value(self, h: Tensor, time_left: Tensor) -> Tensor:
        return self.critic(torch.cat([h, time_left.unsqueeze(-1).to(h.dtype)], -1)).squeeze(-1)


def ages(starts_XB: Tensor) -> Tensor:
    """Returns the age of each row: the number of rows from the start of its episode (or from the
    first of these rows) up to the row itself. Int64 `[X, B]`.
    """
    row_X1 = torch.arange(starts_XB.shape[0], device=starts_XB.device).unsqueeze(1)
    first_XB = torch.cummax(row_X1 * starts_XB, 0).values
    return row_X1 - first_XB + 1
