"""`LeaguePolicy`: the league's agent with the policy interface of Stable-Baselines3."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor

from league.agent.config import AgentConfig
from league.agent.contract import AgentState
from league.agent.heads import Head, action_distribution
from league.agent.network import AgentNetwork
from league.games.base import CHOICE
from learner.adam import Adam
from learner.ppo.loss import forecast_head

StateArrays = tuple[np.ndarray, ...]


class LeaguePolicy(RecurrentActorCriticPolicy):
    """Wraps an `AgentNetwork` and its optimizer. If `forecasts` is true, it also has the auxiliary
    forecast head.

    The recurrent state that `predict` takes and returns is the whole `AgentState` as a tuple of
    arrays: the encoder's ring buffers and the LSTM's state. None means an empty history. The
    constructor skips the parent's constructor, which would build SB3's own extractors and LSTMs.
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        lr_schedule: Schedule,
        agent: AgentConfig,
        make_network: Callable[[AgentConfig], AgentNetwork] = AgentNetwork,
        forecasts: bool = False,
    ) -> None:
        BasePolicy.__init__(self, observation_space, action_space, optimizer_kwargs={"eps": 1e-5})
        self.agent = agent
        self.network = make_network(agent)
        self.optimizer = Adam(self.network.parameters(), lr=lr_schedule(1.0), eps=1e-5, fused=True)
        self.forecast: Head | None = None
        if forecasts:  # made last, so that the network's random weights don't depend on it
            self.forecast = forecast_head(agent)
            self.optimizer.add_param_group({"params": list(self.forecast.parameters())})

    def predict(
        self,
        observation: Any,
        state: StateArrays | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        action_masks: np.ndarray | None = None,
    ) -> tuple[np.ndarray, StateArrays | None]:
        """Chooses actions for one observation or a batch.

        Args:
            observation: `[O]` or `[batch, O]`.
            state: the state that the last call returned, None for an empty history.
            episode_start: bool `[batch]`, where a match begins.
            deterministic: take the most likely action instead of a sample.
            action_masks: legal choices, bool `[batch, A]`, in games that have choices.

        Returns:
            The actions, and the state to pass next time.
        """
        self.set_training_mode(False)
        obs, vectorised = self.obs_to_tensor(observation)
        assert isinstance(obs, Tensor)
        begun: Iterable[Any] = self.network.initial_state(len(obs)) if state is None else state
        before = AgentState(*(torch.as_tensor(tensor, device=self.device) for tensor in begun))
        begins = np.zeros(len(obs)) if episode_start is None else episode_start
        starts = torch.as_tensor(begins, dtype=torch.bool, device=self.device).reshape(len(obs))
        legal = None if action_masks is None else torch.as_tensor(action_masks, device=self.device)
        with torch.no_grad():
            out = self.network.step(obs, starts, before, None)
        actor = action_distribution(self.agent.action_kind, out.logits_BA, legal)
        chosen = (actor.greedy() if deterministic else actor.sample()).cpu().numpy()
        arrays = tuple(tensor.cpu().numpy() for tensor in out.state)
        chosen = chosen.argmax(-1) if self.agent.action_kind == CHOICE else chosen.astype(np.int8)
        return (chosen if vectorised else chosen[0]), arrays
