"""What the scripted characters have in common: getting somewhere without falling, reach, and blows.

Functions of the state that a frame begins with; they return key bits. `me` and `opponent` are
records of layout.PLAYER.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numba import njit

from league.games.brawl import moves, rules
from league.games.brawl.layout import SOLIDS
from league.games.brawl.random_stream import draw

EDGE_MARGIN: Final = 0.6
"""Units that a character keeps from an edge it stands at."""
ARRIVED: Final = 0.25
_SHIFT = np.uint64(11)
_TO_UNIT = 2.0**-53


@njit
def share(player: Any) -> float:
    """The next number in [0, 1) of the player's own stream."""
    return (draw(player) >> _SHIFT) * _TO_UNIT


@njit
def distance(me: Any, opponent: Any) -> float:
    dx, dy = opponent.x - me.x, opponent.y - me.y
    return math.sqrt(dx * dx + dy * dy)


@njit
def walk(direction: float) -> int:
    """The key that goes to this side, none for 0."""
    if direction == 0.0:
        return 0
    return rules.RIGHT if direction > 0.0 else rules.LEFT


@njit
def ground_toward(x: float, stage: Any) -> int:
    """Number of the solid that lies on the side of `x` (the middle counts to the left)."""
    for r in range(SOLIDS):
        if (stage.solids[r, 0] + stage.solids[r, 2] > 0.0) == (x > 0.0):
            return r
    return 0


@njit
def is_off_stage(player: Any, stage: Any) -> bool:
    """In the air with no ground below."""
    if player.grounded:
        return False
    for r in range(SOLIDS):
        inside = stage.solids[r, 0] - 0.3 < player.x < stage.solids[r, 2] + 0.3
        if inside and player.y < stage.solids[r, 1]:
            return False
    return True


@njit
def _back_on_stage(me: Any, goal_x: float, frame: int, stage: Any) -> int:
    """Keys of who has no ground below: to the ground that it wants, with all jumps and the
    recovery.
    """
    outside = abs(me.x) > stage.solids[0, 2]
    r = ground_toward(me.x if outside else goal_x, stage)
    inner, outer = stage.solids[r, 0] + EDGE_MARGIN, stage.solids[r, 2] - EDGE_MARGIN
    keys = walk(min(max(me.x, inner), outer) - me.x)
    low = me.y > stage.solids[r, 1] - 1.5
    if me.vy > 0.0 and low and frame % 2 == 0:
        if me.air_jumps > 0:
            keys |= rules.JUMP
        elif me.recoveries > 0:
            keys |= rules.HEAVY
    return keys


@njit
def go(me: Any, goal_x: float, frame: int, stage: Any) -> int:
    """Keys of the way to `goal_x`, over the pit when it lies between."""
    if is_off_stage(me, stage):
        return _back_on_stage(me, goal_x, frame, stage)
    limit = stage.solids[0, 2] - EDGE_MARGIN
    goal_x = min(max(goal_x, -limit), limit)
    if abs(goal_x - me.x) < ARRIVED:
        return 0
    keys = walk(goal_x - me.x)
    pit = stage.solids[0, 0]
    crosses = me.x * goal_x < 0.0 or abs(goal_x) < pit
    if crosses and abs(me.x) < pit + 1.0 and frame % 2 == 0 and (me.grounded or me.vy > 0.0):
        keys |= rules.JUMP
    return keys


@njit
def reach_of(me: Any) -> float:
    """Distance at which the weapon's side light meets a body, units."""
    return 1.2 if me.weapon == moves.UNARMED else 2.1


@njit
def is_in_reach(me: Any, opponent: Any) -> bool:
    if opponent.state == rules.KO:
        return False
    return abs(opponent.x - me.x) < reach_of(me) and abs(opponent.y - me.y) < 0.9


@njit
def blow(me: Any, opponent: Any) -> int:
    """The light attack that fits where the opponent is, 0 when none does."""
    if opponent.state == rules.KO:
        return 0
    dx, dy = opponent.x - me.x, opponent.y - me.y
    if is_in_reach(me, opponent):
        return walk(dx) | rules.LIGHT
    if abs(dx) < 0.9 and not me.grounded and 0.0 < dy < 1.6:
        return rules.DOWN | rules.LIGHT
    return 0
