"""Trains with PufferLib for `peers.py`, in an interpreter that has PufferLib 3.0.0.

    PYTHON tests/bench/peers_puffer.py '{"matches": 256, "seconds": 180, …}'

PufferLib's trainer and LSTM wrapper train a policy of our layers on our batched game. A native
`PufferEnv` steps all matches in one call. The last policy is saved as weights of our agent. The
last line of the output is JSON: the steps at times, and the seconds of PufferLib's parts. Under
torchrun the process is one of several ranks, as in PufferLib's own `train`, but with gloo instead
of nccl.
"""

from __future__ import annotations

import ast
import configparser
import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py in this folder is not the package

import gymnasium
import numpy as np
import pufferlib
import pufferlib.models
import pufferlib.pufferl
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from league.agent.config import AgentConfig
from league.agent.heads import Head
from league.agent.network import AgentNetwork
from league.games.base import EXTERNAL
from league.games.registry import make_batched, reward_weights


class Brawl(pufferlib.PufferEnv):
    """Plays matches of brawl against a bot, in both seats."""

    def __init__(self, matches: int, given: dict[str, Any]) -> None:
        self.game, self.frame_skip = make_batched("brawl", matches), given["frame_skip"]
        spec = self.game.spec
        self.single_observation_space = gymnasium.spaces.Box(-1, 1, (spec.observation_size,))
        self.single_action_space = gymnasium.spaces.MultiDiscrete([2] * spec.action_size)
        self.num_agents = self.agents_per_batch = matches
        super().__init__()
        self.weights_K = reward_weights(spec, given["reward"]) / np.float32(given["divisor"])
        self.bot = spec.bot_index(given["bot"])
        self.rows, self.seat_N = np.arange(matches), np.zeros(matches, np.int64)
        self.keys_N2A = self.game.idle_actions()

    def reset(self, seed: int | None = None) -> tuple[NDArray[np.float32], list[Any]]:
        self.rng = np.random.default_rng(seed)
        self.game.reset(self.rng.integers(1 << 62, size=self.num_agents).astype(np.uint64))
        self._take_seats(self.rows)
        return self.observations, []

    def step(self, actions: NDArray[np.int32]) -> tuple[Any, ...]:
        self.keys_N2A[self.rows, self.seat_N] = actions
        self.game.step(self.keys_N2A, self.frame_skip)
        terms_NK = self.game.reward_terms_N2K[self.rows, self.seat_N]
        self.rewards[:], self.terminals[:] = terms_NK @ self.weights_K, self.game.ended_N
        self._take_seats(np.flatnonzero(self.terminals))  # the next match has begun automatically
        return self.observations, self.rewards, self.terminals, self.truncations, []

    def close(self) -> None:
        self.game.close()

    def _take_seats(self, rows: NDArray[np.int64]) -> None:
        """Draws the seats of new matches, and observes all matches."""
        self.seat_N[rows] = self.rng.integers(2, size=len(rows))
        self.game.bots_N2[rows] = EXTERNAL
        self.game.bots_N2[rows, 1 - self.seat_N[rows]] = self.bot
        self.observations[:] = self.game.observations_N2O[self.rows, self.seat_N]


class Policy(nn.Module):
    """Puts our layers before and after PufferLib's LSTM. The critic does not see the remaining
    time.
    """

    is_continuous = False

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        network = AgentNetwork(config)
        self.observation, self.actor = network.observation, network.actor
        self.critic = Head(config.memory, config.head_widths, 1, gain=1.0)

    def encode_observations(self, observations: Tensor, state: Any = None) -> Tensor:
        return self.observation(observations)

    def decode_actions(self, hidden: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """Returns the logits and the value. Each key is a choice between two logits: 0 and ours."""
        logits_BA = self.actor(hidden)
        logits_BA2 = torch.stack([torch.zeros_like(logits_BA), logits_BA], -1)
        return logits_BA2.unbind(1), self.critic(hidden)


def agent_weights(wrapped: Any, config: AgentConfig) -> dict[str, Tensor]:
    """Returns the policy as weights of our agent. The agent's critic keeps its initial weights."""
    lstm, own = wrapped.lstm, AgentNetwork(config).state_dict()
    ours = {name: value for name, value in wrapped.policy.state_dict().items() if name in own}
    ours = {name: value for name, value in ours.items() if not name.startswith("critic")}
    gates = (lstm.weight_ih_l0, lstm.bias_ih_l0 + lstm.bias_hh_l0, lstm.weight_hh_l0)
    for name, rows in zip(("input.weight", "input.bias", "recurrent"), gates, strict=True):
        i, f, g, o = rows.detach().chunk(4)
        ours[f"memory.{name}"] = torch.cat([i, f, o, g])
    return own | ours


def defaults() -> dict[str, Any]:
    """Returns the trainer's default settings from PufferLib's own file."""
    file = configparser.ConfigParser()
    file.read(Path(pufferlib.__file__).parent / "config" / "default.ini")
    found: dict[str, Any] = dict(file["train"])
    for name, value in found.items():
        with contextlib.suppress(ValueError, SyntaxError):  # a word
            found[name] = ast.literal_eval(value)
    return found


def train(given: dict[str, Any], rank: int, ranks: int) -> dict[str, Any]:
    """Trains for the given seconds, and returns the results."""
    torch.set_num_threads(1)
    torch.manual_seed(given["train"]["seed"])
    config, env = AgentConfig.from_dict(given["agent"]), Brawl(given["matches"] // ranks, given)
    policy: Any = pufferlib.models.LSTMWrapper(env, Policy(config), config.width, config.memory)
    nn.init.orthogonal_(policy.policy.actor.last.weight, 0.01)  # the wrapper reset all weights
    nn.init.constant_(policy.policy.actor.last.bias, config.key_bias)
    model: Any = policy
    if ranks > 1:
        model = nn.parallel.DistributedDataParallel(policy)
        model.hidden_size, model.forward_eval = policy.hidden_size, policy.forward_eval
    settings = defaults() | given["train"]
    settings["seed"] += 1000 * rank
    for name in ("minibatch_size", "total_timesteps"):
        settings[name] //= ranks
    pufferlib.pufferl.PuffeRL.print_dashboard = lambda *_, **__: None  # it takes time
    trainer = pufferlib.pufferl.PuffeRL(settings, env, model)
    trainer.profile.frequency = 1
    started, points, over = time.monotonic(), [(0.0, 0)], torch.zeros(1)
    while not over:
        trainer.evaluate()
        trainer.train()
        points.append((time.monotonic() - started, trainer.global_step * ranks))
        over[0] = points[-1][0] >= given["seconds"]
        if ranks > 1:
            torch.distributed.broadcast(over, 0)
    trainer.utilization.stop()
    if rank == 0:
        torch.save(agent_weights(policy, config), Path(settings["data_dir"]) / "agent.pt")
    weights = sum(one.numel() for one in policy.parameters())
    seconds = {name: part["elapsed"] for name, part in trainer.profile}
    return {"points": points, "weights": weights, "seconds": seconds, "epochs": trainer.epoch}


if __name__ == "__main__":
    rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if ranks > 1:
        torch.distributed.init_process_group("gloo")
    result = train(json.loads(sys.argv[1]), rank, ranks)
    if rank == 0:
        print(json.dumps(result), flush=True)
