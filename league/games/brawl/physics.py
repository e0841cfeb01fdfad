"""Bodies against the two grounds and the platform: how they get from one frame's place to the next.

The original leaves this to Chipmunk (pymunk 6.2.1), whose method for bodies that don't rotate is
here: bodies move first, then each contact takes the speed that leads into the other body, with
friction, in the sequence of cpSpaceStep. A body that has sunk in by more than SLOP comes out by a
share of it each frame, so it lands a little deep and rests there.

`body` is a record of layout.PLAYER or layout.WEAPON, `stage` and `match` records of layout.STAGE
and layout.MATCH; body and match are changed in place.
"""

from __future__ import annotations

import math
from typing import Any, Final

from numba import njit

from league.games.brawl import rules
from league.games.brawl.layout import SOLIDS
from league.games.brawl.rules import DT, HALF_HEIGHT, HALF_WIDTH
from league.games.brawl.tree import platform_comes_first

NONE, BOTTOM, TOP, LEFT, RIGHT = range(5)
"""The face of a body that touches something."""
SLOP: Final = 0.1
"""Units that a body may stay sunk in."""
MENDED: Final = 1.0 - 0.9 ** (60 * DT)
"""Share of the remaining overlap that a frame removes."""
KEPT: Final = 3
"""Frames without a touch after which a contact is forgotten."""
ITERATIONS: Final = 10


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
def _box(stage: Any, match: Any, k: int) -> tuple[float, float, float, float]:
    """(left, top, right, bottom) of the ground number `k`, or of the platform."""
    if k < SOLIDS:
        return stage.solids[k, 0], stage.solids[k, 1], stage.solids[k, 2], stage.solids[k, 3]
    w, h = stage.platform_half_width, stage.platform_half_height
    px, py = match.platform_x, match.platform_y
    return px - w, py - h, px + w, py + h


@njit
def aim_platform(match: Any, stage: Any) -> None:
    """Gives the platform the velocity of frame `match.frame`."""
    p = (match.frame + match.platform_ahead) % stage.period
    match.platform_vx, match.platform_vy = stage.path[p, 2], stage.path[p, 3]


@njit
def move_platform(match: Any, stage: Any) -> None:
    """Puts the platform where it is after frame `match.frame`."""
    p = (match.frame + match.platform_ahead) % stage.period
    match.platform_x, match.platform_y = stage.path[p, 0], stage.path[p, 1]


@njit
def meets_platform(player: Any, stage: Any, match: Any) -> bool:
    return (
        abs(player.x - match.platform_x) <= stage.platform_half_width + HALF_WIDTH
        and abs(player.y - match.platform_y) <= stage.platform_half_height + HALF_HEIGHT
    )


@njit
def is_on_floor(player: Any, stage: Any, match: Any) -> bool:
    """Whether the player may act as on the ground: also at the side of one, near its top."""
    for k in range(SOLIDS):
        left, top, right, _ = _box(stage, match, k)
        if (
            left <= player.x + HALF_WIDTH
            and player.x - HALF_WIDTH <= right
            and top - HALF_HEIGHT <= player.y <= top + rules.FLOOR_SIDE
        ):
            return True
    return (
        meets_platform(player, stage, match)
        and player.y <= match.platform_y - rules.FLOOR_SKIN
        and abs(player.x - match.platform_x) <= rules.PLATFORM_REACH
    )


@njit
def _touch(
    body: Any, half_width: float, half_height: float, box: tuple[float, float, float, float]
) -> tuple[int, float]:
    """The face of the body that has the least way out of the box, and this way; NONE for no
    touch.
    """
    left, top, right, bottom = box
    face, depth = BOTTOM, body.y + half_height - top
    if bottom - body.y + half_height < depth:
        face, depth = TOP, bottom - body.y + half_height
    if body.x - left + half_width < depth:
        face, depth = RIGHT, body.x - left + half_width
    if right - body.x + half_width < depth:
        face, depth = LEFT, right - body.x + half_width
    return (face, depth) if depth >= 0.0 else (NONE, 0.0)


@njit
def _push(body: Any, face: int, out: float, across: float) -> None:
    """Adds speed away from what the face touches, and across it."""
    if face == BOTTOM:
        body.vy -= out
        body.vx += across
    elif face == TOP:
        body.vy += out
        body.vx -= across
    elif face == RIGHT:
        body.vx -= out
        body.vy -= across
    else:
        body.vx += out
        body.vy += across


@njit
def _settle(body: Any, k: int, friction: float, match: Any) -> None:
    """One pass of contact `k`: takes the speed into the other body, and part of that along it."""
    face = body.face[k]
    vx, vy = body.vx, body.vy
    if k == SOLIDS:
        vx, vy = vx - match.platform_vx, vy - match.platform_vy
    if face == BOTTOM:
        out, across = -vy, vx
    elif face == TOP:
        out, across = vy, -vx
    elif face == RIGHT:
        out, across = -vx, -vy
    else:
        out, across = vx, vy
    hold = max(body.hold[k] - out, 0.0)
    most = friction * hold
    drag = min(max(body.drag[k] - across, -most), most)
    _push(body, face, hold - body.hold[k], drag - body.drag[k])
    body.hold[k], body.drag[k] = hold, drag


@njit
def _mend(body: Any, face: int, speed: float) -> None:
    """Lets the next frame move the body out, at least as fast as this contact asks."""
    if face == BOTTOM:
        body.mend_y = min(body.mend_y, -speed)
    elif face == TOP:
        body.mend_y = max(body.mend_y, speed)
    elif face == RIGHT:
        body.mend_x = min(body.mend_x, -speed)
    else:
        body.mend_x = max(body.mend_x, speed)


@njit
def next_place(body: Any) -> tuple[float, float]:
    """Where the next frame moves a body."""
    return body.x + (body.vx + body.mend_x) * DT, body.y + (body.vy + body.mend_y) * DT


@njit
def advance(body: Any) -> None:
    """Moves a body by a frame."""
    body.x, body.y = next_place(body)
    body.mend_x, body.mend_y = 0.0, 0.0


@njit
def collide(
    body: Any,
    leaf: int,
    half_width: float,
    half_height: float,
    friction: float,
    gravity: float,
    stage: Any,
    match: Any,
) -> None:
    """A frame's change of speed.

    Args:
        body: who moves.
        leaf: its number in the tree of contacts.
        half_width: half of its width, units.
        half_height: half of its height.
        friction: factor of the friction of what it touches.
        gravity: what it adds to the speed.
        stage: where the grounds are.
        match: where the platform is.
    """
    body.vy += gravity
    touches, ground, out = 0, NONE, 0.0
    for k in range(SOLIDS + 1):
        face, depth = _touch(body, half_width, half_height, _box(stage, match, k))
        if face == NONE:
            body.missed[k] += 1
            if body.missed[k] >= KEPT:
                body.face[k], body.hold[k], body.drag[k] = NONE, 0.0, 0.0
            continue
        touches += 1
        if body.face[k] != face:
            body.face[k], body.hold[k], body.drag[k] = face, 0.0, 0.0
        elif body.missed[k] == 0:  # what held it in the last frame holds it again
            _push(body, face, body.hold[k], body.drag[k])
        body.missed[k] = 0
        speed = MENDED * max(depth - SLOP, 0.0) / DT
        _mend(body, face, speed)
        if k < SOLIDS:
            ground, out = face, speed
    if touches == 0:
        return
    first, end, by = 0, SOLIDS + 1, 1
    if touches > 1 and platform_comes_first(match, leaf):
        first, end, by = SOLIDS, -1, -1
        _mend(body, ground, out)  # the last one has its way
    for _ in range(1 if touches == 1 else ITERATIONS):
        for k in range(first, end, by):
            if body.missed[k] == 0 and body.face[k] != NONE:
                of_both = rules.PLATFORM_FRICTION if k == SOLIDS else rules.FRICTION
                _settle(body, k, friction * of_both, match)
