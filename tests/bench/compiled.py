"""Whether `torch.compile` wins: the network's step and its unroll with gradients, compiled and not,
in turns.

    OMP_NUM_THREADS=1 python tests/bench/compiled.py [--size tiny] [--device cpu]

Processor time where the device is the CPU, so that other work beside it does not count; else wall
time.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py beside this file is not the package
from league.agent.config import SIZES, AgentConfig
from league.agent.device import keep_memory
from league.agent.network import AgentNetwork
from learner.ppo.compiling import compiled_step

SHAPES = {"tiny": (17, 128, 32), "base": (33, 64, 64), "large": (65, 16, 128)}
"""Entries of history, matches, and steps of a sequence, by size."""


def milliseconds(work: Callable[[], object], repeats: int, device: str) -> float:
    """Median time of one call."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    spent = []
    for _ in range(repeats):
        started = clock()
        work()
        if device != "cpu":
            torch.cuda.synchronize()
        spent.append(clock() - started)
    return 1000 * statistics.median(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    length, matches, steps = SHAPES[options.size]
    sizes = {"observation_size": 64, "own_size": 32, "action_size": 10, "sequence_length": length}
    config = AgentConfig(**sizes, **SIZES[options.size])
    with torch.device(options.device):
        network = AgentNetwork(config)
        obs_BO, starts_B = torch.rand(matches, 64), torch.zeros(matches, dtype=torch.bool)
        sequences = max(1, matches // 4)
        obs_XBO = torch.rand(config.context + steps, sequences, 64)
        starts_XB = torch.zeros(config.context + steps, sequences, dtype=torch.bool)
        h_BH, left_TB, left_B = (
            torch.zeros(sequences, config.memory),
            torch.ones(steps, sequences),
            torch.ones(matches),
        )
    state = network.initial_state(matches)
    started = time.perf_counter()
    fast_step = compiled_step(network, matches)
    compiling = time.perf_counter() - started
    fast_unroll = torch.compile(network.unroll, dynamic=False)

    @torch.inference_mode()
    def decide(step: Callable[..., object]) -> None:
        step(obs_BO, starts_B, state, left_B)

    def learn(unroll: Callable[..., object]) -> None:
        out = unroll(obs_XBO, starts_XB, h_BH, h_BH, left_TB, config.context)
        (out.logits_TBA.square().mean() + out.value_TB.square().mean()).backward()
        network.zero_grad(set_to_none=False)

    learn(network.unroll), learn(network.unroll)
    started = time.perf_counter()
    learn(fast_unroll), learn(fast_unroll)
    print(f"compiling: step {compiling:.0f} s, unroll {time.perf_counter() - started:.0f} s")
    for _ in range(options.rounds):
        times = [
            milliseconds(lambda: decide(network.step), 100, options.device),
            milliseconds(lambda: decide(fast_step), 100, options.device),
            milliseconds(lambda: learn(network.unroll), 10, options.device),
            milliseconds(lambda: learn(fast_unroll), 10, options.device),
        ]
        print(
            f"{options.size}: step of {matches} matches {times[0]:.2f} ms, compiled {times[1]:.2f}; "
            f"{steps} steps of {sequences} matches forward and backward {times[2]:.1f} ms, "
            f"compiled {times[3]:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
