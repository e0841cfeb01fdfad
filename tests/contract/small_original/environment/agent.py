"""The original's own agents, as far as a beam needs them."""

from __future__ import annotations

import numpy as np


class Agent:
    def get_env_info(self, env) -> None:
        self.action_space = env.action_space


class ConstantAgent(Agent):
    def predict(self, obs):
        return np.zeros_like(self.action_space.sample())


class RandomAgent(Agent):
    def predict(self, obs):
        return self.action_space.sample()


class BasedAgent(Agent):
    def predict(self, obs):
        action = np.zeros(10)
        action[3 if obs[32] > obs[0] else 1] = 1.0
        action[7] = float(abs(obs[32] - obs[0]) < 2)
        return action


class ClockworkAgent(Agent):
    def __init__(self) -> None:
        self.steps = 0

    def predict(self, obs):
        self.steps += 1
        action = np.zeros(10)
        action[1 if self.steps % 40 < 20 else 3] = 1.0
        return action
