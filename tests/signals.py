"""A PettingZoo environment whose space declares narrower bounds than it shows."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv


class Signals(ParallelEnv):
    """Both see the same number of `signals`, and the choice of it is paid. The space says that
    numbers reach up to `declared`.
    """

    metadata = {"name": "signals_v0"}  # noqa: RUF012

    def __init__(self, signals: int = 5, declared: float = 1.0, length: int = 16) -> None:
        self.possible_agents = ["left \x1b[1m/", "right"]
        self.signals, self.length = signals, length
        self._sees = spaces.Box(
            np.array([-1.0, 0.0], np.float32), np.array([1.0, declared], np.float32)
        )
        self._does = spaces.Discrete(signals)

    def observation_space(self, agent: str) -> spaces.Space:
        return self._sees

    def action_space(self, agent: str) -> spaces.Space:
        return self._does

    def reset(self, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        self.agents, self._time = self.possible_agents[:], 0
        self._luck = np.random.default_rng(seed)
        return self._seen(), {agent: {} for agent in self.agents}

    def _seen(self) -> dict:
        self._signal = int(self._luck.integers(self.signals))
        now = np.array([self._time / self.length, self._signal], np.float32)
        return dict.fromkeys(self.agents, now)

    def step(self, actions: dict[str, Any]) -> tuple[dict, dict, dict, dict, dict]:
        self._time += 1
        rewards = {agent: float(choice == self._signal) for agent, choice in actions.items()}
        over = dict.fromkeys(self.agents, self._time >= self.length)
        seen, infos = self._seen(), {agent: {} for agent in self.agents}
        if self._time >= self.length:
            self.agents = []
        return seen, rewards, over, dict.fromkeys(over, False), infos
