"""Pictures of games that nobody has drawn a scene for: their frame's fields as lines of text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from league.games.render import hud, palette
from league.games.render.picture import HEIGHT, Brush, Layer, Picture, Shape

LINES, SIZE, LONGEST = 16, 26.0, 64


class PlainScene:
    """Names above, one line (or several, as its text has) for each field of the frame below."""

    def __init__(self, width: float, names: Sequence[str]) -> None:
        self._width = width
        brush = Brush(hud.GRAIN)
        brush.sky(*palette.SKY)
        for seat, name in enumerate(names):
            x = 40.0 if seat == 0 else width - 40.0
            brush.text(palette.SEATS[seat], 34, x, 50, name or f"seat {seat}", -1 if seat == 0 else 1)
        brush.box(palette.PANEL, 30, 96, width - 60, HEIGHT - 126, 18)
        self.stills: list[list[Shape]] = [brush.shapes]

    def picture(self, frame: Mapping[str, Any], verdict: str = "", winner: int | None = None) -> Picture:
        brush = Brush(hud.GRAIN)
        row = 0
        for name, value in frame.items():
            text = value if isinstance(value, str) else json.dumps(value, default=str)
            lines = text.splitlines() or [""]
            for number, line in enumerate(lines[: LINES - row]):
                y = 128 + row * SIZE * 1.35
                brush.text(palette.DIM, SIZE, 56, y, name[:18] if number == 0 else "", -1)
                _write(brush, y, line, even=len(lines) > 1)
                row += 1
        if verdict:
            hud.verdict(brush, self._width, HEIGHT, verdict, winner)
        flat = brush.transform()
        return Picture(self._width, [Layer(flat, 0), Layer(flat, brush.shapes)])


def _write(brush: Brush, y: float, line: str, *, even: bool) -> None:
    """One line; `even` gives every character the same room, as a board of several lines needs it."""
    words = line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
    if not even:
        brush.text(palette.WHITE, SIZE, 330, y, words, -1)
        return
    for place, mark in enumerate(words):
        if mark != " ":
            brush.text(palette.WHITE, SIZE, 338 + place * SIZE * 0.56, y, mark)
