"""How long the structure of a league takes, by its parts and its number of players, in seconds of
CPU time.

    OMP_NUM_THREADS=1 python tests/bench/structure.py [--players 50 200 2000] [--games 40] [--met
    0.3]

Players on a line of strengths with styles that beat each other, a share `--met` of the pairs having
met. CPU time, so that other work on the machine does not count. `structure` is all of `bin/league
structure`, with its default number of draws.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from league.stats.structure.clusters import clusters_of
from league.stats.structure.cycles import cyclicity, split, strongest_cycles, sure_cycles
from league.stats.structure.equilibria import alpha_rank, alpha_rank_limit, nash_averaging
from league.stats.structure.study import Choices, study
from league.stats.structure.table import Table, logits, margins, measured_prior

SLOW = 1000
"""Players from which what takes the cube of their number in Python is left out."""


def league(players: int, games: int, met: float, rng: np.random.Generator) -> Table:
    """Counts of a league with three styles, the prior being what a fair rating would say."""
    strength_N, style_N = rng.normal(size=players), rng.integers(3, size=players)
    line_NN = strength_N[:, None] - strength_N[None, :]
    cyclic_NN = ((style_N[:, None] - style_N[None, :] + 1) % 3 - 1).astype(float)
    chance_NN = 1 / (1 + np.exp(-(line_NN + 0.7 * cyclic_NN)))
    counts_NN = np.triu(games * (rng.random((players, players)) < met), 1)
    won_NN = rng.binomial(counts_NN, chance_NN)
    wins_NN = (won_NN + (counts_NN - won_NN).T).astype(float)
    draws_NN, predicted_NN = np.zeros_like(wins_NN), 1 / (1 + np.exp(-line_NN))
    return Table(
        names=tuple(f"player-{index}" for index in range(players)),
        wins_NN=wins_NN,
        draws_NN=draws_NN,
        predicted_NN=predicted_NN,
        prior_games=measured_prior(wins_NN, draws_NN, predicted_NN),
    )


def parts(table: Table) -> dict[str, Callable[[], object]]:
    """What is timed, by name."""
    rng = np.random.default_rng(1)
    margin_NN = margins(table.chance_NN)
    timed: dict[str, Callable[[], object]] = {
        "nash": lambda: nash_averaging(margin_NN),
        "draw": lambda: table.drawn(rng),
        "alpha_rank_limit": lambda: alpha_rank_limit(margin_NN),
        "split": lambda: split(logits(table.chance_NN), table.known_NN),
        "strongest_cycles": lambda: strongest_cycles(table, 10),
        "sure_cycles": lambda: sure_cycles(table),
        "clusters": lambda: clusters_of(table),
    }
    if len(table.names) < SLOW:
        timed |= {
            "alpha_rank": lambda: alpha_rank(margin_NN, 10.0),
            "cyclicity": lambda: cyclicity(table, 200, rng),
        }
    return timed | {"structure": lambda: study(table, Choices())}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--players", type=int, nargs="+", default=[50, 200, 2000])
    parser.add_argument("--games", type=int, default=40)
    parser.add_argument("--met", type=float, default=0.3)
    args = parser.parse_args()
    print("players\tpart\tcpu_seconds")
    for players in args.players:
        table = league(players, args.games, args.met, np.random.default_rng(0))
        for name, part in parts(table).items():
            began = time.process_time()
            part()
            print(f"{players}\t{name}\t{time.process_time() - began:.3f}", flush=True)


if __name__ == "__main__":
    main()
