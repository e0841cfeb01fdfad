"""The eleven moves with the hammer. A change of balance is an edit of a row below and of nothing
else.

Damage, force, angle, stun, first hit, whiff and reach are the original's; box heights where it
gives none, how long a box stays, lunges, `lock_hit` and the frames of a charge are chosen. Stages
before the last drag their victim along, so that the next one reaches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from league.games.brawl.moves import (
    DAIR,
    DLIGHT,
    DSIG,
    GROUNDPOUND,
    NAIR,
    NLIGHT,
    NSIG,
    RECOVERY,
    SAIR,
    SLIGHT,
    SSIG,
    Box,
    Drive,
    Move,
    Stage,
    drag,
)

_RISE: Final = Drive(
    start=5, end=16, vx=6.0 * math.cos(math.radians(70)), vy=-6.0 * math.sin(math.radians(70))
)
_SWING: Final[Box] = (0.2, 1.8, -0.4, 0.4)
_LOW: Final[Box] = (-0.2, 1.7, -0.1, 0.5)
_BLOW: Final[Box] = (0.5, 2.0, -0.4, 0.4)
_OVERHEAD: Final[Box] = (0.0, 2.0, -1.9, 0.2)
_UNDER: Final[Box] = (-0.8, 0.5, 0.0, 1.3)
_AIR_BLOW: Final[Box] = (0.4, 1.85, -0.4, 0.4)
_BEHIND: Final[Box] = (-0.9, 0.1, -1.4, 0.3)

HAMMER_MOVES: Final[Mapping[int, Move]] = {
    NLIGHT: Move(
        lock=21,
        lock_hit=21,
        stages=(
            drag(4, 6, 5, 16, _SWING),
            drag(8, 10, 5, 16, _SWING),
            Stage(start=12, end=15, damage=9, fixed=65, variable=45, angle=0, stun=16, box=_SWING),
        ),
    ),
    DLIGHT: Move(
        lock=21,
        lock_hit=15,
        stages=(
            Stage(
                start=5,
                end=8,
                damage=7,
                fixed=35,
                variable=6,
                angle=90,
                stun=13,
                box=(0.1, 1.6, -0.1, 0.5),
            ),
        ),
    ),
    SLIGHT: Move(
        lock=20,
        lock_hit=18,
        stages=(
            Stage(start=7, end=9, damage=17, fixed=56, variable=8, angle=0, stun=12, box=_BLOW),
            Stage(
                start=9,
                end=12,
                damage=15,
                fixed=56,
                variable=8,
                angle=0,
                stun=12,
                box=_BLOW,
                late=True,
            ),
        ),
    ),
    NSIG: Move(
        lock=32,
        lock_hit=32,
        stages=(
            drag(10, 14, 9, 12, _OVERHEAD),
            Stage(
                start=15, end=19, damage=18, fixed=60, variable=52, angle=0, stun=12, box=_OVERHEAD
            ),
        ),
        charge_from=4,
        charge_until=36,
    ),
    DSIG: Move(
        lock=53,
        lock_hit=53,
        stages=(
            Stage(start=16, end=20, damage=18, fixed=57, variable=54, angle=0, stun=12, box=_LOW),
            Stage(start=30, end=34, damage=12, fixed=57, variable=54, angle=0, stun=17, box=_LOW),
        ),
        charge_from=6,
        charge_until=40,
    ),
    SSIG: Move(
        lock=40,
        lock_hit=40,
        stages=(
            Stage(
                start=17,
                end=21,
                damage=26,
                fixed=65,
                variable=58,
                angle=15,
                stun=12,
                box=(0.0, 2.2, -0.5, 0.4),
            ),
        ),
        charge_from=6,
        charge_until=40,
    ),
    NAIR: Move(
        lock=22,
        lock_hit=22,
        stages=(
            Stage(
                start=9,
                end=13,
                damage=20,
                fixed=40,
                variable=50,
                angle=80,
                stun=14,
                box=(-0.7, 1.0, -1.8, 0.3),
            ),
        ),
    ),
    DAIR: Move(
        lock=24,
        lock_hit=24,
        stages=(
            drag(6, 9, 2, 12, _UNDER),
            Stage(start=10, end=14, damage=4, fixed=45, variable=48, angle=90, stun=12, box=_UNDER),
        ),
    ),
    SAIR: Move(
        lock=23,
        lock_hit=23,
        stages=(
            Stage(
                start=9, end=11, damage=20, fixed=58, variable=44, angle=0, stun=12, box=_AIR_BLOW
            ),
            Stage(
                start=11,
                end=14,
                damage=18,
                fixed=58,
                variable=44,
                angle=0,
                stun=12,
                box=_AIR_BLOW,
                late=True,
            ),
        ),
    ),
    RECOVERY: Move(
        lock=22,
        lock_hit=22,
        stages=(
            drag(7, 11, 2, 8, _BEHIND),
            Stage(
                start=12, end=16, damage=13, fixed=45, variable=29, angle=-80, stun=8, box=_BEHIND
            ),
        ),
        drive=_RISE,
    ),
    GROUNDPOUND: Move(
        lock=36,
        lock_hit=32,
        stages=(
            Stage(
                start=13,
                end=28,
                damage=25,
                fixed=48,
                variable=55,
                angle=0,
                stun=11,
                box=(-0.5, 0.3, 0.0, 1.3),
            ),
        ),
        drive=Drive(start=13, end=28, vx=0.0, vy=6.0),
    ),
}
"""Rows by move type."""
