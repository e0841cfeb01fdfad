"""Pictures as lists of shapes: what a browser's canvas and the rasteriser both draw, and nothing
else does.

A picture is small JSON: `{"size": [width, height], "layers": [[[scale, dx, dy], shapes], ...]}`,
drawn from the first layer to the last. A point (x, y) of a shape lands on (x * scale + dx, y *
scale + dy), and lengths are multiplied by `scale`. Instead of a list of shapes a layer may hold a
number: the index of a list in the film's `stills`, shapes that many pictures share. All numbers in
shapes are integers.

    ["p", colour, [x, y, ...]]             polygon, filled
    ["l", colour, width, [x, y, ...]]      line with round ends and joints
    ["c", colour, x, y, r]                 disc
    ["o", colour, width, x, y, r]          circle
    ["g", colour, x, y, r]                 glow: the colour in the middle, nothing at the rim
    ["b", colour, x, y, w, h, r]           box with corners of radius r
    ["t", colour, size, x, y, side, text]  text, centred on y; x: its left (side -1), middle, right
    ["s", [colour, ...]]                   the whole picture, shaded from top to bottom

Colours are "#rrggbb" or "#rrggbbaa".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Shape = list[Any]
Point = tuple[float, float]

HEIGHT = 720.0
"""Height of every picture in its own pixels, whatever size it is drawn at later."""


class Transform(NamedTuple):
    """How a layer's points land on the picture."""

    scale: float
    dx: float
    dy: float


@dataclass(frozen=True)
class Layer:
    """Shapes, or the number of a list of stills, under one transform."""

    transform: Transform
    shapes: list[Shape] | int

    def as_json(self) -> list[Any]:
        """The form that a page is sent."""
        scale, dx, dy = self.transform
        return [[round(scale, 6), round(dx, 1), round(dy, 1)], self.shapes]


@dataclass(frozen=True)
class Picture:
    """One picture; `width` belongs to `HEIGHT`."""

    width: float
    layers: list[Layer]

    def as_json(self) -> dict[str, Any]:
        """The form that a page is sent."""
        return {
            "size": [round(self.width), round(HEIGHT)],
            "layers": [one.as_json() for one in self.layers],
        }


@dataclass
class Brush:
    """Collects shapes in coordinates of its own, `grain` integers to a unit.

    `at` gives a brush for another place, turn, side and size that draws into the same list.
    """

    grain: float
    shapes: list[Shape] = field(default_factory=list)
    _x: float = 0.0
    _y: float = 0.0
    _across: Point = (1.0, 0.0)  # where (1, 0) and (0, 1) go
    _down: Point = (0.0, 1.0)
    _size: float = 1.0

    def at(
        self, x: float, y: float, *, turn: float = 0.0, side: int = 1, size: float = 1.0
    ) -> Brush:
        """A brush whose origin is (x, y) here, turned by `turn` radians, mirrored where `side`
        is -1.
        """
        cos, sin = math.cos(turn) * size, math.sin(turn) * size
        origin = self._point((x, y))
        return Brush(
            self.grain,
            self.shapes,
            *origin,
            self._direction((side * cos, sin)),
            self._direction((-side * sin, cos)),
            self._size * size,
        )

    def transform(self, scale: float = 1.0, dx: float = 0.0, dy: float = 0.0) -> Transform:
        """The layer's transform that shows a unit as `scale` pixels."""
        return Transform(scale / self.grain, dx, dy)

    def _direction(self, vector: Point) -> Point:
        (ax, ay), (bx, by) = self._across, self._down
        return ax * vector[0] + bx * vector[1], ay * vector[0] + by * vector[1]

    def _point(self, point: Point) -> Point:
        dx, dy = self._direction(point)
        return self._x + dx, self._y + dy

    def _points(self, points: Sequence[Point]) -> list[int]:
        return [round(value * self.grain) for point in points for value in self._point(point)]

    def _length(self, length: float) -> int:
        return max(1, round(length * self._size * self.grain))

    def polygon(self, colour: str, points: Sequence[Point]) -> None:
        self.shapes.append(["p", colour, self._points(points)])

    def line(self, colour: str, width: float, *points: Point) -> None:
        self.shapes.append(["l", colour, self._length(width), self._points(points)])

    def disc(self, colour: str, x: float, y: float, r: float) -> None:
        self.shapes.append(["c", colour, *self._points([(x, y)]), self._length(r)])

    def circle(self, colour: str, width: float, x: float, y: float, r: float) -> None:
        self.shapes.append(
            ["o", colour, self._length(width), *self._points([(x, y)]), self._length(r)]
        )

    def glow(self, colour: str, x: float, y: float, r: float) -> None:
        self.shapes.append(["g", colour, *self._points([(x, y)]), self._length(r)])

    def box(
        self, colour: str, x: float, y: float, width: float, height: float, r: float = 0.0
    ) -> None:
        """An upright box, whatever the brush's turn."""
        corners = [self._point((x, y)), self._point((x + width, y + height))]
        left, right = sorted(round(corner[0] * self.grain) for corner in corners)
        top, bottom = sorted(round(corner[1] * self.grain) for corner in corners)
        corner_radius = round(r * self._size * self.grain)
        self.shapes.append(["b", colour, left, top, right - left, bottom - top, corner_radius])

    def text(self, colour: str, size: float, x: float, y: float, words: str, side: int = 0) -> None:
        """`side` -1: x is the text's left end, 0 its middle, 1 its right end."""
        self.shapes.append(["t", colour, self._length(size), *self._points([(x, y)]), side, words])

    def sky(self, *colours: str) -> None:
        self.shapes.append(["s", list(colours)])


def faded(colour: str, share: float) -> str:
    """The colour "#rrggbb" at an opacity of `share`."""
    return f"{colour[:7]}{round(255 * min(max(share, 0.0), 1.0)):02x}"


def mixed(one: str, other: str, share: float) -> str:
    """`share` of the colour `other`, the rest of `one`."""
    share = min(max(share, 0.0), 1.0)
    pairs = ((int(one[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)
