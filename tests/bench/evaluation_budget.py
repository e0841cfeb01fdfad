"""Measures how well few clean matches rate a learner's snapshots if the fit uses training matches.

    OMP_NUM_THREADS=1 python tests/bench/evaluation_budget.py

The simulated leagues resemble runs of the preset `laptop`: one learner of 5 million steps that
climbs and wanders, 58 snapshots, 13 bots, 13,000 training matches and at most 6,000 clean matches.
The bars: the 95 % intervals of snapshots contain the true rating in 95 ± 2 % of cases, each
interval reaches at most 60 Elo to either side, and the mean rank correlation of the fit with the
truth is at least .97. The exit status is 1 if a bar is missed.

The evaluator's own plan chooses the clean matches, with the settings of `laptop`: the first matches
of each snapshot, the matches of the last snapshot as a milestone, and matches that are allocated by
the fit of earlier games. The plan also needs ratings to find the strongest players. It gets the
true strengths with an error of a point.

There are three kinds of leagues. In the first, results follow the ratings. In the second, each pair
deviates from the ratings by half a point, and the gap between a bot and the learner wanders by 15
points² in each e-fold of steps. Half of this wandering is common to all bots. `fit_league` measures
both values in runs of `laptop`. In the third kind both values are twice as large, and there is no
bar. In leagues with deviations, the learner is stronger in training than its rating, by a third of
the deviation's standard deviation.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py in this folder is not the package
sys.path.append(str(Path(__file__).parent))
from simulated_players import played

from evaluator.clean.allocation import allocate
from evaluator.clean.plan import ALLOCATED, Batch, Facts, Plan
from evaluator.settings import EvaluatorSettings
from league.ids import SnapshotName
from league.players import Book, PayoffCell, Player, PlayerKind, Rating, Role
from league.settings.base import resolve
from league.stats.ratings import MU, SIGMA, Drift
from league.stats.ratings.fit import Fit, fit_cells, points_per_logit
from league.stats.ratings.lineage import fit_league

Array = NDArray[np.float64]
Fitted = Callable[[Sequence[PayoffCell], Sequence[Player], Sequence[PayoffCell]], Fit]
ELO = 420.0 / SIGMA
"""Elo per point."""
NU = 0.1
POINTS_A_LOGIT = points_per_logit(NU)
STEPS, MATCHES = 5_000_000, 13_000
FROZEN = (*range(50_000, 800_000, 50_000), *range(800_000, STEPS + 1, 100_000))
"""Steps of the snapshots. There are more snapshots during the curriculum."""
START, CLIMBS, WANDERING = 12.0, (4.0, 5.0), 5.0
"""Points of a new learner, the range of points that it gains in an e-fold of steps, and the points²
by which it wanders in an e-fold.
"""
BOTS = 13
HELD_OUT = 3
TRAINED_WITH = 7
"""Bots in the learner's mixes. In the first tenth of the training, the learner meets only the first
bot, and in the second tenth the first two bots. After that it meets all seven, and 60 % of its
matches are against snapshots.
"""
WIDTH_BAR, HELD, HELD_BAR, RANKS_BAR = 60.0, 0.95, 0.02, 0.97


class League:
    """Simulates a league in which all strengths are known.

    Attributes:
        strengths: strengths of snapshots and bots, in points.

    Args:
        fitted: the fit by which opponents are chosen.
        deviation: standard deviation of a pair's deviation, in points.
        wandering: variance by which a bot's strength against the learner changes, in points² per
            e-fold of steps.
        frozen: steps of the snapshots.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        fitted: Fitted,
        deviation: float,
        wandering: float,
        frozen: Sequence[int] = FROZEN,
    ) -> None:
        self.rng, self.fitted, self.deviation = rng, fitted, deviation
        self.advantage = deviation / 3.0
        x_G = np.log1p(np.arange(MATCHES) * (STEPS / MATCHES) / Drift().settling_steps)
        noise_G = rng.normal(size=MATCHES) * np.sqrt(np.diff(x_G, prepend=0.0))
        walk_G = np.cumsum(noise_G) * math.sqrt(WANDERING)
        self.live_G = START + rng.uniform(*CLIMBS) * x_G + walk_G
        self.bots = [f"bot{n}" for n in range(BOTS)]
        ends = self.live_G.min(), self.live_G.max() + 2.0
        strengths = np.linspace(*ends, BOTS) + rng.normal(0.0, 0.5, BOTS)
        rng.shuffle(strengths)  # so that the bots in the mixes have random strengths
        self.strengths = dict(zip(self.bots, strengths.tolist(), strict=True))
        self.of_pair: dict[tuple[str, str], float] = {}
        step_G = np.sqrt(np.diff(x_G, prepend=0.0) * wandering / 2.0)
        walk_BG = np.cumsum(rng.normal(size=(BOTS + 1, MATCHES)) * step_G, axis=1)
        self.of_bot = dict(zip(self.bots, walk_BG[:BOTS] + walk_BG[BOTS], strict=True))
        self.snapshots: list[str] = []
        self.frozen_at: dict[str, int] = {}
        self.climb: Counter[tuple[str, str, float]] = Counter()
        self.clean: Counter[tuple[str, str, float]] = Counter()
        self.greedy: Counter[tuple[str, str]] = Counter()
        self.settings = resolve("laptop", environment={}).of(EvaluatorSettings)
        for before, step in pairwise((0, *frozen)):
            self._train(before, step)
            match = step * MATCHES // STEPS - 1
            name = str(SnapshotName("main", step))
            self.frozen_at[name], self.strengths[name] = match, float(self.live_G[match])
            self.snapshots.append(name)
            self._evaluate()

    def fit(self) -> Fit:
        return self.fitted(cells_of(self.clean), self.players(), cells_of(self.climb))

    def players(self) -> list[Player]:
        bots = [
            Player(name=bot, game="brawl", kind=PlayerKind.BOT, held_out=n >= BOTS - HELD_OUT)
            for n, bot in enumerate(self.bots)
        ]
        snapshots = [
            Player(
                name=name,
                game="brawl",
                kind=PlayerKind.SNAPSHOT,
                role=Role.MAIN,
                parent=parent,
                digest=name,
                step=SnapshotName.parse(name).step,
                milestone=SnapshotName.parse(name).step == STEPS,
            )
            for name, parent in zip(self.snapshots, ["", *self.snapshots], strict=False)
        ]
        return [*bots, *snapshots, Player(name="main", game="brawl", kind=PlayerKind.LIVE)]

    def _train(self, first: int, last: int) -> None:
        row, met, gaps = str(SnapshotName("main", first)), [], []
        for match in range(first * MATCHES // STEPS, last * MATCHES // STEPS):
            done, dice = match / MATCHES, self.rng.random(2)
            bots = 1 if done < 0.1 else 2 if done < 0.2 else TRAINED_WITH
            among = self.snapshots if done >= 0.2 and dice[0] < 0.6 else self.bots[:bots]
            other = among[int(dice[1] * len(among))]
            gap = self.live_G[match] + self.advantage - self.strengths[other]
            met.append(other)
            gaps.append(gap + self._deviation(row, other, match))
        for other, outcome in zip(met, self._outcomes(gaps), strict=True):
            self.climb[row, other, outcome] += 1

    def _evaluate(self) -> None:
        """Plays the matches that the evaluator would play before the next snapshot."""
        while any(due := self._plan().batches()):
            self._play(next(batch for kind in due for batch in kind))
        while (plan := self._plan()).budget >= ALLOCATED:
            batch = plan.most_telling(allocate(plan, self.fit(), ALLOCATED, self.rng))
            assert batch is not None
            self._play(batch)

    def _plan(self) -> Plan:
        players = {player.name: player for player in self.players()}
        counts: Counter[tuple[str, str, Book]] = Counter()
        for (row, column, _), games in self.clean.items():
            counts[row, column, Book.EVAL] += games
        counts.update({(*pair, Book.GREEDY): games for pair, games in self.greedy.items()})
        met = sorted({row for row, _, _ in self.clean})
        seen = {name: self.strengths[name] + self.rng.normal() for name in met}
        ratings = [
            Rating(
                player=players[name],
                mu=mu,
                sigma=1.0,
                score=mu - 3.0,
                wins=0,
                draws=0,
                losses=0,
                rank=0,
            )
            for name, mu in sorted(seen.items(), key=lambda one: -one[1])
        ]
        return Plan(
            Facts(players=players, counts=counts, ratings=ratings), self.settings, self.bots
        )

    def _play(self, batch: Batch) -> None:
        for name, other, book, _, pairs in batch.entries:
            if book is Book.GREEDY:
                self.greedy += Counter({(name, other): 2 * pairs, (other, name): 2 * pairs})
                continue
            gap = self.strengths[name] - self.strengths[other]
            frozen_at = max(self.frozen_at.get(one, 0) for one in (name, other))
            gap += self._deviation(name, other, frozen_at)
            for outcome in self._outcomes([gap] * (2 * pairs)):
                self.clean[name, other, outcome] += 1
                self.clean[other, name, 1.0 - outcome] += 1

    def _outcomes(self, gaps: Sequence[float]) -> list[float]:
        return played(self.rng, np.array(gaps) / POINTS_A_LOGIT, NU).tolist()

    def _deviation(self, row: str, column: str, match: int) -> float:
        if row in self.of_bot or (column not in self.of_bot and row > column):
            return -self._deviation(column, row, match)
        if (row, column) not in self.of_pair:
            self.of_pair[row, column] = float(self.rng.normal(0.0, self.deviation))
        wandered = float(self.of_bot[column][match]) if column in self.of_bot else 0.0
        return self.of_pair[row, column] + wandered


def cells_of(counts: Counter[tuple[str, str, float]]) -> list[PayoffCell]:
    pairs = sorted({(row, column) for row, column, _ in counts})
    return [
        PayoffCell(
            row=row,
            column=column,
            wins=counts[row, column, 1.0],
            draws=counts[row, column, 0.5],
            losses=counts[row, column, 0.0],
        )
        for row, column in pairs
    ]


@dataclass
class Study:
    """Holds the results of one kind of fit for all leagues of a kind. Lists have an entry for each
    league.
    """

    name: str
    matches: list[int] = field(default_factory=list)
    half_widths: list[Array] = field(default_factory=list)
    held: list[Array] = field(default_factory=list)
    ranks: list[float] = field(default_factory=list)
    kappas: list[float] = field(default_factory=list)
    taus: list[float] = field(default_factory=list)
    widenings: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, league: League) -> None:
        started = time.process_time()
        found = league.fit()
        self.seconds.append(time.process_time() - started)
        self.matches.append((league.clean.total() + league.greedy.total()) // 2)
        last = {bot: float(walk_G[-1]) for bot, walk_G in league.of_bot.items()}
        truth_N = np.array([league.strengths[one] - last.get(one, 0.0) for one in found.names])
        truth_N += MU - truth_N.mean()
        numbers = [found.number(name) for name in league.snapshots]
        intervals = [found.interval(n) for n in numbers]
        self.half_widths.append(np.array([ELO * (x.high - x.value) for x in intervals]))
        both = zip(numbers, intervals, strict=True)
        self.held.append(np.array([x.low <= truth_N[n] <= x.high for n, x in both]))
        ranks = spearmanr([x.value for x in intervals], truth_N[numbers])
        self.ranks.append(float(ranks.statistic))
        self.kappas.append(found.kappas[0] if found.kappas else 0.0)
        self.taus.append(found.tau)
        self.widenings.append(found.widening)

    def misses(self) -> list[str]:
        found = ["widths"] if np.max(self.half_widths) > WIDTH_BAR else []
        found += ["held"] if abs(np.mean(self.held) - HELD) > HELD_BAR else []
        return found + (["ranks"] if np.mean(self.ranks) < RANKS_BAR else [])


COLUMNS: tuple[tuple[str, Callable[[Study], str]], ...] = (
    ("matches", lambda s: f"{np.mean(s.matches):,.0f}"),
    ("held", lambda s: f"{np.mean(s.held):.1%}"),
    ("median +-", lambda s: f"{np.median(s.half_widths):.0f} Elo"),
    ("widest +-", lambda s: f"{np.max(s.half_widths):.0f} Elo"),
    ("over bar", lambda s: f"{np.mean(np.array(s.half_widths) > WIDTH_BAR):.1%}"),
    ("ranks", lambda s: f"{np.mean(s.ranks):.3f}"),
    ("worst ranks", lambda s: f"{min(s.ranks):.3f}"),
    ("kappa", lambda s: f"{np.median(s.kappas):.1f}"),
    ("tau", lambda s: f"{np.median(s.taus):.2f}"),
    ("widening", lambda s: f"{np.mean(s.widenings):.2f}"),
    ("CPU s", lambda s: f"{np.mean(s.seconds):.2f}"),
    ("missed", lambda s: " ".join(s.misses()) or "-"),
)


WAYS: tuple[tuple[str, Fitted], ...] = (
    ("with training", fit_league),
    ("with lineage", lambda cells, players, climb: fit_league(cells, players)),
    ("clean alone", lambda cells, players, climb: fit_cells(cells)),
)
KINDS = (
    ("as rated", 0.0, 0.0),
    ("as measured", 0.5, 15.0),
    ("twice as far off", 1.0, 30.0),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--leagues", type=int, default=40, help="of each kind; a quarter of them without training"
    )
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    print(" " * 40 + "".join(f"{name:>12}" for name, _ in COLUMNS))
    missed = False
    for way, fitted in WAYS:
        for name, deviation, wandering in KINDS:
            study = Study(f"{name}, {way}")
            for number in range(args.leagues if way == WAYS[0][0] else max(1, args.leagues // 4)):
                rng = np.random.default_rng([args.seed, number])
                study.add(League(rng, fitted, deviation, wandering))
            print(f"{study.name:40}" + "".join(f"{show(study):>12}" for _, show in COLUMNS))
            sys.stdout.flush()
            missed |= way == WAYS[0][0] and name != KINDS[-1][0] and bool(study.misses())
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
