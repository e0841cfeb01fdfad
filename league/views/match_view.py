"""Draws a match in the terminal, a fight as coloured blocks and any other game as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.color import Color
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.segment import Segment, Segments
from rich.style import Style
from rich.table import Table
from rich.text import Text

from league.games.brawl.rules import FRAMES_PER_SECOND, STOCKS
from league.games.drawing import is_fight
from league.games.drawing.lines import frame_lines
from league.games.drawing.painter import Canvas, Painter

COLOURS = ("bright_red", "bright_cyan")
EVENTS = 3
"""Number of event lines under a fight's picture."""
WIDEST = 100
FRAME_ROWS, FRAME_COLUMNS = 4, 10
"""Rows and columns that a table's border and padding take."""


class MatchView:
    """Draws a match between the named players. The caller passes every frame to `see`."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._painter = names, Painter(16, 9)
        self._frame: Mapping[str, Any] = {}

    def see(self, frame: Mapping[str, Any]) -> None:
        """Takes the match's next frame."""
        self._frame = frame
        if is_fight(frame):
            self._painter.see(frame)

    def draw(self, events: Sequence[str], size: tuple[int, int]) -> Group:
        """Returns a picture of the last frame, with the newest events. `size` has the columns and
        rows.
        """
        draw = self._fight if is_fight(self._frame) else self._table
        return Group(*draw(events, *size))

    def _fight(self, events: Sequence[str], columns: int, rows: int) -> list[RenderableType]:
        frame, log = self._frame, events[-EVENTS:]
        line = Table.grid(expand=True)
        for side in ("left", "center", "right"):
            line.add_column(justify=side, no_wrap=True)
        cards = []
        for name, colour, player in zip(self._names, COLOURS, frame["players"], strict=True):
            stocks = "●" * player["stocks"] + "○" * (STOCKS - player["stocks"])
            cards.append(Text(f"{name} {stocks} damage {player['damage']:.0f}", colour))
        seconds = (frame["max_frames"] - frame["frame"]) / FRAMES_PER_SECOND
        clock = f"{frame['stage']} {seconds // 60:.0f}:{seconds % 60:04.1f} left"
        line.add_row(cards[0], clock, cards[1])
        height = max(2, min(2 * (rows - 1 - EVENTS), columns * 9 // 16)) // 2 * 2
        picture = self._blocks(Canvas(min(columns, height * 16 // 9), height))
        return [line, picture, *(Text(event, "grey70", no_wrap=True) for event in log)]

    def _blocks(self, canvas: Canvas) -> Segments:
        """Draws two pixels in each character cell. It leaves out text, which would be too small to
        read.
        """
        image = canvas.paint([shape for shape in self._painter.shapes() if shape[0] != "text"])
        segments = []
        for above, below in zip(image[::2].tolist(), image[1::2].tolist(), strict=True):
            for (upper, lower), run in groupby(zip(above, below, strict=True)):
                style = Style(color=Color.from_rgb(*upper), bgcolor=Color.from_rgb(*lower))
                segments.append(Segment("▀" * len(list(run)), style))
            segments.append(Segment.line())
        return Segments(segments)

    def _table(self, events: Sequence[str], columns: int, rows: int) -> list[RenderableType]:
        """Returns a table of the seats, then of the frame's other fields, and the newest events
        below it.
        """
        lines = frame_lines(self._frame, self._names)
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for line in lines:
            style = "grey58" if line.seat is None else f"bold {COLOURS[line.seat]}"
            grid.add_row(Text(line.label, style), Text(line.text))
        width, title = min(columns, WIDEST), self._frame.get("game")
        panel = Panel(grid, title=title, width=width, padding=(1, 2), border_style="grey37")
        room = width - FRAME_COLUMNS - max((len(line.label) for line in lines), default=0)
        height = sum(max(1, -(-len(line.text) // max(1, room))) for line in lines)
        newest = events[-max(0, rows - height - FRAME_ROWS) :] if rows > height + FRAME_ROWS else []
        log = (Text(f" {event}", "grey74", no_wrap=True, overflow="ellipsis") for event in newest)
        return [panel, *log]
