"""Do ratings mean what they say? A million simulated games of players whose strengths are known.

    OMP_NUM_THREADS=1 python tests/bench/calibration.py [--plot docs/images/calibration.png]
    [--more]

Two bars. The fit of all games: its 95 % intervals hold the truth in 95 ± 1 % of cases. TrueSkill:
the scores it predicts, each before its game, are within 1 % of those played, in each tenth of all
games from the surest loss to the surest win. Exits with 1 where one is missed. Beside them stands
what TrueSkill's sigma would hold if it were taken for an interval, and the deciles without the
measured link.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py beside this file is not the package
sys.path.append(str(Path(__file__).parent))
from simulated_learners import GAMES_OF_A_LEAGUE, learner_league
from simulated_players import Online, line_league

from league.stats.ratings import MU, Drift
from league.stats.ratings.fit import Fit, PairCounts, expected_score, fit
from league.stats.ratings.lineage import measured_drift, nodes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
        low_N, high_N = found.intervals()
        truth_N = MU + scale * (theta_N - theta_N.mean())
        self.ratings.append((low_N <= truth_N) & (truth_N <= high_N))
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

    def add_online(
        self, online: Online, theta_N: Array, players: slice | Array, scale: float
    ) -> None:
        """TrueSkill's predictions, and sigma as if it were a standard error around the right
        mean.
        """
        self.plain += online.plain
        self.linked += online.predicted
        self.played += online.scored
        self.games += online.table.games
        all_mu_N, variance_N = online.beliefs()
        mu_N, sigma_N = all_mu_N[players], np.sqrt(variance_N[players])
        off_N = (mu_N - mu_N.mean()) - scale * (theta_N[players] - theta_N[players].mean())
        self.sigmas.append(np.abs(off_N) <= REACH * sigma_N)

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
    league_counts = PairCounts.of_games(league.first_G, league.second_G, league.outcome_G, players)
    found = fit(league_counts, players)
    study.add_fit(found, league.theta_N, nu, rng)
    study.add_online(league.online, league.theta_N, slice(None), found.points_per_logit)
    study.seconds = time.process_time() - started
    return study


def learner_study(name: str, seed: int, games: int, nu: float, *, by_rating: bool) -> Study:
    """Learners that climb, and their snapshots, in leagues of 110,000 games or fewer."""
    started, study = time.process_time(), Study(name)
    for one in range(max(1, round(games / GAMES_OF_A_LEAGUE))):
        rng = np.random.default_rng([seed, one])
        size = min(games, GAMES_OF_A_LEAGUE)
        league = learner_league(rng, Drift(), nu, by_rating=by_rating, games=size)
        nodes = nodes_of(league.seat0, league.seat1, league.outcome_G)
        _, found = measured_drift(nodes, Drift(5.0))
        seats_S = np.concatenate([nodes.seat0_G, nodes.seat1_G])
        theta_S = np.concatenate([league.theta0_G, league.theta1_G])
        study.add_fit(found, np.bincount(seats_S, theta_S) / np.bincount(seats_S), nu, rng)
        study.add_online(league.online, league.theta_N, league.frozen_N, found.points_per_logit)
    study.seconds = time.process_time() - started
    return study


def studies(seed: int, players: int, games: int, *, more: bool) -> Iterator[Study]:
    """The four lines and the two kinds of learners; with `more`, what the methods do not allow
    for.
    """
    for nu, elo_sd, what in (
        (0.0, 300.0, "no draws, 300 Elo"),
        (DRAWS, 421.0, "15 % draws, 421 Elo"),
    ):
        for by_rating in (False, True):
            name = f"line, {what}, {_pairing(by_rating)}"
            yield line_study(name, seed, players, games, nu, by_rating=by_rating, elo_sd=elo_sd)
    for by_rating in (False, True):
        name = f"learners, 15 % draws, {_pairing(by_rating)}"
        yield learner_study(name, seed, games, DRAWS, by_rating=by_rating)
    if more:
        yield line_study(
            "half of the games drawn", seed, players, games, 2.0, by_rating=True, elo_sd=300.0
        )
        yield line_study(
            "ten games a player", seed, players, 5 * players, DRAWS, by_rating=False, elo_sd=421.0
        )


def _pairing(by_rating: bool) -> str:
    return "by rating" if by_rating else "uniform"


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


def plot(found: list[Study], path: Path) -> None:
    """Two panels: what was predicted against what was played, and what intervals hold."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12.0, 5.6), layout="constrained")
    left.axhspan(-DECILE_BAR * 100, DECILE_BAR * 100, color="0.92")
    for number, study in enumerate(found):
        for which, style, marker in (("plain", ":", ""), ("linked", "-", "o")):
            predicted, played = np.array(study.deciles(which)).T
            label = study.name if which == "linked" else None
            off = 100 * (played - predicted)
            left.plot(predicted, off, style, color=f"C{number}", marker=marker, ms=4, label=label)
    left.plot([], [], ":", color="0.4", label="dotted: without the measured link")
    left.set(
        xlabel="score that TrueSkill predicted, mean of a tenth of the games",
        ylabel="played − predicted, percentage points",
        title="TrueSkill's predictions (grey: within 1 %)",
        xlim=(0, 1),
    )
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8.5
    )
    _plot_intervals(right, found)
    figure.savefig(path, dpi=110)


def _plot_intervals(axes: Axes, found: list[Study]) -> None:
    axes.axvspan(94, 96, color="0.92")
    places = np.arange(len(found))[::-1]
    for which, marker, size, colour, label in (
        ("ratings", "o", 9, "C0", "fit of all games: 95 % intervals of ratings"),
        ("scores", "s", 4, "C1", "fit of all games: 95 % intervals of scores of pairs"),
        ("sigmas", "x", 7, "C3", "μ ± 1.96 σ of TrueSkill, which is no interval"),
    ):
        shares = [100 * study.share(which) for study in found]
        axes.plot(shares, places, marker, ms=size, color=colour, label=label)
    axes.set(
        yticks=places,
        yticklabels=[study.name for study in found],
        xlabel="share that holds the truth, %",
        title="What intervals hold (grey: 95 ± 1 %)",
        ylim=(-0.6, len(found) + 0.6),
    )
    axes.legend(fontsize=8.5, loc="upper left")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--players", type=int, default=2_000)
    parser.add_argument("--games", type=int, default=1_000_000, help="of each kind of league")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--more", action="store_true", help="also what the methods do not allow for"
    )
    parser.add_argument("--plot", type=Path, help="draws a picture, as .png or .svg")
    args = parser.parse_args()
    print(" " * 36 + "".join(f"{name:>15}" for name, _ in COLUMNS))
    found = []
    for study in studies(args.seed, args.players, args.games, more=args.more):
        found.append(study)
        print(row(study), flush=True)
    judged = found[:6]
    if args.plot:
        plot(judged, args.plot)
    return int(any(study.misses() for study in judged))


if __name__ == "__main__":
    raise SystemExit(main())
