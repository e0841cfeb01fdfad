"""What a move is made of, and how rows of moves are packed for the compiled step (rows:
moveset_*.py).

Boxes are (near, far, top, bottom) in units from the attacker's middle, x forward and y down. Frames
are 0-based from the press.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

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
SPEAR: Final = 1
HAMMER: Final = 2
WEAPON_NAMES: Final = ("unarmed", "spear", "hammer")

Box = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One box of a move, out from frame `start` up to but not including `end`; it hits a victim
    once.
    """

    start: int
    end: int
    damage: float
    fixed: float
    variable: float
    angle: float  # degrees, 0 forward, 90 up, mirrored by facing
    stun: int  # frames
    box: Box
    chained: bool = False  # comes out only when the stage before it has hit
    late: bool = False  # hits only a victim that the stage before has missed
    drags: bool = False  # the victim gets its attacker's velocity; the force comes on top


def drag(start: int, end: int, damage: float, stun: int, box: Box) -> Stage:
    """A stage before the last of its move, which takes its victim along until the next one."""
    return Stage(
        start=start,
        end=end,
        damage=damage,
        fixed=0,
        variable=0,
        angle=0,
        stun=stun,
        box=box,
        drags=True,
    )


@dataclass(frozen=True, kw_only=True)
class Drive:
    """The velocity (u/s, forward and down; None leaves that axis) that a move holds for some
    frames.
    """

    start: int
    end: int
    vx: float | None = None
    vy: float | None = None


@dataclass(frozen=True, kw_only=True)
class Move:
    """One row of the table. `lock` frames in Attack when nothing is hit, `lock_hit` when
    something is.
    """

    lock: int
    lock_hit: int
    stages: tuple[Stage, ...]
    drive: Drive | None = None
    charge_from: int = 0  # frame at which a held heavy key stops the move, 0: can't be charged
    charge_until: int = 0  # latest frame after the press at which it continues


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
        ("start", np.int32),
        ("end", np.int32),
        ("stun", np.int32),
        ("chained", np.int32),
        ("late", np.int32),
        ("drags", np.int32),
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


STAGES_MOST: Final = 64
TABLES = np.dtype(
    [("moves", MOVE_ROW, (len(WEAPON_NAMES), MOVE_TYPES)), ("stages", STAGE_ROW, (STAGES_MOST,))],
    align=True,
)
"""All rows as the compiled step reads them: moves by weapon and type, and the stages of all of
them.
"""


def _stage_row(stage: Stage) -> tuple[float, ...]:
    angle = math.radians(stage.angle)
    numbers = (stage.damage, stage.fixed, stage.variable, math.cos(angle), -math.sin(angle))
    marks = (int(stage.chained), int(stage.late), int(stage.drags))
    return (stage.start, stage.end, stage.stun, *marks, *numbers, *stage.box)


def _move_row(move: Move, first_stage: int) -> tuple[float, ...]:
    drive = move.drive or Drive(start=0, end=0)
    return (
        len(move.stages),
        first_stage,
        min(stage.start for stage in move.stages),
        max(stage.end for stage in move.stages),
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


def move_tables(rows: Mapping[tuple[int, int], Move]) -> NDArray[np.void]:
    """Packs the rows, given by (weapon, move type), for the compiled step: an array of one
    record.
    """
    tables_1 = np.zeros(1, TABLES)
    stages: list[tuple[float, ...]] = []
    for (weapon, move_type), move in rows.items():
        tables_1["moves"][0, weapon, move_type] = _move_row(move, len(stages))
        stages += [_stage_row(stage) for stage in move.stages]
    tables_1["stages"][0, : len(stages)] = stages
    return tables_1
