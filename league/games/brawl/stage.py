"""Stages as tables: solids, the moving platform's path, blast zone, spawns and where weapons come.

Shape suffixes: R rectangles, P frames of the platform's period, 4 = (left, top, right, bottom) for
rectangles and (x, y, vx, vy) for the path.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.brawl import layout
from league.games.brawl.rules import DT


class Stage(NamedTuple):
    """One stage in units of the game (x to the right, y down)."""

    solids_R4: NDArray[np.float64]
    path_P4: NDArray[np.float64]
    platform_half_width: float
    platform_half_height: float
    blast_x: float
    blast_y: float
    spawn_x: float
    spawn_y: float
    spawner_near: float  # x of weapons is drawn from near to far, on either side
    spawner_far: float
    spawner_right_y: float
    spawner_left_y: float


def _leg(begin: float, length: float, turn_within: float, slowest: float) -> list[float]:
    """Distances from a waypoint, frame by frame, until the platform is near enough to the other."""
    along = [begin]
    while along[-1] < length - turn_within:
        along.append(along[-1] + (math.sin(math.pi * along[-1] / length) + slowest) * DT)
    return along


def platform_path(
    start: tuple[float, float],
    end: tuple[float, float],
    *,
    leg_frames: int = layout.PLATFORM_PERIOD // 2,
    slowest: float = 0.03,
    turn_within: float = 0.1,
) -> NDArray[np.float64]:
    """[P, 4] positions and velocities of a platform that goes to and fro, one row a frame.

    Its speed is sin(π·progress) + slowest u/s, progress being its share of the way between the
    waypoints; it turns as soon as it is within `turn_within` of one. The way there takes
    `leg_frames` (raises ValueError when it does not); the way back is its mirror image, so the loop
    closes exactly.
    """
    length = math.dist(start, end)
    first_leg = _leg(turn_within, length, turn_within, slowest)
    # it turns a hair past the limit
    leg = _leg(length - first_leg[-1], length, turn_within, slowest)
    if len(leg) - 1 != leg_frames:
        raise ValueError(f"the platform takes {len(leg) - 1} frames for its way, not {leg_frames}")
    turn = leg[0]
    # Scaled by less than a per mille to end exactly as far from the waypoint as it began.
    there = turn + (np.array(leg[:-1]) - turn) * (length - 2 * turn) / (leg[-1] - turn)
    share_P = np.concatenate([there, length - there]) / length
    position_P2 = np.array(start) + share_P[:, None] * (np.array(end) - np.array(start))
    velocity_P2 = (np.roll(position_P2, -1, axis=0) - position_P2) / DT
    return np.ascontiguousarray(np.concatenate([position_P2, velocity_P2], axis=1))


def _warehouse() -> Stage:
    """The original's: the right ground lies two units higher than the left."""
    return Stage(
        solids_R4=np.array([[2.0, 0.85, 7.0, 5.0], [-7.0, 2.85, -2.0, 7.0]]),
        path_P4=platform_path((1.0, 0.0), (-1.0, 2.0)),
        platform_half_width=1.0,
        platform_half_height=0.1,
        blast_x=14.0,
        blast_y=8.0,
        spawn_x=5.0,
        spawn_y=0.0,
        spawner_near=2.6,
        spawner_far=6.5,
        spawner_right_y=0.7,
        spawner_left_y=2.7,
    )


def _flat() -> Stage:
    """Ours: the warehouse with both grounds at the middle height, the platform going straight up
    and down.

    Each half is the other's mirror image, so a match and its reflection are played alike.
    """
    return Stage(
        solids_R4=np.array([[2.0, 1.85, 7.0, 6.0], [-7.0, 1.85, -2.0, 6.0]]),
        path_P4=platform_path((0.0, 2.0 - math.sqrt(8.0)), (0.0, 2.0)),
        platform_half_width=1.0,
        platform_half_height=0.1,
        blast_x=14.0,
        blast_y=8.0,
        spawn_x=5.0,
        spawn_y=0.0,
        spawner_near=2.6,
        spawner_far=6.5,
        spawner_right_y=1.7,
        spawner_left_y=1.7,
    )


STAGES = {"warehouse": _warehouse, "flat": _flat}


def stage(name: str) -> Stage:
    """The stage called `name`; raises `ConfigError`."""
    if name not in STAGES:
        raise ConfigError(f"there is no stage {name!r}: choose one of {', '.join(sorted(STAGES))}")
    return STAGES[name]()


def stage_record(table: Stage) -> NDArray[np.void]:
    """The stage as the compiled step is given it: one record, in an array of one."""
    record_1 = np.zeros(1, layout.STAGE)
    record_1["solids"] = table.solids_R4
    record_1["path"] = table.path_P4
    for name in Stage._fields[2:]:
        record_1[name] = getattr(table, name)
    return record_1
