"""Trains with PufferLib for `connect_four.py`, in an interpreter that has PufferLib 3.0.0.

    PYTHON tests/bench/peers_puffer_four.py '{"workers": 2, "at_once": 1, "matches": 128, …}'

A policy plays both seats of PettingZoo's connect four. Each step is a turn of the player to move,
who sees the board from that seat. A negative discount turns the next player's value into a loss, so
PufferLib's trainer learns from all turns. The policy is PufferLib's default with its LSTM wrapper,
and chooses legal moves only. The game is a native `PufferEnv`, vectorised by PufferLib's Serial
(0 workers) or Multiprocessing. The last line of the output is JSON: the turns played at times, and
the number of weights.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import gymnasium
import numpy as np
import pufferlib
import pufferlib.models
import pufferlib.pufferl
import pufferlib.vector
import torch
from numpy.typing import NDArray
from peers_puffer import defaults
from pettingzoo.classic import connect_four_v3
from torch import Tensor

BOARD, CHOICES = 84, 7  # numbers of an observation: two of each field, then the legal choices


class ConnectFour(pufferlib.PufferEnv):
    """Plays matches of PettingZoo's environment. An agent is the player to move in a match."""

    def __init__(self, matches: int, buf: Any = None, seed: int | None = None) -> None:
        self.single_observation_space = gymnasium.spaces.Box(0, 1, (BOARD + CHOICES,), np.int8)
        self.single_action_space = gymnasium.spaces.Discrete(CHOICES)
        self.num_agents = matches
        super().__init__(buf)
        self._matches = [connect_four_v3.env() for _ in range(matches)]

    def reset(self, seed: int | None = None) -> tuple[NDArray[np.int8], list[Any]]:
        for number, match in enumerate(self._matches):
            match.reset()
            self._see(number, match.observe(match.agent_selection))
        return self.observations, []

    def step(self, actions: NDArray[np.int32]) -> tuple[Any, ...]:
        for number, (match, action) in enumerate(zip(self._matches, actions, strict=True)):
            mover = match.agent_selection
            match.step(int(action))
            over = self.terminals[number] = any(match.terminations.values())
            self.rewards[number] = match.rewards[mover]
            if over:
                match.reset()
            self._see(number, match.observe(match.agent_selection))
        return self.observations, self.rewards, self.terminals, self.truncations, []

    def close(self) -> None:
        for match in self._matches:
            match.close()

    def _see(self, number: int, seen: dict[str, NDArray[np.int8]]) -> None:
        self.observations[number, :BOARD] = seen["observation"].ravel()
        self.observations[number, BOARD:] = seen["action_mask"]


class Policy(pufferlib.models.Default):
    """Chooses among the legal moves only, which PufferLib's default policy does not."""

    def encode_observations(self, observations: Tensor, state: Any = None) -> Tensor:
        self._legal = observations[:, BOARD:] > 0
        return super().encode_observations(observations, state)

    def decode_actions(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        logits, values = super().decode_actions(hidden)
        return logits.masked_fill(~self._legal, -1e9), values


def main(given: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    workers, width, settings = given["workers"], given["width"], defaults()
    several = {"num_workers": workers, "batch_size": given["at_once"], "overwork": True}
    env = pufferlib.vector.make(
        ConnectFour,
        env_kwargs={"matches": given["matches"] // max(1, workers)},
        backend="Multiprocessing" if workers else "Serial",
        num_envs=max(1, workers),
        **(several if workers else {}),
    )
    policy = pufferlib.models.LSTMWrapper(env, Policy(env, width), width, width)
    settings |= {"device": "cpu", "use_rnn": True, "env": "connect_four", "optimizer": "adam"}
    settings |= {"learning_rate": 1e-3, "gamma": -settings["gamma"], "checkpoint_interval": 10**9}
    settings |= {"bptt_horizon": given["horizon"], "minibatch_size": given["minibatch"]}
    settings |= {"update_epochs": given["epochs"]}
    pufferlib.pufferl.PuffeRL.print_dashboard = lambda *_, **__: None  # it takes time
    trainer = pufferlib.pufferl.PuffeRL(settings, env, policy)
    began, points = time.perf_counter(), [(0.0, 0)]
    while time.perf_counter() - began < given["seconds"]:
        trainer.evaluate()
        trainer.train()
        points.append((time.perf_counter() - began, trainer.global_step))
    trainer.utilization.stop()
    env.close()
    weights = sum(one.numel() for one in policy.parameters())
    print(json.dumps({"points": points, "weights": weights}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
