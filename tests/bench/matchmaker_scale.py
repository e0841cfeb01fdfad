"""Measures what each call costs a matchmaker as the league grows: processor time and bytes.

    OMP_NUM_THREADS=1 python tests/bench/matchmaker_scale.py --learners 1000 --snapshots 10000

The league is simulated (`bin/league simulate`): the servicer, the log and the ratings are real, and
only the matches' outcomes are made up. Calls don't go through a socket. gRPC adds 0.65 to 0.75 ms
of processor time to each call on a slow machine (docs/matchmaker.md).
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from league.players import Book
from matchmaker import limits
from matchmaker.settings import MatchmakerSettings
from matchmaker.simulate import simulation as simulated
from matchmaker.simulate.simulation import DirectClient, Plan, Simulation

BATCH = 16
"""Matches that a learner of brawl draws ahead."""


class TimedClient(DirectClient):
    """Notes the processor time of each call, of all threads, and the size of its reply."""

    def __init__(self, service: Any) -> None:
        super().__init__(service)
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.bytes: dict[str, int] = defaultdict(int)

    def _call(self, method: str, request: Any) -> Any:
        began = time.process_time()
        reply = super()._call(method, request)
        if hasattr(reply, "ByteSize"):
            self.bytes[method] += reply.ByteSize()
        self.seconds[method].append(time.process_time() - began)
        return reply


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learners", type=int, default=1000)
    parser.add_argument("--snapshots", type=int, default=10_000)
    parser.add_argument("--matches", type=int, default=64_000, help="matches of all learners")
    parser.add_argument("--reads", type=int, default=5, help="calls of each kind that reads")
    parser.add_argument("--turn", type=float, default=1.0, help="seconds that a batch takes")
    parser.add_argument(
        "--draw-share", type=float, default=limits.DRAW_SHARE, help="limit of draw tables, in cores"
    )
    args = parser.parse_args()
    limits.DRAW_SHARE = args.draw_share
    simulated.TURN_SECONDS = args.turn
    plan = Plan(
        players=args.snapshots + args.learners + 3,
        matches=args.matches,
        learners=args.learners,
        clean_share=0.2,
        faults=0.0,
        batch=BATCH,
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        Simulation(Path(folder), MatchmakerSettings(), plan) as simulation,
    ):
        simulation.client = client = TimedClient(simulation.server.service)
        began = time.process_time()
        simulation.run()
        spent = time.process_time() - began
        for _ in range(args.reads):
            client.status()
            client.players()
            for book in (Book.TRAIN, Book.EVAL):
                client.ratings(book)
                client.payoff(book)
        analysed = time.process_time()
        simulation.server.analyse()
        analysed = time.process_time() - analysed
        size = (Path(folder) / "league.db").stat().st_size
    print(f"{args.learners:,} learners, {args.snapshots:,} snapshots, {plan.matches:,} matches")
    print(f"{'call':24}{'calls':>8}{'median ms':>11}{'99% ms':>9}{'most ms':>9}{'kB':>9}")
    for method, seconds in sorted(client.seconds.items(), key=lambda pair: -sum(pair[1])):
        median, high, most = 1000 * np.quantile(seconds, (0.5, 0.99, 1.0))
        kilobytes = client.bytes[method] / 1000 / len(seconds)
        print(f"{method:24}{len(seconds):8,}{median:11.2f}{high:9.2f}{most:9.1f}{kilobytes:9.1f}")
    matches = [client.seconds[method] for method in ("AcquireMatches", "ReportResults")]
    each = 1e6 * sum(map(sum, matches)) / plan.matches
    print(f"{each:.0f} µs for a match (its assignment and its result), {spent:.0f} s in all")
    print(f"an analysis takes {analysed:.1f} s; the log has {size / 1e6:.0f} MB; ", end="")
    print(f"memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
