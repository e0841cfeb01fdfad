"""What fighters stand before and on: sky, skyline, grounds, and the platform, which moves as a
whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from league.games.render import palette
from league.games.render.picture import Brush, Shape, faded, mixed

UNIT = 1000.0
"""Grain of everything drawn in units of the game."""

_LIT = ("#ffd98a30", "#ffd98a60", "#8ad4ff38")


def sky() -> list[Shape]:
    """Behind everything, with a moon."""
    brush = Brush(UNIT)
    brush.sky(*palette.SKY)
    return brush.shapes


def moon() -> list[Shape]:
    """Far away, up to the right."""
    brush = Brush(UNIT)
    brush.glow("#ffe9c455", 7.0, -4.6, 4.6)
    brush.disc("#ffeccd", 7.0, -4.6, 1.15)
    brush.disc("#f3d9b2", 6.7, -4.85, 0.22)
    brush.disc("#f3d9b2", 7.35, -4.3, 0.3)
    brush.disc("#f3d9b2", 7.2, -5.1, 0.12)
    for number in range(40):
        x, y = _scatter(number, 30.0), abs(_scatter(number + 99, 8.5)) - 8.5
        brush.disc(faded(palette.WHITE, 0.25 + 0.5 * abs(_scatter(number, 1.0))), x, y, 0.022)
    return brush.shapes


def skyline(*, seed: int, colour: str, top: float, step: float, windows: bool) -> list[Shape]:
    """A row of sheds, cranes and towers from far left to far right."""
    brush = Brush(UNIT)
    x, number = -26.0, seed
    while x < 26.0:
        width = step * (1.0 + 0.5 * _scatter(number, 1.0))
        roof = top + 1.5 * _scatter(number + 7, 1.0)
        _building(brush, colour, x, width, roof, number, windows)
        x += width + 0.25 * step * abs(_scatter(number + 3, 1.0))
        number += 1
    return brush.shapes


def _building(
    brush: Brush, colour: str, x: float, width: float, roof: float, number: int, windows: bool
) -> None:
    brush.box(colour, x, roof, width, 14.0 - roof)
    if number % 3 == 0:  # a shed's pitched roof
        brush.polygon(colour, [(x, roof), (x + width / 2, roof - 0.7), (x + width, roof)])
    elif number % 3 == 1:
        brush.box(colour, x + width * 0.3, roof - 1.1, 0.12, 1.2)
    if windows:
        for spot in range(5):
            lit = _LIT[(number + spot) % len(_LIT)]
            across = 0.12 + 0.72 * abs(_scatter(number * 5 + spot, 1.0))
            brush.box(lit, x + width * across, roof + 0.5 + 0.75 * spot, 0.2, 0.3)


def _scatter(number: int, size: float) -> float:
    """A fixed value within ±size that looks random."""
    return size * (2 * ((math.sin(number * 12.9898 + 4.1) * 43758.5453) % 1.0) - 1)


def grounds(frame: Mapping[str, Any]) -> list[Shape]:
    """The solid blocks, and the rim of the blast zone."""
    brush = Brush(UNIT)
    wide, tall = frame["blast"]
    corners = [(-wide, -tall), (wide, -tall), (wide, tall), (-wide, tall), (-wide, -tall)]
    brush.line("#6b2c4c", 0.07, *corners)
    for number, (left, top, right, bottom) in enumerate(frame["solids"]):
        _ground(brush, left, top, right, bottom, f"{number + 1:02d}")
    return brush.shapes


def _ground(brush: Brush, left: float, top: float, right: float, bottom: float, label: str) -> None:
    width, height = right - left, bottom - top
    brush.box("#00000050", left - 0.12, top + 0.12, width + 0.24, height + 0.1, 0.1)
    brush.box("#2c2f45", left, top, width, height, 0.08)
    rows = max(1, round((height - 0.6) / 1.2))
    deep = (height - 0.55) / rows
    for row in range(rows):
        y = top + 0.45 + row * deep
        columns = max(1, round(width / 1.7))
        for column in range(columns):
            x = left + 0.1 + column * (width - 0.2) / columns
            shade = mixed("#3d415c", "#262940", row / rows + 0.15 * ((row + column) % 2))
            brush.box(shade, x + 0.04, y + 0.04, (width - 0.2) / columns - 0.08, deep - 0.08, 0.06)
    brush.text("#ffffff18", 1.5, (left + right) / 2, top + 0.45 + deep * 0.95, label)
    brush.box("#6d7393", left, top, width, 0.34, 0.06)
    for side in (0, 1):  # a striped edge, so that a fall is seen coming
        _stripes(brush, left if side == 0 else right - 1.05, top + 0.09, 1.05, 0.16)
    brush.box("#dfe5f7", left, top, width, 0.07, 0.03)


def _stripes(brush: Brush, left: float, top: float, width: float, height: float) -> None:
    brush.box("#1b1b26", left, top, width, height)
    count = max(1, round(width / 0.3))
    step = width / count
    for number in range(count):
        x = left + number * step
        brush.polygon(
            palette.HAZARD,
            [(x, top + height), (x + step / 2, top), (x + step, top), (x + step / 2, top + height)],
        )


def platform(spot: Mapping[str, Any]) -> list[Shape]:
    """A crane's beam on two chains, with a light below; its middle is the origin."""
    brush = Brush(UNIT)
    half, deep = spot["half_width"], spot["half_height"]
    for side in (-0.8, 0.8):
        brush.line("#565a78", 0.05, (side * half, 0.0), (side * half * 0.6, -30.0))
    brush.glow("#ffc83d38", 0.0, deep, half * 0.9)
    brush.box(palette.INK, -half - 0.04, -deep - 0.04, 2 * half + 0.08, 2 * deep + 0.08, 0.08)
    _stripes(brush, -half, -deep + 0.05, 2 * half, 2 * deep - 0.05)
    brush.box("#fff3cf", -half, -deep, 2 * half, 0.06, 0.03)
    return brush.shapes
