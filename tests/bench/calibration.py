"""Checks whether ratings are calibrated, in a million simulated games of players of known strength.

    OMP_NUM_THREADS=1 python tests/bench/calibration.py [--more]
    OMP_NUM_THREADS=1 python tests/bench/calibration.py --widths

There are two bars. The 95 % intervals of the fit must contain the true value in 95 ± 1 % of cases.
TrueSkill predicts each game's score before the game. The games are sorted by predicted score and
split into ten groups, and in each group the mean prediction must be within 1 % of the mean actual
score. The exit status is 1 if a bar is missed. The script also prints how often TrueSkill's sigma,
taken for a standard error, gives an interval that contains the true value, and the groups' errors
without the measured link.

`--widths` plays few games in leagues of several widths, with Davidson's draws and with draws that
do not depend on the players. The bars apply to Davidson's draws: intervals contain the true value
in 95 ± 2 % of cases, and the fit warns of the draws in at most 5 % of the leagues.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py in this folder is not the package
sys.path.append(str(Path(__file__).parent))
from simulated_players import (
    Online,
    line_league,
    pair_counts,
    played,
    played_with_equal_draws,
)

from league.stats.ratings import MU
from league.stats.ratings.fit import Fit, expected_score, fit

Array = NDArray[np.float64]
Score = Callable[[Array], Array]
"""Expected scores at differences in logits."""
REACH = 1.959964
LOGITS_PER_ELO = math.log(10.0) / 400.0
PAIRS = 20_000
COVERAGE, COVERAGE_BAR, DECILE_BAR = 0.95, 0.01, 0.01
DRAWS = 0.35
"""Davidson's nu for which equal players draw 15 % of their games."""
WIDTHS, GAMES_EACH = (100.0, 420.0, 800.0), (10, 30)
"""Standard deviations of the strengths in Elo, and numbers of games of each player."""
EQUAL_DRAWS = 0.3
WIDTH_BAR, WARNING_BAR = 0.02, 0.05


@dataclass
class Study:
    """Holds the results for one kind of league. Lists have an entry for each interval or game."""

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
    spreads: list[float] = field(default_factory=list)
    warned: list[bool] = field(default_factory=list)

    def add_fit(self, found: Fit, theta_N: Array, score: Score, rng: np.random.Generator) -> None:
        """Records whether the intervals of all ratings, and of some pairs' expected scores, contain
        the true values.
        """
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
        score_Q = score(theta_N[first_Q] - theta_N[second_Q])
        self.scores.append((low_Q <= score_Q) & (score_Q <= high_Q))
        self.misfits.append(found.misfit)
        self.spreads.append(found.spread / scale / LOGITS_PER_ELO)
        self.warned.append(not found.explains_draws)

    def add_online(self, online: Online, theta_N: Array, scale: float) -> None:
        """Records TrueSkill's predictions, and whether 1.96 sigma around μ contains the true
        rating. The mean of all μ is taken to be exact.
        """
        self.plain += online.plain
        self.linked += online.predicted
        self.played += online.scored
        self.games += online.table.games
        mu_N, variance_N = online.beliefs()
        off_N = (mu_N - mu_N.mean()) - scale * (theta_N - theta_N.mean())
        self.sigmas.append(np.abs(off_N) <= REACH * np.sqrt(variance_N))

    def deciles(self, which: str = "linked") -> list[tuple[float, float]]:
        """Sorts all games by predicted score into ten groups of equal size. Returns each group's
        mean predicted and mean actual score.
        """
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
    """Studies a league of players whose strengths are constant."""
    started, study, rng = time.process_time(), Study(name), np.random.default_rng(seed)
    league = line_league(rng, players, games, nu, by_rating=by_rating, elo_sd=elo_sd)
    counts = pair_counts(league.first_G, league.second_G, league.outcome_G, players)
    found = fit(counts, players)
    study.add_fit(found, league.theta_N, partial(expected_score, nu=nu), rng)
    study.add_online(league.online, league.theta_N, found.points_per_logit)
    study.seconds = time.process_time() - started
    return study


def score_of_equal_draws(gap_G: Array) -> Array:
    return EQUAL_DRAWS / 2.0 + (1.0 - EQUAL_DRAWS) * expit(gap_G)


def width_study(
    name: str, seed: int, leagues: int, players: int, games_each: int, elo_sd: float, *, equal: bool
) -> Study:
    """Studies leagues of few games between random pairs. With `equal`, draws do not depend on the
    players.
    """
    started, study = time.process_time(), Study(name)
    for league in range(leagues):
        rng = np.random.default_rng([seed, league])
        theta_N = rng.normal(0.0, elo_sd * LOGITS_PER_ELO, players)
        first_G = rng.integers(players, size=players * games_each // 2)
        second_G = (first_G + rng.integers(1, players, size=len(first_G))) % players
        gap_G = theta_N[first_G] - theta_N[second_G]
        if equal:
            outcome_G = played_with_equal_draws(rng, gap_G, EQUAL_DRAWS)
        else:
            outcome_G = played(rng, gap_G, DRAWS)
        counts = pair_counts(first_G, second_G, outcome_G, players)
        score = score_of_equal_draws if equal else partial(expected_score, nu=DRAWS)
        study.add_fit(fit(counts, players), theta_N, score, rng)
    study.seconds = time.process_time() - started
    return study


def width_studies(seed: int, leagues: int, players: int) -> Iterator[Study]:
    """Yields six studies with Davidson's draws, then the same six with draws that do not depend on
    the players.
    """
    for equal in (False, True):
        for elo_sd in WIDTHS:
            for games in GAMES_EACH:
                name = f"{'equal draws' if equal else 'Davidson'}, {elo_sd:.0f} Elo, {games} games"
                yield width_study(name, seed, leagues, players, games, elo_sd, equal=equal)


def missed_by_width(study: Study) -> list[str]:
    found = [w for w in ("ratings", "scores") if abs(study.share(w) - COVERAGE) > WIDTH_BAR]
    return found + (["warned"] if np.mean(study.warned) > WARNING_BAR else [])


def studies(seed: int, players: int, games: int, *, more: bool) -> Iterator[Study]:
    """Yields the studies of the four leagues that have bars. With `more`, it adds two leagues that
    break assumptions of the methods.
    """
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


WIDTH_COLUMNS: tuple[tuple[str, Callable[[Study], str]], ...] = (
    ("leagues", lambda s: str(len(s.warned))),
    ("ratings held", lambda s: f"{s.share('ratings'):.1%}"),
    ("scores held", lambda s: f"{s.share('scores'):.1%}"),
    ("width found", lambda s: f"{np.mean(s.spreads):.0f} Elo"),
    ("warned", lambda s: f"{np.mean(s.warned):.0%}"),
    ("CPU s", lambda s: f"{s.seconds:.0f}"),
)


def row(study: Study, columns: tuple[tuple[str, Callable[[Study], str]], ...] = COLUMNS) -> str:
    return f"{study.name:36}" + "".join(f"{show(study):>15}" for _, show in columns)


def print_widths(seed: int, leagues: int, players: int) -> int:
    print(" " * 36 + "".join(f"{name:>15}" for name, _ in WIDTH_COLUMNS))
    missed = False
    for study in width_studies(seed, leagues, players):
        print(row(study, WIDTH_COLUMNS), flush=True)
        missed |= study.name.startswith("Davidson") and bool(missed_by_width(study))
    return int(missed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--players", type=int, default=2_000)
    parser.add_argument("--games", type=int, default=1_000_000, help="of each kind of league")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--more", action="store_true", help="also what the methods do not allow for"
    )
    parser.add_argument("--widths", action="store_true", help="leagues of few games, by width")
    parser.add_argument("--leagues", type=int, default=60, help="of each width, of 100 players")
    args = parser.parse_args()
    if args.widths:
        return print_widths(args.seed, args.leagues, 100)
    print(" " * 36 + "".join(f"{name:>15}" for name, _ in COLUMNS))
    found = []
    for study in studies(args.seed, args.players, args.games, more=args.more):
        found.append(study)
        print(row(study), flush=True)
    judged = found[:4]
    return int(any(study.misses() for study in judged))


if __name__ == "__main__":
    raise SystemExit(main())
