"""Defines the stages: grounds, the moving platform's path, blast zone, and spawns.

Units are the game's, with x to the right and y down. Shape suffixes: P frames of the platform's
period, 4 = (x, y, vx, vy).
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
"""Speed that is added to the platform's speed, in u/s, so that the platform reaches its turning
point.
"""
TURNS_WITHIN: Final = 0.1
"""Distance from a waypoint at which the platform turns, in units."""


def _platform_path(
    start: tuple[float, float], end: tuple[float, float], loop: str
) -> NDArray[np.float64]:
    """Returns the platform's positions and velocities in each frame of its round trip, [P, 4].

    The platform begins in the middle and moves toward `end`. Its speed is sin(π·progress) + SLOWEST
    u/s, where progress is the fraction of the way between the waypoints. With the loop `env.step`,
    the platform stops for a frame when it turns. The loop `run_match` updates the platform's speed
    twice a frame, so the platform turns at once. The original game (UTMIST's) integrates the speed
    in the same way. After P frames, the original's platform is back at the start to within 4e-6
    units.
    """
    stops = loop == "env.step"
    length = math.dist(start, end)
    along, speed, sign = length / 2.0, 0.0, 1.0
    rows = []
    for _ in range(layout.PLATFORM_PERIOD + (1 if stops else -1)):
        rows.append((along, speed))
        left = length - along if sign > 0.0 else along
        turns = left < TURNS_WITHIN
        if turns:
            speed, sign = 0.0, -sign
        if not (turns and stops):
            share = min(max(along / length, 0.0), 1.0)
            speed = sign * (math.sin(math.pi * share) + SLOWEST)
        along += speed * DT
    rows[0] = rows.pop()
    along_P, speed_P = np.array(rows).T
    way_2 = (np.array(end) - np.array(start)) / length
    return np.concatenate(
        [np.array(start) + along_P[:, None] * way_2, speed_P[:, None] * way_2], axis=1
    )


RULES: Final = ("ai2", "fair")
LOOPS: Final = ("run_match", "env.step")
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
    # The original's stage: the right ground is two units higher than the left ground.
    "warehouse": {
        "solids": [[2.0, 0.85, 7.0, 5.0], [-7.0, 2.85, -2.0, 7.0]],
        "spawner_right_y": 0.7,
        "spawner_left_y": 2.7,
    },
    # Our own stage: both grounds are at the middle height, and the platform moves straight up and
    # down. The stage is symmetric, so a match and its mirror image are equivalent.
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


def stage(
    stage: str = "warehouse",
    rules: str = "ai2",
    variation: float = 0.0,
    loop: str = "run_match",
    off_stage_starts: float = 0.0,
) -> NDArray[np.void]:
    """Returns a stage by its name.

    Args:
        stage: a name in `STAGES`.
        rules: a name in `RULES`.
        variation: 0 to 1 (variation.py).
        loop: a name in `LOOPS`.
        off_stage_starts: 0 to 1 (variation.py).

    Raises:
        ConfigError: an unknown name, or a number out of bounds.
    """
    if stage not in STAGES:
        raise ConfigError(f"there is no stage {stage!r}: choose one of {', '.join(sorted(STAGES))}")
    if rules not in RULES:
        raise ConfigError(f"there are no rules {rules!r}: choose one of {', '.join(RULES)}")
    if loop not in LOOPS:
        raise ConfigError(f"there is no loop {loop!r}: choose one of {', '.join(LOOPS)}")
    shares = {"variation": variation, "off_stage_starts": off_stage_starts}
    for name, share in shares.items():
        if not isinstance(share, int | float) or not 0.0 <= share <= 1.0:
            raise ConfigError(f"{name} = {share!r} can't be used: choose a number from 0 to 1")
    stage_1 = np.zeros(1, layout.STAGE)
    for name, share in shares.items():
        stage_1[name] = share
    stage_1["is_fair"] = rules == "fair"
    for field, value in (_SHARED | STAGES[stage]).items():
        stage_1[field] = value
    path_P4 = _platform_path(*_WAYPOINTS[stage], loop)
    stage_1["period"] = len(path_P4)
    stage_1["path"][0, : len(path_P4)] = path_P4
    return stage_1
