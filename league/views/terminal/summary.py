"""The summary of a run: leaderboard, the newest snapshot's clean matches, files, time."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from league.metrics import wilson_interval
from league.players import PayoffCell, PlayerKind
from league.views.terminal import marks
from league.views.terminal.facts import LeagueFacts, Screen

_LONGEST = 25  # rows of the printed leaderboard; the exported one has them all


def print_summary(console: Console, screen: Screen, files: list[Path]) -> None:
    """Prints the summary."""
    league = screen.league
    if league.ratings:
        console.print(Text("\nLeaderboard (clean matches)", "bold"))
        console.print(_leaderboard(league))
        if league.fit is not None:
            console.print(Text(f"{league.fit.words()} mu by fit: its 95 % interval.\n"))
    else:
        console.print("No snapshot has been evaluated yet, so there is no leaderboard.")
    if league.evaluations:
        heading = f"{league.evaluations[0].player} against the bots in clean matches"
        console.print(Text(heading, "bold"))
        table = _table("opponent", "sampled", "win rate", "greedy", "win rate")
        for one in league.evaluations:
            table.add_row(one.opponent, *_wins(one.sampled), *_wins(one.greedy))
        console.print(table)
        console.print(
            Text(
                "wins-draws-losses; share of wins (a draw is none) with its 95 % Wilson interval\n"
            )
        )
    snapshots = marks.counted(league.snapshots, "active snapshot")
    spent = marks.duration(screen.now - screen.started_at)
    console.print(Text(f"{league.steps:,} steps, {snapshots}, {spent} of wall-clock time."))
    for path in files:
        console.print(Text(f"  {path}"))


def _table(*heads: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for head in heads:
        is_name = head in ("player", "opponent")
        table.add_column(head, justify="left" if is_name else "right", no_wrap=True)
    return table


def _leaderboard(league: LeagueFacts) -> Table:
    """The best ratings of the eval book, with the newest rated snapshot and the bots."""
    table = _table("#", "player", "rating", "mu", "mu by fit", "wins", "draws", "losses")
    intervals = {} if league.fit is None else league.fit.intervals
    for rating in league.best(_LONGEST):
        name, style = rating.player.name, ""
        found = intervals.get(name)
        if rating.player == league.newest_rated:
            name, style = f"{name} (newest rated)", f"bold {marks.ACCENT}"
        elif rating.player.kind is PlayerKind.BOT:
            name, style = f"{name} (bot)", marks.BOT
        interval = "–" if found is None else f"{found.low:.2f}–{found.high:.2f}"
        numbers = (f"{rating.score:.2f}", f"{rating.mu:.2f}", interval)
        counts = map(str, (rating.wins, rating.draws, rating.losses))
        table.add_row(str(rating.rank), name, *numbers, *counts, style=style)
    return table


def _wins(cell: PayoffCell | None) -> tuple[str, str]:
    """«318-6-76» and «79.5 % [75.3, 83.2]»: a draw is no win."""
    if cell is None or not cell.games:
        return "–", "–"
    interval = wilson_interval(cell.wins, cell.games)
    bounds = f"[{interval.low * 100:.1f}, {interval.high * 100:.1f}]"
    share = f"{cell.wins / cell.games * 100:.1f} % {bounds}"
    return f"{cell.wins}-{cell.draws}-{cell.losses}", share
