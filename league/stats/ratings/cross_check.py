"""Compares a leaderboard's TrueSkill ratings with a fit of all games at once, and names the players
on which they disagree.

TrueSkill depends on the order of games and uses only clean matches (both players frozen). The fit
does not depend on the order. It also uses training matches and neighbouring snapshots, and it gives
intervals. In healthy leagues, TrueSkill's μ and the fit's rating differ for three reasons, which
say nothing about a player:

- after a few games, μ may still be far off, as σ shows;
- a snapshot inherits its parent's rating, errors included, so the ratings of a lineage may be too
  close to each other, or all too high or too low;
- in TrueSkill, a bot has a single μ. In the fit of a league with learners, a bot's strength
  changes, and its rating is the last value.

So bots are left out in leagues with learners, and the other players are compared with the line μ ≈
a + b·fit through all of their ratings, with b near 1. μ and the fit disagree on a player if both of
these conditions hold:

- its distance from the line is larger than chance explains. The limit is √((UNDERSTATED·σ)² + s²),
  where s is the fit's standard error, times the normal quantile of 1 − 5 % / 2N for N players
  (Bonferroni);
- its distance changes the win rate against an equal player by at least WORTH:
  Φ(|distance|/√2·β) ≥ ½ + WORTH.

μ and the fit disagree on the league if b is below LEAST_SLOPE. If the results of pairs deviate from
their ratings by more than MOST_TAU, neither μ nor the fit describes the league. The cause may be a
worker that reports wrong results.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.metrics import Measured
from league.players import PayoffCell, Player, PlayerKind, Rating
from league.stats.ratings.belief import BETA
from league.stats.ratings.lineage import fit_league
from league.stats.ratings.mixture import rating_of

WORTH = 0.05
ERROR = 0.05
"""Probability of a false alarm: the check says of a healthy league that μ and the fit disagree on a
player.
"""
UNDERSTATED = 1.5
"""Standard error of μ in units of σ. σ does not include errors that players share
(docs/ratings.md).
"""
LEAST_SLOPE, SLOPE_SIGMA = 0.5, 0.2
"""Least slope of the line μ ≈ a + b·fit in a league whose ratings agree, and the standard deviation
of the slope's prior around 1. The prior matters while there are few players.
"""
MOST_TAU = 1.2
"""Largest τ (the pairs' deviation from their ratings), in points, at which ratings still describe a
league. Runs of brawl have 0.3 to 0.7. Simulated leagues like them have at most 0.81. If half of the
batches of results are reported with wins and losses swapped, these leagues have a τ of 0.9 to 3.1.
"""
LEAST_FREEDOM = 30
"""`MOST_TAU` applies if the pairs' scores have at least this many degrees of freedom. With fewer,
the pairs may deviate by chance.
"""
LEAST_GAP = statistics.NormalDist().inv_cdf(0.5 + WORTH) * 2.0**0.5 * BETA
"""Distance from the line that changes the win rate against an equal player by `WORTH`: 0.74 points.
"""
_NAMED = 5


@dataclass(frozen=True)
class CrossCheck:
    """Compares a leaderboard with all games at once.

    Attributes:
        intervals: 95 % intervals of μ by player, in points.
        gaps: for each player on which μ and the fit disagree, the points by which μ is above the
            line, widest gap first.
        widening: the factor by which the fit's misfit widens the intervals.
        contradiction: sentences if μ and the fit disagree on the league, or if no ratings describe
            the league, else "".
        warning: the contradiction, and a sentence if draws don't behave as the fit assumes, else
            "".
    """

    intervals: Mapping[str, Measured]
    gaps: Mapping[str, float]
    widening: float
    contradiction: str
    warning: str

    def of_mixture(self, weights: Mapping[str, float]) -> Measured:
        """Returns the rating of a mixture from its members' ratings.

        The interval is wide enough even if the ratings of all members are wrong in the same
        direction.
        """
        field = [interval.value for interval in self.intervals.values()]

        def of(end: str) -> float:
            mus = {name: getattr(self.intervals[name], end) for name in weights}
            return rating_of(weights, mus, field)

        return Measured(of("value"), of("low"), of("high"))

    def words(self) -> str:
        """Names the players on which μ and the fit disagree, and adds the warning."""
        return f"{self._agreement()} {self.warning}".strip()

    def _agreement(self) -> str:
        if not self.gaps and self.contradiction:
            return ""
        if not self.gaps:
            return (
                "TrueSkill and the fit of all games differ on no player by more than chance "
                "explains."
            )
        named = ", ".join(list(self.gaps)[:_NAMED])
        named += f" and {len(self.gaps) - _NAMED} more" if len(self.gaps) > _NAMED else ""
        players = "1 player" if len(self.gaps) == 1 else f"{len(self.gaps)} players"
        return f"TrueSkill and the fit of all games disagree on {players}: {named}."


def cross_check(
    ratings: Sequence[Rating],
    cells: Iterable[PayoffCell],
    players: Sequence[Player],
    climb: Iterable[PayoffCell] = (),
) -> CrossCheck:
    """Fits the games of a book (one kind of match), and compares the book's ratings with the fit.

    This takes seconds for thousands of players.

    Args:
        ratings: the book's ratings. Pinned players (with fixed ratings) are the fit's anchors.
        cells: the book's payoffs.
        players: all players of the league, retired ones included.
        climb: the learners' training matches (`fit_league`), only for the eval book.

    Raises:
        InvalidInput: there are too many players.
    """
    mus = {rating.player.name: rating.mu for rating in ratings}
    anchors = {rating.player.name: rating.mu for rating in ratings if rating.pinned}
    fit = fit_league(cells, players, climb, anchors)
    rated = [(n, name) for n, name in enumerate(fit.names) if name in mus]
    offsets = [mus[name] - float(fit.rating_N[n]) for n, name in rated]
    zero = statistics.median(offsets) if offsets and not fit.is_anchored else 0.0
    raw = {name: fit.interval(n) for n, name in rated}
    intervals = {
        name: Measured(zero + interval.value, zero + interval.low, zero + interval.high)
        for name, interval in raw.items()
    }
    by_name = {rating.player.name: rating for rating in ratings}
    change = len(fit.kappas) > 1  # the fit has walks of bots
    compared = [n for n in raw if not (change and by_name[n].player.kind is PlayerKind.BOT)]
    normal = statistics.NormalDist()
    widths = [
        math.hypot(
            UNDERSTATED * by_name[name].sigma,
            (raw[name].high - raw[name].low) / 2.0 / normal.inv_cdf(0.975),
        )
        for name in compared
    ]
    fits = np.array([intervals[name].value for name in compared])
    slope, line = _line(fits, np.array([mus[n] for n in compared]), widths, list(anchors.values()))
    quantile = normal.inv_cdf(1.0 - ERROR / 2.0 / max(1, len(compared)))
    gaps = {
        name: mus[name] - on_line
        for name, width, on_line in zip(compared, widths, line.tolist(), strict=True)
        if abs(mus[name] - on_line) >= max(LEAST_GAP, quantile * width)
    }
    widest_first = sorted(gaps.items(), key=lambda item: (-abs(item[1]), item[0]))
    contradictions = []
    if slope < LEAST_SLOPE:
        contradictions.append(
            f"TrueSkill puts the players {slope:.2f} times as far apart as the fit of all games: "
            "clean and training matches contradict each other."
        )
    if fit.tau > MOST_TAU and fit.freedom >= LEAST_FREEDOM:
        contradictions.append(
            f"Pairs deviate from their ratings by {fit.tau:.1f} points: no rating describes these "
            "players, or results are wrong."
        )
    warnings = list(contradictions)
    if not fit.explains_draws:
        often = "more" if fit.draws_z > 0.0 else "less"
        warnings.append(
            f"Unequal players draw {often} often than the fit's model says: its intervals may not "
            "hold."
        )
    return CrossCheck(
        intervals,
        dict(widest_first),
        fit.widening,
        " ".join(contradictions),
        " ".join(warnings),
    )


def _line(
    fits: NDArray[np.float64],
    mus: NDArray[np.float64],
    widths: Sequence[float],
    anchors: Sequence[float],
) -> tuple[float, NDArray[np.float64]]:
    """Fits the line through the points (fit, μ) by weighted least squares. Returns the line's
    slope, and its value at each player.

    The line goes through the anchors (players with fixed ratings), if there are any.
    """
    if not len(fits):
        return 1.0, fits
    centre = statistics.fmean(anchors) if anchors else float(np.mean(fits))
    x, weights = fits - centre, 1.0 / np.maximum(widths, 0.1)
    columns = np.stack([x, np.zeros_like(x) if anchors else np.ones_like(x)], axis=1)
    prior = np.array([[1.0 / SLOPE_SIGMA, 0.0]])
    left = np.concatenate([columns * weights[:, None], prior])
    right = np.append((mus - fits) * weights, 0.0)
    bend, shift = np.linalg.lstsq(left, right, rcond=None)[0]
    return 1.0 + float(bend), fits + bend * x + shift
