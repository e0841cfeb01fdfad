"""What many different opponents cost: inference alone, and memory over the size of the league.

    OMP_NUM_THREADS=1 python tests/bench/batched_policy.py [--size base] [--matches 256] [--members 1 16 64]

The batched_policies take turns, so a busy machine slows all of them; ratios are of medians. Before, logits of
the batched policy are compared with each network's own, one by one. Each figure stands beside its bar, and
the exit code is 1 when one is missed.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from league.agent.batched_policy import BatchedPolicy
from league.agent.config import SIZES, AgentConfig
from league.agent.device import keep_memory
from league.agent.network import AgentNetwork

_MIB = 1 << 20
COST_BAR, EQUAL_BAR, GROWTH_BAR = 3.0, 1e-5, 0.1
"""The most variety, times the cost of one snapshot; the largest difference of a logit; and how
much larger, as a share of the bound on weights, the process may be after 2,000 members than
after 10.
"""


def judged(name: str, measured: float, bar: float, form: str) -> bool:
    """Prints a figure beside its bar; returns whether it was met."""
    met = measured <= bar
    print(f"{'met' if met else 'MISSED'}: {name}: {measured:{form}}, bar {bar:{form}}", flush=True)
    return met


def network_of(config: AgentConfig, digest: str) -> AgentNetwork:
    torch.manual_seed(int(digest))
    return AgentNetwork(config)


def make_policy(config: AgentConfig, seats: int, members: int) -> BatchedPolicy:
    batched_policy = BatchedPolicy(seats, lambda digest: network_of(config, digest), seed=0)
    for seat in range(seats):
        batched_policy.seat(seat, str(seat % members))
    return batched_policy


def largest_difference(
    config: AgentConfig, observations_TSO: NDArray[np.float32], members: int
) -> float:
    """Between the batched policy's logits and each network's own, over all steps."""
    seats = observations_TSO.shape[1]
    batched_policy = make_policy(config, seats, members)
    networks = [network_of(config, str(member)) for member in range(members)]
    places = [torch.arange(member, seats, members) for member in range(members)]
    states = [
        network.initial_state(len(place)) for network, place in zip(networks, places, strict=True)
    ]
    worst = 0.0
    for observations_SO in observations_TSO:
        batched_policy.act(observations_SO)
        logits_SA = batched_policy.logits_SA
        assert logits_SA is not None
        for member, (network, place) in enumerate(zip(networks, places, strict=True)):
            never = torch.zeros(len(place), dtype=torch.bool)
            with torch.inference_mode():
                own = torch.from_numpy(observations_SO)[place]
                out = network.step(own, never, states[member], torch.zeros(len(place)))
            states[member] = out.state
            worst = max(worst, float((logits_SA[place] - out.logits_BA).abs().max()))
    return worst


def compare(config: AgentConfig, options: argparse.Namespace) -> float:
    """Milliseconds of one decision of all matches, by the number of different snapshots in them.

    Returns what the most of them cost, times what the fewest do.
    """
    batched_policies = {
        members: make_policy(config, options.matches, members) for members in options.members
    }
    observations_SO = random_observations(1, options.matches)[0]
    seconds: dict[int, list[float]] = {members: [] for members in batched_policies}
    for number, (members, batched_policy) in itertools.product(
        range(options.rounds + 3), batched_policies.items()
    ):
        started = time.perf_counter()
        batched_policy.act(observations_SO)
        if number >= 3:
            seconds[members].append(time.perf_counter() - started)
    medians = {members: statistics.median(times) for members, times in seconds.items()}
    first = medians[min(medians)]
    for members, median in medians.items():
        cost = f"{1e3 * median:7.2f} ms, {median / first:.2f} times"
        print(f"{members:5d} snapshots in {options.matches} matches: {cost}")
    return medians[max(medians)] / first


def measure_memory(config: AgentConfig, matches: int) -> float:
    """Memory while every member of a growing league is met, each again and again where they are
    few.

    The bound leaves no room for ten, so in every league some are forgotten and loaded again.
    Returns by how much the process grew from 10 to 2,000 members, as a share of the bound.
    """
    size = sum(parameter.nbytes for parameter in network_of(config, "0").parameters())
    bound = (2 * matches + matches // 4) * size  # the weights of those that play and their stack
    batched_policy = BatchedPolicy(
        matches, lambda digest: network_of(config, digest), seed=0, max_bytes=bound
    )
    observations_SO, rng = random_observations(1, matches)[0], np.random.default_rng(0)
    held: list[float] = []
    for league in (10, 100, 500, 2000):
        rounds = [rng.permutation(league) for _ in range(max(1, 200 // league))]
        for met, member in enumerate(np.concatenate(rounds)):
            batched_policy.seat(met % matches, str(member))
            batched_policy.act(observations_SO)
            assert batched_policy.resident_bytes <= bound
        held.append(resident_set() / _MIB)
        weights = (
            f"{batched_policy.resident_bytes / _MIB:,.1f} MiB of weights, bound {bound / _MIB:,.1f}"
        )
        print(
            f"league of {league:5d}: {batched_policy.resident} resident, {weights}; "
            f"process {held[-1]:,.1f} MiB"
        )
    return (held[-1] - held[0]) / (bound / _MIB)


def resident_set() -> int:
    """Bytes of this process in memory (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def random_observations(steps: int, seats: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).uniform(-1, 1, (steps, seats, 64)).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--matches", type=int, default=256)
    parser.add_argument("--members", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument(
        "--memory-matches", type=int, default=8, help="matches at once as the league grows"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    config = AgentConfig(
        observation_size=64, own_size=32, action_size=10, sequence_length=65, **SIZES[options.size]
    )
    growth = measure_memory(config, options.memory_matches)
    worst = largest_difference(config, random_observations(5, 128), 64)
    cost = compare(config, options)
    most, fewest = max(options.members), min(options.members)
    print(f"\nsize {options.size}, inference alone, {options.matches} matches")
    bars = [
        judged(f"{most} snapshots against {fewest}, times", cost, COST_BAR, ".2f"),
        judged("64 snapshots in 128 matches and one by one, logits", worst, EQUAL_BAR, ".1e"),
        judged(
            "growth from 10 members to 2,000, of the bound on weights", growth, GROWTH_BAR, ".1%"
        ),
    ]
    sys.exit(0 if all(bars) else 1)


if __name__ == "__main__":
    main()
