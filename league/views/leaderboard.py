"""A league's leaderboard: gathered once, then written as Markdown, CSV, JSON or a web page."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from league.metrics import Interval, wilson_interval
from league.players import Book, PayoffCell, PlayerKind, Rating, Share
from league.rpc.client import MatchmakerClient
from league.runs.files import write_whole
from league.views.text import percent, when

if TYPE_CHECKING:  # scipy takes half a second to load
    from league.stats.ratings.cross_check import CrossCheck
    from league.stats.ratings.fit import Interval as FitInterval

MOST_FITTED = 2000
"""Players up to which the fit takes only seconds."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A player's line: its rating in the eval book, its wins, and its greedy matches.

    Attributes:
        interval: the 95 % Wilson interval of the share of wins.
        fit: the interval of its rating by the fit of all games, None in a large league.
        gap: points by which μ is above the fit where the two disagree, else None.
    """

    rating: Rating
    interval: Interval
    greedy_games: int = 0
    greedy_wins: int = 0
    fit: FitInterval | None = None
    gap: float | None = None

    @property
    def win_rate(self) -> float | None:
        """Share of matches won (a draw is not a win), None before the first match."""
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
    fit: CrossCheck | None = None

    @property
    def agreement(self) -> str:
        """Whether TrueSkill and the fit agree, as a sentence."""
        if not self.matches:
            return "There are no clean matches yet."
        if self.fit is None:
            return (
                f"There is no fit of more than {MOST_FITTED:,} players: `bin/league ratings --fit`."
            )
        return self.fit.words()

    @property
    def matches(self) -> int:
        """Clean matches that the ratings rest on."""
        return sum(standing.rating.games for standing in self.standings) // 2

    def opponents(self, most: int) -> list[str]:
        """Columns of a payoff table: bots, then the opponents met most often; sorted by rank."""
        met: dict[str, int] = {}
        for cell in self.cells:
            met[cell.column] = met.get(cell.column, 0) + cell.games
        ratings = {one.rating.player.name: one.rating for one in self.standings}
        bots = {name for name, one in ratings.items() if one.player.kind is PlayerKind.BOT}
        chosen = sorted(met, key=lambda name: (name not in bots, -met[name], name))[:most]
        last = len(ratings) + 1
        return sorted(chosen, key=lambda name: ratings[name].rank if name in ratings else last)


def gather(client: MatchmakerClient, *, title: str, now: float) -> Leaderboard:
    """Reads a leaderboard from a matchmaker."""
    status = client.status()
    greedy = {rating.player.name: rating for rating in client.ratings(Book.GREEDY)}
    ratings, cells = client.ratings(), client.payoff(Book.EVAL)
    fit = None
    if len(ratings) <= MOST_FITTED:
        from league.stats.ratings.cross_check import cross_check

        fit = cross_check(ratings, cells)
    return Leaderboard(
        title=title,
        game=status.game,
        version=version("kumite"),
        made_at=now,
        log_position=status.log_position,
        standings=tuple(_standing(one, greedy.get(one.player.name), fit) for one in ratings),
        cells=tuple(cells),
        shares=status.shares,
        fit=fit,
    )


def _standing(rating: Rating, greedy: Rating | None, fit: CrossCheck | None) -> Standing:
    name = rating.player.name
    return Standing(
        rating=rating,
        interval=wilson_interval(rating.wins, rating.games),
        greedy_games=greedy.games if greedy else 0,
        greedy_wins=greedy.wins if greedy else 0,
        fit=None if fit is None else fit.intervals.get(name),
        gap=None if fit is None else fit.gaps.get(name),
    )


def export_all(client: MatchmakerClient, folder: Path, *, title: str, now: float) -> list[Path]:
    """Writes ``leaderboard.md``, ``.csv`` and ``.html`` to `folder` and returns their paths."""
    board = gather(client, title=title, now=now)
    paths = [folder / f"leaderboard.{name}" for name in ("md", "csv", "html")]
    for path in paths:
        write_whole(path, FORMATS[path.suffix[1:]](board))
    return paths


COLUMNS: dict[str, Callable[[Standing], Any]] = {
    "rank": lambda one: one.rating.rank,
    "player": lambda one: one.rating.player.name,
    "kind": lambda one: one.rating.player.kind.value,
    "role": lambda one: one.rating.player.role.value,
    "state": lambda one: one.rating.player.state.value,
    "step": lambda one: one.rating.player.step,
    "parent": lambda one: one.rating.player.parent,
    "score": lambda one: one.rating.score,
    "mu": lambda one: one.rating.mu,
    "sigma": lambda one: one.rating.sigma,
    "pinned": lambda one: one.rating.pinned,
    "games": lambda one: one.rating.games,
    "wins": lambda one: one.rating.wins,
    "draws": lambda one: one.rating.draws,
    "losses": lambda one: one.rating.losses,
    "win_rate": lambda one: one.win_rate,
    "wilson_low": lambda one: one.interval.low,
    "wilson_high": lambda one: one.interval.high,
    "greedy_games": lambda one: one.greedy_games,
    "greedy_win_rate": lambda one: one.greedy_win_rate,
    "fit": lambda one: None if one.fit is None else one.fit.estimate,
    "fit_low": lambda one: None if one.fit is None else one.fit.low,
    "fit_high": lambda one: None if one.fit is None else one.fit.high,
    "disagrees": lambda one: one.gap,
}
"""The columns of the CSV file, and the keys of a standing in JSON."""


def row_of(standing: Standing) -> dict[str, Any]:
    """One player's line as plain values, None where there is no value."""
    values = {name: value_of(standing) for name, value_of in COLUMNS.items()}
    return {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in values.items()
    }


def render_csv(board: Leaderboard) -> str:
    """One row per player, with the columns `COLUMNS`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(row_of(standing).values() for standing in board.standings)
    return text.getvalue()


def render_json(board: Leaderboard) -> str:
    """Everything, with payoffs and shares."""
    content = {
        "title": board.title,
        "game": board.game,
        "version": board.version,
        "made_at": board.made_at,
        "log_position": board.log_position,
        "agreement": board.agreement,
        "standings": [row_of(standing) for standing in board.standings],
        "payoff": [vars(cell) | {"games": cell.games} for cell in board.cells],
        "shares": [vars(share) for share in board.shares],
    }
    return json.dumps(content, indent=1) + "\n"


MARKDOWN_COLUMNS = (
    *("rank#", "player", "kind", "step#", "score#", "mu#", "sigma#", "fit 95 %#", "disagrees"),
    *("games#", "wins#", "wins 95 %#", "greedy#"),
)
"""``#`` marks columns that are aligned to the right."""


def render_markdown(board: Leaderboard) -> str:
    """A table for a README."""
    heads = [name.rstrip("#") for name in MARKDOWN_COLUMNS]
    sides = ["---:" if name.endswith("#") else "---" for name in MARKDOWN_COLUMNS]
    lines = [
        f"# Leaderboard of {board.title}",
        "",
        f"{board.game}, {board.matches} clean matches, {when(board.made_at)}. Score = mu − 3 "
        "sigma. "
        f"The fit of all games has the 95 % interval of mu. {board.agreement} Wins have a 95 % "
        "Wilson interval; a draw is not a win.",
        "",
        f"| {' | '.join(heads)} |",
        f"|{'|'.join(sides)}|",
        *(f"| {' | '.join(_markdown_row(standing))} |" for standing in board.standings),
    ]
    return "\n".join(lines) + "\n"


def _markdown_row(standing: Standing) -> Sequence[str]:
    rating, player, fit = standing.rating, standing.rating.player, standing.fit
    low, high = percent(standing.interval.low), percent(standing.interval.high)
    return (
        str(rating.rank),
        f"{player.name} (anchor)" if rating.pinned else player.name,
        player.kind.value,
        f"{player.step:,}" if player.step else "",
        f"**{rating.score:.2f}**",
        f"{rating.mu:.2f}",
        f"{rating.sigma:.2f}",
        "" if fit is None else f"{fit.low:.2f}–{fit.high:.2f}",
        "" if standing.gap is None else f"mu {standing.gap:+.1f}",
        str(rating.games),
        percent(standing.win_rate),
        f"{low}–{high}" if rating.games else "",
        percent(standing.greedy_win_rate),
    )


def render_html(board: Leaderboard) -> str:
    """One self-contained page."""
    from league.views.leaderboard_page import page

    return page(board)


FORMATS: dict[str, Callable[[Leaderboard], str]] = {
    "csv": render_csv,
    "html": render_html,
    "json": render_json,
    "md": render_markdown,
}
