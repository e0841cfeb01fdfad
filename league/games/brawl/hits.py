"""Tests hit boxes against hurt capsules, and applies knockback and stun."""

from __future__ import annotations

from typing import Any

from numba import njit

from league.games.brawl import rules
from league.games.brawl.compiling import inner


@inner
def _near(x: float, y: float, other_x: float, other_y: float, reach: float) -> bool:
    dx, dy = x - other_x, y - other_y
    return dx * dx + dy * dy < reach * reach


@inner
def _in_rectangle(
    x: float, y: float, radius: float, left: int, top: int, right: int, bottom: int
) -> bool:
    """Returns whether a circle touches a rectangle."""
    return _near(x, y, min(max(x, left), right), min(max(y, top), bottom), radius)


@inner
def capsules_meet(
    x: float, y: float, w: float, h: float, u: float, v: float, other_w: float, other_h: float
) -> bool:
    """Returns whether two capsules overlap by the original game's test.

    A capsule consists of two circles and the rectangle between them. The original game truncates
    the rectangle's corners and size to whole units, so most rectangles shrink to a point. The point
    may lie outside the capsule, so this test also finds some overlaps that don't exist.

    Args:
        x, y: middle of the first capsule, in units.
        w, h: the first capsule's width and height.
        u, v: middle of the second capsule.
        other_w, other_h: the second capsule's width and height.
    """
    r, other_r = min(w, h) / 2.0, min(other_w, other_h) / 2.0
    ax, ay = w / 2.0 - r, h / 2.0 - r  # from the middle to a circle's middle
    bx, by = other_w / 2.0 - other_r, other_h / 2.0 - other_r
    for sign in (-1.0, 1.0):
        for other_sign in (-1.0, 1.0):
            cx, cy = u + other_sign * bx, v + other_sign * by
            if _near(x + sign * ax, y + sign * ay, cx, cy, r + other_r):
                return True
    has_rectangle, other_has = w != h, other_w != other_h  # a circle has no rectangle
    left, top = int(x - (ax if w > h else w / 2.0)), int(y - (ay if w < h else h / 2.0))
    right, bottom = left + int(2.0 * ax if w > h else w), top + int(2.0 * ay if w < h else h)
    other_left = int(u - (bx if other_w > other_h else other_w / 2.0))
    other_top = int(v - (by if other_w < other_h else other_h / 2.0))
    other_right = other_left + int(2.0 * bx if other_w > other_h else other_w)
    other_bottom = other_top + int(2.0 * by if other_w < other_h else other_h)
    for sign in (-1.0, 1.0):
        if other_has and _in_rectangle(
            x + sign * ax, y + sign * ay, r, other_left, other_top, other_right, other_bottom
        ):
            return True
        if has_rectangle and _in_rectangle(
            u + sign * bx, v + sign * by, other_r, left, top, right, bottom
        ):
            return True
    return (
        has_rectangle
        and other_has
        and left < right
        and top < bottom
        and other_left < other_right
        and other_top < other_bottom
        and left < other_right
        and other_left < right
        and top < other_bottom
        and other_top < bottom
    )


@njit
def capsules_overlap(
    x: float, y: float, w: float, h: float, u: float, v: float, other_w: float, other_h: float
) -> bool:
    """Returns whether two capsules overlap, from the distance between their axes.

    The arguments are the same as for `capsules_meet`.
    """
    r, other_r = min(w, h) / 2.0, min(other_w, other_h) / 2.0
    dx = max(abs(x - u) - (w / 2.0 - r) - (other_w / 2.0 - other_r), 0.0)
    dy = max(abs(y - v) - (h / 2.0 - r) - (other_h / 2.0 - other_r), 0.0)
    return dx * dx + dy * dy < (r + other_r) * (r + other_r)


@inner
def touches(player: Any, x: float, y: float, w: float, h: float, stage: Any) -> bool:
    """Returns whether a capsule overlaps a player's hurt capsule.

    The hurt capsule is at the position that the player had when it last acted.
    """
    u, v = player.hurt_x, player.hurt_y
    if stage.is_fair:
        return capsules_overlap(u, v, rules.HURT_WIDTH, rules.HURT_HEIGHT, x, y, w, h)
    return capsules_meet(u, v, rules.HURT_WIDTH, rules.HURT_HEIGHT, x, y, w, h)


@inner
def is_open(victim: Any, stage: Any) -> bool:
    """Returns whether the victim can be hit. A dodging victim can't.

    As in the original game, a knocked-out player can be hit. Seat 0 acts first, so a hit by seat 1
    is checked against seat 0's new state. Under the fair rules (docs/game.md), a hit is checked
    against the victim's state at the start of the frame, and a knocked-out player can't be hit.
    """
    if stage.is_fair:
        return victim.last_state != rules.DODGE and victim.last_state != rules.KO
    return victim.state != rules.DODGE


@inner
def reaches(attacker: Any, victim: Any, cast: Any, tables: Any, stage: Any) -> bool:
    """Returns whether a box of the cast (part of an attack) overlaps the victim's hurt capsule."""
    if not is_open(victim, stage):
        return False
    for index in range(cast.first_box, cast.first_box + cast.boxes):
        box = tables.boxes[index]
        x, y = attacker.x + attacker.facing * box.x, attacker.y + box.y
        if touches(victim, x, y, box.width, box.height, stage):
            return True
    return False


@inner
def knockback_speed(damage: float, fixed: float, variable: float) -> float:
    """Returns the speed that a hit adds, 0.096·(fixed + variable·(X/70 + X²/12000)), in u/s.

    Args:
        damage: X, the victim's damage including this hit.
        fixed: the fixed force of the cast (a part of the attack).
        variable: the cast's force that grows with the damage.
    """
    return rules.FORCE_TO_SPEED * (fixed + variable * (damage / 70.0 + damage * damage / 12000.0))


@inner
def strike(attacker: Any, victim: Any, power: Any, cast: Any, pulls: bool) -> None:
    """Records a hit on the victim, which `land` applies later. Each power (a part of the attack)
    strikes only once. If `pulls` is true, the attack pulls the victim, and the hit has no
    knockback.
    """
    if attacker.power_has_struck:
        return
    attacker.power_has_struck = 1
    speed = knockback_speed(victim.damage + cast.damage, cast.fixed, cast.variable)
    victim.struck, victim.struck_damage, victim.struck_stun = 1, cast.damage, power.stun
    victim.struck_vx = 0.0 if pulls else attacker.facing * speed * cast.forward
    victim.struck_vy = 0.0 if pulls else speed * cast.down


@inner
def land(attacker: Any, victim: Any, on_floor: bool, stats: Any) -> None:
    """Applies the effects of the attacker's frame to the victim: a hit, a pull, a new position."""
    if victim.struck:
        after = min(victim.damage + victim.struck_damage, rules.MAX_DAMAGE)
        attacker.dealt += after - victim.damage
        victim.damage = after
        victim.stun_due = 0 if victim.state == rules.KO else victim.struck_stun
        attacker.combos += 1 if victim.state == rules.STUN else 0
        bounces = on_floor and victim.struck_vy > 0.0
        victim.push_x = victim.struck_vx
        victim.push_y = victim.struck_vy * (-rules.BOUNCE if bounces else 1.0)
        victim.struck = 0
        stats.hits += 1.0
    victim.push_x += victim.pull_x
    victim.push_y += victim.pull_y
    victim.pull_x, victim.pull_y = 0.0, 0.0
    victim.vy = victim.vy * victim.speed_kept + victim.speed_given
    victim.speed_kept, victim.speed_given = 1.0, 0.0
    if victim.is_put:
        victim.x, victim.y, victim.is_put = victim.put_x, victim.put_y, 0
