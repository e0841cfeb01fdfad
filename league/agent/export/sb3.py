"""Exports a snapshot as a `.zip` that plain `sb3_contrib.RecurrentPPO.load` opens.

SB3 pickles a policy's class together with its weights. Here the file also contains the code of the
class, and of the parts of `league` that playing needs (pickled by value). So whoever loads the file
needs only Stable-Baselines3 and the same minor version of Python.

SB3 passes a pair of LSTM states, h and c, from step to step. Here h holds the whole `AgentState`,
and zeros mean an empty history.

Shape suffixes: B rows, O observation, A actions, P numbers of a packed state.
"""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import cloudpickle
import numpy as np
import torch
from cloudpickle import cloudpickle as cloudpickle_module
from gymnasium import spaces
from sb3_contrib import RecurrentPPO
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor

from league.agent.architectures import config_of, network_of
from league.agent.contract import AgentState, PlayingNetwork
from league.agent.heads import action_distribution
from league.agent.snapshot import SnapshotCard
from league.games.base import CHOICE
from league.runs.files import write_whole

States = tuple[Tensor, Tensor]


class SnapshotPolicy(RecurrentActorCriticPolicy):
    """Plays a snapshot through SB3's interface for recurrent policies. It can't be trained.

    In games of choices, `policy.predict` also takes `action_masks` (bool `[B, A]`).

    Attributes:
        card: the snapshot's card (its description). A policy that was loaded from a file has no
            card.
    """

    card: SnapshotCard

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        lr_schedule: Schedule,
        use_sde: bool = False,
        *,
        agent: Mapping[str, Any],
    ) -> None:
        BasePolicy.__init__(self, observation_space, action_space)
        self.network = network_of(config_of(agent))
        self._empty = self.network.initial_state(0)
        width = sum(math.prod(tensor.shape[1:]) for tensor in self._empty)
        # RecurrentPPO reads the size of a policy's state here.
        self.lstm_actor = SimpleNamespace(num_layers=1, hidden_size=width)  # pyrefly: ignore[bad-assignment]
        self.lstm_hidden_state_shape = (1, 1, width)
        self.optimizer = torch.optim.SGD(self.parameters(), lr=lr_schedule(1.0))
        self._legal_BA: Tensor | None = None

    def predict(
        self,
        observation: Any,
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        action_masks: np.ndarray | None = None,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        if action_masks is not None:
            masks_BA = torch.as_tensor(action_masks, dtype=torch.bool, device=self.device)
            self._legal_BA = masks_BA.reshape(-1, self.network.config.action_size)
        try:
            return super().predict(observation, state, episode_start, deterministic)
        finally:
            self._legal_BA = None

    def _predict(
        self,
        observation: Tensor,
        lstm_states: States,
        episode_starts: Tensor,
        deterministic: bool = False,
    ) -> tuple[Tensor, States]:
        state = self._unpacked(lstm_states[0])
        output = self.network.step(observation.float(), episode_starts.bool(), state, None)
        kind = self.network.config.action_kind
        actor = action_distribution(kind, output.logits_BA, self._legal_BA)
        actions = actor.greedy() if deterministic else actor.sample()
        chosen = actions.argmax(-1) if kind == CHOICE else actions.to(torch.int8)
        return chosen, (self._packed(output.state), lstm_states[1])

    def _packed(self, state: AgentState) -> Tensor:
        rows_BP = [x.reshape(len(x), math.prod(x.shape[1:])).float() for x in state]
        return torch.cat(rows_BP, 1).unsqueeze(0)

    def _unpacked(self, packed_1BP: Tensor) -> AgentState:
        widths = [math.prod(tensor.shape[1:]) for tensor in self._empty]
        parts = zip(self._empty, packed_1BP[0].split(widths, 1), strict=True)
        # The age is an integer. A float32 holds it exactly for longer than any episode lasts.
        return AgentState(
            *(x.reshape(len(x), *tensor.shape[1:]).to(tensor.dtype) for tensor, x in parts)
        )

    def forward(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError("an exported snapshot plays, it does not learn: use predict")

    evaluate_actions = predict_values = forward


def write_sb3(path: Path, network: PlayingNetwork, card: SnapshotCard) -> None:
    """Writes the snapshot's `.zip`.

    Raises:
        InvalidInput: the file can't be written.
        StorageFull: the disk is full.
    """
    buffer = io.BytesIO()
    with _by_value():
        model_of(network, card).save(buffer)
    write_whole(path, buffer.getvalue())


@contextmanager
def _by_value() -> Iterator[None]:
    """Makes cloudpickle pickle classes and functions of `league` by value inside the block.

    Hand-written gradients are left out, because they can't be pickled, and playing never calls
    them. Cloudpickle remembers each class that it has pickled by value. If it later loaded a
    pickled class in this process, it would merge the loaded class into our own class. So the
    remembered classes are forgotten at the end of the block.
    """
    modules = [
        vars(module) for name, module in list(sys.modules.items()) if name.startswith("league.")
    ]
    hidden = [
        (names, name, value)
        for names in modules
        for name, value in names.items()
        if isinstance(value, type) and issubclass(value, torch.autograd.Function)
    ]
    cloudpickle.register_pickle_by_value(sys.modules["league"])
    for names, name, _ in hidden:
        names[name] = None
    try:
        yield
    finally:
        for names, name, value in hidden:
            names[name] = value
        cloudpickle.unregister_pickle_by_value(sys.modules["league"])
        with cloudpickle_module._DYNAMIC_CLASS_TRACKER_LOCK:  # this lock has no public name
            classes = cloudpickle_module._DYNAMIC_CLASS_TRACKER_BY_CLASS
            for kind in [kind for kind in classes if kind.__module__.startswith("league.")]:
                cloudpickle_module._DYNAMIC_CLASS_TRACKER_BY_ID.pop(classes.pop(kind), None)


def model_of(network: PlayingNetwork, card: SnapshotCard) -> Any:
    """Makes a `RecurrentPPO` with the snapshot's weights. Its policy is a `SnapshotPolicy`."""
    config = network.config
    env: Any = None  # as in `RecurrentPPO.load`
    model: Any = RecurrentPPO(SnapshotPolicy, env, n_steps=1, device="cpu", _init_setup_model=False)
    model.n_envs = 1
    model.observation_space = spaces.Box(-1.0, 1.0, (config.observation_size,), np.float32)
    model.action_space = (
        spaces.Discrete(config.action_size)
        if config.action_kind == CHOICE
        else spaces.MultiBinary(config.action_size)
    )
    model.policy_kwargs = {"agent": config.to_dict()}
    model._setup_model()
    model.policy.network.load_state_dict(network.state_dict())
    model.num_timesteps = card.step
    model.card_json = card.to_json()
    model.policy.card = card
    return model
