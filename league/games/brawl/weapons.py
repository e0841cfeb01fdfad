"""Weapons on the ground: two spawners, picking up and dropping.

A match has four places for weapons: what its right and its left spawner show, and what the player
of the right and of the left side dropped last (dropping another removes it). Places go by side and
not by seat, so swapped seats meet the same weapons. Frames are those of the match.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numba import njit

from league.games.brawl import moves, rules
from league.games.brawl.layout import PLACES
from league.games.brawl.random_stream import share, stream_of

SPAWNERS: Final = 2
NEVER: Final = 2**30
_NOTHING: Final = moves.UNARMED
_RIGHT_STREAM, _LEFT_STREAM = np.uint64(0xA0761D6478BD642F), np.uint64(0xE7037ED1A0B428DB)


@njit
def _integer(place: Any, least: int, most: int) -> int:
    """An integer from `least` to `most`, both included."""
    return least + int(share(place) * (most - least + 1))


@njit
def begin_weapons(match: Any, seed: Any) -> None:
    """Draws each spawner's cooldown and its first weapon's frame; nothing lies about."""
    for p in range(PLACES):
        place = match.weapons[p]
        place.type, place.x, place.y = _NOTHING, 0.0, 0.0
        place.leaves, place.comes = NEVER, NEVER
        if p < SPAWNERS:
            place.random = stream_of(seed, _RIGHT_STREAM if p == 0 else _LEFT_STREAM)
            place.cooldown = _integer(place, rules.SPAWN_COOLDOWN_LEAST, rules.SPAWN_COOLDOWN_MOST)
            place.comes = _integer(place, 0, rules.SPAWN_FIRST_LATEST)
    match.weapons_lying = 0
    _note_next_change(match)


@njit
def _note_next_change(match: Any) -> None:
    """Until then no weapon appears or disappears."""
    match.weapons_change = NEVER
    for p in range(PLACES):
        match.weapons_change = min(
            match.weapons_change, match.weapons[p].leaves, match.weapons[p].comes
        )


@njit
def _appear(place: Any, p: int, match: Any, stage: Any) -> None:
    place.type = moves.SPEAR if share(place) < 0.5 else moves.HAMMER
    place.x = stage.spawner_near + share(place) * (stage.spawner_far - stage.spawner_near)
    place.y = stage.spawner_right_y
    if p == 1:
        place.x, place.y = -place.x, stage.spawner_left_y
    place.ready = match.frame + rules.SPAWN_READY
    place.leaves, place.comes = match.frame + rules.SPAWN_FRAMES, NEVER


@njit
def _clear(place: Any, p: int, match: Any) -> None:
    """Takes the weapon away; a spawner begins to cool down."""
    place.type, place.leaves, place.x, place.y = _NOTHING, NEVER, 0.0, 0.0
    if p < SPAWNERS:
        wait = place.cooldown * (0.5 + share(place))
        place.comes = match.frame + int(wait)


@njit
def move_weapons(match: Any, stage: Any) -> None:
    """Lets weapons appear and disappear in frame `match.frame`; call it only when something is
    due.
    """
    match.weapons_lying = 0
    for p in range(PLACES):
        place = match.weapons[p]
        if place.leaves <= match.frame:
            _clear(place, p, match)
        if place.comes <= match.frame:
            _appear(place, p, match, stage)
        match.weapons_lying += 1 if place.type != _NOTHING else 0
    _note_next_change(match)


@njit
def drop(player: Any, match: Any) -> None:
    """Leaves the weapon that `player.dropped` names where the player is."""
    place = match.weapons[2 if player.side > 0 else 3]
    match.weapons_lying += 1 if place.type == _NOTHING else 0
    place.type, place.x, place.y = player.dropped, player.x, player.y
    place.ready = match.frame + rules.DROP_READY
    place.leaves = match.frame + rules.DROP_FRAMES
    _note_next_change(match)


@njit
def _distance_to(player: Any, place: Any) -> float:
    """Between the player's upright hurt segment and the weapon's level one, units."""
    dx = max(abs(player.x - place.x) - rules.WEAPON_HALF_SEGMENT, 0.0)
    dy = max(abs(player.y - place.y) - rules.HURT_HALF_SEGMENT, 0.0)
    return math.sqrt(dx * dx + dy * dy)


@njit
def _wants(player: Any) -> bool:
    return (
        player.keys & rules.PICK != 0
        and player.weapon == moves.UNARMED
        and player.dropped == _NOTHING
        and player.state != rules.ATTACK
        and player.state != rules.KO
    )


@njit
def _take(player: Any, place: Any, p: int, match: Any, stats: Any) -> None:
    player.weapon, player.equipped = place.type, place.type
    stats.pickups += 1.0
    match.weapons_lying -= 1
    _clear(place, p, match)


@njit
def pick_up(one: Any, other: Any, match: Any, stats_0: Any, stats_1: Any) -> None:
    """Gives weapons to who holds the key over them; of two who reach for one, the nearer gets it.

    Both at exactly the same distance: neither does. A hand takes the first of the places in reach.
    """
    one_wants, other_wants = _wants(one), _wants(other)
    if not (one_wants or other_wants):
        return
    taken = False
    for p in range(PLACES):
        place = match.weapons[p]
        if place.type == _NOTHING or match.frame < place.ready:
            continue
        by_one = _distance_to(one, place) if one_wants else math.inf
        by_other = _distance_to(other, place) if other_wants else math.inf
        if min(by_one, by_other) >= rules.PICK_REACH or by_one == by_other:
            continue
        taken = True
        if by_one < by_other:
            _take(one, place, p, match, stats_0)
            one_wants = False
        else:
            _take(other, place, p, match, stats_1)
            other_wants = False
    if taken:
        _note_next_change(match)
