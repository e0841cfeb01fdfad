"""Weapons, in hand and on the ground."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from league.games.render import palette
from league.games.render.picture import Brush, faded

SOON_GONE = 75
"""Frames left from which a weapon on the ground blinks."""


def weapon(brush: Brush, kind: str, reach: float = 0.0, opacity: float = 1.0) -> None:
    """A weapon held at the brush's origin and pointing along x, its tip `reach` away if that is
    far.
    """
    if kind == "spear":
        _spear(brush, max(reach, 0.95), opacity)
    elif kind == "hammer":
        _hammer(brush, max(reach, 0.72), opacity)


def _paint(colour: str, opacity: float) -> str:
    return colour if opacity >= 1.0 else faded(colour, opacity)


def _spear(brush: Brush, tip: float, opacity: float) -> None:
    ink, wood, steel = (_paint(c, opacity) for c in (palette.INK, palette.WOOD, palette.STEEL))
    brush.line(ink, 0.13, (-0.5, 0.0), (tip - 0.2, 0.0))
    brush.polygon(ink, [(tip - 0.42, -0.16), (tip + 0.08, 0.0), (tip - 0.42, 0.16)])
    brush.line(wood, 0.07, (-0.5, 0.0), (tip - 0.3, 0.0))
    brush.polygon(steel, [(tip - 0.37, -0.1), (tip, 0.0), (tip - 0.37, 0.1)])
    brush.line(_paint(palette.HAZARD, opacity), 0.09, (tip - 0.4, -0.04), (tip - 0.4, 0.04))


def _hammer(brush: Brush, tip: float, opacity: float) -> None:
    ink, wood, steel = (_paint(c, opacity) for c in (palette.INK, palette.WOOD, palette.STEEL))
    brush.line(ink, 0.14, (-0.24, 0.0), (tip - 0.1, 0.0))
    brush.polygon(
        ink, [(tip - 0.32, -0.37), (tip + 0.06, -0.37), (tip + 0.06, 0.37), (tip - 0.32, 0.37)]
    )
    brush.line(wood, 0.08, (-0.24, 0.0), (tip - 0.1, 0.0))
    brush.polygon(steel, [(tip - 0.27, -0.32), (tip, -0.32), (tip, 0.32), (tip - 0.27, 0.32)])
    dark = _paint("#8d97ad", opacity)
    brush.polygon(dark, [(tip - 0.27, 0.1), (tip, 0.1), (tip, 0.32), (tip - 0.27, 0.32)])
    brush.line(_paint(palette.HAZARD, opacity), 0.06, (tip - 0.13, -0.3), (tip - 0.13, 0.3))


def on_the_ground(brush: Brush, lying: Mapping[str, Any], frame: int) -> None:
    """It hovers a little and glows; pale before it can be taken, blinking before it goes."""
    left = lying.get("frames_left", SOON_GONE)
    if left < SOON_GONE and frame // 4 % 2:
        return
    opacity = 1.0 if lying.get("ready", True) else 0.45
    x, y = lying["x"], lying["y"] - 0.1 + 0.05 * math.sin(frame * 0.12)
    brush.glow(faded(palette.HAZARD, 0.45 * opacity), x, y, 0.95)
    turned = brush.at(x, y, turn=-0.5)
    weapon(turned.at(-0.25, 0.0), lying["type"], opacity=opacity)


def icon(brush: Brush, kind: str) -> None:
    """A small weapon for a card, within a unit or so around the origin."""
    weapon(brush.at(-0.2, 0.12, turn=-0.6, size=0.9), kind)
