"""Defines tactics that several scripted bots share: moving, returning to the stage, and striking.

`me` and `opponent` are records of layout.PLAYER.
"""

from __future__ import annotations

from typing import Any, Final

from league.games.brawl import moves, rules
from league.games.brawl.compiling import inner
from league.games.brawl.layout import PLACES, SOLIDS

EDGE_MARGIN: Final = 0.6
"""Distance that a bot keeps from an edge, in units."""
DIVE_MARGIN: Final = 1.2
ARRIVED: Final = 0.25


@inner
def walk(direction: float) -> int:
    """Returns the key for walking in a direction, or 0 (no key) for direction 0."""
    if direction == 0.0:
        return 0
    return rules.RIGHT if direction > 0.0 else rules.LEFT


@inner
def ground_toward(x: float, stage: Any) -> int:
    """Returns the number of the ground on the side of `x`. The middle counts as left."""
    for r in range(SOLIDS):
        if (stage.solids[r, 0] + stage.solids[r, 2] > 0.0) == (x > 0.0):
            return r
    return 0


@inner
def is_off_stage(player: Any, stage: Any) -> bool:
    """Returns whether the player is in the air with no ground below."""
    if player.grounded:
        return False
    for r in range(SOLIDS):
        inside = stage.solids[r, 0] - 0.3 < player.x < stage.solids[r, 2] + 0.3
        if inside and player.y < stage.solids[r, 1]:
            return False
    return True


@inner
def back_on_stage(me: Any, goal_x: float, frame: int, stage: Any) -> int:
    """Returns the keys that take a player back to a ground from over the pit or outside the stage.

    The bot uses all its jumps, and then the recovery.
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


@inner
def go(me: Any, goal_x: float, frame: int, stage: Any) -> int:
    """Returns the keys that take a player toward `goal_x`, with jumps over the pit."""
    if is_off_stage(me, stage):
        return back_on_stage(me, goal_x, frame, stage)
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


@inner
def reach_of(me: Any) -> float:
    """Returns the distance at which the weapon's sideways light attack hits a body, in units."""
    return 1.2 if me.weapon == moves.UNARMED else 2.1


@inner
def is_in_reach(me: Any, opponent: Any) -> bool:
    if opponent.state == rules.KO:
        return False
    return abs(opponent.x - me.x) < reach_of(me) and abs(opponent.y - me.y) < 0.9


@inner
def blow(me: Any, opponent: Any, stage: Any) -> int:
    """Returns the keys of a light attack that reaches the opponent, or 0 if no attack reaches it.

    The attack may be a dive, a downward attack from the air. A dive also moves forward, so the bot
    doesn't dive near an edge.
    """
    if opponent.state == rules.KO:
        return 0
    dx, dy = opponent.x - me.x, opponent.y - me.y
    if is_in_reach(me, opponent):
        return walk(dx) | rules.LIGHT
    ends_on_ground = stage.solids[0, 0] + DIVE_MARGIN < abs(me.x) < stage.solids[0, 2] - DIVE_MARGIN
    if abs(dx) < 0.9 and not me.grounded and 0.0 < dy < 1.6 and ends_on_ground:
        return rules.DOWN | rules.LIGHT
    return 0


@inner
def leap(me: Any, opponent: Any, frame: int) -> int:
    """Returns the jump key if the opponent is near and higher, or 0."""
    higher = opponent.y < me.y - 1.0 and abs(opponent.x - me.x) < 3.0
    return rules.JUMP if higher and frame % 2 == 0 and (me.grounded or me.vy > 0.0) else 0


@inner
def nearest_weapon(me: Any, match: Any) -> int:
    """Returns the number of the place (weapons.py) with the horizontally nearest weapon, or -1."""
    nearest, least = -1, 1e9
    for p in range(PLACES):
        slot = match.weapons[p]
        if slot.type != moves.UNARMED and abs(slot.x - me.x) < least:
            nearest, least = p, abs(slot.x - me.x)
    return nearest
