"""Runs the seeds of a study on the nodes of a Ray cluster."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from league.cluster.ray import Cluster

ROOT = Path(__file__).parents[2]


def run_seeds(
    folder: Path, words: Sequence[str], flag: str, seeds: Sequence[int], cpus: int = 1
) -> None:
    """Calls a study's command once for each seed, and waits for all calls.

    The command must skip what its folder has, so that the caller can go on with all results.

    Args:
        folder: the study's folder. All nodes must see it.
        words: the script and its arguments. Paths may be relative to the current folder.
        flag: the flag before a seed. It replaces the seeds in `words`.
        seeds: the seeds.
        cpus: the cores that a call takes.

    Raises:
        LeagueError: a node does not see the folder, or a call was killed.
        subprocess.CalledProcessError: a call failed.
    """
    own = [*words, "--engine", "local"]  # the last value of a flag counts
    commands = [[sys.executable, *own, flag, str(seed)] for seed in seeds]
    call = functools.partial(subprocess.run, cwd=Path.cwd(), check=True)
    with Cluster() as cluster:
        cluster.check_shared(folder)
        for number, _ in cluster.map(call, commands, cpus):
            print(f"seed {seeds[number]}: done", flush=True)
