"""Makes plain sb3-contrib RecurrentPPO agents, with which our learner is compared.

One kind has the windowed encoder as features extractor. The windows are part of the observation,
because a plain policy has no memory other than its LSTM.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from sb3_contrib import RecurrentPPO
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from league.agent.config import AgentConfig
from league.agent.encoder import LocalLayer, Pooled, StreamingEncoder
from league.agent.layers import empty_slots
from league.agent.network import ObservationEncoder


class Windows(VecEnvWrapper):
    """Appends the opponent's last entries to the observation, for an agent whose encoder keeps no
    state.
    """

    def __init__(self, env: VecEnv, config: AgentConfig) -> None:
        self.config = config
        width = 2 + config.observation_size + config.sequence_length * config.entry_size
        super().__init__(
            env, gymnasium.spaces.Box(-1.0, float(config.sequence_length), (width,), np.float32)
        )
        self._window = np.zeros(
            (env.num_envs, config.sequence_length, config.entry_size), np.float32
        )
        self._age = np.zeros(env.num_envs, np.float32)

    def reset(self) -> np.ndarray:
        self._age[:] = 0
        return self._joined(self.venv.reset())

    def step_wait(self):  # type: ignore[no-untyped-def]
        observations, rewards, ended, infos = self.venv.step_wait()
        for info in infos:
            info.pop("terminal_observation", None)  # nothing is truncated here
        self._age[ended] = 0
        return self._joined(observations), rewards, ended, infos

    def _joined(self, observations: np.ndarray) -> np.ndarray:
        self._window[:, :-1] = self._window[:, 1:]
        self._window[:, -1] = observations[:, self.config.own_size :]
        self._age[:] = np.minimum(self._age + 1, self.config.sequence_length)
        clocks = np.stack([self._age, self.venv.game.time_left_N()], 1)
        return np.concatenate(
            [clocks, observations, self._window.reshape(len(observations), -1)], axis=1
        )


class Parts(NamedTuple):
    """Holds the parts of a row of `Windows`."""

    age: torch.Tensor
    time_left: torch.Tensor
    observation: torch.Tensor
    window: torch.Tensor


def parts_of(rows: torch.Tensor, config: AgentConfig) -> Parts:
    """Splits rows of `Windows` into their parts. The window has the shape
    `[rows, entries, entry]`.
    """
    clocks, observation, window = rows.split(
        [2, config.observation_size, rows.shape[1] - 2 - config.observation_size], 1
    )
    window = window.unflatten(1, (config.sequence_length, config.entry_size))
    return Parts(clocks[:, 0].long().clamp_min(1), clocks[:, 1], observation, window)


class WindowLayer(LocalLayer):
    """Attends over a whole window, with a relative bias in both directions."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__(config)
        offsets = 2 * config.sequence_length - 1
        self.bias = torch.nn.Parameter(torch.zeros(offsets, config.attention_heads))

    def forward(self, x: torch.Tensor, empty: torch.Tensor) -> torch.Tensor:
        """Maps `x [..., W, D]` with `empty [..., W, 1]` to `[..., W, D]`."""
        length = x.shape[-2]
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(-3, -2)
            for part in self.qkv(self.attention_norm(x)).split(self.width, -1)
        )
        index = torch.arange(length)
        bias = self.bias[index - index.unsqueeze(-1) + length - 1].movedim(-1, -3)
        scores = (q @ k.mT) / math.sqrt(q.shape[-1]) + bias + empty.mT.unsqueeze(-3)
        attended = (torch.softmax(scores, -1) @ v).transpose(-3, -2).flatten(-2)
        return self.finish(x, attended)


class WindowEncoder(StreamingEncoder):
    """Reads the opponent's last `sequence_length` entries again at every step, in both directions.

    It has the sizes of the streaming encoder. The configuration must have the encoder "none", whose
    pooling reads all entries.
    """

    def __init__(self, config: AgentConfig) -> None:
        super().__init__(config)
        self.layers = torch.nn.ModuleList(WindowLayer(config) for _ in range(config.layers))

    def encode(self, window: torch.Tensor, own: torch.Tensor, age: torch.Tensor) -> Pooled:
        """Encodes windows `[B, W, E]`, own observations and ages `[B, ...]` of steps."""
        empty = empty_slots(age, self.config.sequence_length)
        x = self.embed(window)
        for layer in self.layers:
            x = layer(x, empty)
        return self.pooling(own, self.pooling.describe(self.norm(x)), empty)


class WindowFeatures(BaseFeaturesExtractor):
    """Joins the windowed encoder and the observation encoder of the league's agent:
    `[B, 3 width]`.
    """

    def __init__(self, observation_space: gymnasium.Space, config: AgentConfig) -> None:
        super().__init__(observation_space, 3 * config.width)
        self.config = config
        self.encoder, self.observation = WindowEncoder(config), ObservationEncoder(config)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        row = parts_of(rows, self.config)
        own = row.observation[:, : self.config.own_size]
        pooled = self.encoder.encode(row.window, own, row.age)
        return torch.cat([self.observation(row.observation), pooled.latent, pooled.context], 1)


class KeyPolicy(RecurrentActorCriticPolicy):
    """Converts actions to floats. sb3-contrib 2.9 passes int8 keys to torch's Bernoulli, which
    refuses them.

    `key_bias` is the initial logit of every key, as in the league's agent. None keeps SB3's zero.
    """

    def __init__(self, *args: Any, key_bias: float | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if key_bias is not None:
            torch.nn.init.constant_(self.action_net.bias, key_bias)

    def evaluate_actions(self, obs, actions, lstm_states, episode_starts):  # type: ignore[no-untyped-def]
        return super().evaluate_actions(obs, actions.float(), lstm_states, episode_starts)


def plain_windowed(
    env: VecEnv, config: AgentConfig, *, key_bias: float | None = None, **ppo: Any
) -> RecurrentPPO:
    """Makes a RecurrentPPO with an agent of the same size as `config`, on a `Windows`
    environment.
    """
    return RecurrentPPO(
        KeyPolicy,
        env,
        device="cpu",
        policy_kwargs={
            "features_extractor_class": WindowFeatures,
            "features_extractor_kwargs": {"config": config},
            "net_arch": {"pi": list(config.head_widths), "vf": list(config.head_widths)},
            "lstm_hidden_size": config.memory,
            "shared_lstm": True,
            "enable_critic_lstm": False,
            "key_bias": key_bias,
        },
        **ppo,
    )


def plain_lstm(
    env: VecEnv, *, memory: int, widths: list[int], key_bias: float | None, **ppo: Any
) -> RecurrentPPO:
    """Makes a RecurrentPPO with SB3's own policy for vectors, which has an LSTM for the actor and
    another LSTM for the critic.
    """
    sizes = {
        "net_arch": {"pi": widths, "vf": widths},
        "lstm_hidden_size": memory,
        "key_bias": key_bias,
    }
    return RecurrentPPO(KeyPolicy, env, device="cpu", policy_kwargs=sizes, **ppo)
