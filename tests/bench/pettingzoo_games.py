"""Steps a second of PettingZoo's games, all seats uniform: `python
tests/bench/pettingzoo_games.py`.

By matches and workers.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from league.games.base import BatchedGame
from league.games.registry import make_batched

NAMES = ("connect_four_v3", "tictactoe_v3", "rps_v2")


def begun(name: str, matches: int, workers: int) -> BatchedGame:
    """The game, past the start of its processes."""
    game = make_batched(f"pettingzoo:pettingzoo.classic.{name}", matches, workers=workers)
    game.bots_N2[:] = 0
    game.reset(np.arange(matches, dtype=np.uint64))
    game.step(game.idle_actions())
    return game


def speed(game: BatchedGame, seconds: float) -> float:
    """Match-steps a second, resets included."""
    idle, steps, start = game.idle_actions() * 0, 0, time.perf_counter()
    while time.perf_counter() < start + seconds:
        game.step(idle)
        steps += game.num_matches
    return steps / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    seconds = parser.parse_args().seconds
    for name in NAMES:
        for matches, workers in ((1, 1), (16, 1), (16, 2), (128, 1), (128, 2)):
            start = time.perf_counter()
            game = begun(name, matches, workers)
            ready = time.perf_counter() - start
            rate = speed(game, seconds)
            game.close()
            row = f"{name:16} {matches:4} matches {workers} workers"
            print(f"{row} {rate:8,.0f} steps/s, ready in {ready:.2f} s", flush=True)


if __name__ == "__main__":
    main()
