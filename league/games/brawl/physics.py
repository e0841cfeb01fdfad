"""Bodies against the two grounds and the platform: how they get from one frame's place to the next.

The original leaves this to Chipmunk (pymunk 6.2.1), whose method for bodies that don't rotate is
here: bodies move first, then each contact takes the speed that leads into the other body, with
friction, in the sequence of cpSpaceStep. A body that has sunk in by more than SLOP comes out by a
share of it each frame, so it lands a little deep and rests there.

Of a body's contacts with a ground and the platform, the last contact solved decides. Chipmunk finds
contacts by a binary tree, whose leaves are boxes somewhat wider than the bodies. A body that leaves
its box gets a new box, and its leaf goes to the left of the leaf that costs less area. The tree
here holds the platform and the two players. Of three leaves only their order from left to right
matters, so that order is all that is kept.

`body` is a record of layout.PLAYER or layout.WEAPON, `stage` and `match` records of layout.STAGE
and layout.MATCH; body and match are changed in place.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numba import njit

from league.games.brawl import rules
from league.games.brawl.layout import SOLIDS
from league.games.brawl.rules import DT, HALF_HEIGHT, HALF_WIDTH

NONE, BOTTOM, TOP, LEFT, RIGHT = range(5)
"""The face of a body that touches something."""
SLOP: Final = 0.1
"""Units that a body may stay sunk in."""
MENDED: Final = 1.0 - 0.9 ** (60 * DT)
"""Share of the remaining overlap that a frame removes."""
KEPT: Final = 3
"""Frames without a touch after which a contact is forgotten."""
ITERATIONS: Final = 10
PLATFORM, PLAYERS, NOBODY = 0, 1, -1
"""Numbers of boxes: the platform's, the first player's, and of a body that has none."""
WIDER: Final = float(np.float32(0.1))
"""Share of a body's size, and seconds of its motion, by which its box is wider."""


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
def _settle_touched(body: Any, k: int, friction: float, match: Any) -> None:
    if body.missed[k] == 0 and body.face[k] != NONE:
        of_both = rules.PLATFORM_FRICTION if k == SOLIDS else rules.FRICTION
        _settle(body, k, friction * of_both, match)


@njit
def _settle_both(body: Any, first: int, last: int, friction: float, match: Any) -> None:
    for _ in range(ITERATIONS):
        _settle_touched(body, first, friction, match)
        _settle_touched(body, last, friction, match)


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
def _draw_box(
    match: Any, number: int, x: float, y: float, w: float, h: float, vx: float, vy: float
) -> None:
    box, wide, high = match.boxes[number], w + 2.0 * WIDER * w, h + 2.0 * WIDER * h
    box.left, box.right = x - max(wide, w - WIDER * vx), x + max(wide, w + WIDER * vx)
    box.top, box.bottom = y - max(high, h - WIDER * vy), y + max(high, h + WIDER * vy)
    box.drawn = match.frame


@njit
def _growth(one: Any, other: Any) -> float:
    """By how much the area of one box grows if it takes in another."""
    wide = max(one.right, other.right) - min(one.left, other.left)
    high = max(one.bottom, other.bottom) - min(one.top, other.top)
    return wide * high - (one.right - one.left) * (one.bottom - one.top)


@njit
def _put_in_order(match: Any, number: int) -> None:
    """Puts a leaf to the left of the other leaf whose box grows less by it."""
    order, box = match.order, match.boxes[number]
    first = order[1] if order[0] == number else order[0]
    second = order[1] if order[2] == number else order[2]
    if _growth(match.boxes[first], box) <= _growth(match.boxes[second], box):
        order[0], order[1] = number, first
    else:
        order[0], order[1] = first, number
    order[2] = second


@njit
def follow(
    match: Any, number: int, x: float, y: float, w: float, h: float, vx: float, vy: float
) -> None:
    """Draws the box of a body anew that has left it."""
    box = match.boxes[number]
    if x - w < box.left or x + w > box.right or y - h < box.top or y + h > box.bottom:
        _draw_box(match, number, x, y, w, h, vx, vy)
        _put_in_order(match, number)


@njit
def follow_platform(match: Any, stage: Any) -> None:
    x, y, vx, vy = match.platform_x, match.platform_y, match.platform_vx, match.platform_vy
    w, h = stage.platform_half_width, stage.platform_half_height
    follow(match, PLATFORM, x, y, w, h, vx, vy)


@njit
def begin_order(match: Any, one: Any, other: Any, stage: Any) -> None:
    """Draws all three boxes and puts them in order."""
    w, h = stage.platform_half_width, stage.platform_half_height
    _draw_box(match, PLATFORM, match.platform_x, match.platform_y, w, h, 0.0, 0.0)
    for number, player in ((PLAYERS, one), (PLAYERS + 1, other)):
        _draw_box(match, number, player.x, player.y, HALF_WIDTH, HALF_HEIGHT, 0.0, 0.0)
    match.order[0], match.order[1], match.order[2] = PLAYERS, PLATFORM, PLAYERS + 1
    _put_in_order(match, PLAYERS + 1)


@njit
def _platform_comes_first(match: Any, number: int, stage: Any) -> bool:
    """Whether the body's contact with the platform is solved before that with a ground.

    A body that was put anew in this frame looks at the grounds first; so do, from then on, those
    that were put in the same frame as the platform. The order of boxes depends on the seats, so by
    the fair rules every body looks at the grounds first.
    """
    if number == NOBODY or stage.is_fair:
        return False
    drawn = match.boxes[number].drawn
    if drawn == match.frame or drawn == match.boxes[PLATFORM].drawn:
        return False
    return match.order[0] == PLATFORM or match.order[2] == number


@njit
def move(
    body: Any,
    number: int,
    half_width: float,
    half_height: float,
    friction: float,
    gravity: float,
    stage: Any,
    match: Any,
) -> None:
    """One frame of motion.

    Args:
        body: the body that moves.
        number: the number of its box, or NOBODY.
        half_width: half of its width, units.
        half_height: half of its height.
        friction: factor of the friction of what it touches.
        gravity: what it adds to the speed.
        stage: where the grounds are.
        match: where the platform is.
    """
    body.x += (body.vx + body.mend_x) * DT
    body.y += (body.vy + body.mend_y) * DT
    body.mend_x, body.mend_y = 0.0, 0.0
    if number != NOBODY:
        follow(match, number, body.x, body.y, half_width, half_height, body.vx, body.vy)
    body.vy += gravity
    touches, ground, out = 0, 0, 0.0
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
            ground, out = k, speed
    if touches == 1:
        for k in range(SOLIDS + 1):
            _settle_touched(body, k, friction, match)
    elif touches > 1 and _platform_comes_first(match, number, stage):
        _mend(body, body.face[ground], out)  # the last one has its way
        _settle_both(body, SOLIDS, ground, friction, match)
    elif touches > 1:
        _settle_both(body, ground, SOLIDS, friction, match)
