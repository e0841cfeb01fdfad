"""Counts how often the cross-check reports that TrueSkill and the fit disagree.

    OMP_NUM_THREADS=1 python tests/bench/disagreement.py [--leagues 10]

The leagues are the leagues "as measured" of evaluation_budget.py, with 20 snapshots. Each league is
evaluated twice: during the training, as snapshots arrive, and after the training. Each evaluation
is checked as it is (healthy), and with half of the batches of clean matches reported with swapped
outcomes (broken), as if one of two evaluators did so.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py in this folder is not the package
sys.path.append(str(Path(__file__).parent))
from evaluation_budget import KINDS, STEPS, League, cells_of

from evaluator.clean.plan import Batch
from league.ids import SnapshotName
from league.stats.ratings import Drift
from league.stats.ratings.cross_check import cross_check
from league.stats.ratings.lineage import fit_league
from league.stats.ratings.table import RatingTable

FROZEN = range(50_000, STEPS + 1, 250_000)
FLIPPED = 0.5
Match = tuple[int, str, str, float]
"""Number of snapshots at the time of the match, both players, and the first player's outcome."""


class Noting(League):
    """Keeps a league's clean matches in their order."""

    def _play(self, batch: Batch) -> None:
        for entry in batch.entries:
            before = self.clean.copy()
            super()._play(Batch(batch.subject, (entry,)))
            for (one, other, outcome), count in (self.clean - before).items():
                if one == entry.player and other == entry.opponent:
                    self.matches += [(len(self.snapshots), one, other, outcome)] * count

    def _evaluate(self) -> None:
        if not self.is_late or len(self.snapshots) == len(FROZEN):
            super()._evaluate()

    def __init__(self, rng: np.random.Generator, *, is_late: bool) -> None:
        self.matches: list[Match] = []
        self.is_late = is_late
        _, deviation, wandering = KINDS[1]
        super().__init__(rng, fit_league, deviation, wandering, FROZEN)


def verdict(league: Noting, matches: Sequence[Match]) -> str:
    """Returns what the cross-check says of these matches, "" if nothing disagrees."""
    table, known = RatingTable(Drift()), 0
    clean = Counter[tuple[str, str, float]]()
    for place, (count, *pair, outcome) in enumerate(matches):
        for name in league.snapshots[known:count]:
            parent = league.snapshots[known - 1] if known else ""
            table.inherit(name, parent, SnapshotName.parse(name).step)
            known += 1
        table.fold(pair[0], pair[1], outcome)
        clean[pair[0], pair[1], outcome] += 1
        clean[pair[1], pair[0], 1.0 - outcome] += 1
        if epoch := table.next_epoch(place):
            table.begin_epoch(place, epoch.draw_probability, epoch.link)
    players = league.players()
    rated = [
        one for one in table.leaderboard({player.name: player for player in players}) if one.games
    ]
    found = cross_check(rated, cells_of(clean), players, cells_of(league.climb))
    return found.words() if found.gaps or found.warning else ""


def flipped(matches: Sequence[Match], rng: np.random.Generator) -> list[Match]:
    """Returns the matches, with swapped outcomes in a random share of `FLIPPED` of the batches."""
    found, last, is_wrong = list[Match](), ("", ""), False
    for count, one, other, outcome in matches:
        if (one, other) != last:
            last, is_wrong = (one, other), rng.random() < FLIPPED
        found.append((count, one, other, 1.0 - outcome if is_wrong else outcome))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leagues", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    warned = Counter[str]()
    for number in range(args.leagues):
        for when, is_late in (("as they come", False), ("late", True)):
            rng = np.random.default_rng([args.seed, number])
            league = Noting(rng, is_late=is_late)
            wrong = flipped(league.matches, rng)
            for kind, matches in (("healthy", league.matches), ("broken", wrong)):
                said = verdict(league, matches)
                warned[f"{kind}, {when}"] += bool(said)
                print(f"league {number}, {kind}, {when}: {said or 'agree'}", flush=True)
    for name, count in sorted(warned.items()):
        print(f"{name}: {count} of {args.leagues} disagree")


if __name__ == "__main__":
    main()
