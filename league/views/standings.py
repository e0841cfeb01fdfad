"""What a leaderboard says, gathered once and rendered in several formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from league.metrics import Interval, wilson_interval
from league.players import Book, PayoffCell, PlayerKind, Rating, Share
from league.rpc.client import MatchmakerClient

if TYPE_CHECKING:
    from league.stats.ratings.cross_check import CrossCheck
    from league.stats.ratings.fit import Interval as Fitted

MOST_FITTED = 2000
"""Players that are fitted in the time that the rest of an export takes: seconds."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A player's line: its rating in the eval book, its wins with their 95 % interval, its greedy
    matches.

    Attributes:
        fit: of its rating by all games at once, None where there are too many players for it.
        gap: points by which μ lies above the fit, where the two disagree, else None.
    """

    rating: Rating
    interval: Interval
    greedy_games: int = 0
    greedy_wins: int = 0
    fit: Fitted | None = None
    gap: float | None = None

    @property
    def win_rate(self) -> float | None:
        """Share of matches won; a draw is not a win. None before the first match."""
        return self.rating.wins / self.rating.games if self.rating.games else None

    @property
    def greedy_win_rate(self) -> float | None:
        return self.greedy_wins / self.greedy_games if self.greedy_games else None


@dataclass(frozen=True, kw_only=True)
class Leaderboard:
    """The eval book of a league at one moment (`made_at`, Unix seconds)."""

    title: str
    game: str
    version: str
    made_at: float
    log_position: int
    standings: tuple[Standing, ...]
    cells: tuple[PayoffCell, ...]
    shares: tuple[Share, ...]
    opinion: CrossCheck | None = None

    @property
    def agreement(self) -> str:
        """Whether TrueSkill and the fit agree, as a sentence."""
        if not self.matches:
            return "Nobody has met anybody yet."
        if self.opinion is None:
            return f"More than {MOST_FITTED:,} players have no fit here: see `bin/league ratings --fit`."
        return self.opinion.words()

    @property
    def matches(self) -> int:
        """Clean matches that the ratings rest on."""
        return sum(standing.rating.games for standing in self.standings) // 2

    def cell(self, row: str, column: str) -> PayoffCell | None:
        """Counts of `row` against `column`, None when they never met."""
        return next((cell for cell in self.cells if (cell.row, cell.column) == (row, column)), None)

    def opponents(self, most: int) -> list[str]:
        """Columns of a payoff table: the bots, then those met most often, best first among
        themselves.
        """
        met: dict[str, int] = {}
        for cell in self.cells:
            met[cell.column] = met.get(cell.column, 0) + cell.games
        kinds = {
            standing.rating.player.name: standing.rating.player.kind for standing in self.standings
        }
        bots_first = sorted(
            met, key=lambda name: (kinds.get(name) is not PlayerKind.BOT, -met[name], name)
        )
        ranks = {standing.rating.player.name: standing.rating.rank for standing in self.standings}
        return sorted(bots_first[:most], key=lambda name: ranks.get(name, len(ranks) + 1))


def gather(client: MatchmakerClient, *, title: str, now: float) -> Leaderboard:
    """Reads a leaderboard from a matchmaker."""
    status = client.status()
    greedy = {rating.player.name: rating for rating in client.ratings(Book.GREEDY)}
    ratings, cells = client.ratings(), client.payoff(Book.EVAL)
    opinion = _opinion(ratings, cells)
    return Leaderboard(
        title=title,
        game=status.game,
        version=version("kumite"),
        made_at=now,
        log_position=status.log_position,
        standings=tuple(
            _standing(rating, greedy.get(rating.player.name), opinion) for rating in ratings
        ),
        cells=tuple(cells),
        shares=status.shares,
        opinion=opinion,
    )


def _opinion(ratings: Sequence[Rating], cells: Sequence[PayoffCell]) -> CrossCheck | None:
    if len(ratings) > MOST_FITTED:
        return None
    # it loads scipy, which takes half a second
    from league.stats.ratings.cross_check import cross_check

    return cross_check(ratings, cells)


def _standing(rating: Rating, greedy: Rating | None, opinion: CrossCheck | None) -> Standing:
    name = rating.player.name
    return Standing(
        rating=rating,
        interval=wilson_interval(rating.wins, rating.games),
        greedy_games=greedy.games if greedy else 0,
        greedy_wins=greedy.wins if greedy else 0,
        fit=None if opinion is None else opinion.intervals.get(name),
        gap=None if opinion is None else opinion.gaps.get(name),
    )
