"""Attacks as they are drawn: which box of the move's table is out, and the pose that goes with it.

Boxes and frames come from the move tables themselves, so a change of balance is a change of the
picture.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from league.games.brawl import moves
from league.games.brawl.movesets import MOVES
from league.games.render.picture import Point
from league.games.render.poses import FEET, Pose

FADE_FRAMES = 4
"""Frames for which a box that was out is still seen."""

_TYPES = {name: number for number, name in moves.MOVE_NAMES.items()}
_FEET_FIRST = {moves.DLIGHT, moves.SLIGHT, moves.DSIG, moves.SAIR, moves.DAIR, moves.GROUNDPOUND}
_SHOULDER: Point = (0.05, -0.08)
_ARM, _LEG = 0.5, 0.56
"""How far a striking hand is stretched from the shoulder, a foot from the hip, in units."""


@dataclass(frozen=True, kw_only=True)
class Strike:
    """An attack in one frame. Points and boxes (near, far, top, bottom) are seen from the
    attacker.
    """

    move_type: int
    armed: bool
    box: moves.Box
    part: str  # wind, out or back
    share: float  # of that part, from 0 to 1
    glow: float  # how bright the box is shown, 0 for not
    charging: bool

    @property
    def middle(self) -> Point:
        near, far, top, bottom = self.box
        return (near + far) / 2, (top + bottom) / 2

    @property
    def is_round(self) -> bool:
        """It hits on every side, so it has no direction."""
        return math.hypot(*self.middle) < 0.15

    @property
    def aim(self) -> Point:
        """Unit vector from the body's middle to where it hits."""
        x, y = self.middle
        away = math.hypot(x, y)
        return (1.0, 0.0) if self.is_round else (x / away, y / away)

    @property
    def tip(self) -> Point:
        """The farthest point that it reaches."""
        (x, y), (ax, ay) = self.middle, self.aim
        near, far, top, bottom = self.box
        return x + ax * (far - near) / 2, y + ay * (bottom - top) / 2


def strike_of(player: Mapping[str, Any]) -> Strike | None:
    """The attack that `player` is making, None when it makes none that the tables know."""
    weapon = (
        moves.WEAPON_NAMES.index(player["weapon"]) if player["weapon"] in moves.WEAPON_NAMES else 0
    )
    move_type = _TYPES.get(player["move"], moves.NO_MOVE)
    move = MOVES.get((weapon, move_type))
    if move is None:
        return None
    now, out = player["move_frame"], _coming(move, player.get("stages_hit", 0))
    started = [stage for stage in out if stage.start <= now]
    stage = started[-1] if started else out[0]
    part, share = _part(stage, now, move.lock)
    since = max(0, now - stage.end + 1)
    return Strike(
        move_type=move_type,
        armed=weapon != moves.UNARMED,
        box=stage.box,
        part=part,
        share=share,
        glow=0.0 if part == "wind" else max(0.0, 1.0 - since / FADE_FRAMES),
        charging=bool(move.charge_from) and now == move.charge_from and "K" in player["keys"],
    )


def _coming(move: moves.Move, stages_hit: int) -> list[moves.Stage]:
    """The stages that come out, given the bits of those that have hit so far."""
    return [
        stage
        for index, stage in enumerate(move.stages)
        if not (stage.chained or stage.late) or bool(stages_hit >> (index - 1) & 1) == stage.chained
    ]


def _part(stage: moves.Stage, now: int, lock: int) -> tuple[str, float]:
    if now < stage.start:
        return "wind", now / stage.start
    if now < stage.end:
        return "out", (now - stage.start + 1) / (stage.end - stage.start)
    return "back", min(1.0, (now - stage.end + 1) / max(1, lock - stage.end))


def striking_pose(strike: Strike, frame: int) -> Pose:
    """The pose of an attack: drawn back, stretched out, and on its way home."""
    if strike.is_round:
        return _wheel(strike, frame)
    if strike.part == "wind":
        return _wound_up(strike, strike.share, frame)
    out = _stretched(strike)
    return out if strike.part == "out" else _between(out, Pose(face="fierce"), strike.share)


def _wound_up(strike: Strike, share: float, frame: int) -> Pose:
    ax, ay = strike.aim
    pull = 0.5 + 0.5 * share
    shiver = 0.02 * math.sin(frame * 2.6) if strike.charging else 0.0
    hand = (
        _SHOULDER[0] - 0.32 * pull * ax + shiver,
        _SHOULDER[1] - 0.26 * pull * ay - 0.1 * abs(ax),
    )
    foot = (-0.16 + 0.1 * ax, FEET - 0.1 * pull) if _is_kick(strike) else (0.2, FEET)
    return Pose(
        hip=(-0.03 * ax, 0.14 + 0.04 * pull),
        chest=(0.02 - 0.1 * pull * ax, -0.04 - 0.05 * pull * ay),
        head=(0.04 - 0.1 * pull * ax, -0.3 - 0.05 * pull * ay),
        hands=(hand, (0.22, 0.0)),
        feet=(foot, (-0.2, FEET)),
        blade=_angle(strike) + (-2.3 if strike.aim[1] <= 0.5 else 2.3) * pull,
        face="fierce",
    )


def _stretched(strike: Strike) -> Pose:
    (ax, ay), tip = strike.aim, strike.tip
    chest = (0.03 + 0.14 * ax, -0.06 + 0.1 * ay)
    head = (0.07 + 0.14 * ax, -0.33 + 0.1 * ay)
    if _is_kick(strike):
        foot = _towards((0.0, 0.13), tip, _LEG)
        both = strike.move_type == moves.GROUNDPOUND
        other = (
            (foot[0] - 0.14, foot[1]) if both else (-0.14 * (ax or 1.0), FEET if ay < 0.5 else 0.22)
        )
        chest = (0.03 - 0.1 * ax, -0.06 - 0.06 * ay)
        head = (0.05 - 0.12 * ax, -0.34 - 0.05 * ay)
        return Pose(
            chest=chest,
            head=head,
            hands=((0.1 - 0.3 * ax, -0.2), (-0.2, 0.06)),
            feet=(foot, other),
            face="fierce",
        )
    hand = _towards(chest, tip, _ARM if not strike.armed else 0.42)
    return Pose(
        hip=(0.06 * ax, 0.13),
        chest=chest,
        head=head,
        hands=(hand, (-0.18, 0.06) if not strike.armed else _towards(chest, tip, 0.2)),
        feet=((0.24, FEET), (-0.26, FEET)) if ay > -0.5 else ((0.1, FEET), (-0.12, FEET - 0.1)),
        blade=math.atan2(tip[1] - hand[1], tip[0] - hand[0]),
        face="fierce",
    )


def _wheel(strike: Strike, frame: int) -> Pose:
    """Round and round, weapon outstretched."""
    angle = frame * 1.1 if strike.part != "wind" else -1.5
    hand = (0.4 * math.cos(angle), -0.05 + 0.4 * math.sin(angle))
    return Pose(hands=(hand, (-hand[0] * 0.6, -hand[1] * 0.6)), blade=angle, face="fierce")


def _is_kick(strike: Strike) -> bool:
    return strike.move_type in _FEET_FIRST and not strike.armed


def _angle(strike: Strike) -> float:
    return math.atan2(strike.aim[1], strike.aim[0])


def _towards(start: Point, target: Point, most: float) -> Point:
    dx, dy = target[0] - start[0], target[1] - start[1]
    share = min(1.0, most / max(math.hypot(dx, dy), 1e-6))
    return start[0] + dx * share, start[1] + dy * share


def _between(one: Pose, other: Pose, share: float) -> Pose:
    def mix(a: Point, b: Point) -> Point:
        return a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share

    return Pose(
        hip=mix(one.hip, other.hip),
        chest=mix(one.chest, other.chest),
        head=mix(one.head, other.head),
        hands=(mix(one.hands[0], other.hands[0]), mix(one.hands[1], other.hands[1])),
        feet=(mix(one.feet[0], other.feet[0]), mix(one.feet[1], other.feet[1])),
        turn=one.turn + (other.turn - one.turn) * share,
        blade=one.blade + (other.blade - one.blade) * share,
        face=one.face,
    )
