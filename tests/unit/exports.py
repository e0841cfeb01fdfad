"""Small agents to export, what they see, and programs that must do without our packages."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from agents import PERCEPTRON, RECURRENT, network

from league.agent.config import AgentConfig, NetworkConfig
from league.agent.contract import PlayingNetwork
from league.agent.heads import action_distribution
from league.agent.snapshot import SnapshotCard
from league.games.registry import game_spec

SIZES: dict[str, Any] = {
    "layers": 1,
    "width": 16,
    "attention_heads": 2,
    "feed_forward": 24,
    "observation_hidden": 16,
    "memory": 12,
    "head_widths": (8,),
    "span": 3,
    "sequence_length": 6,
}
KUHN = game_spec("kuhn")
EXPORTED: dict[str, NetworkConfig] = {
    "streaming": AgentConfig(
        observation_size=74, own_size=32, action_size=10, places=(0, 1), **SIZES
    ),
    "kuhn": AgentConfig(
        observation_size=KUHN.observation_size,
        own_size=KUHN.own_size,
        action_size=KUHN.action_size,
        action_kind=KUHN.action_kind,
        **SIZES,
    ),
    "perceptron": PERCEPTRON,
    "recurrent": RECURRENT,
}


def agent(name: str) -> PlayingNetwork:
    """An agent of `EXPORTED`."""
    return balanced(EXPORTED[name])


@cache
def balanced(config: NetworkConfig) -> PlayingNetwork:
    """An agent whose actions follow what it sees: each logit is on either side of 0 half the
    time.
    """
    net: Any = network(config)
    data = seen(config, 100, 4)
    with torch.no_grad():
        state, logits = net.initial_state(4), []
        for obs, starts, left, _ in zip(
            *(torch.from_numpy(part) for part in data.values()), strict=True
        ):
            output = net.step(obs, starts, state, left)
            state = output.state
            logits.append(output.logits_BA)
        net.actor.last.bias -= torch.cat(logits).median(0).values
    return net.requires_grad_(False)


def card(name: str) -> SnapshotCard:
    spec = KUHN if name == "kuhn" else game_spec("brawl")
    return SnapshotCard(
        agent=EXPORTED[name],
        game=spec.name,
        game_version=spec.version,
        frame_skip=1 if name == "kuhn" else 4,
        step=1234,
    )


def seen(config: NetworkConfig, steps: int, rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Observations, episode starts (some in the middle), times left, and which choices are
    legal.
    """
    rng = np.random.default_rng(seed)
    starts_TB = rng.random((steps, rows)) < 0.02
    starts_TB[0] = True
    starts_TB[steps // 2, 0] = True
    legal_TBA = rng.random((steps, rows, config.action_size)) < 0.6
    legal_TBA[..., 0] |= ~legal_TBA.any(-1)
    return {
        "obs": rng.uniform(-1, 1, (steps, rows, config.observation_size)).astype(np.float32),
        "starts": starts_TB,
        "left": rng.random((steps, rows)).astype(np.float32),
        "legal": legal_TBA,
    }


@torch.no_grad()
def greedy_actions(net: PlayingNetwork, data: dict[str, np.ndarray]) -> np.ndarray:
    """What the agent itself does, `[T, B, A]`."""
    state, chosen = net.initial_state(data["obs"].shape[1]), []
    for obs, starts, left, legal in zip(
        *(torch.from_numpy(part) for part in data.values()), strict=True
    ):
        output = net.step(obs, starts, state, left)
        state = output.state
        chosen.append(
            action_distribution(net.config.action_kind, output.logits_BA, legal).greedy().numpy()
        )
    return np.stack(chosen)


WITHOUT = """
import importlib.abc, sys

class Without(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if {refused}:
            raise ModuleNotFoundError(f"{{name}} is not for this program")

sys.meta_path.insert(0, Without())
for ours in ("league", "learner", "matchmaker", "evaluator"):
    try:
        __import__(ours)
    except ModuleNotFoundError:
        continue
    sys.exit(f"{{ours}} can be imported: this program proves nothing")
"""
OURS = """name.split(".")[0] in ("league", "learner", "matchmaker", "evaluator")"""


def run_alone(folder: Path, program: str, *arguments: str, refused: str = OURS) -> None:
    """Runs `program` in a process that can't import what is `refused` (an expression of `name`)."""
    script = folder / "alone.py"
    script.write_text(WITHOUT.format(refused=refused) + program)
    command = [sys.executable, "-I", str(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
