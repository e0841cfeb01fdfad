"""What lies over the picture: a card for each fighter, the clock, and the keys that are down.

In the picture's own pixels, `HEIGHT` high; `size` below makes everything smaller on narrow
pictures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from league.games.brawl import rules
from league.games.render import armoury, palette
from league.games.render.picture import Brush, Shape, faded

GRAIN = 10.0
FULL_WIDTH = 1280.0
CARD_WIDTH, CARD_HEIGHT, EDGE = 330.0, 104.0, 20.0
KEY, GAP = 34.0, 6.0
_ROWS = (
    (("W", 1.0), ("G", 3.4), ("H", 4.4)),
    (("A", 0.0), ("S", 1.0), ("D", 2.0), ("J", 3.4), ("K", 4.4), ("L", 5.4)),
)
KEYS_WIDTH = 6.4 * (KEY + GAP) - GAP
KEYS_HEIGHT = 3 * (KEY + GAP) - GAP


def _key_boxes() -> dict[str, tuple[float, float, float, float]]:
    """Left, top, width, height of each key's cap, from the corner of the little keyboard."""
    step = KEY + GAP
    boxes = {
        name: (column * step, row * step, KEY, KEY)
        for row, keys in enumerate(_ROWS)
        for name, column in keys
    }
    return {**boxes, "space": (0.0, 2 * step, 3 * step - GAP, KEY)}


KEY_BOXES = _key_boxes()


def size_for(width: float) -> float:
    """How much smaller everything is on a picture that is `width` wide."""
    return min(1.0, width / FULL_WIDTH)


def _corner(brush: Brush, seat: int, width: float) -> Brush:
    """The seat's card, seen from its upper left corner."""
    return brush.at(EDGE if seat == 0 else width - EDGE - CARD_WIDTH, EDGE)


def _keyboard(brush: Brush, seat: int, width: float, height: float) -> Brush:
    return brush.at(EDGE if seat == 0 else width - EDGE - KEYS_WIDTH, height - EDGE - KEYS_HEIGHT)


def frames(width: float, height: float, names: Sequence[str], stage: str) -> list[Shape]:
    """Cards, names, key caps and the clock's frame: what no frame changes. In unreduced pixels."""
    brush = Brush(GRAIN)
    for seat, name in enumerate(names):
        card = _corner(brush, seat, width)
        card.box(palette.PANEL, 0, 0, CARD_WIDTH, CARD_HEIGHT, 16)
        card.box(palette.SEATS[seat], 0 if seat == 0 else CARD_WIDTH - 8, 0, 8, CARD_HEIGHT, 4)
        side, x = _align(seat)
        card.text(palette.SEATS[seat], 25, x, 26, _short(name), side)
        keyboard = _keyboard(brush, seat, width, height)
        for key, (left, top, wide, tall) in KEY_BOXES.items():
            keyboard.box("#0c0e2090", left, top, wide, tall, 7)
            keyboard.text("#ffffff60", 15, left + wide / 2, top + tall / 2, key)
    brush.box(palette.PANEL, width / 2 - 85, EDGE, 170, 74, 16)
    brush.text(palette.DIM, 15, width / 2, EDGE + 58, stage)
    return brush.shapes


def figures(brush: Brush, width: float, height: float, frame: Mapping[str, Any]) -> None:
    """Damage, stocks, weapon, keys and time left. In unreduced pixels."""
    for seat, player in enumerate(frame["players"]):
        _card(_corner(brush, seat, width), seat, player)
        keyboard = _keyboard(brush, seat, width, height)
        for key in player["keys"]:
            left, top, wide, tall = KEY_BOXES[key]
            keyboard.box(palette.SEATS[seat], left, top, wide, tall, 7)
            keyboard.text(palette.INK, 15, left + wide / 2, top + tall / 2, key)
    left_frames = max(0, frame["max_frames"] - frame["frame"])
    seconds = -(-left_frames // rules.FRAMES_PER_SECOND)
    colour = "#ff6b5e" if seconds <= 10 else palette.WHITE
    brush.text(colour, 38, width / 2, EDGE + 27, f"{seconds // 60}:{seconds % 60:02d}")


def _card(card: Brush, seat: int, player: Mapping[str, Any]) -> None:
    side, x = _align(seat)
    card.text(palette.heat(player["damage"]), 52, x, 70, f"{player['damage']:.0f}", side)
    for number in range(max(rules.STOCKS, player["stocks"])):
        from_middle = 132 + 32 * number
        spot = from_middle if seat == 0 else CARD_WIDTH - from_middle
        if number < player["stocks"]:
            card.disc(palette.SEATS[seat], spot, 72, 11)
            card.disc("#ffffff90", spot - 3, 68, 3.5)
        else:
            card.circle("#ffffff40", 2.5, spot, 72, 10)
    if player["weapon"] != "unarmed":
        where = 275 if seat == 0 else CARD_WIDTH - 275
        armoury.icon(card.at(where, 66, size=44), player["weapon"])


def _align(seat: int) -> tuple[int, float]:
    return (-1, 24.0) if seat == 0 else (1, CARD_WIDTH - 24.0)


def _short(name: str) -> str:
    return name if len(name) <= 22 else f"{name[:21]}…"


def verdict(brush: Brush, width: float, height: float, words: str, seat: int | None) -> None:
    """The end of a match, over the middle of the picture."""
    colour = palette.DIM if seat is None else palette.SEATS[seat]
    brush.box("#0c0e20d8", 0, height / 2 - 70, width, 140)
    brush.box(colour, 0, height / 2 - 70, width, 5)
    brush.box(colour, 0, height / 2 + 65, width, 5)
    brush.text(faded(palette.INK, 1.0), 62, width / 2 + 3, height / 2 + 3, words)
    brush.text(palette.WHITE if seat is None else colour, 62, width / 2, height / 2, words)
