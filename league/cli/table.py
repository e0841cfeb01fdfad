"""Draws a frame of a card, matrix or board game in the terminal: the seats, what lies open, what
was said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from league.cli.arena import COLOURS
from league.games.drawing.lines import frame_lines

WIDEST = 100
FRAME_ROWS, FRAME_COLUMNS = 4, 10
"""What the panel's frame takes with its blanks, and those beside the labels."""


def draw(
    frame: Mapping[str, Any], names: Sequence[str], said: Sequence[str], size: tuple[int, int]
) -> Group:
    """The whole picture for a terminal of `size` (columns, rows); `said` are the newest events."""
    columns, rows = size
    lines = frame_lines(frame, names)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for line in lines:
        label = Text(line.label, "grey58" if line.seat is None else f"bold {COLOURS[line.seat]}")
        grid.add_row(label, Text(line.text))
    width = min(columns, WIDEST)
    panel = Panel(grid, title=frame.get("game"), width=width, padding=(1, 2), border_style="grey37")
    beside = width - FRAME_COLUMNS - max((len(line.label) for line in lines), default=0)
    taken = sum(max(1, -(-len(line.text) // max(1, beside))) for line in lines)
    room = max(0, rows - taken - FRAME_ROWS)
    newest = said[-room:] if room else []
    return Group(
        panel, *(Text(f" {event}", "grey74", no_wrap=True, overflow="ellipsis") for event in newest)
    )
