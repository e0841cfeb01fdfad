"""Measures how often the interval of the cyclic share contains the truth in simulated leagues.

    OMP_NUM_THREADS=1 python tests/bench/cyclic_share.py [--leagues 200] [--players 6 20]

Strengths are normal and so is the cyclic part, scaled so that the share is known and the root mean
square of the logits is 1.4. "wide" leagues have twice this size, so many pairs have only wins. In
"half" of the leagues' pairs never met. Ratings that are fitted to the matches predict all pairs.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from structure_games import chances, elo, partly_cyclic, played

from league.stats.ratings.fit import PairCounts, fit
from league.stats.structure.cycles import cyclicity, split
from league.stats.structure.table import Table, logits, measured_prior

MATCHES = {"10": 10, "40": 40, "200": 200, "40, half": 40, "10, wide": 10, "10, equal": 10}
SIZES = {"10, wide": 2.8, "10, equal": 0.1}


def rated(table: Table) -> Table:
    """Returns the table with the predictions of ratings that are fitted to its matches."""
    rows, columns = np.nonzero(np.triu(table.known_NN, 1))
    wins_NN, draws_NN = table.wins_NN, table.draws_NN
    counts = wins_NN[rows, columns], draws_NN[rows, columns], wins_NN[columns, rows]
    fitted = fit(PairCounts(rows, columns, *counts), len(table.names))
    predicted_NN = chances(elo(fitted.rating_N / fitted.points_per_logit)).clip(1e-3, 1 - 1e-3)
    prior = measured_prior(wins_NN, draws_NN, predicted_NN)
    return replace(table, predicted_NN=predicted_NN, prior_games=prior)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leagues", type=int, default=200)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--players", type=int, nargs="+", default=[6, 20])
    options = parser.parse_args()
    cases = itertools.product(options.players, MATCHES.items(), (0, 0.5, 0.9))
    print("players\tmatches\ttruth\tcoverage\twidth\tbias\trmse\traw_bias\traw_rmse")
    for count, (name, games), share in cases:
        rng, rows = np.random.default_rng(0), []
        for _ in range(options.leagues):
            known_NN = ~np.eye(count, dtype=bool)
            if "half" in name:
                pairs = rng.permutation(list(itertools.combinations(range(count), 2)))
                one, other = pairs[: len(pairs) // 2].T
                known_NN[one, other] = known_NN[other, one] = False
            truth_NN = partly_cyclic(known_NN, share, SIZES.get(name, 1.4), rng)
            table = rated(played(chances(truth_NN), games, rng, known_NN=known_NN))
            found = cyclicity(table, options.draws, rng)
            raw = split(logits(table.chance_NN), table.known_NN).cyclic_share
            inside = found.low <= share <= found.high
            rows.append((inside, found.high - found.low, found.share - share, raw - share))
        covered, width, error, raw_error = np.array(rows).T
        figures = (np.mean(covered), np.mean(width), np.nanmean(error))
        roots = np.sqrt(np.nanmean(error**2)), np.mean(raw_error), np.sqrt(np.mean(raw_error**2))
        print(count, name, share, *(f"{x:.3f}" for x in (*figures, *roots)), sep="\t", flush=True)


if __name__ == "__main__":
    main()
