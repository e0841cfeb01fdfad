"""The summary of a run: leaderboard, the newest snapshot's clean matches, files, time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from league.players import PlayerKind, Rating
from league.views.terminal import lines, marks
from league.views.terminal.facts import BotEvaluation, Screen
from league.views.terminal.panels import chosen
from league.views.terminal.reader import newest_snapshot

if TYPE_CHECKING:
    from league.stats.ratings.cross_check import CrossCheck

_LONGEST = 25  # rows of the printed leaderboard; the exported one has them all


def print_summary(console: Console, screen: Screen, files: list[Path]) -> None:
    """Prints the summary."""
    for part in _parts(screen, files):
        console.print(part)


def _parts(screen: Screen, files: list[Path]) -> Iterator[RenderableType]:
    league = screen.league
    if league.ratings:
        yield Text("\nLeaderboard (clean matches)", "bold")
        yield _leaderboard_table(league.ratings, league.fit)
        if league.fit is not None:
            yield Text(f"{league.fit.words()} mu by fit: its 95 % interval.\n")
    if league.evaluations:
        yield Text(f"{league.evaluations[0].player} against the bots in clean matches", "bold")
        yield _bots_table(league.evaluations)
        yield Text(
            "wins-draws-losses; share of wins (a draw is none) with its 95 % Wilson interval\n"
        )
    if not league.ratings:
        yield "No snapshot has been evaluated yet, so there is no leaderboard."
    snapshots = marks.counted(league.snapshots, "active snapshot")
    spent = marks.duration(screen.now - screen.started_at)
    yield Text(f"{screen.steps:,} steps, {snapshots}, {spent} of wall-clock time.")
    for path in files:
        yield Text(f"  {path}")


def _leaderboard_table(ratings: tuple[Rating, ...], fit: CrossCheck | None = None) -> Table:
    """The best ratings of the eval book, with the newest rated snapshot and the bots."""
    newest = newest_snapshot(ratings)
    table = Table(box=box.SIMPLE_HEAD)
    intervals = {} if fit is None else fit.intervals
    for head in ("#", "player", "rating", "mu", "mu by fit", "wins", "draws", "losses"):
        table.add_column(head, justify="left" if head == "player" else "right", no_wrap=True)
    for rating in chosen(ratings, newest.name if newest else "", _LONGEST):
        is_newest = newest is not None and rating.player.name == newest.name
        is_bot = rating.player.kind is PlayerKind.BOT
        found = intervals.get(rating.player.name)
        interval = "–" if found is None else f"{found.low:.2f}–{found.high:.2f}"
        numbers = (f"{rating.score:.2f}", f"{rating.mu:.2f}", interval)
        counts = (str(rating.wins), str(rating.draws), str(rating.losses))
        name = rating.player.name + (" (newest rated)" if is_newest else " (bot)" if is_bot else "")
        style = f"bold {marks.ACCENT}" if is_newest else marks.BOT if is_bot else ""
        table.add_row(str(rating.rank), name, *numbers, *counts, style=style)
    return table


def _bots_table(evaluations: tuple[BotEvaluation, ...]) -> Table:
    """The newest evaluated snapshot against each bot, with sampled and with greedy keys."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("opponent", no_wrap=True)
    for head in ("sampled", "win rate", "greedy", "win rate"):
        table.add_column(head, justify="right", no_wrap=True)
    for one in evaluations:
        table.add_row(
            one.opponent,
            lines.counts(one.sampled),
            lines.win_rate(one.sampled),
            lines.counts(one.greedy),
            lines.win_rate(one.greedy),
        )
    return table
