"""Hit boxes against hurt capsules, knockback and stun."""

from __future__ import annotations

from typing import Any

from numba import njit

from league.games.brawl import moves, rules


@njit
def _reaches(attacker: Any, victim: Any, row: Any) -> bool:
    """Whether the box touches the upright capsule around the victim's middle."""
    left = attacker.x + (row.near if attacker.facing > 0 else -row.far)
    right = attacker.x + (row.far if attacker.facing > 0 else -row.near)
    top, bottom = attacker.y + row.top, attacker.y + row.bottom
    dx = max(left - victim.x, victim.x - right, 0.0)
    low, high = victim.y + rules.HURT_HALF_SEGMENT, victim.y - rules.HURT_HALF_SEGMENT
    dy = max(top - low, high - bottom, 0.0)
    return dx * dx + dy * dy < rules.HURT_RADIUS * rules.HURT_RADIUS


@njit
def striking_stage(attacker: Any, victim: Any, tables: Any) -> int:
    """Number of the attacker's stage that hits the victim in this frame, -1 for none."""
    if attacker.state != rules.ATTACK or victim.state == rules.DODGE or victim.state == rules.KO:
        return -1
    move = tables.moves[attacker.weapon, attacker.move]
    if not move.hits_from <= attacker.move_frame < move.hits_until:
        return -1
    for index in range(move.stages):
        row = tables.stages[move.first_stage + index]
        if not row.start <= attacker.move_frame < row.end or attacker.stages_hit >> index & 1:
            continue
        if (row.chained or row.late) and attacker.stages_hit >> (index - 1) & 1 != row.chained:
            continue
        if _reaches(attacker, victim, row):
            return index
    return -1


@njit
def knockback_speed(damage: float, fixed: float, variable: float) -> float:
    """Δv = 0.096·(fixed + variable·(X/70 + X²/12000)), X the victim's damage with this hit, in
    u/s.
    """
    return rules.FORCE_TO_SPEED * (fixed + variable * (damage / 70.0 + damage * damage / 12000.0))


@njit
def strike(
    attacker: Any, victim: Any, index: int, row: Any, vx: float, vy: float, combo: bool, stats: Any
) -> None:
    """Applies stage `index` of the attacker's move, whose figures are `row`.

    `vx`, `vy`: the attacker's velocity before the frame's hits; `combo`: the victim was stunned.
    """
    attacker.stages_hit |= 1 << index
    attacker.combos += 1 if combo else 0
    speed = knockback_speed(victim.damage + row.damage, row.fixed, row.variable)
    after = min(victim.damage + row.damage, rules.MAX_DAMAGE)
    attacker.dealt += after - victim.damage
    victim.damage = after
    if row.drags:
        victim.vx, victim.vy = vx, vy
    victim.vx += attacker.facing * speed * row.forward
    victim.vy += speed * row.down
    if victim.grounded and victim.vy > 0.0:
        victim.vy *= -rules.BOUNCE
    victim.state, victim.stun_left, victim.move = rules.STUN, row.stun, moves.NO_MOVE
    stats.hits += 1.0
