"""The moves: figures of 33 moves, and how they are packed for the compiled step.

A move is a list of powers and starts with the first. A power plays its casts one after the other,
then its recovery, then the power that follows after a hit or a miss, or the move ends. A cast has
start-up frames and frames in which its boxes hit. A change of balance is an edit of `MOVES`.

All figures are the original's (its attack files; docs/game.md), converted to our frames and units.
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

# Kinds of powers, as bits.
AT_ONCE: Final = 1
"""A hit starts the next power in the same frame."""
STEERED: Final = 2
"""The keys steer the attacker sideways."""
BRAKES: Final = 4
"""The attacker's sideways speed falls as in the air."""
HITS_AGAIN: Final = 8
"""Hits the player whom an earlier power of the move has hit, at any distance."""


class Change(NamedTuple):
    """What happens in one frame of a cast; x points forward, y down."""

    frame: int
    vx: float | None = None
    """The attacker's new speed; None keeps it."""
    vy: float | None = None
    damp: float = 1.0
    """What its sideways speed is multiplied with."""
    add: float = 0.0
    """What is added to its sideways speed."""
    target: tuple[float, float, float] | None = None
    """(x, y, rate): the victim is pulled toward this place by `rate` times the distance a second,
    and hits have no force.
    """
    victim_vy: float | None = None
    victim_at: tuple[float, float] | None = None
    """Where the victim is put."""


class Cast(NamedTuple):
    """`startup` frames, then `active` ones in which the boxes hit: each (x, y, width, height) of a
    capsule around a place in front of the attacker's middle.
    """

    startup: int
    active: int
    damage: int = 0
    fixed: int = 0
    variable: int = 0
    angle: int = 0  # degrees, 0 forward, 90 up
    boxes: tuple[tuple[float, float, float, float], ...] = ()
    changes: tuple[Change, ...] = ()
    point: tuple[float, float] | None = None
    """When this point gets below y = 1.54, the power for the ground follows."""


class Power(NamedTuple):
    """A part of a move. `hit`, `miss` and `ground` number the powers that may follow, -1 is none.

    A power with `charge` lasts as long as the key is held, `charge` + 2 frames at least.
    """

    casts: tuple[Cast, ...]
    recovery: int = 0
    stun: int = 0
    hit: int = -1
    miss: int = -1
    ground: int = -1
    charge: int = -1
    kind: int = 0
    on_hit: tuple[float, float] | None = None
    """The attacker's velocity after its first hit."""


# fmt: off
MOVES: Final[Mapping[tuple[int, int], tuple[Power, ...]]] = {
    (UNARMED, NLIGHT): (
        Power((
            Cast(2, 1, 3, 25, 0, 90, boxes=((0.4864, 0.0256, 0.576, 0.4224),), changes=(Change(0,
                 vy=0), Change(2, vx=0, target=(0.512, -0.256, 2)), Change(4, target=(0.512, -0.256,
                 2)))),
        ), stun=8, miss=1, on_hit=(0, 0)),
        Power((
            Cast(3, 3, 3, 20, 0, -85, boxes=((0.4736, -0.1856, 0.4736, 0.4608), (0.3264, -0.0512,
                 0.2816, 0.4736)), changes=(Change(0, target=(0.512, -0.256, 2)), Change(3,
                 target=(0.576, -0.128, 2)), Change(4, target=(0.576, -0.128, 2)))),
        ), stun=8, hit=2, miss=4, on_hit=(0, 0)),
        Power((
            Cast(3, 1, 3, 26, 0, 90, boxes=((0.3904, -0.0128, 0.5632, 0.832),), changes=(Change(0,
                 target=(0.576, -0.128, 2)), Change(1, target=(0.576, -0.128, 2)), Change(3,
                 target=(0.704, -0.256, 2)), Change(4, target=(0.704, -0.256, 2)))),
        ), stun=10, hit=3, miss=3, on_hit=(0, 0)),
        Power((
            Cast(1, 0, changes=(Change(1, vx=1),)),
            Cast(1, 0),
            Cast(1, 0, changes=(Change(1, vx=0.4),)),
            Cast(1, 2, 5, 52, 31, 30, boxes=((0.2496, 0.064, 0.7424, 0.3968),), changes=(Change(4,
                 vx=0),)),
        ), recovery=7, stun=11),
        Power((Cast(0, 0),), recovery=3),
    ),
    (UNARMED, DLIGHT): (
        Power((
            Cast(2, 1, changes=(Change(0, vy=0), Change(2, vx=6.75))),
            Cast(0, 4, 8, 45, 5, 90, boxes=((0.3968, 0.4416, 0.7936, 0.3584),), changes=(Change(2,
                 vx=3),)),
            Cast(0, 1, changes=(Change(0, vx=1),)),
        ), stun=15, hit=1, miss=2, kind=AT_ONCE),
        Power((Cast(0, 1, changes=(Change(0, vx=3),)),)),
        Power((
            Cast(0, 2, changes=(Change(0, vx=1), Change(1, vx=0.5), Change(4, vx=0))),
        ), recovery=4),
    ),
    (UNARMED, SLIGHT): (
        Power((
            Cast(1, 1, changes=(Change(0, vy=0), Change(1, vx=0))),
            Cast(1, 1, changes=(Change(1, vx=6.75), Change(2, vx=0))),
            Cast(0, 2, 13, 80, 20, 0, boxes=((0.4032, -0.0768, 0.9344, 0.3712),), changes=(Change(0,
                 vx=6.75),)),
        ), stun=9, hit=1, miss=2),
        Power((Cast(0, 0, changes=(Change(0, vx=6.75), Change(3, vx=4))),), recovery=6),
        Power((
            Cast(0, 0, changes=(Change(0, vx=6.75), Change(4, vx=4), Change(6, vx=2))),
        ), recovery=7),
    ),
    (UNARMED, NSIG): (
        Power((Cast(0, 0, changes=(Change(0, vy=0),)), Cast(36, 0)), miss=1, charge=5, kind=BRAKES),
        Power((
            Cast(2, 3, 20, 40, 46, 90, boxes=((0.3392, -0.2688, 0.2176, 0.896), (0.256, -0.5504,
                 0.2688, 0.832), (0.1728, 0, 0.2944, 0.6016))),
        ), recovery=7, stun=9, kind=BRAKES),
    ),
    (UNARMED, DSIG): (
        Power((Cast(0, 0, changes=(Change(0, vy=0),)), Cast(36, 0)), miss=1, charge=1, kind=BRAKES),
        Power((
            Cast(3, 1, 16, 40, 60, 10, boxes=((0.1728, 0.2816, 0.9216, 0.4352),)),
            Cast(0, 2, 16, 40, 60, 10, boxes=((0.2752, 0.2624, 0.9344, 0.64), (0.6912, 0.1536,
                 0.8064, 0.6016))),
            Cast(4, 1, 16, 40, 60, 170, boxes=((-0.384, 0.2688, 0.7296, 0.576), (-0.1664, 0.3456,
                 0.9984, 0.512))),
            Cast(0, 1, 16, 40, 60, 170, boxes=((-0.2944, 0.3776, 1.0624, 0.5376),)),
        ), recovery=7, stun=9, kind=BRAKES),
    ),
    (UNARMED, SSIG): (
        Power((Cast(0, 0, changes=(Change(0, vy=0),)), Cast(40, 0)), miss=1, charge=5, kind=BRAKES),
        Power((
            Cast(3, 4, 18, 45, 55, 0, boxes=((0.6144, -0.1728, 0.7424, 0.3072),), changes=(Change(3,
                 vx=6),)),
            Cast(0, 4, changes=(Change(0, vx=2),)),
        ), recovery=6, stun=9, kind=BRAKES),
    ),
    (UNARMED, NAIR): (
        Power((
            Cast(3, 2, 3, 40, 27, 0, boxes=((0.2944, 0.2944, 0.192, 0.192), (0.3776, 0.064, 0.448,
                 0.5376), (0.4032, -0.064, 0.4352, 0.6784)), changes=(Change(3, damp=0.4,
                 target=(0.448, -0.192, 2)),)),
        ), stun=8, miss=1, on_hit=(0, 1)),
        Power((
            Cast(4, 2, 3, 40, 28, 0, boxes=((0.2816, 0.2048, 0.384, 0.32), (0.48, 0.0256, 0.6016,
                 0.3456)), changes=(Change(0, damp=0.7, target=(0.448, -0.192, 2)), Change(1,
                 target=(0.448, -0.192, 2)), Change(4, target=(0.448, -0.192, 2)), Change(7,
                 target=(0.448, -0.192, 2)))),
        ), recovery=1, stun=10, hit=2, miss=3, on_hit=(0, 1)),
        Power((
            Cast(4, 2, 5, 71, 37, 45, boxes=((0.3264, 0.0512, 0.8576, 0.4224),), changes=(Change(0,
                 target=(0.448, -0.192, 2)), Change(1, target=(0.448, -0.192, 2)), Change(4, vx=-1,
                 vy=0), Change(8, vx=-0.2, vy=0))),
        ), recovery=7, stun=9),
        Power((Cast(0, 0),), recovery=4),
    ),
    (UNARMED, DAIR): (
        Power((
            Cast(2, 0, changes=(Change(0, vx=0, vy=0),)),
            Cast(2, 8, 16, 65, 5, 0, boxes=((0.1344, 0.2112, 0.192, 0.192), (0.1728, 0.256, 0.2176,
                 0.2944), (0.3072, 0.4416, 0.2816, 0.3072)), changes=(Change(0, vx=5.6569,
                 vy=5.6569),), point=(0.384, 0.5248)),
        ), stun=9, hit=1, miss=1, ground=2),
        Power((Cast(2, 0, changes=(Change(0, vx=1.4142, vy=1.4142),)),), recovery=6, stun=9),
        Power((Cast(1, 0),), recovery=7, stun=9),
    ),
    (UNARMED, SAIR): (
        Power((
            Cast(6, 1, 13, 45, 40, 0, boxes=((0.5312, 0.16, 0.512, 0.2688), (0.8, 0.3392, 0.3584,
                 0.3072)), changes=(Change(6, vx=3.8),)),
            Cast(0, 1, 13, 45, 37, 0, boxes=((0.5888, 0.16, 0.384, 0.2688), (0.8, 0.3392, 0.3584,
                 0.3072))),
            Cast(0, 1, 13, 45, 36, 0, boxes=((0.8512, 0.384, 0.2432, 0.2176),)),
        ), stun=8, hit=1, miss=2),
        Power((Cast(0, 0),), recovery=4),
        Power((Cast(0, 0),), recovery=7),
    ),
    (UNARMED, RECOVERY): (
        Power((
            Cast(5, 1, 15, 55, 40, 80, boxes=((0.32, -0.2688, 0.2176, 0.7424), (0.2368, -0.5184,
                 0.2304, 0.7168), (0.1472, -0.768, 0.2176, 0.3328), (0.224, -0.1472, 0.2176, 0.32)),
                 changes=(Change(5, vx=2.0521, vy=-5.6382),)),
            Cast(0, 1, 15, 55, 40, 80, boxes=((0.32, -0.3008, 0.2176, 0.6784), (0.2368, -0.5184,
                 0.2304, 0.7168), (0.1472, -0.768, 0.2176, 0.3328))),
            Cast(0, 1, 15, 55, 40, 80, boxes=((0.32, -0.384, 0.2176, 0.512), (0.2368, -0.5888,
                 0.2304, 0.5632), (0.1472, -0.7424, 0.2176, 0.3328))),
            Cast(0, 2),
        ), stun=12, hit=1, miss=2),
        Power((Cast(0, 0, changes=(Change(0, vx=2.0521, vy=-5.6382),)),), recovery=5),
        Power((Cast(0, 0, changes=(Change(0, vx=2.0521, vy=-5.6382),)),), recovery=7),
    ),
    (UNARMED, GROUNDPOUND): (
        Power((
            Cast(7, 1, changes=(Change(7, vx=0, vy=0),)),
            Cast(0, 19, 17, 48, 46, -90, boxes=((-0.0512, 0.544, 0.3072, 0.64),), changes=(Change(0,
                 vx=0, vy=6),), point=(-0.0512, 0.544)),
        ), stun=9, hit=1, miss=2, ground=3, kind=AT_ONCE),
        Power((Cast(1, 0, changes=(Change(1, vx=0, vy=-3),)),), recovery=7, stun=9),
        Power((Cast(0, 0, changes=(Change(0, vx=0, vy=0),)),), recovery=2, stun=9),
        Power((
            Cast(0, 1, 17, 48, 46, 0, boxes=((0.032, 0.2752, 0.6272, 0.4736),)),
            Cast(0, 3),
        ), recovery=5, stun=9),
    ),
    (SPEAR, NLIGHT): (
        Power((
            Cast(3, 1, 4, 40, 0, 0, boxes=((1.28, -0.0896, 0.8832, 0.3328),), changes=(Change(3,
                 damp=0.5, target=(0.96, -0.5376, 2), victim_vy=0),)),
            Cast(0, 1, 4, 40, 0, 0, boxes=((1.28, -0.096, 0.8704, 0.3712),), changes=(Change(0,
                 damp=0.5, victim_vy=0),)),
        ), stun=8, hit=1, miss=1),
        Power((
            Cast(2, 2, 5, 40, 0, 0, boxes=((1.28, 0.2624, 0.7424, 0.3712),), changes=(Change(2,
                 target=(1.344, -0.5376, 2), victim_vy=0),)),
        ), stun=8, hit=2, miss=2),
        Power((
            Cast(2, 1, 5, 67, 5, 0, boxes=((1.472, 0.1024, 0.7424, 0.3584),), changes=(Change(2,
                 vx=1, victim_vy=0),)),
        ), stun=8, hit=3, miss=4),
        Power((Cast(0, 0),), recovery=6),
        Power((Cast(0, 0),), recovery=7),
    ),
    (SPEAR, DLIGHT): (
        Power((
            Cast(4, 0, changes=(Change(4, vy=-15, add=12),)),
            Cast(0, 0, 1, 70, 0, 55, boxes=((0.7552, -0.4992, 0.4352, 0.5376), (0.5824, -0.2432,
                 0.576, 0.3072))),
            Cast(0, 0, 1, 70, 0, 55, boxes=((0.8128, -0.4992, 0.3584, 0.7552), (0.64, -0.2432,
                 0.4864, 0.4992), (0.48, -0.0128, 0.4992, 0.4864)), changes=(Change(0, vy=-5,
                 add=-9),)),
            Cast(0, 1, 1, 70, 0, 55, boxes=((0.8128, -0.4992, 0.3584, 0.7552), (0.64, -0.2432,
                 0.4864, 0.4992), (0.48, -0.0128, 0.4992, 0.4864)), changes=(Change(0, damp=0.5),)),
            Cast(0, 1, 3, 40, 0, 55, boxes=((0.6784, -0.6144, 0.5632, 0.256), (0.6272, -0.544,
                 0.7424, 0.4224))),
        ), stun=12, hit=1, miss=3),
        Power((
            Cast(0, 3, changes=(Change(4, vx=5, vy=-2, target=(0.8128, -0.4992, 2)),)),
            Cast(0, 2, 2, 55, 0, 45, boxes=((0.9536, -0.2368, 0.192, 0.192), (0.5888, -0.1088,
                 0.8832, 0.384), (0.3584, 0.0832, 0.6528, 0.3968)), changes=(Change(1, vx=1, vy=-2,
                 target=(1.28, -3.84, 2)),)),
        ), stun=12, hit=2, miss=2),
        Power((
            Cast(0, 4),
            Cast(0, 1, 3, 48, 0, 0, boxes=((1.1584, -0.2112, 1.1776, 1.0112), (0.6784, -0.544,
                 1.1008, 0.4096)), changes=(Change(0, vx=1, vy=-2, target=(0.8128, -3.2, 2)),)),
            Cast(0, 1, 3, 48, 0, 0, boxes=((1.1584, -0.2112, 1.1776, 1.0112), (0.6784, -0.544,
                 1.1008, 0.4096))),
        ), recovery=4, stun=12),
        Power((Cast(0, 0, changes=(Change(0, vx=0.5),)),), recovery=11),
    ),
    (SPEAR, SLIGHT): (
        Power((
            Cast(1, 0, changes=(Change(1, vx=5), Change(4, damp=0.1))),
            Cast(4, 1, 8, 70, 0, 55, boxes=((1.2288, -0.1216, 0.256, 0.1536), (0.9856, -0.1216,
                 0.5504, 0.3072), (0.8256, -0.1408, 0.4608, 0.4224), (0.512, -0.2176, 0.576, 0.448),
                 (0.1408, -0.2816, 0.704, 0.4352)), changes=(Change(1, vx=2, target=(0.064, 0.064,
                 2)),)),
            Cast(0, 1, 8, 90, 0, 55, boxes=((0.7488, 0.1216, 1.6, 0.4224), (1.0432, 0.1152, 0.832,
                 0.6784), (0.6784, 0.0768, 1.1264, 0.8576), (0.4032, -0.1472, 0.6912, 0.512))),
        ), stun=9, hit=1, miss=1),
        Power((
            Cast(4, 0, changes=(Change(4, vx=5),)),
            Cast(1, 1, 7, 110, 0, 55, boxes=((0.6336, -0.4096, 1.2672, 1.3696), (0.9472, -0.5632,
                 1.3568, 1.2032), (1.3632, -0.64, 1.0368, 0.9344), (1.7536, -0.736, 0.4224,
                 0.5248)), changes=(Change(1, vx=1, target=(1.28, -3.84, 2)),)),
            Cast(4, 0),
        ), stun=9, hit=2, miss=3),
        Power((Cast(0, 0, changes=(Change(0, vx=0.5),)),), recovery=1),
        Power((Cast(0, 0, changes=(Change(0, vx=0.5),)),), recovery=3),
    ),
    (SPEAR, NSIG): (
        Power((
            Cast(0, 0, changes=(Change(0, vy=0),)),
            Cast(36, 0),
        ), stun=8, miss=1, charge=5, kind=BRAKES),
        Power((
            Cast(1, 1, changes=(Change(1, vx=8, vy=-16), Change(2, vx=1.5, vy=-5))),
            Cast(0, 1, 24, 50, 56, 70, boxes=((1.1904, 0.1536, 0.3712, 0.3584), (1.2992, -0.1856,
                 0.6016, 0.512))),
            Cast(0, 1, 24, 50, 56, 70, boxes=((1.3824, -0.384, 0.6912, 0.9472), (1.2032, -0.832,
                 0.8448, 0.832), (0.864, -0.992, 0.8832, 0.7808), (0.3712, -1.088, 0.9728, 0.6528),
                 (-0.16, -0.992, 0.576, 0.5376))),
            Cast(0, 1, 24, 50, 56, 70, boxes=((0.7744, -1.024, 0.704, 0.576), (0.4288, -0.992,
                 0.9344, 0.6528), (-0.064, -0.9472, 0.4864, 0.6016), (-0.352, -0.896, 0.3456,
                 0.576))),
            Cast(0, 2),
            Cast(0, 5),
        ), recovery=4, stun=8, kind=BRAKES),
    ),
    (SPEAR, DSIG): (
        Power((
            Cast(0, 8, changes=(Change(0, vx=-10, vy=0), Change(5, vx=-7), Change(7, vx=-2))),
            Cast(0, 0, changes=(Change(0, vx=0),)),
            Cast(26, 0),
        ), stun=8, miss=1, charge=6, kind=BRAKES),
        Power((
            Cast(0, 0, changes=(Change(0, vx=10, vy=-8),)),
            Cast(0, 6, changes=(Change(0, vx=4, vy=-4), Change(4, vx=1, vy=0.5))),
        ), miss=2, kind=BRAKES),
        Power((
            Cast(0, 1, changes=(Change(0, vx=0.7, vy=6),)),
            Cast(0, 2, 27, 65, 52, 0, boxes=((0.2304, -1.28, 0.192, 0.192), (0.5696, -1.2032,
                 0.5376, 0.32), (0.928, -1.088, 0.5888, 0.384), (1.2416, -0.6336, 0.64, 1.2672),
                 (1.4272, -0.2048, 0.9216, 1.536), (1.664, 0.4672, 0.7296, 0.2816))),
            Cast(0, 1, 27, 65, 52, 0, boxes=((1.3248, -0.96, 0.7552, 0.4992), (1.5744, -0.128,
                 0.9216, 1.4208), (1.7216, 0.4672, 0.6784, 0.192))),
            Cast(7, 1),
        ), recovery=4, stun=7, kind=BRAKES),
    ),
    (SPEAR, SSIG): (
        Power((
            Cast(0, 0, changes=(Change(0, vy=0),)),
            Cast(36, 0),
        ), stun=8, miss=1, charge=2, kind=BRAKES),
        Power((
            Cast(0, 0, changes=(Change(0, vx=10),)),
            Cast(0, 2, changes=(Change(0, vx=1, vy=-9), Change(2, vx=1, vy=-1))),
            Cast(0, 5, changes=(Change(0, vx=9),)),
        ), stun=8, miss=2, kind=BRAKES),
        Power((
            Cast(1, 3, 25, 72, 54, 0, boxes=((1.0816, 0.0384, 1.2416, 0.3584), (1.4976, 0.2496,
                 1.0496, 0.4864), (1.8048, 0.3072, 1.1136, 0.3712)), changes=(Change(1, vx=11),)),
            Cast(0, 3, changes=(Change(1, vx=5),)),
        ), stun=8, kind=BRAKES),
    ),
    (SPEAR, NAIR): (
        Power((
            Cast(7, 3, 12, 44, 0, 0, boxes=((0.2752, -0.0896, 1.8176, 1.8176),), changes=(Change(7,
                 target=(0, 0, 20)),)),
        ), stun=11, hit=1, miss=1, kind=STEERED),
        Power((
            Cast(0, 0, 3, 100, 10, 90, boxes=((0.224, -0.0768, 1.8176, 1.8176),)),
            Cast(0, 0, 0, 0, 0, 90),
        ), recovery=8, stun=13, kind=STEERED | HITS_AGAIN),
    ),
    (SPEAR, DAIR): (
        Power((
            Cast(3, 1),
            Cast(0, 0),
            Cast(0, 2, 13, 49, 28, 0, boxes=((0.352, 1.0368, 0.192, 0.192), (0.3008, 1.2928, 0.192,
                 0.4224), (0.1152, 1.632, 0.3456, 0.5504)), changes=(Change(0, vy=5), Change(2,
                 vy=1))),
        ), stun=5, hit=1, miss=2, kind=STEERED),
        Power((Cast(0, 0, changes=(Change(0, vx=2, vy=-8),)),), recovery=8, kind=STEERED),
        Power((Cast(0, 3),), recovery=7, kind=STEERED),
    ),
    (SPEAR, SAIR): (
        Power((
            Cast(6, 1, 17, 45, 42, 0, boxes=((1.5232, -0.16, 0.3456, 0.3712), (1.6192, -0.032,
                 0.4096, 0.4352), (1.7472, 0.1408, 0.4352, 0.512), (1.8496, 0.2688, 0.384, 0.5248),
                 (1.9648, 0.4032, 0.4096, 0.3584), (2.0416, 0.5056, 0.3584, 0.128))),
        ), stun=11, hit=1, miss=2, kind=STEERED),
        Power((Cast(0, 0),), recovery=7, kind=STEERED),
        Power((Cast(0, 0),), recovery=11, kind=STEERED),
    ),
    (SPEAR, RECOVERY): (
        Power((
            Cast(7, 4, 18, 61, 44, 90, boxes=((0.352, -0.576, 2.112, 0.2688),), changes=(Change(5,
                 vx=0, vy=-10),)),
            Cast(0, 3, 18, 61, 38, 90, boxes=((0.352, -0.5312, 2.112, 0.3584),)),
            Cast(0, 0),
        ), stun=12, hit=1, miss=2, kind=STEERED),
        Power((Cast(0, 0),), recovery=7, kind=STEERED),
        Power((Cast(0, 0),), recovery=9, kind=STEERED),
    ),
    (SPEAR, GROUNDPOUND): (
        Power((
            Cast(8, 0, 18, 53, 42, 0, boxes=((0, 0.2944, 1.28, 0.2688),), changes=(Change(8, vx=0,
                 vy=6),)),
            Cast(0, 18, 18, 53, 42, 0, boxes=((-0.064, 0.2944, 2.496, 0.2688),), changes=(Change(0,
                 vx=0, vy=6),), point=(-0.0896, 0.2944)),
        ), stun=11, hit=2, miss=2, ground=1),
        Power((Cast(4, 0),), recovery=9),
        Power((Cast(0, 0),), recovery=9),
    ),
    (HAMMER, NLIGHT): (
        Power((
            Cast(3, 3, 5, 50, 0, 0, boxes=((0.5312, -0.0256, 0.6272, 0.3072), (0.6784, -0.1152,
                 0.32, 0.192)), changes=(Change(0, damp=0.9), Change(3, vx=6, vy=0, target=(1.28,
                 -0.448, 2)), Change(4, damp=0.4, target=(1.28, -0.448, 2)), Change(6, damp=0,
                 target=(1.28, -0.448, 2)))),
        ), recovery=2, stun=10, hit=1, miss=1),
        Power((
            Cast(2, 3, 5, 50, 0, 0, boxes=((0.8384, 0.0512, 0.6272, 0.32), (1.0432, -0.0768, 0.192,
                 0.192)), changes=(Change(2, vx=6, vy=0, target=(1.312, -0.96, 2)), Change(3,
                 damp=0.5, target=(1.312, -0.96, 2)), Change(5, damp=0.2, target=(1.312, -0.96,
                 2)))),
        ), stun=13, hit=2, miss=4),
        Power((Cast(0, 0),), recovery=3, hit=3, miss=3),
        Power((
            Cast(4, 1, 9, 65, 45, 0, boxes=((0.7552, -0.832, 0.8704, 0.4864), (1.2096, -0.64, 0.576,
                 0.64), (1.4592, -0.3648, 0.384, 0.9984), (1.5936, 0.0192, 0.4352, 1.0624))),
        ), recovery=9, stun=16),
        Power((Cast(0, 0),), recovery=5),
    ),
    (HAMMER, DLIGHT): (
        Power((
            Cast(4, 1, 7, 35, 6, 90, boxes=((0.6272, 0.4672, 0.6016, 0.2048), (1.1328, 0.4224,
                 0.4864, 0.2944), (1.3632, 0.3008, 0.32, 0.2688)), changes=(Change(0, damp=0.8,
                 victim_vy=-30), Change(4, damp=0.3))),
            Cast(0, 1, 7, 35, 6, 90, boxes=((0.7936, 0.4608, 1.3696, 0.2944), (1.2864, 0.3776,
                 0.7168, 0.4224)), changes=(Change(0, damp=0.3),)),
        ), stun=13, hit=1, miss=2, kind=HITS_AGAIN),
        Power((Cast(0, 0),)),
        Power((Cast(3, 0),), recovery=9),
    ),
    (HAMMER, SLIGHT): (
        Power((
            Cast(4, 1, changes=(Change(4, vx=10, vy=0),)),
            Cast(0, 2, 17, 56, 8, 0, boxes=((1.216, -0.32, 1.3824, 1.2544), (1.3888, -0.2496,
                 1.1392, 1.408)), changes=(Change(0, vx=8, vy=0),)),
            Cast(0, 2, 15, 30, 8, 0, boxes=((1.2992, -0.32, 1.216, 1.2544), (1.3888, -0.2496,
                 1.1392, 1.408)), changes=(Change(0, vx=3, vy=0),)),
        ), stun=12, hit=1, miss=2),
        Power((Cast(0, 0),), recovery=6),
        Power((Cast(0, 0),), recovery=7),
    ),
    (HAMMER, NSIG): (
        Power((Cast(0, 0, changes=(Change(0, vy=0),)), Cast(35, 0)), miss=1, charge=4, kind=BRAKES),
        Power((
            Cast(0, 2),
            Cast(0, 1, 9, 80, 0, 85, boxes=((0.9408, -0.4416, 0.448, 1.0368),), changes=(Change(0,
                 target=(0.9408, -0.4416, 2)),)),
            Cast(0, 1, 9, 80, 0, 85, boxes=((0.864, -0.896, 0.4864, 0.64), (0.9536, -0.832, 0.3968,
                 0.4224)), changes=(Change(0, target=(0.928, -0.832, 2)),)),
            Cast(0, 1, 9, 80, 0, 85, boxes=((0.896, -0.96, 0.576, 0.5504),), changes=(Change(0,
                 target=(0.896, -0.96, 2)),)),
            Cast(0, 1, 9, 80, 0, 85, boxes=((0.864, -1.0112, 0.6144, 0.5888),), changes=(Change(0,
                 target=(0.864, -1.024, 2)),)),
            Cast(0, 2, 9, 80, 0, 85, boxes=((0.8384, -0.9984, 0.6144, 0.5888),), changes=(Change(0,
                 target=(0.832, -7.424, 2)),)),
        ), stun=12, miss=2, kind=BRAKES),
        Power((
            Cast(0, 1, 18, 60, 52, 0, boxes=((0.7872, -1.312, 0.9088, 0.6272), (0.5568, -0.96,
                 1.152, 0.5504), (0.9088, -0.8192, 0.3712, 0.8704), (1.4528, -1.024, 0.192, 0.192),
                 (1.44, -1.28, 0.192, 0.192), (1.2928, -1.536, 0.192, 0.192), (1.0816, -1.792,
                 0.192, 0.192), (0.6656, -1.76, 0.192, 0.192), (0.6016, -1.5872, 0.192, 0.192),
                 (0.3008, -1.632, 0.192, 0.192))),
            Cast(0, 1, 13, 55, 40, 0, boxes=((1.6832, -0.9728, 0.192, 0.192), (1.8752, -1.344,
                 0.192, 0.192), (1.504, -1.5872, 0.192, 0.192), (1.248, -1.8432, 0.192, 0.192),
                 (0.6272, -1.792, 0.192, 0.192), (0.576, -1.632, 0.192, 0.192), (0.192, -1.696,
                 0.192, 0.192))),
            Cast(0, 1),
        ), recovery=7, stun=12, kind=BRAKES),
    ),
    (HAMMER, DSIG): (
        Power((Cast(0, 0, changes=(Change(0, vy=0),)), Cast(35, 0)), miss=1, charge=2, kind=BRAKES),
        Power((
            Cast(1, 1),
            Cast(0, 1, changes=(Change(0, vx=5, vy=-5),)),
            Cast(0, 1, changes=(Change(0, vx=7, vy=-1),)),
            Cast(0, 1, changes=(Change(0, vx=7, vy=1),)),
            Cast(0, 1),
            Cast(0, 1, 2, 80, 0, 15, boxes=((0.1088, 0.1536, 0.5632, 0.5504),), changes=(Change(0,
                 vx=7),)),
            Cast(0, 10, 18, 80, 0, 15, boxes=((0.0768, 0.0576, 0.64, 0.7552),), changes=(Change(0,
                 vx=7),)),
            Cast(0, 0, 1, 90, 0, 15, boxes=((0.0896, 0.032, 0.5632, 0.7296),)),
        ), stun=17, miss=2),
        Power((Cast(0, 1, changes=(Change(0, vx=4),)),), stun=12, miss=3),
        Power((
            Cast(1, 4, changes=(Change(1, vx=1),)),
            Cast(0, 3, 12, 57, 54, 0, boxes=((1.2032, -0.3392, 0.6016, 0.4864), (1.2864, -0.1152,
                 0.64, 0.4352), (1.2992, 0.128, 0.7424, 0.448)), changes=(Change(0, vx=0.5),)),
            Cast(0, 1, changes=(Change(0, vy=0),)),
        ), recovery=11, stun=12),
    ),
    (HAMMER, SSIG): (
        Power((
            Cast(0, 0, changes=(Change(0, vy=0),)),
            Cast(5, 0),
            Cast(30, 0),
        ), miss=1, charge=5, kind=BRAKES),
        Power((
            Cast(0, 1, changes=(Change(0, vx=5),)),
            Cast(0, 1, changes=(Change(0, vx=5),)),
            Cast(1, 1),
            Cast(2, 1, 26, 65, 58, 15, boxes=((1.2992, 0.2048, 1.3568, 0.5888), (1.2032, -0.1728,
                 1.1264, 0.3968), (0.9536, -0.5056, 1.024, 0.4224), (0.7104, -0.7424, 0.9088,
                 0.3328), (0.5056, -0.9216, 0.7936, 0.2176), (0.3584, -1.0304, 0.7168, 0.2304)),
                 changes=(Change(0, vx=0),)),
            Cast(0, 1, 26, 65, 58, 15, boxes=((1.4528, 0.4096, 1.2416, 0.192), (1.4336, 0.2048,
                 1.472, 0.512), (1.3696, -0.1408, 1.2032, 0.2816))),
            Cast(7, 1, changes=(Change(7, vx=-3),)),
            Cast(2, 1, changes=(Change(2, vx=-0.5),)),
            Cast(1, 1, changes=(Change(1, vx=0),)),
            Cast(2, 1),
        ), stun=12, kind=BRAKES),
    ),
    (HAMMER, NAIR): (
        Power((
            Cast(8, 1, 20, 40, 50, 80, boxes=((0.4608, -0.2432, 0.2432, 0.1792), (0.512, -0.4416,
                 0.3584, 0.2688), (0.576, -0.6272, 0.5248, 0.3968), (0.6656, -0.8832, 0.4096,
                 0.6144), (0.736, -1.184, 0.4608, 0.64), (0.7744, -1.44, 0.4096, 0.3456))),
            Cast(0, 1, 20, 40, 50, 80, boxes=((-0.5632, -1.344, 0.192, 0.2688), (-0.3264, -1.44,
                 0.4352, 0.2944), (0.2624, -1.504, 1.2032, 0.3712), (0.2816, -1.632, 0.704, 0.3328),
                 (0.6976, -1.44, 0.4096, 0.2688)), changes=(Change(0, damp=0.4),)),
            Cast(0, 0, 0, 0, 0, 80, boxes=((1.2992, -0.32, 0.576, 0.6144), (1.3888, -0.2496, 0.4992,
                 0.768)), changes=(Change(0, damp=0.4),)),
        ), stun=14, hit=1, miss=2),
        Power((Cast(0, 0),), recovery=6),
        Power((Cast(0, 0),), recovery=8),
    ),
    (HAMMER, DAIR): (
        Power((
            Cast(5, 1, 2, 1, 0, 0, boxes=((-0.5824, 0.6848, 0.4352, 0.5248),), changes=(Change(5,
                 damp=0.5),)),
            Cast(0, 1, 2, 1, 0, 0, boxes=((-0.4032, 0.0896, 0.4736, 0.4352), (-0.288, 1.0112,
                 0.3328, 0.4608))),
            Cast(0, 1, 2, 1, 0, 0, boxes=((-0.128, 0.96, 0.512, 0.3584), (-0.16, 1.0816, 0.576,
                 0.448))),
            Cast(0, 1, 2, 1, 0, 0, boxes=((0.128, 0.9408, 0.4992, 0.3328), (0.096, 1.088, 0.512,
                 0.32)), changes=(Change(5, damp=0.5),)),
            Cast(0, 1, 2, 1, 0, 0, boxes=((0.256, 0.9792, 0.3712, 0.4608), (0.288, 1.024, 0.4608,
                 0.3456), (0.128, 1.0752, 0.3328, 0.3328))),
        ), stun=9, hit=1, miss=3, kind=AT_ONCE),
        Power((
            Cast(0, 0, changes=(Change(0, target=(-0.128, 0.96, 3)), Change(1, target=(0.064, 0.192,
                 3)), Change(2, target=(0.064, 0.192, 3)), Change(4, target=(0.64, -0.768, 2)),
                 Change(6, target=(1.28, -1.408, 2)), Change(7, victim_at=(0.64, -1.28)))),
        ), recovery=4, stun=9, hit=2, miss=2),
        Power((Cast(0, 0, 4, 45, 48, 90),), recovery=4, stun=12, kind=HITS_AGAIN),
        Power((Cast(0, 0),), recovery=8),
    ),
    (HAMMER, SAIR): (
        Power((
            Cast(8, 1, 20, 58, 44, 0, boxes=((0.6784, 0.224, 0.6144, 0.192), (1.2672, 0.2176, 0.768,
                 0.2432), (1.6768, 0.0512, 0.3456, 0.512)), changes=(Change(8, vx=6, vy=0),)),
            Cast(0, 1, 18, 52, 42, 0, boxes=((1.4336, -0.1024, 0.5632, 0.4096), (1.1712, -0.3456,
                 0.4096, 0.2176), (0.9216, -0.4608, 0.3456, 0.1792)), changes=(Change(0,
                 damp=0.7),)),
            Cast(0, 0, 0, 0, 0, 0, boxes=((1.2992, -0.32, 0.576, 0.6144), (1.3888, -0.2496, 0.4992,
                 0.768)), changes=(Change(0, damp=0.2),)),
        ), stun=12, hit=1, miss=2),
        Power((Cast(0, 0),), recovery=7),
        Power((Cast(0, 0),), recovery=9),
    ),
    (HAMMER, RECOVERY): (
        Power((
            Cast(6, 2, 2, 1, 0, 0, boxes=((-0.5824, -1.024, 0.576, 0.768), (-0.3712, -1.12, 0.896,
                 0.512)), changes=(Change(5, damp=0.5, vy=-8),)),
            Cast(0, 1),
        ), stun=12, hit=1, miss=3, kind=AT_ONCE | STEERED),
        Power((
            Cast(0, 0, changes=(Change(0, target=(-0.128, -0.96, 6)), Change(1, target=(-0.128,
                 -0.96, 6)), Change(2, target=(-0.128, -0.96, 6)), Change(4, target=(-0.128, -0.96,
                 6)), Change(6, target=(-0.128, -0.96, 6)), Change(8, target=(-0.128, -0.96, 6)),
                 Change(9, victim_at=(0.064, 0.384)))),
        ), recovery=6, stun=12, hit=2, miss=2, kind=STEERED),
        Power((Cast(0, 0, 13, 45, 29, -80),), recovery=4, stun=8, kind=STEERED | HITS_AGAIN),
        Power((Cast(0, 0),), recovery=10, kind=STEERED),
    ),
    (HAMMER, GROUNDPOUND): (
        Power((
            Cast(7, 4, changes=(Change(5, damp=0.5),)),
            Cast(0, 16, 25, 48, 55, 0, boxes=((-0.0832, 0.4608, 0.5888, 0.6016), (-0.0896, 0.8832,
                 0.8448, 0.8448)), changes=(Change(0, vx=0, vy=6),), point=(-0.0896, 0.8832)),
        ), stun=11, hit=1, miss=3, ground=2, kind=AT_ONCE),
        Power((
            Cast(0, 1, 25, 48, 55, 0, boxes=((-0.0512, 0.2432, 0.3968, 0.3328), (-0.032, 0.4544,
                 0.704, 0.3328)), changes=(Change(0, vx=0, vy=0),)),
            Cast(0, 1),
            Cast(0, 2, changes=(Change(0, vx=0, vy=-4),)),
        ), recovery=8, stun=11),
        Power((Cast(6, 0),), recovery=8),
        Power((Cast(0, 0),), recovery=6),
    ),
}
# fmt: on

POWER_ROW = np.dtype(
    [
        *((name, np.int32) for name in ("first_cast", "casts", "recovery", "stun")),
        *((name, np.int32) for name in ("hit", "miss", "ground", "is_last", "kind")),
        *((name, np.int32) for name in ("charge", "charge_until", "stops_on_hit")),
        *((name, np.float64) for name in ("on_hit_vx", "on_hit_vy")),
    ],
    align=True,
)
CAST_ROW = np.dtype(
    [
        *((name, np.int32) for name in ("startup", "ends", "has_point")),
        *((name, np.int32) for name in ("first_box", "boxes", "first_change", "changes")),
        *((name, np.float64) for name in ("damage", "fixed", "variable")),
        *((name, np.float64) for name in ("forward", "down", "point_x", "point_y")),
    ],
    align=True,
)
BOX_ROW = np.dtype([(name, np.float64) for name in ("x", "y", "width", "height")])
CHANGE_ROW = np.dtype(
    [
        *((name, np.int32) for name in ("frame", "has_target", "moves_victim")),
        # The new speed is factor * speed + shift; of a victim too.
        *((name, np.float64) for name in ("factor_x", "shift_x", "factor_y", "shift_y")),
        *((name, np.float64) for name in ("victim_factor_y", "victim_shift_y")),
        *((name, np.float64) for name in ("target_x", "target_y", "rate")),
        *((name, np.float64) for name in ("victim_x", "victim_y")),
    ],
    align=True,
)
TABLES = np.dtype(
    [
        ("first_power", np.int32, (len(WEAPON_NAMES), MOVE_TYPES)),
        ("powers", POWER_ROW, (128,)),
        ("casts", CAST_ROW, (256,)),
        ("boxes", BOX_ROW, (320,)),
        ("changes", CHANGE_ROW, (192,)),
    ],
    align=True,
)
"""All rows as the compiled step reads them."""


def _power_row(power: Power, first_power: int, first_cast: int) -> tuple[float, ...]:
    follows = (first_power + index if index >= 0 else -1 for index in power[3:6])
    vx, vy = power.on_hit or (0.0, 0.0)
    is_last = power.hit < 0 and power.miss < 0
    charge = (power.charge, power.casts[-1].startup, power.on_hit is not None)
    counts = (first_cast, len(power.casts), power.recovery, power.stun)
    return (*counts, *follows, is_last, power.kind, *charge, vx, vy)


def _cast_row(cast: Cast, first_box: int, first_change: int) -> tuple[float, ...]:
    angle = math.radians(cast.angle)
    frames = (cast.startup, cast.startup + cast.active, cast.point is not None)
    places = (first_box, len(cast.boxes), first_change, len(cast.changes))
    force = (cast.damage, cast.fixed, cast.variable, math.cos(angle), -math.sin(angle))
    return (*frames, *places, *force, *(cast.point or (0.0, 0.0)))


def _change_row(change: Change) -> tuple[float, ...]:
    kinds = (change.frame, change.target is not None, change.victim_at is not None)
    own_x = (change.damp, change.add) if change.vx is None else (0.0, change.vx + change.add)
    own_y = (1.0, 0.0) if change.vy is None else (0.0, change.vy)
    victim = (1.0, 0.0) if change.victim_vy is None else (0.0, change.victim_vy)
    places = (*(change.target or (0.0, 0.0, 0.0)), *(change.victim_at or (0.0, 0.0)))
    return (*kinds, *own_x, *own_y, *victim, *places)


def move_tables() -> NDArray[np.void]:
    """`MOVES`, packed for the compiled step: an array of one record of `TABLES`."""
    tables_1 = np.zeros(1, TABLES)
    powers: list[tuple[float, ...]] = []
    casts: list[tuple[float, ...]] = []
    boxes: list[tuple[float, ...]] = []
    changes: list[tuple[float, ...]] = []
    for (weapon, move_type), move in MOVES.items():
        first = tables_1["first_power"][0, weapon, move_type] = len(powers)
        for power in move:
            powers.append(_power_row(power, first, len(casts)))
            for cast in power.casts:
                casts.append(_cast_row(cast, len(boxes), len(changes)))
                boxes += cast.boxes
                changes += map(_change_row, cast.changes)
    for name, rows in (("powers", powers), ("casts", casts), ("boxes", boxes)):
        tables_1[name][0, : len(rows)] = rows
    tables_1["changes"][0, : len(changes)] = changes
    return tables_1
