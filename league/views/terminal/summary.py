"""The summary of a run: leaderboard, the newest snapshot's clean matches, files, time."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from league.views.terminal import marks
from league.views.terminal.facts import Screen
from league.views.terminal.panels import leaderboard, opponents

_LONGEST = 25
"""Rows of the printed leaderboard; the exported one has them all."""


def print_summary(console: Console, screen: Screen, files: list[Path]) -> None:
    """Prints the summary."""
    league = screen.league
    if league.ratings:
        console.print(leaderboard(screen, console.width, _LONGEST + 3))
        if league.fit is not None:
            console.print(Text(f"{league.fit.words()} μ by fit: its 95 % interval."))
    else:
        console.print("No snapshot has been evaluated yet, so there is no leaderboard.")
    if league.evaluations:
        console.print(opponents(screen, console.width))
        words = f"Clean matches are those of {league.evaluations[0].player}: share of wins (a draw "
        console.print(Text(f"{words}is none) with its 95 % Wilson interval."))
    snapshots = marks.counted(league.snapshots, "active snapshot")
    spent = marks.duration(screen.now - screen.started_at)
    console.print(Text(f"{league.steps:,} steps, {snapshots}, {spent} of wall-clock time."))
    for path in files:
        console.print(Text(f"  {path}"))
