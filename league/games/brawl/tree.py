"""Which of the contacts of a body is solved first, which decides when they push against each other.

Chipmunk solves contacts in the order in which it finds them, and finds them by a binary tree. Its
leaves are boxes somewhat wider than the bodies. A body that leaves its box gets a new one, and its
leaf is put anew, to the left of the leaf that costs the least area. The grounds are not in it.

`match` is a record of layout.MATCH. A leaf is a number: PLATFORM, 1 and 2 the players, the others
the weapons.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import njit

from league.games.brawl.layout import LEAVES

PLATFORM: Final = 0
PLAYERS: Final = 1
WEAPONS: Final = 3
WIDER: Final = float(np.float32(0.1))
"""Share of a body's size, and seconds of its motion, by which its box is wider."""


@njit
def _area(node: Any) -> float:
    return (node.right - node.left) * (node.bottom - node.top)


@njit
def _area_of_both(one: Any, other: Any) -> float:
    wide = max(one.right, other.right) - min(one.left, other.left)
    return wide * (max(one.bottom, other.bottom) - min(one.top, other.top))


@njit
def _apart(one: Any, other: Any) -> float:
    wide = abs(one.left + one.right - other.left - other.right)
    return wide + abs(one.top + one.bottom - other.top - other.bottom)


@njit
def _span(node: Any, one: Any, other: Any) -> None:
    """Gives a node the least box around two others."""
    node.left, node.top = min(one.left, other.left), min(one.top, other.top)
    node.right, node.bottom = max(one.right, other.right), max(one.bottom, other.bottom)


@njit
def _replace(match: Any, parent: int, old: int, new: int) -> None:
    match.nodes[new].parent = parent
    if parent < 0:
        match.root = new
    elif match.nodes[parent].first == old:
        match.nodes[parent].first = new
    else:
        match.nodes[parent].second = new


@njit
def _put_in(match: Any, leaf: int, inner: int) -> None:
    """Puts a leaf into the tree, by an inner node that is in no use."""
    at, own = match.root, match.nodes[leaf]
    while at >= LEAVES:
        node = match.nodes[at]
        first, second = match.nodes[node.first], match.nodes[node.second]
        by_first = _area(second) + _area_of_both(first, own)
        by_second = _area(first) + _area_of_both(second, own)
        if by_first == by_second:
            by_first, by_second = _apart(first, own), _apart(second, own)
        _span(node, node, own)
        at = node.second if by_second < by_first else node.first
    node = match.nodes[inner]
    _replace(match, match.nodes[at].parent, at, inner)
    node.first, node.second = leaf, at
    own.parent, match.nodes[at].parent = inner, inner
    _span(node, own, match.nodes[at])


@njit
def take_out(match: Any, leaf: int) -> int:
    """Takes a leaf out; returns the inner node that comes out of use."""
    inner = match.nodes[leaf].parent
    node = match.nodes[inner]
    up = node.parent
    _replace(match, up, inner, node.second if node.first == leaf else node.first)
    while up >= 0:
        node = match.nodes[up]
        _span(node, match.nodes[node.first], match.nodes[node.second])
        up = node.parent
    return inner


@njit
def _widen(
    match: Any, leaf: int, x: float, y: float, w: float, h: float, vx: float, vy: float
) -> None:
    """Draws the box of a leaf anew."""
    own, wide, high = match.nodes[leaf], w + 2.0 * WIDER * w, h + 2.0 * WIDER * h
    own.left, own.right = x - max(wide, w - WIDER * vx), x + max(wide, w + WIDER * vx)
    own.top, own.bottom = y - max(high, h - WIDER * vy), y + max(high, h + WIDER * vy)
    own.put = match.frame


@njit
def put_in(match: Any, leaf: int, inner: int, x: float, y: float, w: float, h: float) -> None:
    """Puts a resting body of half sizes w and h into the tree, by an inner node in no use."""
    _widen(match, leaf, x, y, w, h, 0.0, 0.0)
    _put_in(match, leaf, inner)


@njit
def begin_tree(match: Any, x: float, y: float, w: float, h: float) -> None:
    """A tree of the platform alone."""
    match.root, match.nodes[PLATFORM].parent = PLATFORM, -1
    _widen(match, PLATFORM, x, y, w, h, 0.0, 0.0)


@njit
def has_left(own: Any, x: float, y: float, w: float, h: float) -> bool:
    """Whether a body is out of the box of its leaf."""
    return x - w < own.left or x + w > own.right or y - h < own.top or y + h > own.bottom


@njit
def follow(
    match: Any, leaf: int, x: float, y: float, w: float, h: float, vx: float, vy: float
) -> None:
    """Puts a body anew that has moved out of its box."""
    if has_left(match.nodes[leaf], x, y, w, h):
        _widen(match, leaf, x, y, w, h, vx, vy)
        _put_in(match, leaf, take_out(match, leaf))


@njit
def rename(match: Any, old: int, new: int) -> None:
    """Gives a leaf the number of one that is out of the tree."""
    match.nodes[new] = match.nodes[old]
    _replace(match, match.nodes[old].parent, old, new)


@njit
def platform_comes_first(match: Any, leaf: int) -> bool:
    """Whether the body's contact with the platform is solved before that with a ground.

    A body that was put anew in this frame looks at the grounds first; so do, from then on, those
    that were put in the same frame as the platform.
    """
    put = match.nodes[leaf].put
    if put == match.frame or put == match.nodes[PLATFORM].put:
        return False
    one = PLATFORM
    while match.nodes[one].parent >= 0:
        up, other = match.nodes[one].parent, leaf
        while match.nodes[other].parent >= 0 and match.nodes[other].parent != up:
            other = match.nodes[other].parent
        if match.nodes[other].parent == up:
            return match.nodes[up].first == one
        one = up
    return False
