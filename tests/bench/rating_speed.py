"""How long ratings take: folding one result, and fitting all of a league at once.

    OMP_NUM_THREADS=1 python tests/bench/rating_speed.py [--players 2000] [--games 1000000]

CPU time, the best of several rounds. A fold is one game of TrueSkill; the table's also counts
payoffs and predictions. The fit is Bradley and Terry's with draws, full covariance, from the games
as columns.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import trueskill

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py beside this file is not the package
sys.path.append(str(Path(__file__).parent))
from simulated_players import played

from league.stats.ratings import MU, SIGMA, RatedGame, RatingTable
from league.stats.ratings.belief import draw_margin
from league.stats.ratings.bradley_terry import fit
from league.stats.ratings.closed_form import fold
from league.stats.ratings.pairs import PairCounts

ROUNDS = 5
FOLDS = 200_000


def best(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """CPU seconds of the quickest round."""
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def folds(rng: np.random.Generator, players: int) -> None:
    first = rng.integers(players, size=FOLDS)
    second = (first + rng.integers(1, players, size=FOLDS)) % players
    wins = (rng.random(FOLDS) < 0.5).astype(float)
    for name, outcome in (("won or lost", wins), ("drawn", np.full(FOLDS, 0.5))):
        games = [
            (a, b, o, 0.0, 0.0)
            for a, b, o in zip(*(x.tolist() for x in (first, second, outcome)), strict=True)
        ]
        seconds = best(
            lambda g=games: fold([MU] * players, [SIGMA**2] * players, g, draw_margin(0.1))
        )
        print(f"fold, {name:12} {seconds / FOLDS * 1e6:10.2f} µs a game")
    rated = [RatedGame(f"p{a}", f"p{b}", o) for a, b, o, *_ in games]
    seconds = best(lambda: RatingTable().fold_all(rated)) / len(rated)
    print(f"RatingTable.fold_all {seconds * 1e6:8.2f} µs a game")
    for backend in (None, "mpmath"):
        env = trueskill.TrueSkill(tau=0.0, draw_probability=0.1, backend=backend)
        pair = env.create_rating(), env.create_rating()
        seconds = (
            best(lambda e=env, p=pair: [trueskill.rate_1vs1(*p, env=e) for _ in range(300)]) / 300
        )
        print(f"trueskill, {backend or 'its own':10} {seconds * 1e6:10.1f} µs a game")


def fits(rng: np.random.Generator, players: int, games: int) -> None:
    theta = rng.normal(0.0, 300.0 * math.log(10.0) / 400.0, players)
    first = rng.integers(players, size=games)
    second = (first + rng.integers(1, players, size=games)) % players
    outcome = played(rng, theta[first] - theta[second], 0.35)
    counted = best(lambda: PairCounts.of_games(first, second, outcome, players), 1)
    counts = PairCounts.of_games(first, second, outcome, players)
    fitted = best(lambda: fit(counts, players), 1)
    print(
        f"{players:,} players, {games:,} games: counted in {counted:.2f} s, fitted in {fitted:.2f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--players", type=int, default=2_000)
    parser.add_argument("--games", type=int, default=1_000_000)
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    folds(rng, args.players)
    fits(rng, args.players, args.games)


if __name__ == "__main__":
    main()
