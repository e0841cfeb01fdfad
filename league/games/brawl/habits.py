"""Plays the bots whose habits are drawn for each match: `camper`, `fencer` and `platform_holder`.

A bot without habits plays the same way in each match, so an agent needs to learn only a single
answer to it. But the rule-based agents that people write differ in where they wait, how near they
let an opponent come and when they strike. `me` and `opponent` are records of layout.PLAYER.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from league.games.brawl import moves, rules
from league.games.brawl.compiling import inner
from league.games.brawl.physics import gap
from league.games.brawl.random_stream import share, stream_of
from league.games.brawl.tactics import (
    back_on_stage,
    go,
    is_off_stage,
    leap,
    nearest_weapon,
    reach_of,
    walk,
)

CAMPS: Final = (2.5, 6.5)
"""Smallest and largest distance of a camp (a bot's waiting place) from the stage's middle, in
units.
"""
ON_PLATFORM: Final = 0.35
"""Share of matches in which the camp is the moving platform."""
_HABIT_SALT: Final = 1 << 40
(CAMP, SIDE, MOVES_CAMP, STAYS, DODGES, REACH, FAVOURITE, DISTANCE) = range(8)
(HOPS, FETCHES, HUNTS_ARMED, SLOWNESS, READINESS, FOLLOWS, WAITS, COMES_IN) = range(8, 16)
_WORTH: Final = 16
"""Number of the habit that weighs move type 0. The habit `_WORTH + m` weighs move type m."""


@inner
def habit(match: Any, me: Any, number: int) -> float:
    """Returns the value in [0, 1) of a player's habit, which is constant in a match."""
    salt = np.uint64(_HABIT_SALT + 2 * number + (1 if me.side > 0 else 0))
    return (stream_of(match.seed, salt) >> np.uint64(11)) * 2.0**-53


@inner
def _ride(me: Any, match: Any, stage: Any) -> int:
    """Returns the keys that bring a player onto the moving platform and keep it there."""
    frame, dx = match.frame, match.platform_x - me.x
    if not is_off_stage(me, stage):
        if abs(dx) < 0.3:
            return 0
        keys = walk(dx)
        pit = stage.solids[0, 0]
        if pit - 0.3 < abs(me.x) < pit + 1.0 and frame % 2 == 0:
            keys |= rules.JUMP
        return keys
    below = me.y > match.platform_y - 0.3
    if below and (abs(dx) > 1.5 or me.air_jumps == 0):
        return back_on_stage(me, me.x, frame, stage)
    if below and abs(dx) < 1.4:  # around the platform's edge
        return walk(-dx) | (rules.JUMP if me.vy > 0.0 and frame % 2 == 0 else 0)
    keys = walk(dx) if abs(dx) > 0.2 else 0
    near = match.platform_y - me.y < 1.0
    if me.vy > 0.0 and near and abs(dx) > 1.0 and me.air_jumps > 0 and frame % 2 == 0:
        keys |= rules.JUMP
    return keys


@inner
def _wait(me: Any, match: Any, stage: Any, side: int) -> int:
    """Returns the keys that take the player to its camp: a place on `side`, or the platform."""
    where = habit(match, me, CAMP)
    if where < ON_PLATFORM:
        return _ride(me, match, stage)
    away = (where - ON_PLATFORM) / (1.0 - ON_PLATFORM)
    return go(me, (CAMPS[0] + (CAMPS[1] - CAMPS[0]) * away) * side, match.frame, stage)


@inner
def _guard(me: Any, opponent: Any, match: Any) -> int:
    """Returns the keys of a platform holder's attack, or 0 if there is no platform below it.

    It pounds an opponent below, for which it jumps first, and strikes an opponent above.
    """
    dx, dy = opponent.x - me.x, opponent.y - me.y
    on_top = abs(me.x - match.platform_x) < 1.0 and me.y < match.platform_y
    if not on_top or opponent.state == rules.KO:
        return 0
    if abs(dx) > 0.9 + 1.2 * habit(match, me, REACH) or abs(dy) > 3.5:
        return 0
    if share(me) > 0.3 + 0.7 * habit(match, me, READINESS):
        return 0
    if dy < -0.5:
        return rules.HEAVY if me.grounded or me.recoveries > 0 else 0
    if dy < 0.5:
        return walk(dx) | rules.LIGHT
    if me.grounded:
        return rules.JUMP if match.frame % 2 == 0 else 0
    return rules.DOWN | rules.HEAVY


@inner
def platform_holder(me: Any, opponent: Any, match: Any, stage: Any) -> int:
    """Stays on the moving platform over the pit, and attacks opponents below, beside and above it.

    Its habits decide how far and how readily it attacks, and how it jumps and dodges.
    """
    guard = _guard(me, opponent, match)
    if guard != 0:
        return guard
    attacked = gap(me, opponent) < 2.5 and opponent.state == rules.ATTACK
    dodges = me.grounded and attacked and me.dodge_wait == 0
    if dodges and share(me) < 0.5 * habit(match, me, DODGES):
        return rules.DASH_KEY
    keys, hops = _ride(me, match, stage), habit(match, me, HOPS)
    if keys == 0 and hops > 0.4 and match.frame % int(60 * hops - 10) == 0:
        return rules.JUMP
    return keys


@inner
def _strike(match: Any, me: Any, dx: float) -> int:
    """Returns the keys of an attack: light or heavy, neutral or sideways.

    Most attacks are the player's favourite, which is a habit. A player that looks the other way
    turns first.
    """
    favourite = habit(match, me, FAVOURITE) if share(me) < 0.8 else share(me)
    if dx * me.facing < 0.0:
        return walk(dx)
    if favourite < 0.35:
        return rules.LIGHT
    if favourite < 0.7:
        return walk(dx) | rules.LIGHT
    return rules.HEAVY if favourite < 0.85 else walk(dx) | rules.HEAVY


@inner
def camper(me: Any, opponent: Any, match: Any, stage: Any) -> int:
    """Waits at a camp, if possible with a weapon, and strikes an opponent that comes near.

    Its habits decide where the camp is and how long it stays there, how far it goes for a weapon,
    whether it attacks once it is armed, how near it lets an opponent come, and how it strikes,
    jumps and dodges.
    """
    frame, near = match.frame, gap(me, opponent)
    side = me.side if habit(match, me, SIDE) < 0.6 else -me.side
    stays = int(150 + 450 * habit(match, me, STAYS))
    if habit(match, me, MOVES_CAMP) < 0.4 and frame // stays % 2 == 1:
        side = -side
    fetches, hunts = False, False
    keys = _wait(me, match, stage, side)
    if me.weapon == moves.UNARMED:
        nearest = nearest_weapon(me, match)
        if nearest >= 0:
            away = abs(match.weapons[nearest].x - me.x)
            if away < 16.0 * habit(match, me, FETCHES) - 4.0:
                keys, fetches = go(me, match.weapons[nearest].x, frame, stage), away < 1.0
    elif habit(match, me, HUNTS_ARMED) < 0.5:
        keys, hunts = go(me, opponent.x, frame, stage), True
    if is_off_stage(me, stage):
        return keys
    attacked = near < 2.5 and opponent.state == rules.ATTACK
    if attacked and me.dodge_wait == 0 and share(me) < 0.5 * habit(match, me, DODGES):
        return rules.DASH_KEY
    dx, dy = opponent.x - me.x, opponent.y - me.y
    reach = reach_of(me) * (0.8 + 0.5 * habit(match, me, REACH))
    if opponent.state != rules.KO and abs(dx) < reach and abs(dy) < 1.2:
        return _strike(match, me, dx)
    keeps = 6.0 * habit(match, me, DISTANCE) - 2.5
    if fetches:
        keys |= rules.PICK
    elif near < keeps and opponent.stun_left == 0 and opponent.state != rules.KO:
        keys = go(me, me.x - 2.0 * (1.0 if dx > 0.0 else -1.0), frame, stage)
    elif keys == 0 and near < 4.0 and dx * me.facing < 0.0:
        keys = walk(dx)
    hops = habit(match, me, HOPS)
    if hops > 0.4 and frame % int(60 * hops - 10) == 0:
        keys |= rules.JUMP
    return keys | leap(me, opponent, frame) if hunts else keys


def _first_hits() -> NDArray[np.float64]:
    """Returns for each attack the frame of its first hit, the area of this hit, and the damage.

    Heavy attacks on the ground are assumed to be released as soon as possible.

    Returns:
        For each weapon and move: the frame, the area relative to the attacker (left, right, top and
        bottom, in units, for an attacker that faces right), and the damage. All numbers are -1 for
        moves that the weapon lacks.
    """
    hits_WM6 = np.full((len(moves.WEAPON_NAMES), moves.MOVE_TYPES, 6), -1.0)
    for (weapon, move), powers in moves.all_moves().items():
        frame, power = 0, 0
        while power >= 0 and hits_WM6[weapon, move, 0] < 0.0:
            for cast in powers[power].casts:
                if cast.boxes and hits_WM6[weapon, move, 0] < 0.0:
                    x, y, width, height = np.array(cast.boxes).T
                    sides = (x - width / 2, x + width / 2, y - height / 2, y + height / 2)
                    area = sides[0].min(), sides[1].max(), sides[2].min(), sides[3].max()
                    damage = sum(max(part.damage for part in each.casts) for each in powers)
                    hits_WM6[weapon, move] = (frame + cast.startup, *area, damage)
                frame += cast.startup + cast.active
            power = powers[power].miss
    return hits_WM6


_HITS_WM6 = _first_hits()


@inner
def _will_hit(attacker: Any, target: Any, move: int, frames: float, margin: float) -> bool:
    """Returns whether a move will hit the target after `frames` if both players keep their speeds.

    `margin` shrinks the target's body, in units on each side. A negative margin enlarges it.
    """
    hit = _HITS_WM6[attacker.weapon, move]
    if hit[0] < 0.0:
        return False
    seconds = frames * rules.DT
    fall = 0.0 if target.grounded else 0.5 * rules.GRAVITY_PER_FRAME * frames * seconds
    own_fall = 0.0 if attacker.grounded else 0.5 * rules.GRAVITY_PER_FRAME * frames * seconds
    dx = target.x - attacker.x + (target.vx - (0.0 if attacker.grounded else attacker.vx)) * seconds
    dy = target.y - attacker.y + (target.vy - attacker.vy) * seconds + fall - own_fall
    facing = (1.0 if dx > 0.0 else -1.0) if attacker.state != rules.ATTACK else attacker.facing
    half_width, half_height = rules.HURT_WIDTH / 2.0 - margin, rules.HURT_HEIGHT / 2.0 - margin
    ahead = dx * facing
    return (
        hit[1] - half_width < ahead < hit[2] + half_width
        and hit[3] - half_height < dy < hit[4] + half_height
    )


@inner
def _keys_of(move: int, dx: float) -> int:
    """Returns the keys that start a move in the direction of `dx`."""
    if move == moves.NLIGHT or move == moves.NAIR:
        return rules.LIGHT
    if move == moves.SLIGHT or move == moves.SAIR:
        return walk(dx) | rules.LIGHT
    if move == moves.DLIGHT or move == moves.DAIR:
        return rules.DOWN | rules.LIGHT
    if move == moves.SSIG:
        return walk(dx) | rules.HEAVY
    if move == moves.DSIG:
        return rules.DOWN | rules.HEAVY
    return rules.HEAVY


@inner
def _thrust(me: Any, opponent: Any, match: Any, stage: Any) -> int:
    """Returns the keys of the best attack that will hit, or 0 if no attack will hit.

    An attack's value is its damage divided by its frames, weighted by the habit for the move.
    """
    if opponent.state == rules.KO or (opponent.state == rules.DODGE and opponent.state_left > 4):
        return 0
    dx = opponent.x - me.x
    best, most = -1, 0.0
    patience = 0.03 * habit(match, me, FAVOURITE)
    first, last = (moves.NLIGHT, moves.SSIG) if me.grounded else (moves.NAIR, moves.RECOVERY)
    for move in range(first, last + 1):
        hit = _HITS_WM6[me.weapon, move]
        if move == moves.RECOVERY and (me.recoveries == 0 or is_off_stage(me, stage)):
            continue
        if hit[0] > 20.0 and opponent.stun_left == 0 and share(me) > patience:
            continue  # a heavy attack takes more than a second
        if not _will_hit(me, opponent, move, hit[0] + 1.0, 0.1):
            continue
        worth = hit[5] * (0.4 + 1.2 * habit(match, me, _WORTH + move)) / (10.0 + hit[0])
        if worth > most:
            best, most = move, worth
    if best < 0:
        return 0
    turns = dx * me.facing < 0.0 and abs(dx) > 0.2
    if turns and best != moves.SLIGHT and best != moves.SAIR and best != moves.SSIG:
        return walk(dx)
    return _keys_of(best, dx)


@inner
def _is_threatened(me: Any, opponent: Any, within: float) -> bool:
    """Returns whether the opponent's attack will hit in the next `within` frames."""
    if opponent.state != rules.ATTACK:
        return False
    left = _HITS_WM6[opponent.weapon, opponent.move, 0] - opponent.move_frame
    return -2.0 <= left <= within and _will_hit(opponent, me, opponent.move, max(left, 0.0), -0.3)


@inner
def fencer(me: Any, opponent: Any, match: Any, stage: Any) -> int:
    """Attacks when an attack will hit, and otherwise dodges and keeps out of reach.

    Its habits decide where and at which distance it waits, which attacks it prefers, how readily it
    attacks, and how often it dodges, fetches weapons, comes in and follows a stunned opponent.
    """
    frame = match.frame
    if me.state == rules.ATTACK:  # presses no key, because a held key would charge a heavy attack
        return back_on_stage(me, opponent.x, frame, stage) if is_off_stage(me, stage) else 0
    threatened = _is_threatened(me, opponent, 3.0)
    if threatened and me.dodge_wait == 0 and share(me) < 0.35 * habit(match, me, DODGES):
        return rules.DASH_KEY
    thrust = _thrust(me, opponent, match, stage)
    if thrust and share(me) < 0.35 + 0.6 * habit(match, me, READINESS):
        return thrust
    if is_off_stage(me, stage):
        return back_on_stage(me, opponent.x, frame, stage)
    dx, near = opponent.x - me.x, gap(me, opponent)
    if me.weapon == moves.UNARMED and near > 1.5:
        nearest = nearest_weapon(me, match)
        if nearest >= 0 and share(me) < 0.95:
            weapon = match.weapons[nearest]
            away = abs(weapon.x - me.x)
            if away < 20.0 * habit(match, me, FETCHES) - 2.0:
                keys = go(me, weapon.x, frame, stage)
                if weapon.y < me.y - 1.5 and frame % 2 == 0 and (me.grounded or me.vy > 0.0):
                    keys |= rules.JUMP
                return keys | rules.PICK if away < 1.0 and frame % 2 == 0 else keys
    if opponent.state == rules.KO:
        return _wait(me, match, stage, me.side)
    if opponent.stun_left > 3 and habit(match, me, FOLLOWS) < 0.8:
        return go(me, opponent.x, frame, stage) | leap(me, opponent, frame)
    if habit(match, me, WAITS) < 0.35 and near > 4.0:
        return _wait(me, match, stage, me.side)
    comes_in = frame % 120 < 120.0 * habit(match, me, COMES_IN)
    wanted = 0.6 if comes_in else 1.0 + 2.5 * habit(match, me, DISTANCE)
    if near > wanted + 0.4:
        return go(me, opponent.x, frame, stage) | leap(me, opponent, frame)
    if near < wanted - 0.4:
        return go(me, me.x - (1.5 if dx > 0.0 else -1.5), frame, stage)
    hops = habit(match, me, HOPS)
    if hops > 0.5 and frame % int(50 * hops) == 0:
        return rules.JUMP
    return walk(dx) if dx * me.facing < 0.0 else 0
