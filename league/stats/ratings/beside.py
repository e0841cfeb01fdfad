"""The fit of all games beside a leaderboard: intervals on its zero point, and where the two
disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from league.players import PayoffCell, Rating
from league.stats.ratings.agreement import disagreements, zero_point
from league.stats.ratings.belief import Belief
from league.stats.ratings.bradley_terry import Interval, fit_cells


@dataclass(frozen=True)
class SecondOpinion:
    """What all games at once say of a leaderboard's players.

    Attributes:
        intervals: 95 % ones of μ by player, in points.
        gaps: points by which μ lies above the fit, of the players on whom the two disagree
            (`league.stats.ratings.agreement`), the widest first.
        widening: by what the intervals are wider than chance makes them.
    """

    intervals: Mapping[str, Interval]
    gaps: Mapping[str, float]
    widening: float

    def words(self) -> str:
        """On whom the two disagree, as a sentence."""
        if not self.gaps:
            return "TrueSkill and the fit of all games agree on everybody."
        named = ", ".join(list(self.gaps)[:_NAMED])
        named += f" and {len(self.gaps) - _NAMED} more" if len(self.gaps) > _NAMED else ""
        who = "1 player" if len(self.gaps) == 1 else f"{len(self.gaps)} players"
        return f"TrueSkill and the fit of all games disagree on {who}: {named}."


_NAMED = 5


def second_opinion(ratings: Sequence[Rating], cells: Iterable[PayoffCell]) -> SecondOpinion:
    """The fit of a book's games; its anchors are those that are pinned among `ratings`.

    It takes seconds for thousands of players (docs/ratings.md).

    Raises:
        InvalidInput: too many players.
    """
    league = fit_cells(
        cells, {rating.player.name: rating.mu for rating in ratings if rating.pinned}
    )
    beliefs = {rating.player.name: Belief(rating.mu, rating.sigma) for rating in ratings}
    zero = zero_point(beliefs, league)
    found = (
        (name, league.fit.interval(n)) for n, name in enumerate(league.names) if name in beliefs
    )
    return SecondOpinion(
        {name: Interval(zero + x.estimate, zero + x.low, zero + x.high) for name, x in found},
        {one.name: one.gap for one in disagreements(beliefs, league)},
        league.fit.widening,
    )
