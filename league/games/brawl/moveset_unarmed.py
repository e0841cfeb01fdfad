"""The eleven moves without a weapon. A change of balance is an edit of a row below and of nothing
else.

Damage, force, angle, stun, first hit, whiff and reach are the original's; box heights where it
gives none, how long a box stays, `lock_hit` and the weak push of the stages before the last are
chosen.
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
)


def _hold(
    start: int, end: int, damage: float, stun: int, box: Box, *, chained: bool = False
) -> Stage:
    """A stage before the last of its move: it pushes little, so that the next one reaches."""
    return Stage(
        start=start,
        end=end,
        damage=damage,
        fixed=14,
        variable=0,
        angle=30,
        stun=stun,
        box=box,
        chained=chained,
    )


_JAB: Final[Box] = (-0.1, 0.8, -0.4, 0.4)

UNARMED_MOVES: Final[Mapping[int, Move]] = {
    NLIGHT: Move(
        lock=15,
        lock_hit=23,
        stages=(
            _hold(3, 6, 3, 11, _JAB),
            _hold(7, 10, 3, 11, _JAB, chained=True),
            _hold(11, 14, 3, 11, _JAB, chained=True),
            Stage(
                start=15,
                end=18,
                damage=5,
                fixed=52,
                variable=31,
                angle=30,
                stun=11,
                box=_JAB,
                chained=True,
            ),
        ),
    ),
    DLIGHT: Move(
        lock=16,
        lock_hit=14,
        stages=(
            Stage(
                start=5,
                end=8,
                damage=8,
                fixed=45,
                variable=5,
                angle=90,
                stun=15,
                box=(0.0, 0.8, 0.0, 0.5),
            ),
        ),
    ),
    SLIGHT: Move(
        lock=17,
        lock_hit=15,
        stages=(
            Stage(
                start=7,
                end=11,
                damage=13,
                fixed=80,
                variable=20,
                angle=0,
                stun=9,
                box=(-0.1, 0.9, -0.35, 0.35),
            ),
        ),
        drive=Drive(start=5, end=11, vx=6.0),
    ),
    NSIG: Move(
        lock=17,
        lock_hit=17,
        stages=(
            Stage(
                start=10,
                end=13,
                damage=20,
                fixed=40,
                variable=46,
                angle=90,
                stun=9,
                box=(0.0, 0.45, -0.97, 0.2),
            ),
        ),
        charge_from=4,
        charge_until=36,
    ),
    DSIG: Move(
        lock=25,
        lock_hit=25,
        stages=(
            Stage(
                start=7,
                end=10,
                damage=16,
                fixed=40,
                variable=60,
                angle=10,
                stun=9,
                box=(0.0, 1.1, 0.0, 0.5),
            ),
            Stage(
                start=14,
                end=17,
                damage=16,
                fixed=40,
                variable=60,
                angle=170,
                stun=9,
                box=(-0.8, 0.0, 0.0, 0.5),
            ),
        ),
        charge_from=2,
        charge_until=30,
    ),
    SSIG: Move(
        lock=22,
        lock_hit=22,
        stages=(
            Stage(
                start=11,
                end=14,
                damage=18,
                fixed=45,
                variable=55,
                angle=0,
                stun=9,
                box=(0.2, 1.0, -0.4, 0.4),
            ),
        ),
        charge_from=6,
        charge_until=40,
    ),
    NAIR: Move(
        lock=19,
        lock_hit=19,
        stages=(
            _hold(4, 7, 3, 9, _JAB),
            _hold(8, 11, 3, 9, _JAB),
            Stage(start=12, end=15, damage=5, fixed=71, variable=37, angle=45, stun=9, box=_JAB),
        ),
    ),
    DAIR: Move(
        lock=23,
        lock_hit=18,
        stages=(
            Stage(
                start=6,
                end=14,
                damage=16,
                fixed=65,
                variable=5,
                angle=0,
                stun=9,
                box=(0.0, 0.45, -0.1, 0.6),
            ),
        ),
        drive=Drive(
            start=6, end=14, vx=8.0 * math.cos(math.pi / 4), vy=8.0 * math.sin(math.pi / 4)
        ),
    ),
    SAIR: Move(
        lock=20,
        lock_hit=17,
        stages=(
            Stage(
                start=7,
                end=10,
                damage=13,
                fixed=45,
                variable=40,
                angle=0,
                stun=8,
                box=(0.3, 1.0, -0.35, 0.35),
            ),
        ),
    ),
    RECOVERY: Move(
        lock=22,
        lock_hit=20,
        stages=(
            Stage(
                start=6,
                end=12,
                damage=15,
                fixed=55,
                variable=40,
                angle=80,
                stun=12,
                box=(0.0, 0.4, -0.9, 0.3),
            ),
        ),
        drive=Drive(
            start=4,
            end=16,
            vx=6.0 * math.cos(math.radians(70)),
            vy=-6.0 * math.sin(math.radians(70)),
        ),
    ),
    GROUNDPOUND: Move(
        lock=32,
        lock_hit=28,
        stages=(
            Stage(
                start=10,
                end=24,
                damage=17,
                fixed=48,
                variable=46,
                angle=-90,
                stun=9,
                box=(-0.3, 0.35, 0.0, 0.86),
            ),
        ),
        drive=Drive(start=10, end=24, vx=0.0, vy=6.0),
    ),
}
"""Rows by move type."""
