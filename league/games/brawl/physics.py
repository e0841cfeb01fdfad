"""Bodies, ground and the moving platform: how a player gets from one frame's place to the next.

A player is a record of layout.PLAYER, `stage` and `match` records of layout.STAGE and
layout.MATCH; player and match are changed in place.
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit

from league.games.brawl import rules
from league.games.brawl.layout import PLATFORM_PERIOD, SOLIDS
from league.games.brawl.rules import DT, HALF_HEIGHT, HALF_WIDTH

_SKIN = 1e-6  # overlaps thinner than this are touches


@njit
def gap(one: Any, other: Any) -> float:
    """From the middle of one player to the other's, units."""
    dx, dy = one.x - other.x, one.y - other.y
    return math.sqrt(dx * dx + dy * dy)


@njit
def toward(value: float, target: float, step: float) -> float:
    """`value` moved by at most `step` toward `target`."""
    if value < target:
        return min(value + step, target)
    return max(value - step, target)


@njit
def _solid(stage: Any, r: int) -> tuple[float, float, float, float]:
    """(left, top, right, bottom) of the ground number `r`."""
    return stage.solids[r, 0], stage.solids[r, 1], stage.solids[r, 2], stage.solids[r, 3]


@njit
def _platform(stage: Any, match: Any) -> tuple[float, float, float, float]:
    """(left, top, right, bottom) of the platform."""
    w, h = stage.platform_half_width, stage.platform_half_height
    px, py = match.platform_x, match.platform_y
    return px - w, py - h, px + w, py + h


@njit
def _stopped_x(player: Any, to_x: float, box: tuple[float, float, float, float]) -> float:
    """How far to the side the body gets on its way to `to_x` before it meets the box."""
    left, top, right, bottom = box
    if player.y + HALF_HEIGHT <= top + _SKIN or player.y - HALF_HEIGHT >= bottom - _SKIN:
        return to_x
    if player.x + HALF_WIDTH <= left + _SKIN and to_x + HALF_WIDTH > left:
        return left - HALF_WIDTH
    if player.x - HALF_WIDTH >= right - _SKIN and to_x - HALF_WIDTH < right:
        return right + HALF_WIDTH
    return to_x


@njit
def _stopped_y(player: Any, to_y: float, box: tuple[float, float, float, float]) -> float:
    """How far up or down the body gets on its way to `to_y` before it meets the box."""
    left, top, right, bottom = box
    if player.x + HALF_WIDTH <= left + _SKIN or player.x - HALF_WIDTH >= right - _SKIN:
        return to_y
    if player.y + HALF_HEIGHT <= top + _SKIN and to_y + HALF_HEIGHT > top:
        return top - HALF_HEIGHT
    if player.y - HALF_HEIGHT >= bottom - _SKIN and to_y - HALF_HEIGHT < bottom:
        return bottom + HALF_HEIGHT
    return to_y


@njit
def _slide_x(player: Any, to_x: float, stage: Any, match: Any) -> float:
    """The x at which a sideways movement to `to_x` ends."""
    for r in range(SOLIDS):
        to_x = _stopped_x(player, to_x, _solid(stage, r))
    return _stopped_x(player, to_x, _platform(stage, match))


@njit
def _overlaps_solid(x: float, y: float, stage: Any) -> bool:
    for r in range(SOLIDS):
        left, top, right, bottom = _solid(stage, r)
        aside = x + HALF_WIDTH <= left + _SKIN or x - HALF_WIDTH >= right - _SKIN
        over_or_under = y + HALF_HEIGHT <= top + _SKIN or y - HALF_HEIGHT >= bottom - _SKIN
        if not (aside or over_or_under):
            return True
    return False


@njit
def _push_out(player: Any, stage: Any, match: Any) -> None:
    """Moves a body that the platform ran into out of it, the shortest way that no ground blocks."""
    reach_x = stage.platform_half_width + HALF_WIDTH
    reach_y = stage.platform_half_height + HALF_HEIGHT
    dx, dy = player.x - match.platform_x, player.y - match.platform_y
    if abs(dx) >= reach_x - _SKIN or abs(dy) >= reach_y - _SKIN:
        return
    side_x = match.platform_x + (reach_x if dx > 0 else -reach_x)
    side_y = match.platform_y + (reach_y if dy > 0 else -reach_y)
    other_x = match.platform_x - (reach_x if dx > 0 else -reach_x)
    sideways_is_shorter = reach_x - abs(dx) < reach_y - abs(dy)
    if sideways_is_shorter and not _overlaps_solid(side_x, player.y, stage):
        player.x = side_x
    elif not _overlaps_solid(player.x, side_y, stage):
        player.y = side_y
    elif not _overlaps_solid(side_x, player.y, stage):
        player.x = side_x
    elif not _overlaps_solid(other_x, player.y, stage):
        player.x = other_x


@njit
def move_platform(match: Any, stage: Any) -> None:
    """Puts the platform where it is in frame `match.frame`, with the velocity it continues with."""
    p = match.frame % PLATFORM_PERIOD
    match.platform_x, match.platform_y = stage.path[p, 0], stage.path[p, 1]
    match.platform_vx, match.platform_vy = stage.path[p, 2], stage.path[p, 3]


@njit
def ride(player: Any, stage: Any, match: Any, shift_x: float) -> None:
    """Carries who stands on the platform, pushes away who is in its way."""
    if player.state == rules.KO:
        return
    if player.on_platform:
        player.y = match.platform_y - stage.platform_half_height - HALF_HEIGHT
        player.x = _slide_x(player, player.x + shift_x, stage, match)
    else:
        _push_out(player, stage, match)


@njit
def _impact(speed: float, player: Any) -> float:
    """The speed after running into something: stunned bodies bounce, others stop."""
    if player.state == rules.STUN and abs(speed) > rules.BOUNCE_LEAST_SPEED:
        return -rules.BOUNCE * speed
    return 0.0


@njit
def move(player: Any, stage: Any, match: Any) -> None:
    """One frame of motion with collisions, axis by axis; notes what the player stands on."""
    if player.state == rules.KO:
        return
    to_x = player.x + player.vx * DT
    player.x = _slide_x(player, to_x, stage, match)
    if player.x != to_x:
        player.vx = _impact(player.vx, player)
    _fall(player, stage, match)


@njit
def _fall(player: Any, stage: Any, match: Any) -> None:
    to_y = player.y + player.vy * DT
    y = to_y
    for r in range(SOLIDS):
        y = _stopped_y(player, y, _solid(stage, r))
    on_solid = y
    y = _stopped_y(player, y, _platform(stage, match))
    stands = y != to_y and player.vy > 0.0
    player.y = y
    if y != to_y:
        player.vy = _impact(player.vy, player)
    stands = stands and player.vy >= 0.0
    if player.grounded and not stands:
        refresh_jumps(player)
    player.grounded = 1 if stands else 0
    player.on_platform = 1 if stands and y != on_solid else 0


@njit
def refresh_jumps(player: Any) -> None:
    """What every leaving of the ground gives back."""
    player.air_jumps = rules.AIR_JUMPS
    player.recoveries = rules.RECOVERIES
