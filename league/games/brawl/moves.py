"""The move tables. A change of balance is an edit of the rows below and of nothing else.

Boxes are (near, far, top, bottom) in units from the attacker's middle, x forward and y down. Frames
are 0-based from the press. Damage, force, angle, stun, first hit, whiff and reach are the original's;
box heights where not given, how long a box stays, `lock_hit` and the weak holding force of the stages
before the last are chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
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
MOVE_NAMES: Final = {
    NLIGHT: "NLight",
    DLIGHT: "DLight",
    SLIGHT: "SLight",
    NSIG: "NSig",
    DSIG: "DSig",
    SSIG: "SSig",
    NAIR: "NAir",
    DAIR: "DAir",
    SAIR: "SAir",
    RECOVERY: "Recovery",
    GROUNDPOUND: "Groundpound",
}

UNARMED: Final = 0
WEAPON_NAMES: Final = ("unarmed", "spear", "hammer")

Box = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One box of a move, out from frame `start` up to but not including `end`; it hits a victim once."""

    start: int
    end: int
    damage: float
    fixed: float
    variable: float
    angle: float  # degrees, 0 forward, 90 up, mirrored by facing
    stun: int  # frames
    box: Box
    chained: bool = False  # comes out only when the stage before it has hit


@dataclass(frozen=True, kw_only=True)
class Drive:
    """The velocity (u/s, forward and down; None leaves that axis) that a move holds for some frames."""

    start: int
    end: int
    vx: float | None = None
    vy: float | None = None


@dataclass(frozen=True, kw_only=True)
class Move:
    """One row of the table. `lock` frames in Attack when nothing is hit, `lock_hit` when something is."""

    lock: int
    lock_hit: int
    stages: tuple[Stage, ...]
    drive: Drive | None = None
    charge_from: int = 0  # frame at which a held heavy key stops the move, 0: can't be charged
    charge_until: int = 0  # latest frame after the press at which it goes on


def _hold(start: int, end: int, damage: float, stun: int, box: Box, *, chained: bool = False) -> Stage:
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

MOVES: Final[dict[tuple[int, int], Move]] = {
    (UNARMED, NLIGHT): Move(
        lock=15,
        lock_hit=23,
        stages=(
            _hold(3, 6, 3, 11, _JAB),
            _hold(7, 10, 3, 11, _JAB, chained=True),
            _hold(11, 14, 3, 11, _JAB, chained=True),
            Stage(
                start=15, end=18, damage=5, fixed=52, variable=31, angle=30, stun=11, box=_JAB, chained=True
            ),
        ),
    ),
    (UNARMED, DLIGHT): Move(
        lock=16,
        lock_hit=14,
        stages=(
            Stage(
                start=5, end=8, damage=8, fixed=45, variable=5, angle=90, stun=15, box=(0.0, 0.8, 0.0, 0.5)
            ),
        ),
    ),
    (UNARMED, SLIGHT): Move(
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
    (UNARMED, NSIG): Move(
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
    (UNARMED, DSIG): Move(
        lock=25,
        lock_hit=25,
        stages=(
            Stage(
                start=7, end=10, damage=16, fixed=40, variable=60, angle=10, stun=9, box=(0.0, 1.1, 0.0, 0.5)
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
    (UNARMED, SSIG): Move(
        lock=22,
        lock_hit=22,
        stages=(
            Stage(
                start=11, end=14, damage=18, fixed=45, variable=55, angle=0, stun=9, box=(0.2, 1.0, -0.4, 0.4)
            ),
        ),
        charge_from=6,
        charge_until=40,
    ),
    (UNARMED, NAIR): Move(
        lock=19,
        lock_hit=19,
        stages=(
            _hold(4, 7, 3, 9, _JAB),
            _hold(8, 11, 3, 9, _JAB),
            Stage(start=12, end=15, damage=5, fixed=71, variable=37, angle=45, stun=9, box=_JAB),
        ),
    ),
    (UNARMED, DAIR): Move(
        lock=23,
        lock_hit=18,
        stages=(
            Stage(
                start=6, end=14, damage=16, fixed=65, variable=5, angle=0, stun=9, box=(0.0, 0.45, -0.1, 0.6)
            ),
        ),
        drive=Drive(start=6, end=14, vx=8.0 * math.cos(math.pi / 4), vy=8.0 * math.sin(math.pi / 4)),
    ),
    (UNARMED, SAIR): Move(
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
    (UNARMED, RECOVERY): Move(
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
            start=4, end=16, vx=6.0 * math.cos(math.radians(70)), vy=-6.0 * math.sin(math.radians(70))
        ),
    ),
    (UNARMED, GROUNDPOUND): Move(
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
"""Rows by (weapon, move type)."""

MOVE_ROW = np.dtype(
    [
        ("stages", np.int32),  # 0: there is no such move
        ("first_stage", np.int32),
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
        ("start", np.int32),
        ("end", np.int32),
        ("stun", np.int32),
        ("chained", np.int32),
        ("damage", np.float64),
        ("fixed", np.float64),
        ("variable", np.float64),
        ("forward", np.float64),  # cos(angle)
        ("down", np.float64),  # -sin(angle)
        ("near", np.float64),
        ("far", np.float64),
        ("top", np.float64),
        ("bottom", np.float64),
    ],
    align=True,
)


class MoveTables(NamedTuple):
    """The rows as the compiled step reads them: W weapons, M move types, K stages of all moves."""

    moves_WM: NDArray[np.void]
    stages_K: NDArray[np.void]


def _stage_row(stage: Stage) -> tuple[float, ...]:
    angle = math.radians(stage.angle)
    numbers = (stage.damage, stage.fixed, stage.variable, math.cos(angle), -math.sin(angle))
    return (stage.start, stage.end, stage.stun, int(stage.chained), *numbers, *stage.box)


def _move_row(move: Move, first_stage: int) -> tuple[float, ...]:
    drive = move.drive or Drive(start=0, end=0)
    return (
        len(move.stages),
        first_stage,
        move.lock,
        move.lock_hit,
        move.charge_from,
        move.charge_until,
        drive.start,
        drive.end,
        int(drive.vx is not None),
        int(drive.vy is not None),
        drive.vx or 0.0,
        drive.vy or 0.0,
    )


def move_tables(rows: dict[tuple[int, int], Move] = MOVES) -> MoveTables:
    """Packs the rows, given by (weapon, move type), for the compiled step."""
    moves_WM = np.zeros((len(WEAPON_NAMES), MOVE_TYPES), MOVE_ROW)
    stages: list[tuple[float, ...]] = []
    for (weapon, move_type), move in rows.items():
        moves_WM[weapon, move_type] = _move_row(move, len(stages))
        stages += [_stage_row(stage) for stage in move.stages]
    return MoveTables(moves_WM, np.array(stages, STAGE_ROW))
