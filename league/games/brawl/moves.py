"""Reads the 33 moves from moves.toml, which explains them, and packs them for the compiled step.

A move consists of powers, and a power consists of casts. A power plays its casts in order, and then
another power may follow. A move begins with its first power, and ends after a power that no other
power follows.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

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
"""Flag of a power (part of a move): its hit starts the next power in the same frame."""
STEERED: Final = 2
"""Flag of a power: the keys steer the attacker sideways."""
BRAKES: Final = 4
"""Flag of a power: the attacker's sideways speed falls as in the air."""
HITS_AGAIN: Final = 8
"""Flag of a power: if an earlier power has hit, this power hits too, at any distance."""


_KINDS: Final = {
    "at_once": AT_ONCE,
    "steered": STEERED,
    "brakes": BRAKES,
    "hits_again": HITS_AGAIN,
}


class Change(NamedTuple):
    """Describes a change of speeds and positions in a frame of a cast.

    Attributes:
        vx, vy: the attacker's new speed, or None to keep it.
        damp, add: the attacker's sideways speed is multiplied by `damp`, then `add` is added.
        target: (x, y, rate) of a pull on the victim, toward the position (x, y) relative to the
            attacker. The victim's speed changes by `rate` times the distance.
        victim_vy: the victim's new downward speed, or None to keep it.
        victim_at: the position relative to the attacker to which the victim is moved at once.
    """

    frame: int
    vx: float | None = None
    vy: float | None = None
    damp: float = 1.0
    add: float = 0.0
    target: Sequence[float] | None = None
    victim_vy: float | None = None
    victim_at: Sequence[float] | None = None


class Cast(NamedTuple):
    """Describes a part of a power: `startup` frames, and then `active` frames in which the boxes
    (x, y, width, height) hit.
    """

    startup: int
    active: int
    damage: int = 0
    fixed: int = 0
    variable: int = 0
    angle: int = 0
    boxes: tuple[tuple[float, float, float, float], ...] = ()
    changes: tuple[Change, ...] = ()
    point: Sequence[float] | None = None


class Power(NamedTuple):
    """Describes a part of a move.

    `hit`, `miss` and `ground` are numbers of powers of the same move: the power that follows after
    a hit, after no hit, or when the attacker comes near the ground. -1 means that there is no such
    power.
    """

    casts: tuple[Cast, ...]
    recovery: int = 0
    stun: int = 0
    hit: int = -1
    miss: int = -1
    ground: int = -1
    charge: int = -1
    kind: int = 0
    on_hit: Sequence[float] | None = None


def _cast(row: dict[str, Any]) -> Cast:
    boxes = tuple(tuple(box) for box in row.get("boxes", ()))
    changes = tuple(Change(**change) for change in row.get("changes", ()))
    return Cast(**row | {"boxes": boxes, "changes": changes})


def _power(row: dict[str, Any]) -> Power:
    kind = sum(_KINDS[name] for name in row.get("kind", ()))
    return Power(**row | {"casts": tuple(map(_cast, row["casts"])), "kind": kind})


@cache
def all_moves() -> Mapping[tuple[int, int], tuple[Power, ...]]:
    """Reads moves.toml. Returns the powers of each move, by (weapon, move type)."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return {
        (WEAPON_NAMES.index(weapon), NLIGHT + _NAMES.index(name)): tuple(map(_power, powers))
        for weapon, moves in tomllib.loads(text).items()
        for name, powers in moves.items()
    }


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
        # A new speed is factor * speed + shift. This holds for the victim's speed too.
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
"""All rows of the moves, in the layout that the compiled step reads."""


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
    """Packs all moves for the compiled step, into an array with a single record of `TABLES`."""
    tables_1 = np.zeros(1, TABLES)
    powers: list[tuple[float, ...]] = []
    casts: list[tuple[float, ...]] = []
    boxes: list[tuple[float, ...]] = []
    changes: list[tuple[float, ...]] = []
    for (weapon, move_type), move in all_moves().items():
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
