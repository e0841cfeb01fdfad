"""Stages: solids, the moving platform's path, blast zone, spawns and where weapons come, in units
of the game (x to the right, y down).

Shape suffixes: P frames of the platform's period, 4 = (x, y, vx, vy).
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.brawl import layout
from league.games.brawl.rules import DT

SLOWEST: Final = 0.03
"""u/s of the platform at a waypoint, where it would else stand still."""
TURNS_WITHIN: Final = 0.1
"""Units from a waypoint within which the platform turns."""


def _leg(begin: float, length: float) -> list[float]:
    """Distances from a waypoint, frame by frame, until the platform is near enough to the other."""
    along = [begin]
    while along[-1] < length - TURNS_WITHIN:
        along.append(along[-1] + (math.sin(math.pi * along[-1] / length) + SLOWEST) * DT)
    return along


def _platform_path(start: tuple[float, float], end: tuple[float, float]) -> NDArray[np.float64]:
    """[P, 4] positions and velocities of a platform that goes to and fro, one row a frame.

    Its speed is sin(π·progress) + SLOWEST u/s, progress being its share of the way between the
    waypoints. The way back is the mirror image of the way there, so the loop closes exactly.
    """
    length = math.dist(start, end)
    first_leg = _leg(TURNS_WITHIN, length)
    leg = _leg(length - first_leg[-1], length)  # it turns a hair past the limit
    turn = leg[0]
    # Scaled by less than a per mille to end exactly as far from the waypoint as it began.
    there = turn + (np.array(leg[:-1]) - turn) * (length - 2 * turn) / (leg[-1] - turn)
    share_P = np.concatenate([there, length - there]) / length
    position_P2 = np.array(start) + share_P[:, None] * (np.array(end) - np.array(start))
    velocity_P2 = (np.roll(position_P2, -1, axis=0) - position_P2) / DT
    return np.concatenate([position_P2, velocity_P2], axis=1)


_SHARED: Final = {
    "platform_half_width": 1.0,
    "platform_half_height": 0.1,
    "blast_x": 14.0,
    "blast_y": 8.0,
    "spawn_x": 5.0,
    "spawn_y": 0.0,
    "spawner_near": 2.6,
    "spawner_far": 6.5,
}
STAGES: Final[dict[str, dict[str, Any]]] = {
    # The original's: the right ground lies two units higher than the left.
    "warehouse": {
        "solids": [[2.0, 0.85, 7.0, 5.0], [-7.0, 2.85, -2.0, 7.0]],
        "spawner_right_y": 0.7,
        "spawner_left_y": 2.7,
    },
    # Ours: both grounds at the middle height, the platform going straight up and down. Each half is
    # the other's mirror image, so a match and its reflection are played alike.
    "flat": {
        "solids": [[2.0, 1.85, 7.0, 6.0], [-7.0, 1.85, -2.0, 6.0]],
        "spawner_right_y": 1.7,
        "spawner_left_y": 1.7,
    },
}
_WAYPOINTS: Final = {
    "warehouse": ((1.0, 0.0), (-1.0, 2.0)),
    "flat": ((0.0, 2.0 - math.sqrt(8.0)), (0.0, 2.0)),
}
"""Where each stage's platform turns."""


def stage(name: str) -> NDArray[np.void]:
    """The stage called `name`, an array of one record of layout.STAGE; raises `ConfigError`."""
    if name not in STAGES:
        raise ConfigError(f"there is no stage {name!r}: choose one of {', '.join(sorted(STAGES))}")
    stage_1 = np.zeros(1, layout.STAGE)
    for field, value in (_SHARED | STAGES[name]).items():
        stage_1[field] = value
    stage_1["path"] = _platform_path(*_WAYPOINTS[name])
    return stage_1
