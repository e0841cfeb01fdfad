"""A fighter: limbs, head, face and scarf over a pose, with the weapon in hand and what the state
adds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from league.games.brawl import rules
from league.games.render import armoury, palette
from league.games.render.picture import Brush, Point, faded, mixed
from league.games.render.poses import Pose, pose_of
from league.games.render.strikes import Strike, strike_of, striking_pose

HEAD = 0.225
LIMB, TRUNK, OUTLINE = 0.125, 0.3, 0.05
ARM, LEG = 0.2, 0.2
"""Half the length of an arm and of a leg: what bends at elbow and knee."""


def draw_fighter(
    brush: Brush, player: Mapping[str, Any], seat: int, frame: int, *, flash: float = 0.0
) -> None:
    """`flash` from 0 to 1 turns the fighter white, as at a hit. A knocked-out one is not drawn."""
    if player["state"] == rules.KO:
        return
    strike = strike_of(player) if player["state"] == rules.ATTACK else None
    pose = striking_pose(strike, frame) if strike else pose_of(player, frame)
    place = brush.at(player["x"], player["y"], side=player["facing"])
    if strike is not None:
        draw_extent(place, strike, seat)
    _Figure(place.at(0.0, 0.0, turn=pose.turn), player, seat, frame, flash, strike, pose).draw()
    if player["state"] == rules.DODGE:
        brush.circle(faded(palette.WHITE, 0.6), 0.04, player["x"], player["y"], 0.66)
    if player["state"] == rules.STUN:
        _stars(brush.at(player["x"], player["y"] - 0.62), frame)
    if strike is not None and strike.charging:
        _charge(place, strike, frame)


def draw_extent(brush: Brush, strike: Strike, seat: int) -> None:
    """What the attack covers just now, bright while it hits and fading afterwards."""
    if strike.glow <= 0.0:
        return
    near, far, top, bottom = strike.box
    hit = strike.part == "out"
    tint = mixed(palette.SEATS[seat], palette.WHITE, 0.35)
    brush.box(faded(tint, 0.13 * strike.glow), near, top, far - near, bottom - top, 0.12)
    if strike.is_round:
        brush.line(faded(tint, 0.45 * strike.glow), 0.2, *_ellipse(strike, 0.78))
        brush.line(faded(palette.WHITE, 0.75 * strike.glow), 0.09, *_ellipse(strike, 0.95))
        return
    brush.polygon(faded(tint, 0.55 * strike.glow), _crescent(strike, 1.0, 0.25))
    if hit:
        brush.polygon(faded(palette.WHITE, 0.85), _crescent(strike, 1.0, 0.72))


def _ellipse(strike: Strike, share: float) -> list[Point]:
    """The rim of what fills `share` of the box."""
    (x, y), (near, far, top, bottom) = strike.middle, strike.box
    wide, tall = share * (far - near) / 2, share * (bottom - top) / 2
    angles = [math.pi * number / 12 for number in range(25)]
    return [(x + wide * math.cos(angle), y + tall * math.sin(angle)) for angle in angles]


def _crescent(strike: Strike, outer: float, inner: float) -> list[Point]:
    """A sickle in the box, its back where the blow goes."""
    (x, y), (ax, ay) = strike.middle, strike.aim
    near, far, top, bottom = strike.box
    wide, tall = (far - near) / 2, (bottom - top) / 2
    angle = math.atan2(ay, ax)
    bends = [angle + bend for bend in (-1.45, -1.0, -0.5, 0.0, 0.5, 1.0, 1.45)]
    rim = [(x + outer * wide * math.cos(a), y + outer * tall * math.sin(a)) for a in bends]
    shift = 0.45 * (1.0 - inner)
    core = [
        (
            x - shift * ax * wide + inner * wide * math.cos(a),
            y - shift * ay * tall + inner * tall * math.sin(a),
        )
        for a in bends[1:-1]
    ]
    return rim + core[::-1]


def _charge(brush: Brush, strike: Strike, frame: int) -> None:
    pulse = 0.5 + 0.5 * math.sin(frame * 0.9)
    brush.glow(
        faded(palette.FLASH, 0.45 + 0.3 * pulse), -0.3 * strike.aim[0], -0.1, 0.55 + 0.15 * pulse
    )
    brush.circle(faded(palette.FLASH, 0.6), 0.03, 0.0, 0.0, 0.75 - 0.2 * pulse)


def _stars(brush: Brush, frame: int) -> None:
    for number in range(3):
        angle = frame * 0.35 + number * 2.094
        _star(brush.at(0.3 * math.cos(angle), 0.09 * math.sin(angle)), palette.HAZARD, 0.1, 5)


def _star(brush: Brush, colour: str, size: float, points: int) -> None:
    corners = []
    for number in range(2 * points):
        away = size if number % 2 == 0 else size * 0.45
        angle = math.pi * number / points - math.pi / 2
        corners.append((away * math.cos(angle), away * math.sin(angle)))
    brush.polygon(colour, corners)


def bend(start: Point, end: Point, half: float, side: float) -> Point:
    """Elbow or knee between two ends, on `side` of the line; straight when the ends are far
    apart.
    """
    dx, dy = end[0] - start[0], end[1] - start[1]
    apart = max(math.hypot(dx, dy), 1e-6)
    out = math.sqrt(max(half * half - apart * apart / 4, 0.0)) * side
    return (start[0] + end[0]) / 2 - dy / apart * out, (start[1] + end[1]) / 2 + dx / apart * out


class _Figure:
    """One drawing of one fighter: first the dark outline of everything, then the colours over
    it.
    """

    def __init__(
        self,
        brush: Brush,
        player: Mapping[str, Any],
        seat: int,
        frame: int,
        flash: float,
        strike: Strike | None,
        pose: Pose,
    ) -> None:
        self.brush, self.player, self.frame, self.strike, self.pose = (
            brush,
            player,
            frame,
            strike,
            pose,
        )
        self.ghost = player["state"] == rules.DODGE
        self.main = self._paint(palette.SEATS[seat], flash)
        self.dark = self._paint(palette.DARK_SEATS[seat], flash)
        self.skin = self._paint(palette.SKIN, flash)
        self.ink = self._paint(palette.INK, 0.0)
        self.glove = self._paint(mixed(palette.SEATS[seat], palette.WHITE, 0.65), flash)

    def _paint(self, colour: str, flash: float) -> str:
        painted = mixed(colour, palette.WHITE, flash) if flash else colour
        return faded(mixed(painted, palette.WHITE, 0.35), 0.5) if self.ghost else painted

    def draw(self) -> None:
        pose = self.pose
        shoulders = [(pose.chest[0] + dx, pose.chest[1] - 0.03) for dx in (0.07, -0.08)]
        hips = [(pose.hip[0] + dx, pose.hip[1] + 0.03) for dx in (0.06, -0.06)]
        arms = [self._limb(shoulders[i], pose.hands[i], ARM, 1.0) for i in (0, 1)]
        legs = [self._limb(hips[i], pose.feet[i], LEG, -1.0) for i in (0, 1)]
        self._scarf()
        if not self.ghost:
            for points in (*arms, *legs):
                self.brush.line(self.ink, LIMB + 2 * OUTLINE, *points)
            self.brush.line(self.ink, TRUNK + 2 * OUTLINE, pose.chest, pose.hip)
            self.brush.disc(self.ink, *pose.head, HEAD + OUTLINE)
        self.brush.line(self.dark, LIMB, *arms[1])
        self._hand(pose.hands[1])
        self._leg(legs[1], self.dark)
        self.brush.line(self.main, TRUNK, pose.chest, pose.hip)
        self.brush.line(
            self.dark, 0.07, (pose.hip[0] - 0.13, pose.hip[1]), (pose.hip[0] + 0.13, pose.hip[1])
        )
        self._leg(legs[0], self.main)
        self._head()
        self._weapon()
        self.brush.line(self.main, LIMB, *arms[0])
        self._hand(pose.hands[0])

    def _limb(
        self, start: Point, end: Point, half: float, side: float
    ) -> tuple[Point, Point, Point]:
        return start, bend(start, end, half, side), end

    def _leg(self, points: tuple[Point, Point, Point], colour: str) -> None:
        self.brush.line(colour, LIMB, *points)
        x, y = points[2]
        self.brush.line(self.glove, 0.12, (x - 0.02, y), (x + 0.08, y))

    def _hand(self, spot: Point) -> None:
        if not self.ghost:
            self.brush.disc(self.ink, *spot, 0.085 + OUTLINE / 2)
        self.brush.disc(self.glove, *spot, 0.085)

    def _weapon(self) -> None:
        kind = self.player["weapon"]
        if kind == "unarmed":
            return
        x, y = self.pose.hands[0]
        reach = 0.0
        if self.strike is not None and self.strike.part == "out":
            tip = self.strike.tip
            reach = 0.0 if self.strike.is_round else math.hypot(tip[0] - x, tip[1] - y)
        armoury.weapon(
            self.brush.at(x, y, turn=self.pose.blade), kind, reach, 0.5 if self.ghost else 1.0
        )

    def _scarf(self) -> None:
        """Two tails behind the neck; they lag behind the motion."""
        player, (x, y) = self.player, self.pose.head
        forward = player["vx"] * player["facing"]
        drag = min(max(forward / 10.0, -0.7), 1.0)
        sink = min(max(player["vy"] / 12.0, -0.8), 0.8)
        for number, wave in enumerate(
            (math.sin(self.frame * 0.5), math.sin(self.frame * 0.5 + 1.3))
        ):
            knot = (x - 0.17, y + 0.06)
            middle = (x - 0.32 - 0.08 * drag, y + 0.12 - 0.12 * sink + 0.03 * wave)
            fall = 0.24 - 0.2 * abs(drag) - 0.3 * sink
            end = (x - 0.44 - 0.2 * drag - 0.04 * number, y + fall + 0.05 * wave + 0.05 * number)
            self.brush.line(self.dark if number else self.main, 0.075, knot, middle, end)

    def _head(self) -> None:
        x, y = self.pose.head
        if self.ghost:
            self.brush.disc(self.skin, x, y, HEAD)
            return
        self.brush.disc(self.skin, x, y, HEAD)
        self.brush.line(
            self.main, 0.1, (x - 0.19, y - 0.08), (x + 0.0, y - 0.115), (x + 0.19, y - 0.08)
        )
        self._face(x, y)

    def _face(self, x: float, y: float) -> None:
        brush, face = self.brush, self.pose.face
        if face == "hurt":
            for eye in (x + 0.03, x + 0.15):
                brush.line(self.ink, 0.03, (eye - 0.035, y - 0.02), (eye + 0.035, y + 0.05))
                brush.line(self.ink, 0.03, (eye - 0.035, y + 0.05), (eye + 0.035, y - 0.02))
            brush.disc(self.ink, x + 0.09, y + 0.13, 0.04)
            return
        for eye in (x + 0.03, x + 0.15):
            if face == "glad":
                brush.line(
                    self.ink, 0.03, (eye - 0.04, y + 0.03), (eye, y - 0.01), (eye + 0.04, y + 0.03)
                )
            else:
                brush.line(self.ink, 0.05, (eye, y), (eye, y + 0.045))
        if face == "fierce":
            brush.line(self.ink, 0.035, (x - 0.03, y - 0.07), (x + 0.07, y - 0.025))
            brush.line(self.ink, 0.035, (x + 0.2, y - 0.06), (x + 0.12, y - 0.025))
        if face == "glad":
            brush.line(
                self.ink, 0.03, (x + 0.03, y + 0.1), (x + 0.09, y + 0.13), (x + 0.15, y + 0.1)
            )
