"""How long two ranks take to add up a gradient: by gloo's sockets, and in memory that they share.

    OMP_NUM_THREADS=1 python tests/bench/ranks.py [--numbers 332407] [--times 300]

332,407 numbers are the gradient of an agent of size tiny.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch

from learner.distributed.rank_group import RankGroup
from learner.distributed.shared_sum import SharedSum
from learner.distributed.team import Team


def milliseconds(work: Callable[[], object], times: int) -> float:
    """Of one call, behind some to warm up."""
    for _ in range(10):
        work()
    started = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - started) / times * 1e3


def one_rank(rank: int, folder: Path, options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    Team(rank=rank, count=2, meeting=folder).join(torch.device("cpu"))
    ranks = RankGroup()
    memory = SharedSum.opened(ranks, options.numbers)
    assert memory is not None, "this machine has no memory to share"
    gradient, few = torch.randn(options.numbers), torch.zeros(13, dtype=torch.float64)
    by_gloo, shared, wait = (
        milliseconds(work, options.times)
        for work in (
            lambda: ranks.add_up(gradient),
            lambda: memory.add_up([gradient], lambda: ranks.add_up(few)),
            lambda: ranks.add_up(few),
        )
    )
    if not rank:
        print(f"gloo {by_gloo:.2f} ms, shared memory {shared:.2f} ms, of which {wait:.2f} ms wait")
    torch.distributed.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--numbers", type=int, default=332_407)
    parser.add_argument("--times", type=int, default=300)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        one_rank(options.rank, options.folder, options)
        return
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, *sys.argv, "--folder", folder]
        ranks = [subprocess.Popen([*words, "--rank", str(rank)]) for rank in range(2)]
        sys.exit(max(rank.wait() for rank in ranks))


if __name__ == "__main__":
    main()
