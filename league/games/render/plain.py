"""Pictures of games that nobody has drawn a scene for: their frames as lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from league.games.render import hud, palette
from league.games.render.picture import HEIGHT, Brush, Layer, Picture, Shape
from league.games.render.words import frame_lines

LINES, SIZE, LABEL, LONGEST = 16, 26.0, 18, 64


class PlainScene:
    """Names above; below them, one line for each seat and each field of the frame."""

    def __init__(self, width: float, names: Sequence[str]) -> None:
        self._width, self._names = width, names
        brush = Brush(hud.GRAIN)
        brush.sky(*palette.SKY)
        for seat, name in enumerate(names):
            x = 40.0 if seat == 0 else width - 40.0
            brush.text(
                palette.SEATS[seat], 34, x, 50, name or f"seat {seat}", -1 if seat == 0 else 1
            )
        brush.box(palette.PANEL, 30, 96, width - 60, HEIGHT - 126, 18)
        self.stills: list[list[Shape]] = [brush.shapes]

    def picture(
        self, frame: Mapping[str, Any], verdict: str = "", winner: int | None = None
    ) -> Picture:
        brush = Brush(hud.GRAIN)
        for row, line in enumerate(frame_lines(frame, self._names)[:LINES]):
            y = 128 + row * SIZE * 1.35
            colour = palette.DIM if line.seat is None else palette.SEATS[line.seat]
            brush.text(colour, SIZE, 56, y, line.label[:LABEL], -1)
            _write(brush, y, line.text, even=line.even)
        if verdict:
            hud.verdict(brush, self._width, HEIGHT, verdict, winner)
        flat = brush.transform()
        return Picture(self._width, [Layer(flat, 0), Layer(flat, brush.shapes)])


def _write(brush: Brush, y: float, line: str, *, even: bool) -> None:
    """One line; `even` gives every character the same room, as a board of several lines needs
    it.
    """
    words = line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
    if not even:
        brush.text(palette.WHITE, SIZE, 330, y, words, -1)
        return
    for place, mark in enumerate(words):
        if mark != " ":
            brush.text(palette.WHITE, SIZE, 338 + place * SIZE * 0.56, y, mark)
