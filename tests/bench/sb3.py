"""Steps a second of plain Stable-Baselines3 in the league, by PyTorch's threads and by matches at
once.

    .venv/bin/python tests/bench/sb3.py [--threads 1,2] [--matches 8,32,128] [--steps 16384]
    [--rounds 2]

Each cell trains a new PPO("MlpPolicy") against the bots of brawl; cells take turns within a round,
so what else the machine does meets all of them. Prints the best of each, by wall clock and by the
process's own time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

import torch
from stable_baselines3 import PPO

sys.path.insert(
    0, str(Path(__file__).parents[2])
)  # learner.py next to this file is not the package
from learner.sb3 import league_env
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings


def measure(
    address: str, run_dir: Path, threads: int, matches: int, steps: int
) -> tuple[float, float]:
    """Steps a second of wall clock and of CPU time, learning included."""
    torch.set_num_threads(threads)
    with league_env(address, run_dir, preset="laptop", matches=matches) as env:
        n_steps = 4096 // matches
        model = PPO("MlpPolicy", env, n_steps=n_steps, batch_size=1024, device="cpu", seed=0)
        model.learn(4096)
        wall, cpu = time.perf_counter(), time.process_time()
        model.learn(steps, reset_num_timesteps=False)
        return steps / (time.perf_counter() - wall), steps / (time.process_time() - cpu)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--threads", default="1,2")
    arguments.add_argument("--matches", default="8,32,128")
    arguments.add_argument("--steps", type=int, default=16384)
    arguments.add_argument("--rounds", type=int, default=2)
    options = arguments.parse_args()
    threads, matches = (
        [int(part) for part in text.split(",")] for text in (options.threads, options.matches)
    )
    best: dict[tuple[int, int], tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        settings = MatchmakerSettings(
            mixes={"league": {"constant": 1.0, "based": 1.0, "random": 1.0}}
        )
        with MatchmakerServer(Path(folder) / "league.db", 0, settings) as server:
            for _ in range(options.rounds):
                for cell in product(matches, threads):
                    speeds = measure(server.address, Path(folder), cell[1], cell[0], options.steps)
                    had = best.get(cell, (0.0, 0.0))
                    best[cell] = (max(had[0], speeds[0]), max(had[1], speeds[1]))
    print("| matches | threads | steps/s | steps per second of CPU time |\n|---|---|---|---|")
    for (rows, number), (wall, cpu) in best.items():
        print(f"| {rows} | {number} | {wall:,.0f} | {cpu:,.0f} |")


if __name__ == "__main__":
    main()
