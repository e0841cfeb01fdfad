"""Measures how well the sampler's expected scores predict a run's training matches.

    OMP_NUM_THREADS=1 .venv/bin/python tests/bench/forgetting.py RUN

It prints the mean log loss of a learner's matches, without self-play, for several rates at which
old results fade.
"""

from __future__ import annotations

import argparse
import math
import sys
from contextlib import closing
from itertools import product
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parents[2]))  # matchmaker.py here is not the package

from league.runs import finding
from league.stats import recent
from matchmaker.sampling import mixes
from matchmaker.store.sqlite import SqliteStore
from matchmaker.tools.mix import matches_of

FOREVER = 1e15
LEAST = 1e-3
"""Expected scores are kept at least this far from 0 and 1."""


def log_loss(run: Path, player: str) -> tuple[float, int]:
    """Returns the mean log loss over matches, where a draw counts as half a win, and their
    number.
    """
    store = SqliteStore(finding.database_of(run), read_only=True)
    with closing(store), store.read() as reader:
        matches = [match for match in matches_of(reader, player) if match.kind != "self"]
    losses = []
    for match in matches:
        p = min(max(match.expected, LEAST), 1.0 - LEAST)
        losses.append(-match.score * math.log(p) - (1.0 - match.score) * math.log(1.0 - p))
    return fmean(losses), len(losses)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--player", default="main")
    parser.add_argument("--half-lives", type=float, nargs="+", default=[50e3, 100e3, 200e3, 400e3])
    parser.add_argument("--reaches", type=float, nargs="+", default=[200e3])
    asked = parser.parse_args()
    print("results", "half-life", "reach", "log loss", "matches", sep="\t")

    def show(words: str, half_life: float, reach: float) -> None:
        recent.HALF_LIFE_STEPS, recent.REACH_STEPS = half_life, reach
        loss, matches = log_loss(asked.run, asked.player)
        print(words, f"{half_life:g}", f"{reach:g}", f"{loss:.4f}", matches, sep="\t", flush=True)

    for half_life, reach in product(asked.half_lives, asked.reaches):
        show("fade", half_life, reach)
    recent._KEPT, recent.MOST_FROM_NEIGHBOURS = 1.0, 1e-9
    show("all alike", FOREVER, 1.0)
    mixes.PRIOR_GAMES = FOREVER
    show("ratings alone", FOREVER, 1.0)


if __name__ == "__main__":
    main()
