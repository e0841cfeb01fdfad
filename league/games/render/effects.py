"""What a single frame can't tell: hits, knock-outs, dust and trails, told from how frames
differ.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from league.games.brawl import rules
from league.games.render import palette
from league.games.render.picture import Brush, Point, faded

HIT_FRAMES, FLASH_FRAMES, BURST_FRAMES, DUST_FRAMES = 10, 4, 36, 10
TRAIL = 7
LONGEST_GAP = 30
"""Frames that may be left out (decisions last that long at most); more is another match or
another place.
"""
FAST = 11.0
"""u/s from which a trail is drawn."""


@dataclass(frozen=True)
class Mark:
    """Something that happened in `frame` and is seen for a while."""

    kind: str  # hit, burst or dust
    frame: int
    seat: int
    at: Point
    size: float = 1.0
    towards: Point = (1.0, 0.0)


@dataclass
class Effects:
    """Looks at every frame in turn. A gap or a step back forgets what was seen."""

    marks: list[Mark] = field(default_factory=list)
    trails: tuple[deque[Point], deque[Point]] = field(
        default_factory=lambda: (deque(maxlen=TRAIL), deque(maxlen=TRAIL))
    )
    _before: Mapping[str, Any] | None = None

    def see(self, frame: Mapping[str, Any]) -> None:
        """Notes what happened since the frame before."""
        before, now = self._before, frame["frame"]
        if before is not None and not 0 <= now - before["frame"] <= LONGEST_GAP:
            self.marks.clear()
            for trail in self.trails:
                trail.clear()
            before = None
        self._before = frame
        longest = {"hit": HIT_FRAMES, "burst": BURST_FRAMES, "dust": DUST_FRAMES}
        self.marks = [mark for mark in self.marks if now - mark.frame < longest[mark.kind]]
        for seat, player in enumerate(frame["players"]):
            self._trail(seat, player)
            if before is not None:
                self._compare(now, seat, before["players"][seat], player, frame)

    def knocked_out_since(self, seat: int, frame: int) -> int:
        """Frames since the seat's knock-out, a large number when it is long ago."""
        ages = [
            frame - mark.frame for mark in self.marks if mark.kind == "burst" and mark.seat == seat
        ]
        return min(ages, default=10**6)

    def flash(self, seat: int, frame: int) -> float:
        """How white a fighter is that was just hit, from 0 to 1."""
        ages = [
            frame - mark.frame for mark in self.marks if mark.kind == "hit" and mark.seat == seat
        ]
        return max(0.0, 1.0 - min(ages, default=FLASH_FRAMES) / FLASH_FRAMES)

    def shake(self, frame: int) -> Point:
        """How far the camera trembles, units."""
        force = sum(
            mark.size * max(0.0, 1.0 - (frame - mark.frame) / 7)
            for mark in self.marks
            if mark.kind in ("hit", "burst") and mark.size > 0.8
        )
        size = 0.07 * min(force, 2.0)
        return size * math.sin(frame * 2.9), size * math.cos(frame * 3.7)

    def _trail(self, seat: int, player: Mapping[str, Any]) -> None:
        fast = math.hypot(player["vx"], player["vy"]) > FAST or player["state"] == rules.DASH
        if player["state"] != rules.KO and fast:
            self.trails[seat].append((player["x"], player["y"]))
        elif self.trails[seat]:
            self.trails[seat].popleft()

    def _compare(
        self,
        now: int,
        seat: int,
        old: Mapping[str, Any],
        new: Mapping[str, Any],
        frame: Mapping[str, Any],
    ) -> None:
        spot = (new["x"], new["y"])
        if new["state"] == rules.KO and old["state"] != rules.KO:
            wide, tall = frame["blast"]
            edge = (min(max(spot[0], -wide), wide), min(max(spot[1], -tall), tall))
            away = max(math.hypot(*edge), 1e-6)
            self.marks.append(
                Mark("burst", now, seat, edge, 2.0, (-edge[0] / away, -edge[1] / away))
            )
        elif new["damage"] > old["damage"]:
            self.marks.append(self._hit(now, seat, new, new["damage"] - old["damage"], frame))
        elif old["grounded"] != new["grounded"] and (new["vy"] < -4.0 or old["vy"] > 4.0):
            self.marks.append(Mark("dust", now, seat, (new["x"], new["y"] + 0.45)))

    def _hit(
        self, now: int, seat: int, hurt: Mapping[str, Any], damage: float, frame: Mapping[str, Any]
    ) -> Mark:
        other = frame["players"][1 - seat]
        dx, dy = other["x"] - hurt["x"], other["y"] - hurt["y"]
        apart = max(math.hypot(dx, dy), 1e-6)
        spot = (hurt["x"] + 0.3 * dx / apart, hurt["y"] + 0.3 * dy / apart)
        return Mark("hit", now, seat, spot, min(0.35 + damage / 20.0, 1.6), (damage, 0.0))

    # --- drawing
    # -----------------------------------------------------------------------------------

    def draw_behind(self, brush: Brush, frame: int) -> None:
        """Trails and dust, which fighters stand before."""
        for seat, trail in enumerate(self.trails):
            for number in range(1, len(trail)):
                colour = faded(palette.SEATS[seat], 0.5 * number / TRAIL)
                brush.line(colour, 0.12 + 0.5 * number / TRAIL, trail[number - 1], trail[number])
        for mark in self.marks:
            if mark.kind == "dust":
                _dust(brush.at(*mark.at), (frame - mark.frame) / DUST_FRAMES)

    def draw_before(self, brush: Brush, frame: int) -> None:
        """Sparks and bursts, over the fighters."""
        for mark in self.marks:
            if mark.kind == "hit":
                _spark(brush.at(*mark.at), mark, (frame - mark.frame) / HIT_FRAMES)
            elif mark.kind == "burst":
                _burst(brush.at(*mark.at), mark, (frame - mark.frame) / BURST_FRAMES)


def _dust(brush: Brush, age: float) -> None:
    for side in (-1, 1):
        for number in (1, 2):
            x = side * (0.2 + 0.35 * number * age)
            brush.disc(faded("#cfd3ea", 0.45 * (1 - age)), x, -0.08 * number * age, 0.1 + 0.1 * age)


def _spark(brush: Brush, mark: Mark, age: float) -> None:
    """A star that bursts open and a figure of the damage that rises from it."""
    size, left = mark.size, 1.0 - age
    brush.glow(faded(palette.FLASH, 0.8 * left), 0.0, 0.0, 1.1 * size)
    if age < 0.6:
        rays = 8
        corners: list[Point] = []
        for number in range(2 * rays):
            long = (1.0 if number % 4 == 0 else 0.72) if number % 2 == 0 else 0.3
            away = size * long * (0.45 + 0.6 * age)
            angle = math.pi * number / rays + mark.frame
            corners.append((away * math.cos(angle), away * math.sin(angle)))
        brush.polygon(faded(palette.HAZARD, 0.9 * left), corners)
        brush.polygon(faded(palette.WHITE, left), [(0.6 * x, 0.6 * y) for x, y in corners])
    brush.circle(
        faded(palette.WHITE, 0.7 * left), 0.05 + 0.06 * left, 0.0, 0.0, size * (0.3 + 0.9 * age)
    )
    figure = f"{mark.towards[0]:.0f}"
    brush.text(faded(palette.INK, left), 0.42 + 0.1 * size, 0.03, -0.77 - 0.5 * age, figure)
    brush.text(faded(palette.FLASH, left), 0.42 + 0.1 * size, 0.0, -0.8 - 0.5 * age, figure)


def _burst(brush: Brush, mark: Mark, age: float) -> None:
    """A beam from the rim into the stage, rings, and two letters."""
    left, colour = 1.0 - age, palette.SEATS[mark.seat]
    beam = brush.at(0.0, 0.0, turn=math.atan2(mark.towards[1], mark.towards[0]))
    long, wide = 9.0 * min(1.0, 3.5 * age + 0.2), 1.3 * left
    beam.polygon(
        faded(colour, 0.55 * left),
        [(-1.0, -wide), (long, -0.4 * wide), (long, 0.4 * wide), (-1.0, wide)],
    )
    beam.polygon(
        faded(palette.WHITE, 0.8 * left),
        [
            (-1.0, -0.5 * wide),
            (0.8 * long, -0.1 * wide),
            (0.8 * long, 0.1 * wide),
            (-1.0, 0.5 * wide),
        ],
    )
    brush.glow(faded(palette.FLASH, 0.9 * left), 0.0, 0.0, 3.4)
    for number in (1, 2, 3):
        brush.circle(
            faded(palette.WHITE, 0.6 * left), 0.14 * left, 0.0, 0.0, (0.4 + 2.6 * age) * number / 2
        )
    for number in range(10):
        angle = number * 0.628 + mark.frame
        away = 0.6 + 3.4 * age * (0.6 + 0.4 * (number % 3))
        brush.disc(faded(colour, left), away * math.cos(angle), away * math.sin(angle), 0.16 * left)
    words = mark.towards[0] * 2.2, mark.towards[1] * 2.2
    brush.text(faded(palette.INK, left), 1.35, words[0] + 0.06, words[1] + 0.06, "KO")
    brush.text(faded(palette.WHITE, left), 1.35, *words, "KO")
