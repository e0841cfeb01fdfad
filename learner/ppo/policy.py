"""`LeaguePolicy`: the league's agent behind the policy interface of Stable-Baselines3."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor

from league.agent.config import AgentConfig
from league.agent.heads import BernoulliKeys
from league.agent.network import AgentNetwork, AgentState

StateArrays = tuple[np.ndarray, ...]


class LeaguePolicy(RecurrentActorCriticPolicy):
    """An `AgentNetwork` with its optimizer.

    The recurrent state that `predict` takes and returns is the whole `AgentState` as a tuple of
    arrays: the encoder's rings and the LSTM's state; none stands for an empty history. The parent's
    constructor, which would build SB3's own extractors and LSTMs, is left out on purpose.
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        lr_schedule: Schedule,
        agent: AgentConfig,
        use_sde: bool = False,
    ) -> None:
        BasePolicy.__init__(self, observation_space, action_space, optimizer_kwargs={"eps": 1e-5})
        self.agent = agent
        self.network = AgentNetwork(agent)
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), lr=lr_schedule(1.0), eps=1e-5, foreach=True
        )

    def forward(  # type: ignore[override]
        self, obs: Tensor, state: AgentState, episode_starts: Tensor, deterministic: bool = False
    ) -> tuple[Tensor, Tensor, Tensor, AgentState]:
        """Keys, values, log-probabilities and the next state for one step of a batch."""
        time_left = torch.ones(len(obs), device=obs.device)
        out = self.network.step(obs, episode_starts.bool(), state, time_left)
        keys = BernoulliKeys(out.logits_BA)
        actions = keys.greedy() if deterministic else keys.sample()
        return actions, out.value_B, keys.log_prob(actions), out.state

    def _predict(  # type: ignore[override]
        self, observation: Tensor, state: AgentState, episode_starts: Tensor, deterministic: bool = False
    ) -> tuple[Tensor, AgentState]:
        actions, _, _, after = self(observation, state, episode_starts, deterministic)
        return actions, after

    def predict(
        self,
        observation: Any,
        state: StateArrays | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, StateArrays | None]:
        """Keys for one observation or a batch, and the state to pass next time."""
        self.set_training_mode(False)
        obs, vectorised = self.obs_to_tensor(observation)
        assert isinstance(obs, Tensor)
        batch = len(obs)
        if state is None:
            agent_state = self.network.initial_state(batch)
        else:
            agent_state = AgentState(*(torch.as_tensor(part, device=self.device) for part in state))
        starts = np.zeros(batch, bool) if episode_start is None else np.reshape(episode_start, batch)
        with torch.no_grad():
            actions, after = self._predict(
                obs, agent_state, torch.as_tensor(starts, device=self.device), deterministic
            )
        arrays = tuple(part.cpu().numpy() for part in after)
        keys = actions.cpu().numpy().astype(np.int8)
        return (keys if vectorised else keys[0]), arrays
