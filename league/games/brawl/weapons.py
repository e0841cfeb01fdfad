"""Spawns weapons, and lets players take and drop them.

A match has six places: the right spawner, the left spawner, and four places for dropped weapons,
the oldest first. No match needs more places: a spawner waits while a dropped weapon lies on the
stage, so there are never more than four weapons, two from the spawners and two from the players'
hands. A weapon falls like a body and comes to rest on a ground or the platform. Frames count from
the start of the match.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from league.games.brawl import moves, rules
from league.games.brawl.compiling import inner
from league.games.brawl.hits import touches
from league.games.brawl.layout import PLACES, SOLIDS
from league.games.brawl.physics import NO_BOX, move
from league.games.brawl.random_stream import share, stream_of

SPAWNERS: Final = 2
NEVER: Final = 2**30
_NOTHING: Final = moves.UNARMED
_NO_SLIDING: Final = 1e9
_RIGHT_STREAM, _LEFT_STREAM = np.uint64(0xA0761D6478BD642F), np.uint64(0xE7037ED1A0B428DB)


@inner
def _integer(slot: Any, least: int, most: int) -> int:
    """Draws an integer from `least` to `most`, inclusive."""
    return least + int(share(slot) * (most - least + 1))


@inner
def begin_weapons(match: Any, seed: Any) -> None:
    """Empties all places, and draws each spawner's cooldown and the frame of its first weapon."""
    for p in range(PLACES):
        slot = match.weapons[p]
        slot.type, slot.leaves, slot.comes = _NOTHING, NEVER, NEVER
        slot.x, slot.y, slot.shown_x, slot.shown_y = 0.0, 0.0, 0.0, 0.0
        if p < SPAWNERS:
            slot.random = stream_of(seed, _RIGHT_STREAM if p == 0 else _LEFT_STREAM)
            slot.cooldown = _integer(slot, rules.SPAWN_COOLDOWN_LEAST, rules.SPAWN_COOLDOWN_MOST)
            slot.comes = max(_integer(slot, 0, rules.SPAWN_FIRST_LATEST), 1)
    match.weapons_lying, match.last_cleared = 0, 0


@inner
def _lay(slot: Any, kind: int, x: float, y: float, match: Any) -> None:
    slot.type, slot.x, slot.y = kind, x, y
    slot.shown_x, slot.shown_y = x, y
    slot.vx, slot.vy, slot.bias_vx, slot.bias_vy = 0.0, 0.0, 0.0, 0.0
    for k in range(SOLIDS + 1):
        slot.normal[k], slot.frames_apart[k] = 0, 0
        slot.normal_impulse[k], slot.friction_impulse[k] = 0.0, 0.0
    match.weapons_lying += 1


@inner
def _clear(slot: Any, p: int, match: Any, since: int) -> None:
    """Removes the weapon in place `p`. If `p` is a spawner, the spawner's wait for its next weapon
    begins in frame `since`.
    """
    match.weapons_lying -= 1
    if p < SPAWNERS:
        least, most = int(slot.cooldown * 0.5), int(slot.cooldown * 1.5)
        slot.comes = since + _integer(slot, least, most)
    else:
        match.last_cleared = match.frame
        while p < PLACES - 1 and match.weapons[p + 1].type != _NOTHING:  # newer weapons move up
            match.weapons[p] = match.weapons[p + 1]
            p += 1
        slot = match.weapons[p]
    slot.type, slot.leaves = _NOTHING, NEVER
    slot.x, slot.y, slot.shown_x, slot.shown_y = 0.0, 0.0, 0.0, 0.0


@inner
def fall(match: Any, stage: Any) -> None:
    """Moves all weapons on the stage by one frame."""
    for p in range(PLACES):
        slot = match.weapons[p]
        is_new = p >= SPAWNERS and slot.ready > match.frame
        if slot.type != _NOTHING and not is_new:
            move(
                slot,
                NO_BOX,
                rules.WEAPON_HALF_WIDTH,
                rules.WEAPON_HALF_HEIGHT,
                _NO_SLIDING,
                rules.GRAVITY_PER_FRAME,
                stage,
                match,
            )


@inner
def come_and_go(match: Any, stage: Any) -> None:
    """Removes old weapons, and spawns new weapons while no dropped weapon lies on the stage.

    In the frame that removes the last dropped weapon, no weapon spawns yet.
    """
    while match.weapons[SPAWNERS].leaves <= match.frame:  # the oldest weapon leaves first
        _clear(match.weapons[SPAWNERS], SPAWNERS, match, match.frame)
    waits = match.weapons[SPAWNERS].type != _NOTHING or match.last_cleared == match.frame
    for p in range(SPAWNERS):
        slot = match.weapons[p]
        if slot.type != _NOTHING:
            if slot.leaves <= match.frame:
                _clear(slot, p, match, slot.leaves - rules.SPAWN_FRAMES)
        elif slot.comes <= match.frame and not waits:
            kind = moves.SPEAR if share(slot) < 0.5 else moves.HAMMER
            x = stage.spawner_near + share(slot) * (stage.spawner_far - stage.spawner_near)
            _lay(
                slot,
                kind,
                x if p == 0 else -x,
                stage.spawner_right_y if p == 0 else stage.spawner_left_y,
                match,
            )
            slot.ready = match.frame + rules.SPAWN_READY
            slot.leaves = match.frame + rules.SPAWN_FRAMES


@inner
def drop(player: Any, match: Any) -> None:
    """Drops the weapon in a player's hand next to the player."""
    p = SPAWNERS
    while p < PLACES - 1 and match.weapons[p].type != _NOTHING:
        p += 1
    player.dropped, player.weapon = player.weapon, moves.UNARMED
    slot = match.weapons[p]
    x = player.x + player.facing * rules.DROP_AHEAD
    _lay(slot, player.dropped, x, player.y + rules.DROP_BELOW, match)
    slot.ready, slot.leaves = match.frame + 1, match.frame + rules.DROP_FRAMES
    player.no_pick_until = match.frame + rules.DROP_READY


@inner
def _takes(player: Any, pressed: int, slot: Any, p: int, match: Any, stage: Any) -> bool:
    if player.weapon != moves.UNARMED or player.state == rules.ATTACK:
        return False
    if slot.type == _NOTHING or match.frame < slot.ready:
        return False
    if p < SPAWNERS:
        if not player.keys & rules.PICK:
            return False
    elif not pressed & rules.PICK or match.frame < player.no_pick_until:
        return False
    height = rules.WEAPON_HEIGHT if p < SPAWNERS else rules.DROPPED_HEIGHT
    return touches(player, slot.x, slot.y, rules.WEAPON_WIDTH, height, stage)


@inner
def _take(player: Any, slot: Any, p: int, match: Any, stats: Any) -> None:
    player.weapon, player.equipped = slot.type, slot.type
    stats.pickups += 1.0
    _clear(slot, p, match, match.frame)


@inner
def _distance(player: Any, slot: Any) -> float:
    dx, dy = player.hurt_x - slot.x, player.hurt_y - slot.y
    return dx * dx + dy * dy


@inner
def pick_up(
    player_0: Any,
    player_1: Any,
    pressed_0: int,
    pressed_1: int,
    match: Any,
    stage: Any,
    stats_0: Any,
    stats_1: Any,
) -> None:
    """Gives weapons to players in reach. To take a spawner's weapon, a player has to hold the key.
    To take a dropped weapon, the player has to press the key in this frame.

    If several weapons are within reach, a player takes the weapon whose place comes first. If both
    players reach a weapon, seat 0 gets it. Under the fair rules, the nearer player gets it, and if
    both are equally near, neither player gets it.
    """
    p = 0
    while p < PLACES:
        slot = match.weapons[p]
        if slot.type == _NOTHING:
            p += 1
            continue
        takes_0 = _takes(player_0, pressed_0, slot, p, match, stage)
        takes_1 = _takes(player_1, pressed_1, slot, p, match, stage)
        if takes_0 and takes_1 and stage.is_fair:
            distance_0, distance_1 = _distance(player_0, slot), _distance(player_1, slot)
            takes_0, takes_1 = distance_0 < distance_1, distance_1 < distance_0
        if takes_0:
            _take(player_0, slot, p, match, stats_0)
        elif takes_1:
            _take(player_1, slot, p, match, stats_1)
        if p < SPAWNERS or not (takes_0 or takes_1):  # otherwise the next weapon has moved up to p
            p += 1
