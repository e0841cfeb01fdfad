"""Compares a leaderboard with the fit of all its games, and names the players they disagree on.

TrueSkill depends on the order of games; the fit does not, and it has intervals. Both are put on one
zero point: that of the anchors, or the median difference without any. They disagree on a player
when both of these hold:

    μ lies outside the fit's 95 % interval of the player's rating
    the gap is worth WORTH of win rate against an equal player: Φ(|gap|/√2·β) ≥ ½ + WORTH

The first alone would name players that thousands of games made certain, with a gap too small to
matter; the second alone those that the fit knows little about too.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from league.players import PayoffCell, Player, Rating
from league.stats.ratings.belief import BETA
from league.stats.ratings.fit import Interval
from league.stats.ratings.lineage import fit_league
from league.stats.ratings.mixture import rating_of

WORTH = 0.05
LEAST_GAP = statistics.NormalDist().inv_cdf(0.5 + WORTH) * 2.0**0.5 * BETA
"""0.74 points."""
_NAMED = 5


@dataclass(frozen=True)
class CrossCheck:
    """What all games at once say about a leaderboard's players.

    Attributes:
        intervals: 95 % intervals of μ by player, in points.
        gaps: by how many points μ is above the fit, for players on which the two disagree, the
            widest gap first.
        widening: the factor on the intervals because of the fit's misfit.
        warning: a sentence where draws are of another kind than the fit assumes, else "".
    """

    intervals: Mapping[str, Interval]
    gaps: Mapping[str, float]
    widening: float
    warning: str

    def of_mixture(self, weights: Mapping[str, float]) -> Interval:
        """The rating of a mixture by those of its members: an interval that also holds if they err
        all alike.
        """
        field = [found.estimate for found in self.intervals.values()]

        def of(end: str) -> float:
            mus = {name: getattr(self.intervals[name], end) for name in weights}
            return rating_of(weights, mus, field)

        return Interval(of("estimate"), of("low"), of("high"))

    def words(self) -> str:
        """Returns a sentence that names the players on which the two disagree, and the warning."""
        return f"{self._agreement()} {self.warning}".rstrip()

    def _agreement(self) -> str:
        if not self.gaps:
            return "TrueSkill and the fit of all games agree on all players."
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
    """Fits a book's games, which takes seconds for thousands of players.

    Args:
        ratings: of the book; pinned players are anchors.
        cells: the book's payoffs.
        players: all of the league, with those that retired.
        climb: the learners' training matches (`fit_league`), for the eval book alone.

    Raises:
        InvalidInput: there are too many players.
    """
    mus = {rating.player.name: rating.mu for rating in ratings}
    anchors = {one.player.name: one.mu for one in ratings if one.pinned}
    fit = fit_league(cells, players, climb, anchors)
    rated = [(n, name) for n, name in enumerate(fit.names) if name in mus]
    offsets = [mus[name] - float(fit.rating_N[n]) for n, name in rated]
    zero = statistics.median(offsets) if offsets and not fit.is_anchored else 0.0
    intervals, gaps = {}, {}
    for n, name in rated:
        found, mu = fit.interval(n), mus[name] - zero
        if abs(mu - found.estimate) >= LEAST_GAP and not found.low <= mu <= found.high:
            gaps[name] = mu - found.estimate
        intervals[name] = Interval(zero + found.estimate, zero + found.low, zero + found.high)
    widest_first = sorted(gaps.items(), key=lambda item: (-abs(item[1]), item[0]))
    warning = ""
    if not fit.explains_draws:
        often = "more" if fit.draws_z > 0.0 else "less"
        warning = f"Unequal players draw {often} often than the fit's model says: its intervals "
        warning += "may not hold."
    return CrossCheck(intervals, dict(widest_first), fit.widening, warning)
