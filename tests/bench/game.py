"""Prints match-steps a second of the batched game on one thread, for several numbers of matches.

Run it as `python tests/bench/game.py [seconds per row]`. Both seats are external: their keys come from
a ring of random actions made before the clock starts.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from league.games.registry import make_batched


def steps_per_second(num_matches: int, seconds: float) -> float:
    """Frames of single matches a second over about `seconds`."""
    game = make_batched("brawl", num_matches)
    random = np.random.default_rng(0)
    ring = random.integers(0, 2, (16, num_matches, 2, game.spec.action_size), dtype=np.uint8)
    game.reset(np.arange(num_matches, dtype=np.uint64))
    game.step(ring[0])
    steps, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for actions_N2A in ring:
            game.step(actions_N2A)
        steps += len(ring) * num_matches
    return steps / (time.perf_counter() - begin)


def main() -> None:
    """Compiles, then measures."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    begin = time.perf_counter()
    game = make_batched("brawl", 1)
    game.reset(np.zeros(1, np.uint64))
    game.step(np.zeros((1, 2, game.spec.action_size), np.uint8))
    print(f"ready in {time.perf_counter() - begin:.1f} s (compiled, or read from the cache)")
    for num_matches in (1, 16, 256, 1024):
        print(f"N={num_matches:5d}: {steps_per_second(num_matches, seconds):12,.0f} match-steps/s")


if __name__ == "__main__":
    main()
