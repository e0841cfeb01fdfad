"""Do ratings mean what they say? A million simulated games of players whose strengths are known.

    OMP_NUM_THREADS=1 python tests/bench/calibration.py [--more]

Two bars. The fit of all games: its 95 % intervals hold the truth in 95 ± 1 % of cases. TrueSkill:
the scores it predicts, each before its game, are within 1 % of those played, in each tenth of all
games from the surest loss to the surest win. Exits with 1 where one is missed. It also prints what
TrueSkill's sigma would hold if it were taken for an interval, and the deciles without the measured
link.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py in this folder is not the package
sys.path.append(str(Path(__file__).parent))
from simulated_players import Online, line_league, pair_counts

from league.stats.ratings import MU
from league.stats.ratings.fit import Fit, expected_score, fit

Array = NDArray[np.float64]
REACH = 1.959964
PAIRS = 20_000
COVERAGE, COVERAGE_BAR, DECILE_BAR = 0.95, 0.01, 0.01
DRAWS = 0.35
"""Davidson's nu of 15 % draws between equals."""


@dataclass
class Study:
    """What one kind of league showed; lists have an entry per interval or game."""

    name: str
    seconds: float = 0.0
    games: int = 0
    ratings: list[Array] = field(default_factory=list)
    scores: list[Array] = field(default_factory=list)
    sigmas: list[Array] = field(default_factory=list)
    plain: list[Array] = field(default_factory=list)
    linked: list[Array] = field(default_factory=list)
    played: list[Array] = field(default_factory=list)
    misfits: list[float] = field(default_factory=list)

    def add_fit(self, found: Fit, theta_N: Array, nu: float, rng: np.random.Generator) -> None:
        """Whether intervals hold: of every rating, and of the score of some pairs."""
        scale, c, players = found.points_per_logit, found.covariance_NN, len(theta_N)
        reach_N = REACH * found.widening * np.sqrt(np.diagonal(c))
        truth_N = MU + scale * (theta_N - theta_N.mean())
        self.ratings.append(np.abs(truth_N - found.rating_N) <= reach_N)
        first_Q, second_Q = rng.integers(players, size=PAIRS), rng.integers(players, size=PAIRS)
        first_Q, second_Q = first_Q[first_Q != second_Q], second_Q[first_Q != second_Q]
        gap_Q = found.rating_N[first_Q] - found.rating_N[second_Q]
        variance_Q = c[first_Q, first_Q] + c[second_Q, second_Q] - 2.0 * c[first_Q, second_Q]
        reach_Q = REACH * found.widening * np.sqrt(variance_Q)
        low_Q, high_Q = (
            expected_score(x / scale, found.nu) for x in (gap_Q - reach_Q, gap_Q + reach_Q)
        )
        score_Q = expected_score(theta_N[first_Q] - theta_N[second_Q], nu)
        self.scores.append((low_Q <= score_Q) & (score_Q <= high_Q))
        self.misfits.append(found.misfit)

    def add_online(self, online: Online, theta_N: Array, scale: float) -> None:
        """TrueSkill's predictions, and sigma as if it were a standard error around the right
        mean.
        """
        self.plain += online.plain
        self.linked += online.predicted
        self.played += online.scored
        self.games += online.table.games
        mu_N, variance_N = online.beliefs()
        off_N = (mu_N - mu_N.mean()) - scale * (theta_N - theta_N.mean())
        self.sigmas.append(np.abs(off_N) <= REACH * np.sqrt(variance_N))

    def deciles(self, which: str = "linked") -> list[tuple[float, float]]:
        """(predicted, played) mean scores of tenths of all games, by what was predicted."""
        predicted_G, played_G = np.concatenate(getattr(self, which)), np.concatenate(self.played)
        tenths = np.array_split(np.argsort(predicted_G, kind="stable"), 10)
        return [(float(predicted_G[x].mean()), float(played_G[x].mean())) for x in tenths]

    def worst(self, which: str = "linked") -> float:
        return max(abs(predicted - played) for predicted, played in self.deciles(which))

    def share(self, which: str) -> float:
        return float(np.concatenate(getattr(self, which)).mean())

    def misses(self) -> list[str]:
        found = [w for w in ("ratings", "scores") if abs(self.share(w) - COVERAGE) > COVERAGE_BAR]
        return found + (["deciles"] if self.worst() > DECILE_BAR else [])


def line_study(
    name: str,
    seed: int,
    players: int,
    games: int,
    nu: float,
    *,
    by_rating: bool,
    elo_sd: float,
) -> Study:
    """Players that never change."""
    started, study, rng = time.process_time(), Study(name), np.random.default_rng(seed)
    league = line_league(rng, players, games, nu, by_rating=by_rating, elo_sd=elo_sd)
    counts = pair_counts(league.first_G, league.second_G, league.outcome_G, players)
    found = fit(counts, players)
    study.add_fit(found, league.theta_N, nu, rng)
    study.add_online(league.online, league.theta_N, found.points_per_logit)
    study.seconds = time.process_time() - started
    return study


def studies(seed: int, players: int, games: int, *, more: bool) -> Iterator[Study]:
    """The four lines; with `more`, what the methods do not allow for."""
    for nu, elo_sd, what in (
        (0.0, 300.0, "no draws, 300 Elo"),
        (DRAWS, 421.0, "15 % draws, 421 Elo"),
    ):
        for by_rating in (False, True):
            name = f"line, {what}, {'by rating' if by_rating else 'uniform'}"
            yield line_study(name, seed, players, games, nu, by_rating=by_rating, elo_sd=elo_sd)
    if more:
        yield line_study(
            "half of the games drawn", seed, players, games, 2.0, by_rating=True, elo_sd=300.0
        )
        yield line_study(
            "ten games a player", seed, players, 5 * players, DRAWS, by_rating=False, elo_sd=421.0
        )


COLUMNS: tuple[tuple[str, Callable[[Study], str]], ...] = (
    ("games", lambda s: f"{s.games:,}"),
    ("ratings held", lambda s: f"{s.share('ratings'):.1%}"),
    ("scores held", lambda s: f"{s.share('scores'):.1%}"),
    ("by 1.96 sigma", lambda s: f"{s.share('sigmas'):.1%}"),
    ("worst decile", lambda s: f"{s.worst():.2%}"),
    ("without link", lambda s: f"{s.worst('plain'):.2%}"),
    ("misfit", lambda s: f"{np.mean(s.misfits):.2f}"),
    ("CPU s", lambda s: f"{s.seconds:.0f}"),
    ("missed", lambda s: " ".join(s.misses()) or "-"),
)


def row(study: Study) -> str:
    return f"{study.name:36}" + "".join(f"{show(study):>15}" for _, show in COLUMNS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--players", type=int, default=2_000)
    parser.add_argument("--games", type=int, default=1_000_000, help="of each kind of league")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--more", action="store_true", help="also what the methods do not allow for"
    )
    args = parser.parse_args()
    print(" " * 36 + "".join(f"{name:>15}" for name, _ in COLUMNS))
    found = []
    for study in studies(args.seed, args.players, args.games, more=args.more):
        found.append(study)
        print(row(study), flush=True)
    judged = found[:4]
    return int(any(study.misses() for study in judged))


if __name__ == "__main__":
    raise SystemExit(main())
