"""Turns a player's keys into its next state and velocity: the state machine.

The function of the current state runs first (`_decide`). This function changes the velocity, and
returns the next state, or `_SAME` if the state does not change. Then pending hits change the
velocity, and the player enters the next state. The order of the checks within a state, and the
values that are lost when the state changes, are as in the original game (UTMIST's).

`player` and `opponent` are records of layout.PLAYER, `tables` is a record of moves.TABLES, and
`stats` is the player's record of layout.STATS_ROW.
"""

from __future__ import annotations

from typing import Any, Final

from league.games.brawl import moves, rules
from league.games.brawl.attack import attack, begin_attack
from league.games.brawl.compiling import inner
from league.games.brawl.layout import COUNTERS, SOLIDS
from league.games.brawl.physics import is_on_floor, meets_platform, toward

_SAME: Final = -1
# Which of the keys A (left) and D (right) are held, in the order in which they were pressed.
NO_WAY, LEFT, RIGHT, LEFT_RIGHT, RIGHT_LEFT = range(5)
# Counters of jumps and recoveries: indices in layout.PLAYER's `jumps` and `recovery_of`.
_AIR, _TURN, _ATTACK, _DODGE, _STUN = range(5)
_UNKNOWN: Final = -1


@inner
def place(player: Any, stage: Any) -> None:
    """Puts a player at its spawn, in the air, without damage or weapon."""
    player.x, player.y = player.side * stage.spawn_x, stage.spawn_y
    player.vx, player.vy, player.damage = 0.0, 0.0, 0.0
    player.weapon = moves.UNARMED
    player.moved_by_hand = 1


@inner
def begin_player(player: Any, side: int, stage: Any) -> None:
    """Sets all fields of a player at the start of a match, except its random stream."""
    player.side, player.facing = side, -side
    place(player, stage)
    player.state, player.move = rules.IN_AIR, moves.NO_MOVE
    player.keys, player.last_way, player.grounded = 0, NO_WAY, 0
    player.stocks = rules.STOCKS
    for c in range(COUNTERS):
        player.jumps[c], player.recovery_of[c] = (0, 0) if c == _AIR else (_UNKNOWN, _UNKNOWN)
    player.jump_waits[0], player.jump_waits[1] = 0, 0
    player.air_jumps, player.recoveries = 0, 0
    player.dodge_wait, player.state_left, player.stun_left = 0, 0, 0
    player.move_frame, player.charged, player.move_has_hit = 0, 0, 0
    player.struck, player.stun_due, player.last_state, player.no_pick_until = 0, 0, 0, 0
    player.pull_x, player.pull_y, player.push_x, player.push_y = 0.0, 0.0, 0.0, 0.0
    player.is_put, player.speed_kept, player.speed_given = 0, 1.0, 0.0
    player.hurt_x, player.hurt_y = 0.0, 0.0
    player.bias_vx, player.bias_vy = 0.0, 0.0
    for k in range(SOLIDS + 1):
        player.normal[k], player.frames_apart[k] = 0, 0
        player.normal_impulse[k], player.friction_impulse[k] = 0.0, 0.0


@inner
def set_air_counts(player: Any, jumps: int, recoveries: int) -> None:
    """Sets the jumps and recoveries that a player in the air has left."""
    player.jumps[_AIR], player.recovery_of[_AIR] = jumps, recoveries
    player.air_jumps, player.recoveries = jumps, recoveries


@inner
def _way(keys: int) -> int:
    """Returns the direction of the keys: -1 left, 1 right, or 0. A and D together give 0."""
    right = 1 if keys & rules.RIGHT else 0
    left = 1 if keys & rules.LEFT else 0
    return right - left


@inner
def _remember_ways(player: Any, keys: int, is_fair: int) -> None:
    """Records which of A and D are held, and which of them was pressed last."""
    pressed, released = keys & ~player.keys, player.keys & ~keys
    side = player.last_way
    if released & rules.LEFT and side != NO_WAY and side != RIGHT:
        side = NO_WAY if side == LEFT else RIGHT
    if released & rules.RIGHT and side != NO_WAY and side != LEFT:
        side = NO_WAY if side == RIGHT else LEFT
    both = rules.LEFT | rules.RIGHT
    if is_fair and pressed & both == both:
        pressed = 0
    if pressed & rules.RIGHT:
        side = RIGHT if side == NO_WAY else (LEFT_RIGHT if side == LEFT else side)
    if pressed & rules.LEFT:
        side = LEFT if side == NO_WAY else (RIGHT_LEFT if side == RIGHT else side)
    player.last_way = side


@inner
def _last_way(player: Any) -> int:
    if player.last_way == NO_WAY:
        return 0
    return 1 if player.last_way == RIGHT or player.last_way == LEFT_RIGHT else -1


@inner
def _face(player: Any, direction: int, stage: Any) -> None:
    """Turns the player at once in the direction of the keys.

    If the direction is 0, the player turns left, as in the original game. Under the fair rules
    (docs/game.md), a player without a direction does not turn.
    """
    if direction != 0:
        player.facing = direction
    elif not stage.is_fair:
        player.facing = -1


@inner
def chosen_move(keys: int, grounded: bool) -> int:
    """Returns the move type that the keys ask for, or NO_MOVE. Heavy overrides light."""
    heavy = keys & rules.HEAVY != 0
    if not heavy and keys & rules.LIGHT == 0:
        return moves.NO_MOVE
    down = keys & rules.DOWN != 0
    sideways = keys & (rules.LEFT | rules.RIGHT) != 0
    neutral = keys & rules.UP != 0 or not (down or sideways)
    if heavy and not grounded:
        return moves.GROUNDPOUND if down and not neutral else moves.RECOVERY
    first = moves.NSIG if heavy else (moves.NLIGHT if grounded else moves.NAIR)
    if neutral:
        return first
    return first + 1 if down else first + 2


@inner
def _refresh(player: Any, counter: int) -> None:
    player.jumps[counter], player.recovery_of[counter] = rules.AIR_JUMPS, rules.RECOVERIES


@inner
def _copy_counts(player: Any, source: int, target: int) -> None:
    player.jumps[target], player.recovery_of[target] = (
        player.jumps[source],
        player.recovery_of[source],
    )


@inner
def _counter(state: int) -> int:
    """Returns the index of a state's counters of jumps and recoveries, or -1 for a state without
    counters.
    """
    if state == rules.IN_AIR:
        return _AIR
    if state == rules.AIR_TURNAROUND:
        return _TURN
    if state == rules.ATTACK:
        return _ATTACK
    if state == rules.DODGE:
        return _DODGE
    return _STUN if state == rules.STUN else -1


@inner
def _leave_ground(player: Any) -> int:
    _refresh(player, _AIR)
    player.jump_waits[0] = 0
    return rules.IN_AIR


@inner
def _ground_state(keys: int) -> int:
    return rules.WALKING if _way(keys) != 0 else rules.STANDING


@inner
def _begin_move(player: Any, move: int, counter: int, tables: Any, stats: Any) -> int:
    if counter >= 0:
        _copy_counts(player, counter, _ATTACK)
    else:
        _refresh(player, _ATTACK)
    begin_attack(player, move, tables)
    stats.attacks += 1.0
    return rules.ATTACK


@inner
def _on_ground(
    player: Any, keys: int, pressed: int, on_floor: bool, tables: Any, stats: Any
) -> int:
    """Does the checks that come first in every state on the ground. Returns the next state, or
    `_SAME` if the state does not change.
    """
    direction = _way(keys)
    if pressed & rules.JUMP and on_floor:
        player.vy = -rules.JUMP_SPEED
        if direction != 0:
            player.facing = direction
        stats.jumps += 1.0
        return _leave_ground(player)
    if not on_floor:
        return _leave_ground(player)
    if direction == 0 and pressed & rules.DASH_KEY and player.dodge_wait <= 0:
        player.dodge_wait, player.is_grounded_dodge = rules.DODGE_WAIT_GROUND, 1
        stats.dodges += 1.0
        return rules.DODGE
    move = chosen_move(keys, True)
    if move != moves.NO_MOVE:
        return _begin_move(player, move, -1, tables, stats)
    return rules.TAUNT if pressed & rules.TAUNT_KEY else _SAME


@inner
def _in_air(
    player: Any, keys: int, pressed: int, on_floor: bool, tables: Any, stats: Any, stage: Any
) -> int:
    """Plays a frame in the air, including while the player turns in the air."""
    turns = player.state == rules.AIR_TURNAROUND
    counter, direction = (_TURN if turns else _AIR), _way(keys)
    if not turns and direction == -player.facing:
        _copy_counts(player, _AIR, _TURN)
        player.jump_waits[1] = player.jump_waits[0]
        return rules.AIR_TURNAROUND
    if keys & rules.DOWN and not keys & rules.UP and player.vy > 0.0:
        player.vy = toward(player.vy, rules.MAX_FALL, rules.FAST_FALL_PER_FRAME)
    else:
        player.vy = min(player.vy, rules.MAX_FALL)
    player.vx = toward(player.vx, direction * rules.WALK_SPEED, rules.AIR_STEER_PER_FRAME)
    if on_floor:
        return _ground_state(keys)
    waits = 1 if turns else 0
    if pressed & rules.JUMP and player.jump_waits[waits] <= 0 and player.jumps[counter] > 0:
        player.vy = -rules.JUMP_SPEED
        _face(player, direction, stage)
        player.jump_waits[waits] = rules.AIR_JUMP_WAIT
        player.jumps[counter] -= 1
        stats.jumps += 1.0
    player.jump_waits[waits] = max(player.jump_waits[waits] - 1, 0)
    if pressed & rules.DASH_KEY and player.dodge_wait <= 0:
        player.dodge_wait, player.is_grounded_dodge = rules.DODGE_WAIT_AIR, 0
        _copy_counts(player, counter, _DODGE)
        stats.dodges += 1.0
        return rules.DODGE
    move = chosen_move(keys, False)
    if move == moves.RECOVERY:
        if player.recovery_of[counter] <= 0:
            return _SAME
        player.recovery_of[counter] -= 1
    return _SAME if move == moves.NO_MOVE else _begin_move(player, move, counter, tables, stats)


@inner
def _air_turn(player: Any) -> int:
    if player.state_left > 0:
        player.state_left -= 1
        return _SAME
    ahead = player.facing
    player.facing = -ahead
    if _last_way(player) == ahead:
        return rules.AIR_TURNAROUND
    _copy_counts(player, _TURN, _AIR)
    player.jump_waits[0] = player.jump_waits[1]
    return rules.IN_AIR


@inner
def _turn(player: Any, pressed: int) -> int:
    if player.state_left <= 0:
        ahead, direction = player.facing, _last_way(player)
        player.facing = -ahead
        if direction == -ahead:
            return rules.WALKING
        return rules.TURNAROUND if direction == ahead else rules.STANDING
    if pressed & rules.DASH_KEY:
        return rules.BACKDASH
    player.state_left -= 1
    return _SAME


@inner
def _stand(player: Any, keys: int, pressed: int, stage: Any, match: Any) -> int:
    direction = _way(keys)
    if direction == -player.facing:
        return rules.BACKDASH if pressed & rules.DASH_KEY else rules.TURNAROUND
    if direction != 0:
        return rules.WALKING
    if meets_platform(player, stage, match) and not keys & rules.DOWN:
        player.vx, player.vy = match.platform_vx, match.platform_vy
    else:
        player.vx = toward(player.vx, 0.0, rules.WALK_SPEED)
    return _SAME


@inner
def _walk(player: Any, keys: int, pressed: int, speed: float, stage: Any, match: Any) -> int:
    """Plays a frame of walking or sprinting."""
    ahead = rules.RIGHT if player.facing > 0 else rules.LEFT
    back = rules.LEFT if player.facing > 0 else rules.RIGHT
    if pressed & back or (keys & back and not keys & ahead):
        return rules.BACKDASH if pressed & rules.DASH_KEY else rules.TURNAROUND
    if keys & (ahead | back) == 0:
        return rules.STANDING
    if pressed & rules.DASH_KEY:
        return rules.DASH
    player.vx = player.facing * speed
    walks = player.state == rules.WALKING
    if walks and meets_platform(player, stage, match) and not keys & rules.DOWN:
        player.vx += match.platform_vx
        player.vy += match.platform_vy
    return _SAME


@inner
def _run_for_a_time(player: Any, speed: float, then: int) -> int:
    """Plays a frame of a dash or backdash."""
    player.vx = speed
    player.state_left -= 1
    return _SAME if player.state_left > 0 else then


@inner
def _fly_on(player: Any, source: int) -> int:
    """Continues in the air with the remaining jumps and recoveries in the counter `source`."""
    if player.jumps[source] != _UNKNOWN:
        _copy_counts(player, source, _AIR)
        player.jump_waits[0] = 0
    return rules.IN_AIR


@inner
def _stunned(player: Any, keys: int, on_floor: bool) -> int:
    player.stun_left = max(player.stun_left - 1, 0)
    player.vx = toward(player.vx, 0.0, rules.STUN_DRAG_PER_FRAME)
    if player.stun_left > 0:
        if on_floor and player.vy > 0.0:
            player.vy *= -rules.BOUNCE
        return _SAME
    if on_floor:
        return _ground_state(keys)
    player.jumps[_AIR] = max(player.jumps[_STUN], rules.AIR_JUMPS_AFTER_STUN)
    return rules.IN_AIR


@inner
def _down(player: Any, is_out: bool, stage: Any) -> int:
    if not is_out:
        player.dodge_wait = max(player.dodge_wait - 1, 0)
    player.moved_by_hand = 1
    player.state_left -= 1
    if player.state_left > 0:
        return _SAME
    place(player, stage)
    player.jumps[_AIR], player.recovery_of[_AIR] = 0, 0
    return rules.IN_AIR


@inner
def _decide(
    player: Any, opponent: Any, keys: int, match: Any, stage: Any, tables: Any, stats: Any
) -> int:
    """Plays a frame of the current state, and returns the next state or `_SAME`."""
    pressed, state = keys & ~player.keys, player.state
    is_out = abs(player.x) > stage.blast_x or abs(player.y) > stage.blast_y
    if state == rules.KO:
        return _down(player, is_out, stage)
    if is_out:
        return rules.KO
    if player.stun_due > 0:
        player.stun_left, player.stun_due = player.stun_due, 0
        counter = _counter(state)
        if counter >= 0:
            player.jumps[_STUN] = player.jumps[counter]
        return rules.STUN
    player.dodge_wait = max(player.dodge_wait - 1, 0)
    on_floor = is_on_floor(player, stage, match)
    if state == rules.IN_AIR:
        return _in_air(player, keys, pressed, on_floor, tables, stats, stage)
    if state == rules.AIR_TURNAROUND:
        then = _in_air(player, keys, pressed, on_floor, tables, stats, stage)
        return _air_turn(player) if then == _SAME else then
    if state == rules.ATTACK:
        done = attack(player, opponent, keys, _way(keys), tables, stage)
        if not done:
            return _SAME
        return _ground_state(keys) if on_floor else _fly_on(player, _ATTACK)
    if state == rules.STUN:
        return _stunned(player, keys, on_floor)
    if state == rules.DODGE or state == rules.TAUNT:
        player.state_left -= 1
        if player.state_left > 0:
            return _SAME
        if state == rules.TAUNT or player.is_grounded_dodge:
            return _ground_state(keys)
        return _fly_on(player, _DODGE)
    if state == rules.BACKDASH:
        back = -player.facing * rules.BACKDASH_SPEED
        return _run_for_a_time(player, back, _ground_state(keys))
    then = _on_ground(player, keys, pressed, on_floor, tables, stats)
    if then != _SAME:
        return then
    if state == rules.WALKING:
        return _walk(player, keys, pressed, rules.WALK_SPEED, stage, match)
    if state == rules.SPRINTING:
        return _walk(player, keys, pressed, rules.RUN_SPEED, stage, match)
    if state == rules.TURNAROUND:
        return _turn(player, pressed)
    if state == rules.DASH:
        return _run_for_a_time(player, player.facing * rules.DASH_SPEED, rules.SPRINTING)
    return _stand(player, keys, pressed, stage, match)


@inner
def _enter(player: Any, state: int, keys: int, stage: Any) -> None:
    if player.state == rules.DODGE or player.state == rules.KO:
        player.vx, player.vy = 0.0, 0.0
    if state != rules.ATTACK:
        player.move, player.charged = moves.NO_MOVE, 0
    player.state = state
    if state == rules.ATTACK:
        if keys & (rules.LEFT | rules.RIGHT):
            _face(player, _way(keys), stage)
    elif state == rules.AIR_TURNAROUND:
        player.state_left = rules.TURN_FRAMES
        player.vx /= rules.AIR_TURN_DIVISOR
    elif state == rules.TURNAROUND:
        player.state_left = rules.TURN_FRAMES
    elif state == rules.DASH:
        player.state_left = rules.DASH_FRAMES
    elif state == rules.BACKDASH:
        player.state_left = rules.BACKDASH_FRAMES
    elif state == rules.TAUNT:
        player.state_left = rules.TAUNT_FRAMES
    elif state == rules.DODGE:
        player.state_left = rules.DODGE_FRAMES
        player.vx, player.vy = 0.0, 0.0
    elif state == rules.KO:
        player.state_left, player.stun_due = rules.KO_FRAMES, 0
        player.stocks -= 1
        player.fell = 1
        player.vx, player.vy = 0.0, 0.0
        player.moved_by_hand = 1
    if state != rules.STUN:
        player.stun_left = 0


@inner
def control(
    player: Any, opponent: Any, keys: int, match: Any, stage: Any, tables: Any, stats: Any
) -> None:
    """Turns the keys of a frame into the player's state and velocity."""
    _remember_ways(player, keys, stage.is_fair)
    then = _decide(player, opponent, keys, match, stage, tables, stats)
    player.keys = keys
    player.hurt_x, player.hurt_y = player.x, player.y
    player.vx += player.push_x
    player.vy += player.push_y
    player.push_x, player.push_y = 0.0, 0.0
    if then != _SAME:
        _enter(player, then, keys, stage)


@inner
def show_counts(player: Any) -> None:
    """Writes the remaining jumps and recoveries for observations, from the state's counters."""
    counter = _counter(player.state)
    player.air_jumps = max(player.jumps[counter], 0) if counter >= 0 else 0
    player.recoveries = max(player.recovery_of[counter], 0) if counter >= 0 else 0
