"""Measures a matchmaker: results and assignments per second, latency, and restarts.

    OMP_NUM_THREADS=1 python tests/bench/matchmaker.py [--parts results assignments latency
    restart]

It runs a real matchmaker process and its clients on one machine, over gRPC. The log is on a disk,
and every commit is synced. The server and its clients share the CPU cores, whose number it prints.
Results are results of the built-in game, with 28 statistics each.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # this file is not the package of its name
sys.path.append(str(Path(__file__).parent))

from matchmaker_load import acquire, latencies, rate, report
from matchmaker_log import restarts
from matchmaker_served import Served


@contextmanager
def fresh(folder: Path | None) -> Iterator[Served]:
    with tempfile.TemporaryDirectory(dir=folder) as made, Served(Path(made)) as served:
        yield served


def show_rates(args: argparse.Namespace) -> None:
    for what, work in (("results", report), ("assignments", acquire)):
        for batch in (64, 256, 1024) if what in args.parts else ():
            with fresh(args.folder) as served:
                before = served.cpu_seconds()
                found = rate(served, work, args.players, args.clients, batch, args.count)
                cpu = 1e6 * (served.cpu_seconds() - before) / args.count
            print(
                f"{what}, {batch:5} a call, {args.clients} clients: {found:9,.0f} a second"
                f"   (the server computed {cpu:.0f} µs for each; a result's assignment included)"
            )


def show_latency(args: argparse.Namespace) -> None:
    for reports in (False, True):
        with fresh(args.folder) as served:
            found, computed = latencies(served, args.players, args.crowd, args.seconds, reports)
        quantiles = np.quantile(found, (0.5, 0.9, 0.99, 0.999, 1.0))
        words = ", ".join(
            f"{name} {value:.1f}"
            for name, value in zip(("p50", "p90", "p99", "p99.9", "max"), quantiles, strict=True)
        )
        doing = "acquire 4 and report 4" if reports else "acquire 4"
        print(
            f"{args.crowd:,} clients that {doing} a second, {len(found):,} times: {words} ms"
            f"   (the server computed {1e6 * computed / len(found):.0f} µs for each)"
        )


def show_restart(args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(dir=args.folder) as made:
        for line in restarts(Path(made), args.players, args.log):
            print(line, flush=True)


PARTS = ("results", "assignments", "latency", "restart")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--players", type=int, default=2_000, help="in the league")
    parser.add_argument("--clients", type=int, default=2, help="processes that report or acquire")
    parser.add_argument(
        "--count", type=int, default=100_000, help="results or assignments of a measurement"
    )
    parser.add_argument(
        "--crowd", type=int, default=1_000, help="clients of the latency's measurement"
    )
    parser.add_argument("--seconds", type=int, default=20, help="that it lasts")
    parser.add_argument(
        "--log", type=int, default=10_000_000, help="results in the log of the restart"
    )
    parser.add_argument(
        "--folder", type=Path, help="where the leagues' files are made (default: the system's)"
    )
    args = parser.parse_args()
    print(f"{len(os.sched_getaffinity(0))} cores for server and clients")
    show_rates(args)
    if "latency" in args.parts:
        show_latency(args)
    if "restart" in args.parts:
        show_restart(args)


if __name__ == "__main__":
    main()
