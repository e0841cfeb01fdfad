"""How a fighter holds itself, state by state: joints in units from the middle of the body, x
forward, y down.

A pose is a function of the frame alone (where the fighter is, how fast, how far its move has come),
so any frame can be drawn by itself. Hands and feet are (front, back), the front pair drawn over the
body.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from league.games.brawl import rules
from league.games.render.picture import Point

FEET = rules.HALF_HEIGHT - 0.05
STRIDE = 2 * math.pi / 1.7
"""Radians of the walk's cycle per unit of ground."""


@dataclass(frozen=True, kw_only=True)
class Pose:
    """Where the joints are. `turn` (radians, forward) leans the whole body around its middle."""

    hip: Point = (0.0, 0.13)
    chest: Point = (0.03, -0.07)
    head: Point = (0.05, -0.34)
    hands: tuple[Point, Point] = ((0.30, -0.06), (0.13, 0.02))
    feet: tuple[Point, Point] = ((0.17, FEET), (-0.16, FEET))
    turn: float = 0.0
    blade: float = -0.9  # angle of a weapon in hand; 0 forward, negative up
    face: str = "calm"  # calm, fierce, hurt, glad


def pose_of(player: Mapping[str, Any], frame: int) -> Pose:
    """The pose outside of attacks (those are in strikes.py)."""
    state, x, vy = player["state"], player["x"] * player["facing"], player["vy"]
    if state == rules.WALKING:
        return _stride(x * STRIDE, reach=0.25, lift=0.12, lean=0.12, swing=0.2)
    if state in (rules.SPRINTING, rules.DASH):
        return _stride(x * STRIDE * 0.8, reach=0.34, lift=0.2, lean=0.42, swing=0.3)
    if state == rules.TURNAROUND:
        return _SKID
    if state == rules.BACKDASH:
        return _BACKDASH
    if state == rules.STUN:
        return _stunned(player, frame)
    if state == rules.DODGE:
        return _DODGE
    if state == rules.TAUNT:
        return _taunting(frame)
    if state in (rules.IN_AIR, rules.AIR_TURNAROUND, rules.KO) or not player["grounded"]:
        return _in_air(vy, frame, twist=0.35 if state == rules.AIR_TURNAROUND else 0.0)
    return _standing(frame)


def _standing(frame: int) -> Pose:
    breath = 0.014 * math.sin(frame * 0.2)
    return Pose(
        chest=(0.03, -0.07 + breath),
        head=(0.05, -0.34 + 1.5 * breath),
        hands=((0.31, -0.07 + 2 * breath), (0.15, 0.02 + 2 * breath)),
    )


def _stride(phase: float, *, reach: float, lift: float, lean: float, swing: float) -> Pose:
    def foot(angle: float) -> Point:
        return reach * math.sin(angle) - 0.02, FEET - lift * max(0.0, math.cos(angle))

    def hand(angle: float) -> Point:
        return 0.06 + lean * 0.4 + swing * math.sin(angle), 0.02 - 0.35 * swing * math.cos(angle)

    bounce = -0.03 * abs(math.cos(phase))
    return Pose(
        hip=(-0.02, 0.12 + bounce),
        chest=(0.03 + 0.24 * lean, -0.07 + bounce),
        head=(0.05 + 0.5 * lean, -0.33 + 0.12 * lean + bounce),
        hands=(hand(phase + math.pi), hand(phase)),
        feet=(foot(phase), foot(phase + math.pi)),
        blade=-2.6 if lean > 0.3 else -1.0,
        face="fierce" if lean > 0.3 else "calm",
    )


_SKID = Pose(
    chest=(-0.06, -0.06),
    head=(-0.1, -0.33),
    hands=((0.2, 0.04), (-0.26, -0.1)),
    feet=((0.27, FEET), (-0.05, FEET)),
)
_BACKDASH = Pose(
    chest=(-0.05, -0.05),
    head=(-0.03, -0.32),
    hands=((0.3, -0.12), (0.12, -0.12)),
    feet=((0.36, FEET - 0.06), (0.06, FEET)),
    turn=-0.2,
    face="fierce",
)
_DODGE = Pose(
    hip=(-0.05, 0.18),
    chest=(0.03, 0.02),
    head=(0.12, -0.2),
    hands=((0.26, -0.1), (0.2, -0.02)),
    feet=((0.2, FEET - 0.02), (-0.2, FEET - 0.02)),
    turn=0.25,
)


def _stunned(player: Mapping[str, Any], frame: int) -> Pose:
    """Thrown back; it tumbles when it flies fast."""
    speed = math.hypot(player["vx"], player["vy"])
    tumbling = -0.4 * frame if speed > 8.0 else 0.0
    shake = 0.04 * math.sin(frame * 2.4)
    return Pose(
        chest=(-0.03 + shake, -0.06),
        head=(-0.12 + shake, -0.3),
        hands=((0.3, -0.26), (0.1, -0.34)),
        feet=((0.3, FEET - 0.12), (0.08, FEET - 0.02)),
        turn=-0.5 + tumbling,
        blade=-2.2,
        face="hurt",
    )


def _in_air(vy: float, frame: int, twist: float) -> Pose:
    """Knees up while it rises, arms up while it falls."""
    falling = min(max((vy + 5.0) / 11.0, 0.0), 1.0)
    flail = 0.05 * falling * math.sin(frame * 0.9)

    def between(rising: Point, sinking: Point) -> Point:
        return tuple(a + (b - a) * falling for a, b in zip(rising, sinking, strict=True))  # type: ignore[return-value]

    front = between((0.27, 0.06), (0.30, -0.34 + flail))
    back = between((-0.22, 0.1), (-0.26, -0.3 - flail))
    return Pose(
        chest=between((0.06, -0.08), (0.0, -0.05)),
        head=between((0.11, -0.34), (0.02, -0.33)),
        hands=(front, back),
        feet=(
            between((0.22, 0.26), (0.16, FEET - 0.02)),
            between((-0.2, FEET), (-0.2, FEET - 0.16)),
        ),
        turn=twist,
        blade=-1.2,
    )


def _taunting(frame: int) -> Pose:
    wave, hop = math.sin(frame * 0.7), abs(math.sin(frame * 0.35))
    up = -0.07 * hop
    return Pose(
        hip=(0.0, 0.13 + up),
        chest=(0.0, -0.08 + up),
        head=(0.02 + 0.03 * wave, -0.36 + up),
        hands=((0.24 + 0.1 * wave, -0.56 + up), (-0.24, 0.06 + up)),
        feet=((0.14, FEET + up), (-0.14, FEET + up)),
        turn=0.06 * wave,
        blade=-1.5 + 0.3 * wave,
        face="glad",
    )
