"""A camera that keeps both fighters in view, follows them softly, and never looks past the blast
zone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from league.games.render.picture import HEIGHT, Point, Transform

ROOM = 2.3
"""Units that are seen around a fighter."""
LEAST_HEIGHT = 8.2
RIM = 0.6
"""Units that may be seen beyond the blast zone."""
STAGE_SHARE = 0.15
"""Pull of the stage's middle on where the camera looks."""
FOLLOW, WIDEN, NARROW = 0.14, 0.25, 0.06
"""Share of the way to its aim that the camera goes in a frame."""


@dataclass
class Camera:
    """Looks at (x, y), `tall` units high. `aspect` is the picture's width over its height."""

    aspect: float
    blast: Point
    x: float = 0.0
    y: float = 0.0
    tall: float = 0.0  # 0: nothing was seen yet

    @property
    def tallest(self) -> float:
        """Height that shows the whole blast zone."""
        return 2 * max(self.blast[1] + RIM, (self.blast[0] + RIM) / self.aspect)

    def follow(self, points: Sequence[Point]) -> None:
        """Moves a frame's worth towards a view of these points; the first time all the way."""
        held = [self._inside(point) for point in points] or [(0.0, 0.0)]
        x, y, tall = self._aim(held)
        if self.tall == 0.0:
            self.x, self.y, self.tall = x, y, tall
            return
        self.x += (x - self.x) * FOLLOW
        self.y += (y - self.y) * FOLLOW
        self.tall += (tall - self.tall) * (WIDEN if tall > self.tall else NARROW)
        self._hold(held, ROOM / 2)
        self._stay_inside()

    def at_depth(self, depth: float) -> Transform:
        """Unit coordinates to pixels, for what lies `depth` deep: 1 is the stage, 0 infinitely
        far.
        """
        near, far = HEIGHT / self.tall, HEIGHT / self.tallest
        scale = far + (near - far) * depth
        middle_x, middle_y = HEIGHT * self.aspect / 2, HEIGHT / 2
        return Transform(
            scale, middle_x - self.x * depth * scale, middle_y - self.y * depth * scale
        )

    def _inside(self, point: Point) -> Point:
        wide, tall = self.blast
        return min(max(point[0], -wide), wide), min(max(point[1], -tall), tall)

    def _aim(self, points: Sequence[Point]) -> tuple[float, float, float]:
        """Middle and height of the view of `points`."""
        xs, ys = [p[0] for p in points], [p[1] for p in points]
        x = (min(xs) + max(xs)) / 2 * (1 - STAGE_SHARE)
        y = (min(ys) + max(ys)) / 2 * (1 - STAGE_SHARE) + STAGE_SHARE
        return x, y, min(max(LEAST_HEIGHT, self._needed(points, x, y, ROOM)), self.tallest)

    def _needed(self, points: Sequence[Point], x: float, y: float, room: float) -> float:
        """Height at which all points are seen from (x, y) with `room` around them."""
        across = max(abs(px - x) for px, _ in points) + room
        down = max(abs(py - y) for _, py in points) + room
        return 2 * max(down, across / self.aspect)

    def _hold(self, points: Sequence[Point], room: float) -> None:
        """However soft it follows, it lets nobody out of sight."""
        self.tall = min(max(self.tall, self._needed(points, self.x, self.y, room)), self.tallest)

    def _stay_inside(self) -> None:
        half = self.tall / 2
        for_x, for_y = self.blast[0] + RIM - half * self.aspect, self.blast[1] + RIM - half
        self.x = min(max(self.x, -for_x), for_x) if for_x > 0 else 0.0
        self.y = min(max(self.y, -for_y), for_y) if for_y > 0 else 0.0
