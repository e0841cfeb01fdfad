"""The moves: 33 rows of figures, and how they are packed for the compiled step.

A change of balance is an edit of a row of `MOVES` and of nothing else. Damage, force, angle, stun,
first hit, whiff and reach are the original's. Chosen are box heights where it gives none, how long
a box stays, lunges, `lock_hit`, the frames of a charge, and the push of the stages before the last:
unarmed ones push little, those of weapons drag their victim along, so that the next one reaches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Move types, as numbered in the observation. 1 is unused.
NO_MOVE: Final = 0
NLIGHT: Final = 2
DLIGHT: Final = 3
SLIGHT: Final = 4
NSIG: Final = 5
DSIG: Final = 6
SSIG: Final = 7
NAIR: Final = 8
DAIR: Final = 9
SAIR: Final = 10
RECOVERY: Final = 11
GROUNDPOUND: Final = 12
MOVE_TYPES: Final = 13
_NAMES = (
    *("NLight", "DLight", "SLight", "NSig", "DSig", "SSig", "NAir", "DAir", "SAir"),
    *("Recovery", "Groundpound"),
)
MOVE_NAMES: Final = dict(enumerate(_NAMES, NLIGHT))

UNARMED: Final = 0
SPEAR: Final = 1
HAMMER: Final = 2
WEAPON_NAMES: Final = ("unarmed", "spear", "hammer")

CHAINED: Final = "chained"
"""Of a stage: it comes out only when the stage before it has hit."""
LATE: Final = "late"
"""Of a stage: it hits only a victim that the stage before has missed."""
DRAGS: Final = "drags"
"""Of a stage: the victim gets its attacker's velocity, and the force comes on top."""


class Stage(NamedTuple):
    """One box of a move, out from frame `start` (0 is the press) up to but not including `end`.

    It hits a victim once. The box is in units from the attacker's middle, x forward and y down.
    """

    start: int
    end: int
    damage: int
    fixed: int
    variable: int
    angle: int  # degrees, 0 forward, 90 up, mirrored by facing
    stun: int  # frames
    near: float
    far: float
    top: float
    bottom: float
    kind: str = ""  # or CHAINED, LATE, DRAGS

    @property
    def box(self) -> tuple[float, float, float, float]:
        """(near, far, top, bottom)."""
        return self[7:11]


class Drive(NamedTuple):
    """The velocity (u/s, forward and down; None leaves that axis) that a move holds for some
    frames.
    """

    start: int
    end: int
    vx: float | None
    vy: float | None


class Move(NamedTuple):
    """`lock` frames in Attack when nothing is hit, `lock_hit` when something is."""

    lock: int
    lock_hit: int
    charge_from: int  # frame at which a held heavy key stops the move, 0: can't be charged
    charge_until: int  # latest frame after the press at which it continues
    stages: tuple[Stage, ...]
    drive: Drive = Drive(0, 0, None, None)


_RISE_X: Final = 6.0 * math.cos(math.radians(70))
_RISE_Y: Final = -6.0 * math.sin(math.radians(70))
_DIVE_X: Final = 8.0 * math.cos(math.pi / 4)
_DIVE_Y: Final = 8.0 * math.sin(math.pi / 4)

# fmt: off
MOVES: Final[Mapping[tuple[int, int], Move]] = {
    # by weapon and type: lock, lock_hit, charge_from, charge_until, stages, drive;
    #   of a stage: start, end, damage, fixed, variable, angle, stun, near, far, top, bottom, kind
    (UNARMED, NLIGHT): Move(15, 23, 0, 0, (
        Stage( 3,  6,  3,  14,  0,  30, 11,  -0.1,   0.8,  -0.4,   0.4),
        Stage( 7, 10,  3,  14,  0,  30, 11,  -0.1,   0.8,  -0.4,   0.4, CHAINED),
        Stage(11, 14,  3,  14,  0,  30, 11,  -0.1,   0.8,  -0.4,   0.4, CHAINED),
        Stage(15, 18,  5,  52, 31,  30, 11,  -0.1,   0.8,  -0.4,   0.4, CHAINED),
    )),
    (UNARMED, DLIGHT): Move(16, 14, 0, 0, (
        Stage( 5,  8,  8,  45,  5,  90, 15,   0.0,   0.8,   0.0,   0.5),
    )),
    (UNARMED, SLIGHT): Move(17, 15, 0, 0, (
        Stage( 7, 11, 13,  80, 20,   0,  9,  -0.1,   0.9, -0.35,  0.35),
    ), Drive(5, 11, 6.0, None)),
    (UNARMED, NSIG): Move(17, 17, 4, 36, (
        Stage(10, 13, 20,  40, 46,  90,  9,   0.0,  0.45, -0.97,   0.2),
    )),
    (UNARMED, DSIG): Move(25, 25, 2, 30, (
        Stage( 7, 10, 16,  40, 60,  10,  9,   0.0,   1.1,   0.0,   0.5),
        Stage(14, 17, 16,  40, 60, 170,  9,  -0.8,   0.0,   0.0,   0.5),
    )),
    (UNARMED, SSIG): Move(22, 22, 6, 40, (
        Stage(11, 14, 18,  45, 55,   0,  9,   0.2,   1.0,  -0.4,   0.4),
    )),
    (UNARMED, NAIR): Move(19, 19, 0, 0, (
        Stage( 4,  7,  3,  14,  0,  30,  9,  -0.1,   0.8,  -0.4,   0.4),
        Stage( 8, 11,  3,  14,  0,  30,  9,  -0.1,   0.8,  -0.4,   0.4),
        Stage(12, 15,  5,  71, 37,  45,  9,  -0.1,   0.8,  -0.4,   0.4),
    )),
    (UNARMED, DAIR): Move(23, 18, 0, 0, (
        Stage( 6, 14, 16,  65,  5,   0,  9,   0.0,  0.45,  -0.1,   0.6),
    ), Drive(6, 14, _DIVE_X, _DIVE_Y)),
    (UNARMED, SAIR): Move(20, 17, 0, 0, (
        Stage( 7, 10, 13,  45, 40,   0,  8,   0.3,   1.0, -0.35,  0.35),
    )),
    (UNARMED, RECOVERY): Move(22, 20, 0, 0, (
        Stage( 6, 12, 15,  55, 40,  80, 12,   0.0,   0.4,  -0.9,   0.3),
    ), Drive(4, 16, _RISE_X, _RISE_Y)),
    (UNARMED, GROUNDPOUND): Move(32, 28, 0, 0, (
        Stage(10, 24, 17,  48, 46, -90,  9,  -0.3,  0.35,   0.0,  0.86),
    ), Drive(10, 24, 0.0, 6.0)),
    (SPEAR, NLIGHT): Move(24, 24, 0, 0, (
        Stage( 4,  7,  4,   0,  0,   0,  8,   0.8,   1.8,  -0.3,   0.3, DRAGS),
        Stage( 9, 12,  5,   0,  0,   0,  8,   0.8,   1.8,  -0.3,   0.3, DRAGS),
        Stage(14, 17,  5,  67,  5,   0,  8,   0.8,   1.8,  -0.3,   0.3),
    )),
    (SPEAR, DLIGHT): Move(23, 20, 0, 0, (
        Stage( 5,  7,  1,   0,  0,   0, 12,   0.0,   1.6,  -0.1,   0.5, DRAGS),
        Stage( 9, 11,  2,   0,  0,   0, 12,   0.0,   1.6,  -0.1,   0.5, DRAGS),
        Stage(13, 16,  3,  48,  0,   0, 12,   0.0,   1.6,  -0.1,   0.5),
    )),
    (SPEAR, SLIGHT): Move(27, 22, 0, 0, (
        Stage( 7, 11,  8,   0,  0,   0,  9,  -0.2,   2.0, -0.35,  0.35, DRAGS),
        Stage(13, 16,  7, 110,  0,  55,  9,  -0.2,   2.0, -0.35,  0.35),
    ), Drive(6, 13, 5.0, None)),
    (SPEAR, NSIG): Move(25, 25, 4, 36, (
        Stage(11, 15, 24,  50, 56,  70,  8,  -0.5,   1.7,  -1.4,   0.2),
    )),
    (SPEAR, DSIG): Move(35, 35, 6, 40, (
        Stage(19, 23, 27,  65, 52,   0,  7,   0.1,   2.1,  -0.1,   0.5),
    )),
    (SPEAR, SSIG): Move(23, 23, 6, 40, (
        Stage(16, 20, 25,  72, 54,   0,  8,   0.5,   2.4, -0.35,  0.35),
    )),
    (SPEAR, NAIR): Move(21, 21, 0, 0, (
        Stage( 8, 11, 12,   0,  0,   0, 13,  -1.2,   1.2,  -1.2,   1.2, DRAGS),
        Stage(12, 15,  3, 100, 10,  90, 13,  -1.2,   1.2,  -1.2,   1.2),
    )),
    (SPEAR, DAIR): Move(17, 17, 0, 0, (
        Stage( 7, 11, 13,  49, 28,   0,  5,  -0.1,  0.45,   0.9,   1.9),
    )),
    (SPEAR, SAIR): Move(20, 20, 0, 0, (
        Stage( 7, 10, 17,  45, 42,   0, 11,  1.35,   2.2,  -0.3,   0.3),
    )),
    (SPEAR, RECOVERY): Move(27, 27, 0, 0, (
        Stage( 8, 16, 18,  61, 44,  90, 12,  -0.7,   1.4,  -0.7,   0.3),
    ), Drive(5, 18, _RISE_X, _RISE_Y)),
    (SPEAR, GROUNDPOUND): Move(38, 32, 0, 0, (
        Stage(10, 26, 18,  53, 42,   0, 11,  -1.3,   1.2,  -0.2,   0.4),
    ), Drive(10, 26, 0.0, 6.0)),
    (HAMMER, NLIGHT): Move(21, 21, 0, 0, (
        Stage( 4,  6,  5,   0,  0,   0, 16,   0.2,   1.8,  -0.4,   0.4, DRAGS),
        Stage( 8, 10,  5,   0,  0,   0, 16,   0.2,   1.8,  -0.4,   0.4, DRAGS),
        Stage(12, 15,  9,  65, 45,   0, 16,   0.2,   1.8,  -0.4,   0.4),
    )),
    (HAMMER, DLIGHT): Move(21, 15, 0, 0, (
        Stage( 5,  8,  7,  35,  6,  90, 13,   0.1,   1.6,  -0.1,   0.5),
    )),
    (HAMMER, SLIGHT): Move(20, 18, 0, 0, (
        Stage( 7,  9, 17,  56,  8,   0, 12,   0.5,   2.0,  -0.4,   0.4),
        Stage( 9, 12, 15,  56,  8,   0, 12,   0.5,   2.0,  -0.4,   0.4, LATE),
    )),
    (HAMMER, NSIG): Move(32, 32, 4, 36, (
        Stage(10, 14,  9,   0,  0,   0, 12,   0.0,   2.0,  -1.9,   0.2, DRAGS),
        Stage(15, 19, 18,  60, 52,   0, 12,   0.0,   2.0,  -1.9,   0.2),
    )),
    (HAMMER, DSIG): Move(53, 53, 6, 40, (
        Stage(16, 20, 18,  57, 54,   0, 12,  -0.2,   1.7,  -0.1,   0.5),
        Stage(30, 34, 12,  57, 54,   0, 17,  -0.2,   1.7,  -0.1,   0.5),
    )),
    (HAMMER, SSIG): Move(40, 40, 6, 40, (
        Stage(17, 21, 26,  65, 58,  15, 12,   0.0,   2.2,  -0.5,   0.4),
    )),
    (HAMMER, NAIR): Move(22, 22, 0, 0, (
        Stage( 9, 13, 20,  40, 50,  80, 14,  -0.7,   1.0,  -1.8,   0.3),
    )),
    (HAMMER, DAIR): Move(24, 24, 0, 0, (
        Stage( 6,  9,  2,   0,  0,   0, 12,  -0.8,   0.5,   0.0,   1.3, DRAGS),
        Stage(10, 14,  4,  45, 48,  90, 12,  -0.8,   0.5,   0.0,   1.3),
    )),
    (HAMMER, SAIR): Move(23, 23, 0, 0, (
        Stage( 9, 11, 20,  58, 44,   0, 12,   0.4,  1.85,  -0.4,   0.4),
        Stage(11, 14, 18,  58, 44,   0, 12,   0.4,  1.85,  -0.4,   0.4, LATE),
    )),
    (HAMMER, RECOVERY): Move(22, 22, 0, 0, (
        Stage( 7, 11,  2,   0,  0,   0,  8,  -0.9,   0.1,  -1.4,   0.3, DRAGS),
        Stage(12, 16, 13,  45, 29, -80,  8,  -0.9,   0.1,  -1.4,   0.3),
    ), Drive(5, 16, _RISE_X, _RISE_Y)),
    (HAMMER, GROUNDPOUND): Move(36, 32, 0, 0, (
        Stage(13, 28, 25,  48, 55,   0, 11,  -0.5,   0.3,   0.0,   1.3),
    ), Drive(13, 28, 0.0, 6.0)),
}
# fmt: on

MOVE_ROW = np.dtype(
    [
        ("stages", np.int32),  # 0: there is no such move
        ("first_stage", np.int32),
        ("hits_from", np.int32),  # no stage hits before this frame
        ("hits_until", np.int32),  # or from this one on
        ("lock", np.int32),
        ("lock_hit", np.int32),
        ("charge_from", np.int32),
        ("charge_until", np.int32),
        ("drive_start", np.int32),
        ("drive_end", np.int32),
        ("drives_x", np.int32),
        ("drives_y", np.int32),
        ("drive_vx", np.float64),
        ("drive_vy", np.float64),
    ],
    align=True,
)

STAGE_ROW = np.dtype(
    [
        *((name, np.int32) for name in ("start", "end", "stun", CHAINED, LATE, DRAGS)),
        *((name, np.float64) for name in ("damage", "fixed", "variable")),
        ("forward", np.float64),  # cos(angle)
        ("down", np.float64),  # -sin(angle)
        *((name, np.float64) for name in ("near", "far", "top", "bottom")),
    ],
    align=True,
)

TABLES = np.dtype(
    [("moves", MOVE_ROW, (len(WEAPON_NAMES), MOVE_TYPES)), ("stages", STAGE_ROW, (64,))],
    align=True,
)
"""All rows as the compiled step reads them: moves by weapon and type, and the stages of all."""


def move_tables() -> NDArray[np.void]:
    """`MOVES`, packed for the compiled step: an array of one record of `TABLES`."""
    tables_1 = np.zeros(1, TABLES)
    rows: list[tuple[float, ...]] = []
    for (weapon, move_type), (*timing, stages, drive) in MOVES.items():
        begin, end, vx, vy = drive
        tables_1["moves"][0, weapon, move_type] = (
            len(stages),
            len(rows),
            min(stage.start for stage in stages),
            max(stage.end for stage in stages),
            *timing,
            *(begin, end, vx is not None, vy is not None, vx or 0.0, vy or 0.0),
        )
        for stage in stages:
            angle = math.radians(stage.angle)
            kinds = [stage.kind == kind for kind in (CHAINED, LATE, DRAGS)]
            forces = (stage.damage, stage.fixed, stage.variable, math.cos(angle), -math.sin(angle))
            rows.append((stage.start, stage.end, stage.stun, *kinds, *forces, *stage.box))
    tables_1["stages"][0, : len(rows)] = rows
    return tables_1
