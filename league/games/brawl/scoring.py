"""Adds the events of a frame to each seat's reward terms and statistics.

`paid` is a record of layout.TERMS_ROW, `stats` a record of layout.STATS_ROW.
"""

from __future__ import annotations

import math
from typing import Any

from league.games.brawl import rewards, rules
from league.games.brawl.compiling import inner
from league.games.brawl.rules import DT


@inner
def _count_keys(keys: int) -> int:
    """Counts the held keys, without branches, because a CPU can't predict random keys."""
    pairs = (keys & 0b0101010101) + (keys >> 1 & 0b0101010101)
    return (pairs & 3) + (pairs >> 2 & 3) + (pairs >> 4 & 3) + (pairs >> 6 & 3) + (pairs >> 8 & 3)


@inner
def _score_state(me: Any, paid: Any) -> None:
    """Adds the terms that are paid per second for a player's own state."""
    if me.y >= rewards.DANGER_Y:
        paid.danger_zone -= DT
    if me.state == rules.ATTACK:
        paid.attack_state += DT
    if me.state == rules.TAUNT:
        paid.taunt += DT
    if me.state == rules.STANDING:
        paid.idle += DT
    paid.height -= DT * me.y * me.y


@inner
def _score_place(me: Any, opponent: Any, last_distance: float, distance: float, paid: Any) -> None:
    """Adds the terms of movement and position. A knock-out or respawn suspends most of them."""
    if not me.moved_by_hand:
        paid.toward_middle += abs(me.last_x) - abs(me.x)
    if opponent.moved_by_hand:
        return
    # The change of position by a respawn counts too. Otherwise a player would be paid again for its
    # way to the opponent after every fall.
    paid.toward_opponent += abs(opponent.last_x - me.last_x) - abs(opponent.last_x - me.x)
    if me.moved_by_hand:
        return
    paid.closing_distance += last_distance - distance
    pressure = (abs(opponent.x) - abs(me.x)) / 7.0
    paid.edge_pressure += DT * min(max(pressure, -1.0), 1.0)


@inner
def _score_events(me: Any, opponent: Any, paid: Any) -> None:
    paid.damage += (me.dealt - opponent.dealt) / rewards.DAMAGE_SCALE
    paid.damage_dealt += me.dealt / rewards.DAMAGE_SCALE
    paid.damage_taken -= opponent.dealt / rewards.DAMAGE_SCALE
    paid.knockout += opponent.fell - me.fell
    paid.combo += me.combos - opponent.combos
    paid.equip += me.equipped  # a spear is weapon 1, a hammer weapon 2
    if me.dropped:
        paid.drop -= 1.0


@inner
def score(
    me: Any, opponent: Any, last_distance: float, distance: float, paid: Any, stats: Any
) -> None:
    """Adds the terms and statistics of `me` for a frame. `last_distance` is the distance between
    the players before the frame, and `distance` after it.
    """
    keys_down = _count_keys(me.keys)
    if keys_down > rewards.MANY_KEYS:
        paid.many_keys += DT
    _score_state(me, paid)
    _score_place(me, opponent, last_distance, distance, paid)
    _score_events(me, opponent, paid)
    stats.damage_dealt += me.dealt
    stats.damage_taken += opponent.dealt
    stats.knockouts += opponent.fell
    stats.falls += me.fell
    stats.keys_pressed += keys_down
    stats.distance_sum += distance
    stats.speed_sum += math.sqrt(me.vx * me.vx + me.vy * me.vy)
    if not me.grounded and me.state != rules.KO:
        stats.air_frames += 1.0


@inner
def score_end(outcome: float, paid_0: Any, paid_1: Any) -> None:
    """Adds the `win` term at the end of a match. `outcome` is 1, 0.5 or 0 for seat 0."""
    paid_0.win += 2.0 * outcome - 1.0
    paid_1.win -= 2.0 * outcome - 1.0
