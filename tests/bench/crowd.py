"""What many different opponents cost: inference alone, and memory over the size of the league.

    OMP_NUM_THREADS=1 python tests/bench/crowd.py [--size base] [--matches 256] [--members 1 16 64]

The crowds take turns, so a busy machine slows all of them; ratios are of medians. Before, greedy logits
of the crowd are compared with each network's own, one by one.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import statistics
import time

import numpy as np
import torch
from numpy.typing import NDArray

from league.agent.config import SIZES, AgentConfig
from league.agent.crowd import Crowd
from league.agent.network import AgentNetwork
from league.device import keep_memory


def network_of(config: AgentConfig, digest: str) -> AgentNetwork:
    torch.manual_seed(int(digest))
    return AgentNetwork(config)


def make_crowd(config: AgentConfig, seats: int, members: int) -> Crowd:
    crowd = Crowd(seats, lambda digest: network_of(config, digest), seed=0)
    for seat in range(seats):
        crowd.seat(seat, str(seat % members))
    return crowd


def largest_difference(config: AgentConfig, observations_TSO: NDArray[np.float32], members: int) -> float:
    """Between the crowd's logits and each network's own, over all steps."""
    seats = observations_TSO.shape[1]
    crowd = make_crowd(config, seats, members)
    networks = [network_of(config, str(member)) for member in range(members)]
    places = [torch.arange(member, seats, members) for member in range(members)]
    states = [network.initial_state(len(place)) for network, place in zip(networks, places, strict=True)]
    worst = 0.0
    for observations_SO in observations_TSO:
        crowd.act(observations_SO)
        logits_SA = crowd.logits_SA
        assert logits_SA is not None
        for member, (network, place) in enumerate(zip(networks, places, strict=True)):
            never = torch.zeros(len(place), dtype=torch.bool)
            with torch.inference_mode():
                own = torch.from_numpy(observations_SO)[place]
                out = network.step(own, never, states[member], torch.zeros(len(place)))
            states[member] = out.state
            worst = max(worst, float((logits_SA[place] - out.logits_BA).abs().max()))
    return worst


def compare(config: AgentConfig, options: argparse.Namespace) -> None:
    """Milliseconds of one decision of all matches, by the number of different snapshots in them."""
    crowds = {members: make_crowd(config, options.matches, members) for members in options.members}
    observations_SO = random_observations(1, options.matches)[0]
    seconds: dict[int, list[float]] = {members: [] for members in crowds}
    for number, (members, crowd) in itertools.product(range(options.rounds + 3), crowds.items()):
        started = time.perf_counter()
        crowd.act(observations_SO)
        if number >= 3:
            seconds[members].append(time.perf_counter() - started)
    medians = {members: statistics.median(times) for members, times in seconds.items()}
    first = next(iter(medians.values()))
    for members, median in medians.items():
        cost = f"{1e3 * median:7.2f} ms, {median / first:.2f} times"
        print(f"{members:5d} snapshots in {options.matches} matches: {cost}")


def measure_memory(config: AgentConfig, matches: int) -> None:
    """The process's peak while one member of a growing league after another is met."""
    crowd = make_crowd(config, matches, 10)
    met = 0
    for league in (10, 100, 500, 2000):
        while met < league:
            crowd.seat(met % matches, str(met))
            met += 1
        crowd.act(random_observations(1, matches)[0])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{league:5d} members met: {crowd.resident} resident, peak of the process {peak:,.0f} MiB",
            flush=True,
        )


def random_observations(steps: int, seats: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).uniform(-1, 1, (steps, seats, 64)).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--matches", type=int, default=256)
    parser.add_argument("--members", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    config = AgentConfig(
        observation_size=64, own_size=32, action_size=10, sequence_length=65, **SIZES[options.size]
    )
    measure_memory(config, 64)
    worst = largest_difference(config, random_observations(5, 128), 64)
    print(f"size {options.size}: 64 snapshots in 128 matches equal one by one within {worst:.1e}")
    compare(config, options)


if __name__ == "__main__":
    main()
