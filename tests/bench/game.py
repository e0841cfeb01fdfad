"""Measures the batched game: match-steps per second, and the time to start and reset it.

    OMP_NUM_THREADS=1 python tests/bench/game.py [--seconds 1] [--against FOLDER]

Weapons are on. Every step writes both observations, all reward terms and all statistics. Matches
that end are reset within the step, and a reset costs less than a step. `random` plays random
actions that were drawn before the clock starts, with each key down half of the time. `based` plays
this bot in both seats. Each figure is the best of slices of 5 ms, because other work on a shared
machine only ever slows a run down. `--against` also measures another checkout of this repository,
alternately with this one, and prints the ratio.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

import numpy as np

from league.games.registry import make_batched

ROWS = tuple((n, threads) for n in (1, 16, 256, 4096) for threads in (1, 2))
PLAYS = ("random", "based")
SLICE_SECONDS = 0.005


def made(num_matches: int, play: str, threads: int = 1):  # type: ignore[no-untyped-def]
    """Returns a game in progress, and a list of random actions."""
    game = make_batched("brawl", num_matches, **({"threads": threads} if threads > 1 else {}))
    ring = np.random.default_rng(0).integers(0, 2, (16, num_matches, 2, 10), dtype=np.uint8)
    if play == "based":
        game.bots_N2[:] = game.spec.bot_index("based")
    game.reset(np.arange(num_matches, dtype=np.uint64))
    for _ in range(20):
        for actions_N2A in ring:
            game.step(actions_N2A)
    return game, ring


def steps_per_second(num_matches: int, play: str, threads: int, seconds: float) -> float:
    """Returns match-steps per second, the best of slices of some milliseconds."""
    game, ring = made(num_matches, play, threads)
    best, end = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        steps, begin = 0, time.perf_counter()
        while steps == 0 or time.perf_counter() - begin < SLICE_SECONDS:
            for actions_N2A in ring:
                game.step(actions_N2A)
            steps += len(ring) * num_matches
        best = max(best, steps / (time.perf_counter() - begin))
    return best


def reset_seconds(num_matches: int) -> float:
    """Returns the seconds per match for a reset of `num_matches` matches, the best of many
    resets.
    """
    game, _ = made(num_matches, "random")
    seeds, best = np.arange(num_matches, dtype=np.uint64), 1.0
    for _ in range(200):
        begin = time.perf_counter()
        game.reset(seeds)
        best = min(best, (time.perf_counter() - begin) / num_matches)
    return best


def other_steps_per_second(folder: str, num_matches: int, play: str, seconds: float) -> float:
    """Measures `steps_per_second` of another checkout, in a separate process."""
    command = [sys.executable, __file__, "--one", str(num_matches), play, "--seconds", str(seconds)]
    environment = {**os.environ, "PYTHONPATH": folder}
    found = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return float(found.stdout)


def main() -> None:
    """Compiles, or reads the cache, then measures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each figure")
    parser.add_argument(
        "--against", help="folder of another checkout to compare with, on one thread"
    )
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(steps_per_second(int(given.one[0]), given.one[1], 1, given.seconds))
        return
    begin = time.perf_counter()
    made(1, "random")
    print(f"ready in {time.perf_counter() - begin:.2f} s (compiled, or read from the cache)")
    alone, many = (reset_seconds(matches) * 1e6 for matches in (1, 256))
    print(f"reset of a match: {alone:.1f} us alone, {many:.2f} us of 256")
    for play in PLAYS:
        for num_matches, threads in ROWS:
            speed = steps_per_second(num_matches, play, threads, given.seconds)
            line = f"{play:6s} N={num_matches:5d} threads={threads}: {speed:12,.0f} match-steps/s"
            if given.against and threads == 1:
                other = other_steps_per_second(given.against, num_matches, play, given.seconds)
                line += f"  {speed / other:5.2f} times {other:12,.0f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
