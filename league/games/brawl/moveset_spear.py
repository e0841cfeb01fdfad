"""The eleven moves with the spear. A change of balance is an edit of a row below and of nothing
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
    start=5, end=18, vx=6.0 * math.cos(math.radians(70)), vy=-6.0 * math.sin(math.radians(70))
)
_THRUST: Final[Box] = (0.8, 1.8, -0.3, 0.3)
_SWEEP: Final[Box] = (0.0, 1.6, -0.1, 0.5)
_CHARGE: Final[Box] = (-0.2, 2.0, -0.35, 0.35)
_WHEEL: Final[Box] = (-1.2, 1.2, -1.2, 1.2)

SPEAR_MOVES: Final[Mapping[int, Move]] = {
    NLIGHT: Move(
        lock=24,
        lock_hit=24,
        stages=(
            drag(4, 7, 4, 8, _THRUST),
            drag(9, 12, 5, 8, _THRUST),
            Stage(start=14, end=17, damage=5, fixed=67, variable=5, angle=0, stun=8, box=_THRUST),
        ),
    ),
    DLIGHT: Move(
        lock=23,
        lock_hit=20,
        stages=(
            drag(5, 7, 1, 12, _SWEEP),
            drag(9, 11, 2, 12, _SWEEP),
            Stage(start=13, end=16, damage=3, fixed=48, variable=0, angle=0, stun=12, box=_SWEEP),
        ),
    ),
    SLIGHT: Move(
        lock=27,
        lock_hit=22,
        stages=(
            drag(7, 11, 8, 9, _CHARGE),
            Stage(start=13, end=16, damage=7, fixed=110, variable=0, angle=55, stun=9, box=_CHARGE),
        ),
        drive=Drive(start=6, end=13, vx=5.0),
    ),
    NSIG: Move(
        lock=25,
        lock_hit=25,
        stages=(
            Stage(
                start=11,
                end=15,
                damage=24,
                fixed=50,
                variable=56,
                angle=70,
                stun=8,
                box=(-0.5, 1.7, -1.4, 0.2),
            ),
        ),
        charge_from=4,
        charge_until=36,
    ),
    DSIG: Move(
        lock=35,
        lock_hit=35,
        stages=(
            Stage(
                start=19,
                end=23,
                damage=27,
                fixed=65,
                variable=52,
                angle=0,
                stun=7,
                box=(0.1, 2.1, -0.1, 0.5),
            ),
        ),
        charge_from=6,
        charge_until=40,
    ),
    SSIG: Move(
        lock=23,
        lock_hit=23,
        stages=(
            Stage(
                start=16,
                end=20,
                damage=25,
                fixed=72,
                variable=54,
                angle=0,
                stun=8,
                box=(0.5, 2.4, -0.35, 0.35),
            ),
        ),
        charge_from=6,
        charge_until=40,
    ),
    NAIR: Move(
        lock=21,
        lock_hit=21,
        stages=(
            drag(8, 11, 12, 13, _WHEEL),
            Stage(
                start=12, end=15, damage=3, fixed=100, variable=10, angle=90, stun=13, box=_WHEEL
            ),
        ),
    ),
    DAIR: Move(
        lock=17,
        lock_hit=17,
        stages=(
            Stage(
                start=7,
                end=11,
                damage=13,
                fixed=49,
                variable=28,
                angle=0,
                stun=5,
                box=(-0.1, 0.45, 0.9, 1.9),
            ),
        ),
    ),
    SAIR: Move(
        lock=20,
        lock_hit=20,
        stages=(
            Stage(
                start=7,
                end=10,
                damage=17,
                fixed=45,
                variable=42,
                angle=0,
                stun=11,
                box=(1.35, 2.2, -0.3, 0.3),
            ),
        ),
    ),
    RECOVERY: Move(
        lock=27,
        lock_hit=27,
        stages=(
            Stage(
                start=8,
                end=16,
                damage=18,
                fixed=61,
                variable=44,
                angle=90,
                stun=12,
                box=(-0.7, 1.4, -0.7, 0.3),
            ),
        ),
        drive=_RISE,
    ),
    GROUNDPOUND: Move(
        lock=38,
        lock_hit=32,
        stages=(
            Stage(
                start=10,
                end=26,
                damage=18,
                fixed=53,
                variable=42,
                angle=0,
                stun=11,
                box=(-1.3, 1.2, -0.2, 0.4),
            ),
        ),
        drive=Drive(start=10, end=26, vx=0.0, vy=6.0),
    ),
}
"""Rows by move type."""
