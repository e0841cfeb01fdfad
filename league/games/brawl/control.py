"""What a player does with its keys in a frame: the state machine, from the blast zone to walking.

Blast zone first, then knock-out, stun, and the states that can't be steered; then, on the ground,
jump > fall off > dodge > attack > taunt > turn > dash > walk. `tables` is a record of
moves.TABLES, `stats` the player's of layout.STATS_ROW.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from league.games.brawl import moves, rules
from league.games.brawl.physics import refresh_jumps, toward


@njit
def place(player: Any, stage: Any) -> None:
    """Puts a player on its spawn: in the air, facing the middle, without jumps, damage or
    weapon.
    """
    player.x, player.y = player.side * stage.spawn_x, stage.spawn_y
    player.vx, player.vy, player.damage = 0.0, 0.0, 0.0
    player.facing = -player.side
    player.state = rules.IN_AIR
    player.grounded, player.on_platform = 0, 0
    player.air_jumps, player.recoveries = 0, 0
    player.jump_wait, player.dodge_wait, player.state_left, player.stun_left = 0, 0, 0, 0
    player.weapon, player.move = moves.UNARMED, moves.NO_MOVE
    player.moved_by_hand = 1


@njit
def _knock_out(player: Any) -> None:
    player.state, player.state_left = rules.KO, rules.KO_FRAMES
    player.stocks -= 1
    player.fell = 1
    player.vx, player.vy = 0.0, 0.0
    player.grounded, player.on_platform = 0, 0
    player.stun_left, player.move = 0, moves.NO_MOVE
    player.weapon = moves.UNARMED
    player.moved_by_hand = 1


@njit
def _direction(keys: int) -> int:
    """-1, 0 or 1: A and D together are none."""
    right = 1 if keys & rules.RIGHT else 0
    left = 1 if keys & rules.LEFT else 0
    return right - left


@njit
def chosen_move(player: Any, keys: int) -> int:
    """The move type that the held keys ask for, NO_MOVE for none: heavy beats light."""
    heavy = keys & rules.HEAVY != 0
    if not heavy and keys & rules.LIGHT == 0:
        return moves.NO_MOVE
    down = keys & rules.DOWN != 0
    sideways = keys & (rules.LEFT | rules.RIGHT) != 0
    neutral = keys & rules.UP != 0 or not (down or sideways)
    if heavy and not player.grounded:
        if down and not neutral:
            return moves.GROUNDPOUND
        return moves.RECOVERY if player.recoveries > 0 else moves.NO_MOVE
    first = moves.NSIG if heavy else (moves.NLIGHT if player.grounded else moves.NAIR)
    if neutral:
        return first
    return first + 1 if down else first + 2


@njit
def _start_attack(player: Any, move: int, direction: int, stats: Any) -> None:
    player.state, player.move, player.move_frame = rules.ATTACK, move, 0
    player.charged, player.stages_hit = 0, 0
    if direction != 0:
        player.facing = direction
    if move == moves.RECOVERY:
        player.recoveries -= 1
    stats.attacks += 1.0


@njit
def _attack_goes_on(player: Any, keys: int, tables: Any) -> bool:
    """Advances the attack by a frame; False when it is over and the player is free again."""
    row = tables.moves[player.weapon, player.move]
    charging = (
        row.charge_from > 0
        and player.move_frame == row.charge_from
        and keys & rules.HEAVY != 0
        and player.charged < row.charge_until - row.charge_from
    )
    if charging:
        player.charged += 1
        return True
    player.move_frame += 1
    return player.move_frame < (row.lock_hit if player.stages_hit else row.lock)


@njit
def _drive(player: Any, tables: Any) -> None:
    """The velocity that an attack gives its maker, who stands otherwise and drifts ever slower
    in the air.
    """
    row = tables.moves[player.weapon, player.move]
    player.vx = 0.0 if player.grounded else toward(player.vx, 0.0, rules.ATTACK_DRAG_PER_FRAME)
    if row.drive_start <= player.move_frame < row.drive_end:
        if row.drives_x:
            player.vx = player.facing * row.drive_vx
        if row.drives_y:
            player.vy = row.drive_vy


@njit
def _begin_dodge(player: Any, wait: int, stats: Any) -> None:
    player.state, player.state_left, player.dodge_wait = rules.DODGE, rules.DODGE_FRAMES, wait
    player.vx, player.vy = 0.0, 0.0
    stats.dodges += 1.0


@njit
def _jump(player: Any, stats: Any) -> None:
    player.vy = -rules.JUMP_SPEED
    player.jump_wait = rules.AIR_JUMP_WAIT
    player.state = rules.IN_AIR
    stats.jumps += 1.0


@njit
def _walk(player: Any, direction: int, pressed: int) -> None:
    """Turn, dash, sprint, walk and stand."""
    if direction != 0 and direction != player.facing:
        if pressed & rules.DASH_KEY:
            player.state, player.state_left = rules.BACKDASH, rules.BACKDASH_FRAMES
            player.vx = direction * rules.BACKDASH_SPEED
        else:
            player.state, player.facing, player.vx = rules.TURNAROUND, direction, 0.0
    elif direction != 0 and pressed & rules.DASH_KEY and player.state != rules.DASH:
        player.state, player.state_left = rules.DASH, rules.DASH_FRAMES - 1
        player.vx = direction * rules.DASH_SPEED
    elif player.state == rules.DASH and player.state_left > 0:
        player.state_left -= 1
        player.vx = player.facing * rules.DASH_SPEED
    elif direction != 0 and (player.state == rules.DASH or player.state == rules.SPRINTING):
        player.state, player.vx = rules.SPRINTING, direction * rules.RUN_SPEED
    elif direction != 0:
        player.state, player.vx = rules.WALKING, direction * rules.WALK_SPEED
    else:
        player.state, player.vx = rules.STANDING, 0.0


@njit
def _on_ground(player: Any, keys: int, pressed: int, stats: Any) -> None:
    direction = _direction(keys)
    if pressed & rules.JUMP:
        _jump(player, stats)
        player.grounded, player.on_platform = 0, 0
        refresh_jumps(player)
        return
    if direction == 0 and pressed & rules.DASH_KEY and player.dodge_wait == 0:
        _begin_dodge(player, rules.DODGE_WAIT_GROUND, stats)
        return
    move = chosen_move(player, keys)
    if move != moves.NO_MOVE:
        _start_attack(player, move, direction, stats)
        player.vx = 0.0
    elif pressed & rules.TAUNT_KEY:
        player.state, player.state_left, player.vx = rules.TAUNT, rules.TAUNT_FRAMES, 0.0
    else:
        _walk(player, direction, pressed)


@njit
def _in_air(player: Any, keys: int, pressed: int, stats: Any) -> None:
    direction = _direction(keys)
    if pressed & rules.JUMP and player.air_jumps > 0 and player.jump_wait == 0:
        _jump(player, stats)
        player.air_jumps -= 1
        return
    if pressed & rules.DASH_KEY and player.dodge_wait == 0:
        _begin_dodge(player, rules.DODGE_WAIT_AIR, stats)
        return
    move = chosen_move(player, keys)
    if move != moves.NO_MOVE:
        _start_attack(player, move, direction, stats)
        return
    if keys & rules.DOWN and 0.0 < player.vy < rules.MAX_FALL:
        player.vy = min(player.vy + rules.FAST_FALL_PER_FRAME, rules.MAX_FALL)
    if direction != 0 and direction != player.facing:
        player.state, player.facing = rules.AIR_TURNAROUND, direction
        player.vx /= rules.AIR_TURN_DIVISOR
        return
    player.state = rules.IN_AIR
    if direction != 0:
        player.vx = toward(player.vx, direction * rules.AIR_SPEED, rules.AIR_STEER_PER_FRAME)
    else:
        player.vx = toward(player.vx, 0.0, rules.FRICTION_PER_FRAME)


@njit
def _is_held(player: Any, keys: int, tables: Any) -> bool:
    """Stun and the states that can't be steered: True while one of them lasts."""
    if player.stun_left > 0:
        player.stun_left -= 1
        player.vx = toward(player.vx, 0.0, rules.FRICTION_PER_FRAME)
        if player.stun_left == 0:
            player.air_jumps = max(player.air_jumps, rules.AIR_JUMPS_AFTER_STUN)
        return True
    if player.state == rules.ATTACK:
        if _attack_goes_on(player, keys, tables):
            return True
        player.move = moves.NO_MOVE
        return False
    if player.state == rules.DODGE or player.state == rules.BACKDASH or player.state == rules.TAUNT:
        player.state_left -= 1
        if player.state_left > 0:
            return True
        player.state = rules.STANDING if player.grounded else rules.IN_AIR
    return False


@njit
def control(player: Any, keys: int, stage: Any, tables: Any, stats: Any) -> None:
    """Turns one frame's keys into state and velocity."""
    pressed = keys & ~player.keys
    player.keys = keys
    player.jump_wait = max(player.jump_wait - 1, 0)
    player.dodge_wait = max(player.dodge_wait - 1, 0)
    if player.state == rules.KO:
        player.state_left -= 1
        player.moved_by_hand = 1
        if player.state_left <= 0:
            place(player, stage)
        return
    if abs(player.x) > stage.blast_x or abs(player.y) > stage.blast_y:
        _knock_out(player)
        return
    if player.vy < rules.MAX_FALL:
        player.vy = min(player.vy + rules.GRAVITY_PER_FRAME, rules.MAX_FALL)
    if not _is_held(player, keys, tables):
        if pressed & rules.PICK and player.weapon != moves.UNARMED:
            player.dropped, player.weapon = player.weapon, moves.UNARMED
        if player.grounded:
            _on_ground(player, keys, pressed, stats)
        else:
            _in_air(player, keys, pressed, stats)
    if player.state == rules.DODGE:
        player.vx = 0.0
        if not player.grounded:  # on the ground its weight keeps it there
            player.vy = 0.0
    elif player.state == rules.ATTACK:
        _drive(player, tables)
