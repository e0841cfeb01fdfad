"""The renderer's colours."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from league.games.render.picture import mixed

SKY: Final = ("#0b0d1f", "#1d1a45", "#4a2f63", "#8a4a62")
SEATS: Final = ("#ff5a4f", "#2fc6ff")
DARK_SEATS: Final = ("#9c2733", "#176a9e")
INK: Final = "#0c0c18"
SKIN: Final = "#ffe0c2"
WHITE: Final = "#ffffff"
FLASH: Final = "#fff3b0"
STEEL: Final = "#c9d2e3"
WOOD: Final = "#a9744a"
HAZARD: Final = "#ffc83d"
PANEL: Final = "#0c0e20c8"
DIM: Final = "#8f94b3"

_HEAT: Final = (
    (0.0, "#ffffff"),
    (50.0, "#ffe36b"),
    (100.0, "#ff9838"),
    (160.0, "#ff3b3b"),
    (300.0, "#b0123a"),
)


def heat(damage: float) -> str:
    """Colour of a damage figure: white when fresh, then yellow, orange, red."""
    for (low, cool), (high, hot) in pairwise(_HEAT):
        if damage < high:
            return mixed(cool, hot, (damage - low) / (high - low))
    return _HEAT[-1][1]
