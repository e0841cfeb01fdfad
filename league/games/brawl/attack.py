"""Plays a player's attack frame by frame.

An attack plays a move. A move consists of powers, and a power consists of casts. moves.toml
explains both.
"""

from __future__ import annotations

from typing import Any

from league.games.brawl import hits, moves, rules
from league.games.brawl.compiling import inner
from league.games.brawl.physics import toward

_POINT_LANDS_AT = 1.54


@inner
def begin_attack(player: Any, move: int, tables: Any) -> None:
    """Starts an attack with the given move type and the weapon in the player's hand."""
    player.move, player.move_frame, player.move_has_hit = move, 0, 0
    _begin_power(player, tables.first_power[player.weapon, move])


@inner
def _begin_power(player: Any, power: int) -> None:
    player.power, player.cast, player.cast_frame, player.power_frame = power, 0, 0, 0
    player.recovering, player.is_new_cast, player.power_has_hit = 0, 1, 0
    player.power_has_struck = 0
    player.charged = 0


@inner
def _change_now(player: Any, cast: Any, tables: Any) -> int:
    """Returns the index of the change (moves.Change) in the cast's current frame, or -1."""
    for index in range(cast.first_change, cast.first_change + cast.changes):
        if tables.changes[index].frame == player.cast_frame:
            return index
    return -1


@inner
def _apply(change: Any, player: Any, victim: Any) -> None:
    player.vx = player.vx * change.factor_x + player.facing * change.shift_x
    player.vy = player.vy * change.factor_y + change.shift_y
    if not player.move_has_hit:
        return
    if change.has_target:
        goal_x = player.x + player.facing * change.target_x
        victim.pull_x = change.rate * (goal_x - victim.x)
        victim.pull_y = change.rate * (player.y + change.target_y - victim.y)
    victim.speed_kept, victim.speed_given = change.victim_factor_y, change.victim_shift_y
    if change.moves_victim:
        victim.is_put = 1
        victim.put_x = player.x + player.facing * change.victim_x
        victim.put_y = player.y + change.victim_y


@inner
def _lands(player: Any, cast: Any) -> bool:
    """Returns whether the cast's `point` (moves.toml) is so near the ground that the power ends.

    In the first frame of a cast, and for a cast without a `point`, it returns False.
    """
    if player.is_new_cast:
        player.is_new_cast = 0
        return False
    return cast.has_point and player.y + cast.point_y > _POINT_LANDS_AT


@inner
def attack(player: Any, victim: Any, keys: int, direction: int, tables: Any, stage: Any) -> bool:
    """Plays a frame of the attack. Returns whether the attack is over.

    Args:
        player: the attacker, a record of layout.PLAYER.
        victim: the opponent, a record of layout.PLAYER.
        keys: bits of the held keys.
        direction: the direction of the keys: -1 left, 1 right, or 0.
        tables: a record of moves.TABLES.
        stage: a record of layout.STAGE.
    """
    power = tables.powers[player.power]
    player.move_frame += 1
    if power.charge >= 0:
        player.charged += 1
        held = keys & rules.HEAVY != 0
        past_least = player.power_frame > power.charge
        if (past_least and not held) or player.power_frame > power.charge_until:
            _begin_power(player, power.miss)
            return False
    cast = tables.casts[power.first_cast + player.cast]
    starts_up = player.cast_frame < cast.startup
    is_active = not starts_up and player.cast_frame < cast.ends
    is_last_cast = player.cast == power.casts - 1
    index = _change_now(player, cast, tables)
    pulls = index >= 0 and tables.changes[index].has_target != 0
    if power.kind & moves.HITS_AGAIN and player.move_has_hit and hits.is_open(victim, stage):
        hits.strike(player, victim, power, cast, pulls)
    if power.kind & moves.STEERED:
        player.vx = toward(player.vx, direction * rules.WALK_SPEED, rules.AIR_STEER_PER_FRAME)
    if power.kind & moves.BRAKES:
        player.vx = toward(player.vx, 0.0, rules.AIR_STEER_PER_FRAME)
    if index >= 0:
        _apply(tables.changes[index], player, victim)
    next_power, moves_on = -1, False
    if is_active:
        if _lands(player, cast):
            next_power = power.ground if power.ground >= 0 else power.miss
            moves_on = True
        if hits.reaches(player, victim, cast, tables, stage):
            if not player.power_has_hit and power.stops_on_hit:
                player.vx, player.vy = power.on_hit_vx, power.on_hit_vy
            player.power_has_hit, player.move_has_hit = 1, 1
            hits.strike(player, victim, power, cast, pulls)
            if power.kind & moves.AT_ONCE:
                next_power = power.hit if power.hit >= 0 else power.miss
        if is_last_cast and power.is_last:
            player.recovering += 1
    player.cast_frame += 1
    player.power_frame += 1
    if not (moves_on or is_active or starts_up):
        if not is_last_cast:
            player.cast += 1
            player.cast_frame, player.is_new_cast = 0, 1
        elif player.recovering < power.recovery:
            player.recovering += 1
        elif power.is_last:
            return True
        else:
            next_power = power.hit if player.power_has_hit and power.hit >= 0 else power.miss
    if next_power >= 0:
        _begin_power(player, next_power)
    return False
