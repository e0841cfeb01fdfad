"""Measures the agent's speed: `unroll` forward and backward, `step`, and a batched policy.

    OMP_NUM_THREADS=1 python tests/bench/agent.py [--size tiny] [--encoder none] [--length 17]
    [--seconds 3] [--device cpu]

It uses one CPU thread. It prints median steps per second of wall-clock time and of the process's
CPU time, which differ on a busy machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from league.agent.batched_policy import LIVE, BatchedPolicy
from league.agent.config import SIZES, AgentConfig
from league.agent.device import keep_memory
from league.agent.network import AgentNetwork

UNEVEN = [1] * 20 + [2] * 10 + [5] * 6 + [9] * 3 + [31]


def measure(name: str, steps: int, work: Callable[[], object], seconds: float) -> None:
    """Repeats `work`, which does `steps` steps, for about `seconds`."""
    for _ in range(3):
        work()
    walls, cpus, end = [], [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    wall_rate, cpu_rate = (steps / max(float(np.median(times)), 1e-9) for times in (walls, cpus))
    print(
        f"{name:44s} {wall_rate:10,.0f} steps/s  {cpu_rate:10,.0f} steps/s of CPU time", flush=True
    )


def bench_unroll(
    network: AgentNetwork, steps: int, batch: int, seconds: float, device: str
) -> None:
    prefix, config = network.config.context, network.config
    obs_XBO = torch.rand(prefix + steps, batch, config.observation_size, device=device) * 2 - 1
    starts_XB = torch.rand(prefix + steps, batch, device=device) < 1 / 600
    left_TB = torch.rand(steps, batch, device=device)
    zeros_BH = torch.zeros(batch, config.memory, device=device)

    def work() -> None:
        output = network.unroll(obs_XBO, starts_XB, zeros_BH, zeros_BH, left_TB, prefix)
        (output.logits_TBA.square().mean() + output.value_TB.square().mean()).backward()

    measure(f"unroll forward+backward T={steps} B={batch}", steps * batch, work, seconds)


def bench_step(network: AgentNetwork, batch: int, seconds: float, device: str) -> None:
    obs_BO = torch.rand(batch, network.config.observation_size, device=device)
    starts_B = torch.zeros(batch, dtype=torch.bool, device=device)
    left_B = torch.rand(batch, device=device)
    state = network.initial_state(batch)

    @torch.inference_mode()
    def work() -> None:
        nonlocal state
        state = network.step(obs_BO, starts_B, state, left_B).state

    measure(f"step B={batch}", batch, work, seconds)


def bench_crowd(
    config: AgentConfig, name: str, sizes: list[int], seconds: float, device: str
) -> None:
    seats = sum(sizes)
    batched_policy = BatchedPolicy(
        seats,
        lambda digest: AgentNetwork(config),
        seed=0,
        action_size=config.action_size,
        device=device,
    )
    batched_policy.set_live(AgentNetwork(config).to(device))
    who = [
        LIVE if name == "live" else str(group)
        for group, size in enumerate(sizes)
        for _ in range(size)
    ]
    for seat, digest in enumerate(who):
        batched_policy.seat(seat, digest)
    observations_SO = np.random.default_rng(0).uniform(-1, 1, (seats, 64)).astype(np.float32)
    measure(
        f"batched_policy of {seats} seats, {name}",
        seats,
        lambda: batched_policy.act(observations_SO),
        seconds,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--length", type=int, default=17)
    parser.add_argument("--encoder", choices=("none", "streaming"), default="none")
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--batches", type=int, nargs="+", default=[32, 64, 128])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    config = AgentConfig(
        observation_size=64,
        own_size=32,
        action_size=10,
        encoder=options.encoder,
        sequence_length=options.length,
        **SIZES[options.size],
    )
    network = AgentNetwork(config).to(options.device)
    for batch in options.batches:
        bench_unroll(network, options.steps, batch, options.seconds, options.device)
    bench_step(network, 128, options.seconds, options.device)
    for name, sizes in (
        ("live", [128]),
        ("one snapshot", [128]),
        ("32 by 4", [4] * 32),
        ("uneven 40", UNEVEN),
    ):
        bench_crowd(config, name, sizes, options.seconds, options.device)


if __name__ == "__main__":
    main()
