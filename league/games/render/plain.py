"""Pictures of games that nobody has drawn a scene for: their frame's fields as lines of text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from league.games.render import hud, palette
from league.games.render.picture import HEIGHT, Brush, Layer, Picture, Shape

LINES, SIZE, LONGEST = 16, 26.0, 64


class PlainScene:
    """Names above, one line for each field of the frame below."""

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
        for row, (name, value) in enumerate(list(frame.items())[:LINES]):
            text = value if isinstance(value, str) else json.dumps(value, default=str)
            y = 128 + row * SIZE * 1.35
            brush.text(palette.DIM, SIZE, 56, y, name[:18], -1)
            brush.text(
                palette.WHITE, SIZE, 330, y, text if len(text) <= LONGEST else f"{text[:LONGEST]}…", -1
            )
        if verdict:
            hud.verdict(brush, self._width, HEIGHT, verdict, winner)
        flat = brush.transform()
        return Picture(self._width, [Layer(flat, 0), Layer(flat, brush.shapes)])
