"""Trains with RLlib's PPO for `connect_four.py`, in an interpreter that has ray[rllib] 2.60.

    PYTHON tests/bench/peers_rllib.py '{"runners": 2, "envs": 1, "seconds": 60, "batch": 4096, …}'

A policy plays both seats of PettingZoo's connect four. The last line of the output is JSON: the
turns played at times, and the number of weights.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

os.environ |= {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_raylet_start_wait_time_s": "300",  # a busy machine starts it slowly
}

import gymnasium
import numpy as np
import ray
from pettingzoo.classic import connect_four_v3
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule

SEATS = ["player_0", "player_1"]


class ConnectFour(MultiAgentEnv):
    """Plays PettingZoo's environment. The player to move sees 84 numbers and its legal choices."""

    def __init__(self, config: Any = None) -> None:
        super().__init__()
        self._env = connect_four_v3.env()
        self.possible_agents = self.agents = SEATS
        space = gymnasium.spaces.Dict(
            {
                "observations": gymnasium.spaces.Box(0.0, 1.0, (84,), np.float32),
                "action_mask": gymnasium.spaces.Box(0.0, 1.0, (7,), np.float32),
            }
        )
        self.observation_spaces = dict.fromkeys(SEATS, space)
        self.action_spaces = dict.fromkeys(SEATS, gymnasium.spaces.Discrete(7))

    def _seen(self, seat: str) -> dict[str, Any]:
        seen = self._env.observe(seat)
        return {
            "observations": seen["observation"].astype(np.float32).ravel(),
            "action_mask": seen["action_mask"].astype(np.float32),
        }

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        self._env.reset(seed=seed)
        return {self._env.agent_selection: self._seen(self._env.agent_selection)}, {}

    def step(self, actions: dict[str, int]) -> tuple[Any, ...]:
        self._env.step(int(actions[self._env.agent_selection]))
        over = any(self._env.terminations.values())
        paid = {seat: float(self._env.rewards[seat]) for seat in SEATS}
        acting = SEATS if over else [self._env.agent_selection]
        seen = {seat: self._seen(seat) for seat in acting}
        return seen, paid, {"__all__": over}, {"__all__": False}, {}


def main(given: dict[str, Any]) -> None:
    ray.init(
        address="local",
        num_cpus=max(2, given["runners"] + 1),
        include_dashboard=False,
        log_to_driver=False,
    )
    config = (
        PPOConfig()
        .environment(ConnectFour)
        .env_runners(
            num_env_runners=given["runners"],
            num_envs_per_env_runner=given["envs"],
            sample_timeout_s=600.0,
        )
        .multi_agent(policies={"agent"}, policy_mapping_fn=lambda *_, **__: "agent")
        .training(
            train_batch_size=given["batch"],
            minibatch_size=given["minibatch"],
            num_epochs=given["epochs"],
            lr=1e-3,
        )
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=ActionMaskingTorchRLModule,
                model_config={"fcnet_hiddens": given["hidden"], "vf_share_layers": False},
            )
        )
    )
    algorithm = config.build_algo()
    learners = algorithm.learner_group.foreach_learner(
        lambda learner: sum(one.numel() for one in learner.module["agent"].parameters())
    )
    weights = next(iter(learners)).get()  # an env runner's module has no value network
    began, points = time.perf_counter(), [(0.0, 0)]
    while time.perf_counter() - began < given["seconds"]:
        result = algorithm.train()
        turns = int(result["env_runners"]["num_env_steps_sampled_lifetime"])
        points.append((time.perf_counter() - began, turns))
    print(json.dumps({"points": points, "weights": weights}), flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
