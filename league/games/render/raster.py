"""Draws a picture's shapes into pixels with Pillow, at twice the size, and halves it for smooth
edges.

Shape suffixes: H height, W width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from league.errors import InvalidInput
from league.games.render.picture import HEIGHT, Picture, Shape, Transform

SMOOTH = 2
"""Pixels drawn for each pixel kept, to either direction."""

MOST_PIXELS = 8192
"""Of a side: more is a slip of the keyboard, and would take gigabytes."""

Colour = tuple[int, int, int, int]
Points = list[tuple[float, float]]


@lru_cache(maxsize=512)
def _colour(text: str) -> Colour:
    red, green, blue = (int(text[i : i + 2], 16) for i in (1, 3, 5))
    return red, green, blue, int(text[7:9], 16) if len(text) == 9 else 255


@lru_cache(maxsize=64)
def _font(size: int) -> Any:
    """Pillow's own font, so that every machine writes alike."""
    return ImageFont.load_default(size)


@lru_cache(maxsize=256)
def _words(text: str, size: int) -> Image.Image:
    """The text as a mask, its middle line in the middle; a little bold."""
    font, bold = _font(size), size / 40
    left, _, right, _ = font.getbbox(text, anchor="lm", stroke_width=bold)
    mask = Image.new("L", (max(1, math.ceil(right - left)), 2 * size))
    ImageDraw.Draw(mask).text((-left, size), text, 255, font, "lm", stroke_width=bold)
    return mask


@lru_cache(maxsize=1)
def _glow_mask() -> Image.Image:
    """A soft disc, 128 pixels wide."""
    away = np.hypot(*np.meshgrid(*[np.linspace(-1, 1, 128)] * 2))
    return Image.fromarray((255 * np.clip(1 - away, 0, 1) ** 1.6).astype(np.uint8))


@lru_cache(maxsize=4)
def _sky(colours: tuple[str, ...], width: int, height: int) -> Image.Image:
    stops = np.array([_colour(colour)[:3] for colour in colours], np.float64)
    rows = np.linspace(0, len(colours) - 1, height)
    column_H3 = np.stack(
        [np.interp(rows, range(len(colours)), stops[:, i]) for i in range(3)], axis=1
    )
    column = Image.fromarray(np.round(column_H3).astype(np.uint8)[:, None])
    return column.resize((width, height))


def check_size(width: int, height: int) -> None:
    """Raises `InvalidInput` for a picture that can't be."""
    if not (1 <= width <= MOST_PIXELS and 1 <= height <= MOST_PIXELS):
        raise InvalidInput(
            f"a picture can't be {width} x {height}: take from 1 to {MOST_PIXELS} pixels"
        )


class Canvas:
    """Pixels, `width` by `height`; `draw` fills them anew. Raises `InvalidInput` for an
    impossible size.
    """

    def __init__(self, width: int, height: int) -> None:
        check_size(width, height)
        self.width, self.height = width, height
        self._image = Image.new("RGB", (width * SMOOTH, height * SMOOTH))
        self._glass = ImageDraw.Draw(self._image, "RGBA")  # lets through what lies below
        self._solid = ImageDraw.Draw(self._image)  # much faster
        self._marks: dict[str, Callable[..., None]] = {
            "p": self._polygon,
            "l": self._line,
            "c": self._disc,
            "o": self._circle,
            "g": self._glow,
            "b": self._box,
            "t": self._text,
            "s": self._shade,
        }

    @property
    def picture_width(self) -> float:
        """Width of pictures that fill this canvas."""
        return HEIGHT * self.width / self.height

    def draw(self, picture: Picture, stills: Sequence[list[Shape]]) -> NDArray[np.uint8]:
        """The picture as uint8 [H, W, 3]."""
        zoom = self._image.height / HEIGHT
        for layer in picture.layers:
            shapes = stills[layer.shapes] if isinstance(layer.shapes, int) else layer.shapes
            scale, dx, dy = (value * zoom for value in layer.transform)
            for kind, *rest in shapes:
                self._marks[kind](Transform(scale, dx, dy), *rest)
        return np.asarray(self._image.reduce(SMOOTH))

    def _points(self, to: Transform, flat: Sequence[int]) -> Points:
        values = iter(flat)
        return [
            (x * to.scale + to.dx, y * to.scale + to.dy)
            for x, y in zip(values, values, strict=True)
        ]

    def _is_seen(self, x: float, y: float, r: float) -> bool:
        return -r < x < self._image.width + r and -r < y < self._image.height + r

    def _pen(self, paint: Colour) -> ImageDraw.ImageDraw:
        return self._solid if paint[3] == 255 else self._glass

    def _polygon(self, to: Transform, colour: str, flat: Sequence[int]) -> None:
        paint = _colour(colour)
        self._pen(paint).polygon(self._points(to, flat), fill=paint)

    def _line(self, to: Transform, colour: str, width: int, flat: Sequence[int]) -> None:
        points, thick, paint = self._points(to, flat), width * to.scale, _colour(colour)
        if paint[3] == 255:
            _stroke(self._solid, points, thick, paint)
            return
        # Where a see-through line crosses itself it must not show twice: through a mask of its own.
        left, top = (math.floor(min(p[i] for p in points) - thick) for i in (0, 1))
        right, bottom = (math.ceil(max(p[i] for p in points) + thick) for i in (0, 1))
        left, top = max(left, 0), max(top, 0)
        right, bottom = min(right, self._image.width), min(bottom, self._image.height)
        if left >= right or top >= bottom:
            return
        mask = Image.new("L", (right - left, bottom - top))
        _stroke(ImageDraw.Draw(mask), [(x - left, y - top) for x, y in points], thick, paint[3])
        self._image.paste(paint[:3], (left, top), mask)

    def _disc(self, to: Transform, colour: str, x: int, y: int, r: int) -> None:
        ((px, py),) = self._points(to, (x, y))
        size = r * to.scale
        if self._is_seen(px, py, size):
            paint = _colour(colour)
            self._pen(paint).ellipse((px - size, py - size, px + size, py + size), fill=paint)

    def _circle(self, to: Transform, colour: str, width: int, x: int, y: int, r: int) -> None:
        ((px, py),) = self._points(to, (x, y))
        size, thick = r * to.scale, max(1, round(width * to.scale))
        outer = size + thick / 2
        if self._is_seen(px, py, outer):
            box = (px - outer, py - outer, px + outer, py + outer)
            paint = _colour(colour)
            self._pen(paint).ellipse(box, outline=paint, width=thick)

    def _glow(self, to: Transform, colour: str, x: int, y: int, r: int) -> None:
        ((px, py),) = self._points(to, (x, y))
        size = max(1, round(r * to.scale))
        if not self._is_seen(px, py, size):
            return
        *paint, opacity = _colour(colour)
        mask = _glow_mask().resize((2 * size, 2 * size))
        if opacity < 255:
            mask = mask.point([value * opacity // 255 for value in range(256)])
        self._image.paste(tuple(paint), (round(px) - size, round(py) - size), mask)

    def _box(self, to: Transform, colour: str, x: int, y: int, w: int, h: int, r: int) -> None:
        (left, top), (right, bottom) = self._points(to, (x, y, x + w, y + h))
        if right < 0 or bottom < 0 or left > self._image.width or top > self._image.height:
            return
        box, paint = (left, top, max(right - 1, left), max(bottom - 1, top)), _colour(colour)
        if r * to.scale < 1:
            self._pen(paint).rectangle(box, fill=paint)
        else:
            self._pen(paint).rounded_rectangle(box, radius=r * to.scale, fill=paint)

    def _text(
        self, to: Transform, colour: str, size: int, x: int, y: int, side: int, words: str
    ) -> None:
        ((px, py),) = self._points(to, (x, y))
        pixels = max(2, round(size * to.scale))
        if not words or not self._is_seen(px, py, pixels * len(words)):
            return
        mask = _words(words, pixels)
        left = px - mask.width * (side + 1) / 2
        *paint, opacity = _colour(colour)
        if opacity < 255:
            mask = mask.point([value * opacity // 255 for value in range(256)])
        self._image.paste(tuple(paint), (round(left), round(py - mask.height / 2)), mask)

    def _shade(self, _: Transform, colours: Sequence[str]) -> None:
        self._image.paste(_sky(tuple(colours), *self._image.size))


def _stroke(pen: ImageDraw.ImageDraw, points: Points, thick: float, paint: Colour | int) -> None:
    """A line with round ends and joints."""
    r = thick / 2
    pen.line(points, fill=paint, width=max(1, round(thick)))
    if r >= 1:
        for x, y in points:
            pen.ellipse((x - r, y - r, x + r, y + r), fill=paint)
