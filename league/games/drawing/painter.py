"""Paints a match's frames: runs draw.js in QuickJS and paints its shapes with Pillow.

For smooth edges, Pillow paints at twice the size and then scales the picture to half. This takes a
third of the time that an SVG renderer takes (docs/rendering.md). Skia was ruled out because its
wheels need the system's OpenGL libraries. Shape suffixes: H height, W width, 3 colours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import dukpy
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from league.errors import InvalidInput
from league.games.drawing.frames import drawable, still_part

DRAW_JS = Path(__file__).with_name("draw.js")
HEIGHT = 720
"""Height of the picture in the units of the shapes' coordinates (as in draw.js)."""
SMOOTH = 2
MOST_PIXELS = 8192
"""Longest side of a picture, in pixels. A longer side is probably a typing error, and the picture
would take gigabytes of memory.
"""

Colour = tuple[int, int, int, int]
Path2D = list[tuple[float, float]]


def check_size(width: int, height: int) -> None:
    """Checks the size of a picture in pixels. An impossible size raises `InvalidInput`."""
    if not (1 <= width <= MOST_PIXELS and 1 <= height <= MOST_PIXELS):
        raise InvalidInput(
            f"a picture can't be {width} x {height}: take from 1 to {MOST_PIXELS} pixels"
        )


class Painter:
    """Paints a match's frames in order.

    Args:
        width, height: size of the pictures, in pixels.
        names: the seats' names.

    Raises:
        InvalidInput: an impossible size.
    """

    def __init__(self, width: int, height: int, names: Sequence[str] = ("", "")) -> None:
        check_size(width, height)
        self._names, self._canvas = list(names), Canvas(width, height)
        self._engine: dukpy.JSInterpreter | None = None
        self._picture_width = HEIGHT * width / height

    def see(
        self,
        frame: Mapping[str, Any],
        verdict: Mapping[str, Any] | None = None,
        caption: str = "",
        title: Sequence[str] = (),
    ) -> None:
        """Takes the next frame.

        Args:
            frame: the game's frame.
            verdict: the match's `verdict` if it has ended.
            caption: a line at the bottom of the picture.
            title: lines of text over the darkened picture. The first line is large.
        """
        words = {"verdict": verdict, "caption": caption, "title": list(title)}
        moving = drawable(frame, self._names) | {key: word for key, word in words.items() if word}
        if self._engine is None:
            self._engine = dukpy.JSInterpreter()
            self._engine.evaljs(DRAW_JS.read_text(encoding="utf-8"))
            self._engine.evaljs(
                "var scene = sceneFor(dukpy.still, dukpy.names, dukpy.width); null",
                still=still_part(frame),
                names=self._names,
                width=self._picture_width,
            )
        self._engine.evaljs("scene.see(dukpy.frame); null", frame=moving)

    def shapes(self) -> list[list[Any]]:
        """Returns the shapes that draw.js computes for the last frame."""
        assert self._engine is not None, "no frame was seen yet"
        return self._engine.evaljs("scene.shapes()")

    def paint(self) -> NDArray[np.uint8]:
        """Returns the picture of the last frame, uint8 [H, W, 3]."""
        return self._canvas.paint(self.shapes())


def draw_frame(
    frame: Mapping[str, Any], width: int, height: int, names: Sequence[str] = ("", "")
) -> NDArray[np.uint8]:
    """Paints a single frame as uint8 [H, W, 3], without effects such as sparks of earlier frames.

    Raises:
        InvalidInput: an impossible size.
    """
    painter = Painter(width, height, names)
    painter.see(frame)
    return painter.paint()


class Canvas:
    """Paints the shapes that draw.js lists."""

    def __init__(self, width: int, height: int) -> None:
        self._image = Image.new("RGB", (width * SMOOTH, height * SMOOTH))
        self._zoom = self._image.height / HEIGHT
        self._blending = ImageDraw.Draw(self._image, "RGBA")
        self._opaque = ImageDraw.Draw(self._image)  # several times as fast as blending

    def paint(self, shapes: list[list[Any]]) -> NDArray[np.uint8]:
        for kind, *arguments in shapes:
            getattr(self, f"_{kind}")(*arguments)
        return np.asarray(self._image.reduce(SMOOTH))

    def _pen(self, colour: Colour) -> ImageDraw.ImageDraw:
        return self._opaque if colour[3] == 255 else self._blending

    def _path(self, path: Sequence[float]) -> Path2D:
        values = iter([value * self._zoom for value in path])
        return list(zip(values, values, strict=True))

    def _polygon(self, colour: str, path: list[float]) -> None:
        paint = _rgba(colour)
        self._pen(paint).polygon(self._path(path), fill=paint)

    def _line(self, colour: str, width: float, path: list[float]) -> None:
        points, thick, paint = self._path(path), width * self._zoom, _rgba(colour)
        if paint[3] == 255:
            _stroke(self._opaque, points, thick, paint)
            return
        # A mask keeps a transparent line from being darker where it crosses itself.
        left, top = (max(0, math.floor(min(p[i] for p in points) - thick)) for i in (0, 1))
        right, bottom = (
            min(self._image.size[i], math.ceil(max(p[i] for p in points) + thick)) for i in (0, 1)
        )
        if left < right and top < bottom:
            mask = Image.new("L", (right - left, bottom - top))
            moved = [(x - left, y - top) for x, y in points]
            _stroke(ImageDraw.Draw(mask), moved, thick, paint[3])
            self._image.paste(paint[:3], (left, top), mask)

    def _disc(self, colour: str, x: float, y: float, r: float) -> None:
        paint = _rgba(colour)
        box = [value * self._zoom for value in (x - r, y - r, x + r, y + r)]
        self._pen(paint).ellipse(box, fill=paint)

    def _ring(self, colour: str, width: float, x: float, y: float, r: float) -> None:
        paint, outer = _rgba(colour), r + width / 2
        box = [value * self._zoom for value in (x - outer, y - outer, x + outer, y + outer)]
        self._pen(paint).ellipse(box, outline=paint, width=max(1, round(width * self._zoom)))

    def _glow(self, colour: str, x: float, y: float, r: float) -> None:
        px, py, size = (round(value * self._zoom) for value in (x, y, r))
        size = max(1, size)
        if -size < px < self._image.width + size and -size < py < self._image.height + size:
            paint = _rgba(colour)
            mask = _dimmed(_glow_mask().resize((2 * size, 2 * size)), paint[3])
            self._image.paste(paint[:3], (px - size, py - size), mask)

    def _box(self, colour: str, x: float, y: float, width: float, height: float, r: float) -> None:
        paint = _rgba(colour)
        left, top, right, bottom = (v * self._zoom for v in (x, y, x + width, y + height))
        box = (left, top, max(right - 1, left), max(bottom - 1, top))
        if r * self._zoom < 1:
            self._pen(paint).rectangle(box, fill=paint)
        else:
            self._pen(paint).rounded_rectangle(box, radius=r * self._zoom, fill=paint)

    def _text(self, colour: str, size: float, x: float, y: float, align: int, text: str) -> None:
        px, py, pixels = x * self._zoom, y * self._zoom, max(2, round(size * self._zoom))
        if text and -pixels * len(text) < px < self._image.width + pixels * len(text):
            paint, mask = _rgba(colour), _text_mask(text, pixels)
            corner = round(px - mask.width * (align + 1) / 2), round(py - mask.height / 2)
            self._image.paste(paint[:3], corner, _dimmed(mask, paint[3]))

    def _sky(self, colours: list[str]) -> None:
        self._image.paste(_sky_image(tuple(colours), *self._image.size))


def _stroke(pen: ImageDraw.ImageDraw, points: Path2D, thick: float, paint: Colour | int) -> None:
    """Draws a line with round ends and joints."""
    r = thick / 2
    pen.line(points, fill=paint, width=max(1, round(thick)))
    if r >= 1:
        for x, y in points:
            pen.ellipse((x - r, y - r, x + r, y + r), fill=paint)


def _dimmed(mask: Image.Image, opacity: int) -> Image.Image:
    return mask if opacity == 255 else mask.point([v * opacity // 255 for v in range(256)])


@lru_cache(maxsize=512)
def _rgba(text: str) -> Colour:
    red, green, blue = (int(text[i : i + 2], 16) for i in (1, 3, 5))
    return red, green, blue, int(text[7:9], 16) if len(text) == 9 else 255


@lru_cache(maxsize=256)
def _text_mask(text: str, size: int) -> Image.Image:
    """Draws slightly bold, vertically centred text in Pillow's own font."""
    font, bold = ImageFont.load_default(size), size / 40
    left, _, right, _ = font.getbbox(text, anchor="lm", stroke_width=bold)
    mask = Image.new("L", (max(1, math.ceil(right - left)), 2 * size))
    ImageDraw.Draw(mask).text((-left, size), text, 255, font, "lm", stroke_width=bold)
    return mask


@lru_cache(maxsize=1)
def _glow_mask() -> Image.Image:
    away = np.hypot(*np.meshgrid(*[np.linspace(-1, 1, 128)] * 2))
    return Image.fromarray((255 * np.clip(1 - away, 0, 1) ** 1.6).astype(np.uint8))


@lru_cache(maxsize=4)
def _sky_image(colours: tuple[str, ...], width: int, height: int) -> Image.Image:
    stops = np.array([_rgba(colour)[:3] for colour in colours], np.float64)
    at_H = np.linspace(0, len(colours) - 1, height)
    column_H3 = np.stack([np.interp(at_H, range(len(colours)), stop) for stop in stops.T], axis=1)
    return Image.fromarray(np.round(column_H3).astype(np.uint8)[:, None]).resize((width, height))
