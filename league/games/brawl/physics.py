"""Moves bodies that collide with the two grounds and the platform, frame by frame.

The original game leaves this work to the physics engine Chipmunk (pymunk 6.2.1). This module
follows Chipmunk's method for bodies that don't rotate, in the order of the function cpSpaceStep.
Bodies move first. Then an impulse at each contact stops the motion into the other body, and a
friction impulse acts along the surface. If a body overlaps another by more than SLOP, its bias
velocity removes a share of the overlap in the next frame. As a result, a body that lands sinks in a
little and rests there.

If a body touches a ground and the platform, the contact that is solved last prevails. Chipmunk
finds contacts with a binary tree, whose leaves are fat boxes (somewhat larger than the bodies). A
body that leaves its fat box gets a new box, and its leaf is inserted to the left of the leaf whose
box has to grow less. The tree here holds the platform and the two players. With three leaves only
their order from left to right matters, so the match stores only this order.

Every mass is 1, so an impulse is a change of speed, in u/s. `body` is a record of layout.PLAYER or
layout.WEAPON. `stage` and `match` are records of layout.STAGE and layout.MATCH. Functions change
body and match in place.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from league.games.brawl import rules
from league.games.brawl.compiling import inner
from league.games.brawl.layout import SOLIDS
from league.games.brawl.rules import DT, HALF_HEIGHT, HALF_WIDTH

NONE, BOTTOM, TOP, LEFT, RIGHT = range(5)
"""Contact normals, named after the side of the body that touches. NONE means no contact."""
SLOP: Final = 0.1
"""Overlap that a body may keep, in units."""
BIAS_COEFFICIENT: Final = 1.0 - 0.9 ** (60 * DT)
"""Share of the remaining overlap that a frame removes."""
PERSISTENCE: Final = 3
"""Frames without a touch after which a contact and its impulses are forgotten."""
ITERATIONS: Final = 10
PLATFORM, PLAYERS, NO_BOX = 0, 1, -1
"""Numbers of the fat boxes of the platform and the first player. NO_BOX means a body without a box.
"""
MARGIN: Final = float(np.float32(0.1))
"""On each side, a fat box extends beyond its body by this share of the body's size. In the
direction of motion, it extends as far as the body moves in this number of seconds, if that is
farther.
"""


@inner
def gap(player: Any, opponent: Any) -> float:
    """Returns the distance between the centres of two players, in units."""
    dx, dy = player.x - opponent.x, player.y - opponent.y
    return math.sqrt(dx * dx + dy * dy)


@inner
def toward(value: float, target: float, step: float) -> float:
    """Moves `value` by at most `step` toward `target` and returns the result."""
    if value < target:
        return min(value + step, target)
    return max(value - step, target)


@inner
def _box(stage: Any, match: Any, k: int) -> tuple[float, float, float, float]:
    """Returns (left, top, right, bottom) of ground `k`, or of the platform if `k` is SOLIDS."""
    if k < SOLIDS:
        return stage.solids[k, 0], stage.solids[k, 1], stage.solids[k, 2], stage.solids[k, 3]
    w, h = stage.platform_half_width, stage.platform_half_height
    px, py = match.platform_x, match.platform_y
    return px - w, py - h, px + w, py + h


@inner
def aim_platform(match: Any, stage: Any) -> None:
    """Sets the platform's velocity in frame `match.frame`."""
    p = (match.frame + match.platform_ahead) % stage.period
    match.platform_vx, match.platform_vy = stage.path[p, 2], stage.path[p, 3]


@inner
def move_platform(match: Any, stage: Any) -> None:
    """Sets the platform's position after frame `match.frame`."""
    p = (match.frame + match.platform_ahead) % stage.period
    match.platform_x, match.platform_y = stage.path[p, 0], stage.path[p, 1]


@inner
def meets_platform(player: Any, stage: Any, match: Any) -> bool:
    """Returns whether the player's solid box touches the platform's box."""
    return (
        abs(player.x - match.platform_x) <= stage.platform_half_width + HALF_WIDTH
        and abs(player.y - match.platform_y) <= stage.platform_half_height + HALF_HEIGHT
    )


@inner
def is_on_floor(player: Any, stage: Any, match: Any) -> bool:
    """Returns whether the player counts as on the ground. A player at a ground's side, near its
    top, counts too.
    """
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


@inner
def _contact(
    body: Any, half_width: float, half_height: float, box: tuple[float, float, float, float]
) -> tuple[int, float]:
    """Returns the contact normal with the smallest overlap, and this overlap. Without contact, it
    returns (NONE, 0).
    """
    left, top, right, bottom = box
    normal, depth = BOTTOM, body.y + half_height - top
    if bottom - body.y + half_height < depth:
        normal, depth = TOP, bottom - body.y + half_height
    if body.x - left + half_width < depth:
        normal, depth = RIGHT, body.x - left + half_width
    if right - body.x + half_width < depth:
        normal, depth = LEFT, right - body.x + half_width
    return (normal, depth) if depth >= 0.0 else (NONE, 0.0)


@inner
def _apply_impulse(body: Any, normal: int, along_normal: float, tangential: float) -> None:
    """Adds an impulse away from the other body, and an impulse along the surface."""
    if normal == BOTTOM:
        body.vy -= along_normal
        body.vx += tangential
    elif normal == TOP:
        body.vy += along_normal
        body.vx -= tangential
    elif normal == RIGHT:
        body.vx -= along_normal
        body.vy -= tangential
    else:
        body.vx += along_normal
        body.vy += tangential


@inner
def _solve_contact(body: Any, k: int, friction: float, match: Any) -> None:
    """Solves contact `k` once: updates its accumulated impulses and the body's velocity."""
    normal = body.normal[k]
    vx, vy = body.vx, body.vy
    if k == SOLIDS:
        vx, vy = vx - match.platform_vx, vy - match.platform_vy
    if normal == BOTTOM:
        normal_speed, tangent_speed = -vy, vx
    elif normal == TOP:
        normal_speed, tangent_speed = vy, -vx
    elif normal == RIGHT:
        normal_speed, tangent_speed = -vx, -vy
    else:
        normal_speed, tangent_speed = vx, vy
    normal_impulse = max(body.normal_impulse[k] - normal_speed, 0.0)
    limit = friction * normal_impulse
    friction_impulse = min(max(body.friction_impulse[k] - tangent_speed, -limit), limit)
    _apply_impulse(
        body,
        normal,
        normal_impulse - body.normal_impulse[k],
        friction_impulse - body.friction_impulse[k],
    )
    body.normal_impulse[k], body.friction_impulse[k] = normal_impulse, friction_impulse


@inner
def _solve_if_touching(body: Any, k: int, friction: float, match: Any) -> None:
    if body.frames_apart[k] == 0 and body.normal[k] != NONE:
        surface = rules.PLATFORM_FRICTION if k == SOLIDS else rules.FRICTION
        _solve_contact(body, k, friction * surface, match)


@inner
def _solve_both(body: Any, first: int, last: int, friction: float, match: Any) -> None:
    for _ in range(ITERATIONS):
        _solve_if_touching(body, first, friction, match)
        _solve_if_touching(body, last, friction, match)


@inner
def _add_bias(body: Any, normal: int, speed: float) -> None:
    """Raises the bias velocity away from the other body to at least `speed`."""
    if normal == BOTTOM:
        body.bias_vy = min(body.bias_vy, -speed)
    elif normal == TOP:
        body.bias_vy = max(body.bias_vy, speed)
    elif normal == RIGHT:
        body.bias_vx = min(body.bias_vx, -speed)
    else:
        body.bias_vx = max(body.bias_vx, speed)


@inner
def _fit_box(
    match: Any, number: int, x: float, y: float, w: float, h: float, vx: float, vy: float
) -> None:
    box, wide, high = match.boxes[number], w + 2.0 * MARGIN * w, h + 2.0 * MARGIN * h
    box.left, box.right = x - max(wide, w - MARGIN * vx), x + max(wide, w + MARGIN * vx)
    box.top, box.bottom = y - max(high, h - MARGIN * vy), y + max(high, h + MARGIN * vy)
    box.fitted = match.frame


@inner
def _growth(box: Any, other: Any) -> float:
    """Returns by how much the area of `box` grows if it is extended to contain the other box."""
    wide = max(box.right, other.right) - min(box.left, other.left)
    high = max(box.bottom, other.bottom) - min(box.top, other.top)
    return wide * high - (box.right - box.left) * (box.bottom - box.top)


@inner
def _insert_leaf(match: Any, number: int) -> None:
    """Inserts a leaf to the left of the leaf whose box has to grow less to contain it."""
    order, box = match.order, match.boxes[number]
    first = order[1] if order[0] == number else order[0]
    second = order[1] if order[2] == number else order[2]
    if _growth(match.boxes[first], box) <= _growth(match.boxes[second], box):
        order[0], order[1] = number, first
    else:
        order[0], order[1] = first, number
    order[2] = second


@inner
def _update_box(
    match: Any, number: int, x: float, y: float, w: float, h: float, vx: float, vy: float
) -> None:
    """Fits a new box to a body if the body has left its old box."""
    box = match.boxes[number]
    if x - w < box.left or x + w > box.right or y - h < box.top or y + h > box.bottom:
        _fit_box(match, number, x, y, w, h, vx, vy)
        _insert_leaf(match, number)


@inner
def update_platform_box(match: Any, stage: Any) -> None:
    """Fits a new box to the platform if the platform has left its old box."""
    x, y, vx, vy = match.platform_x, match.platform_y, match.platform_vx, match.platform_vy
    w, h = stage.platform_half_width, stage.platform_half_height
    _update_box(match, PLATFORM, x, y, w, h, vx, vy)


@inner
def begin_tree(match: Any, player_0: Any, player_1: Any, stage: Any) -> None:
    """Fits the fat boxes of platform and players, and sets the order of their leaves."""
    w, h = stage.platform_half_width, stage.platform_half_height
    _fit_box(match, PLATFORM, match.platform_x, match.platform_y, w, h, 0.0, 0.0)
    for number, player in ((PLAYERS, player_0), (PLAYERS + 1, player_1)):
        _fit_box(match, number, player.x, player.y, HALF_WIDTH, HALF_HEIGHT, 0.0, 0.0)
    match.order[0], match.order[1], match.order[2] = PLAYERS, PLATFORM, PLAYERS + 1
    _insert_leaf(match, PLAYERS + 1)


@inner
def _platform_comes_first(match: Any, number: int, stage: Any) -> bool:
    """Returns whether the platform's contact with a body is solved before a ground's contact.

    The ground's contact comes first if the body's box was fitted in this frame, or in the same
    frame as the platform's box. Otherwise the order of the leaves in the tree of fat boxes decides.
    This order depends on the seats, so under the fair rules the ground's contact always comes
    first.
    """
    if number == NO_BOX or stage.is_fair:
        return False
    fitted = match.boxes[number].fitted
    if fitted == match.frame or fitted == match.boxes[PLATFORM].fitted:
        return False
    return match.order[0] == PLATFORM or match.order[2] == number


@inner
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
    """Moves a body by one frame and solves its contacts.

    Args:
        number: the number of the body's fat box, or NO_BOX.
        half_width: half of the body's width, in units.
        half_height: half of the body's height, in units.
        friction: factor of the friction of all surfaces.
        gravity: increase of the downward speed in the frame, in u/s.
    """
    body.x += (body.vx + body.bias_vx) * DT
    body.y += (body.vy + body.bias_vy) * DT
    body.bias_vx, body.bias_vy = 0.0, 0.0
    if number != NO_BOX:
        _update_box(match, number, body.x, body.y, half_width, half_height, body.vx, body.vy)
    body.vy += gravity
    contacts, ground, ground_bias = 0, 0, 0.0
    for k in range(SOLIDS + 1):
        normal, depth = _contact(body, half_width, half_height, _box(stage, match, k))
        if normal == NONE:
            body.frames_apart[k] += 1
            if body.frames_apart[k] >= PERSISTENCE:
                body.normal[k], body.normal_impulse[k], body.friction_impulse[k] = NONE, 0.0, 0.0
            continue
        contacts += 1
        if body.normal[k] != normal:
            body.normal[k], body.normal_impulse[k], body.friction_impulse[k] = normal, 0.0, 0.0
        elif body.frames_apart[k] == 0:  # warm start with the last frame's impulses
            _apply_impulse(body, normal, body.normal_impulse[k], body.friction_impulse[k])
        body.frames_apart[k] = 0
        bias = BIAS_COEFFICIENT * max(depth - SLOP, 0.0) / DT
        _add_bias(body, normal, bias)
        if k < SOLIDS:
            ground, ground_bias = k, bias
    if contacts == 1:
        for k in range(SOLIDS + 1):
            _solve_if_touching(body, k, friction, match)
    elif contacts > 1 and _platform_comes_first(match, number, stage):
        _add_bias(body, body.normal[ground], ground_bias)  # the last contact prevails
        _solve_both(body, SOLIDS, ground, friction, match)
    elif contacts > 1:
        _solve_both(body, ground, SOLIDS, friction, match)
