"""Adds what one frame did to each seat's reward terms and statistics."""

from __future__ import annotations

import math
from typing import Any

from numba import njit

from league.games.brawl import rules, spec, terms
from league.games.brawl.rules import DT


@njit
def _count_keys(keys: int) -> int:
    count = 0
    while keys:
        keys &= keys - 1
        count += 1
    return count


@njit
def _score_state(me: Any, terms_K: Any) -> None:
    """What a player's own state pays per second."""
    if me.state == rules.KO:
        return
    if me.y >= terms.DANGER_Y:
        terms_K[terms.DANGER_ZONE] -= DT
    if me.state == rules.ATTACK:
        terms_K[terms.ATTACK_STATE] += DT
    if me.state == rules.TAUNT:
        terms_K[terms.TAUNTING] += DT
    if me.state == rules.STANDING:
        terms_K[terms.IDLE] += DT
    terms_K[terms.HEIGHT] -= DT * me.y * me.y


@njit
def _score_place(me: Any, opponent: Any, last_distance: float, distance: float, terms_K: Any) -> None:
    """What movement and place against the opponent pay, while both are on the stage."""
    if not me.moved_by_hand:
        terms_K[terms.TOWARD_MIDDLE] += abs(me.last_x) - abs(me.x)
    if opponent.moved_by_hand:
        return
    # Being placed on one's spawn counts: else every fall would sell the way to the opponent once more.
    terms_K[terms.TOWARD_OPPONENT] += abs(opponent.last_x - me.last_x) - abs(opponent.last_x - me.x)
    if me.moved_by_hand:
        return
    terms_K[terms.CLOSING_DISTANCE] += last_distance - distance
    pressure = (abs(opponent.x) - abs(me.x)) / 7.0
    terms_K[terms.EDGE_PRESSURE] += DT * min(max(pressure, -1.0), 1.0)


@njit
def _score_events(me: Any, opponent: Any, terms_K: Any) -> None:
    terms_K[terms.DAMAGE] += (me.dealt - opponent.dealt) / terms.DAMAGE_SCALE
    terms_K[terms.DAMAGE_DEALT] += me.dealt / terms.DAMAGE_SCALE
    terms_K[terms.DAMAGE_TAKEN] -= opponent.dealt / terms.DAMAGE_SCALE
    terms_K[terms.KNOCKOUT] += opponent.fell - me.fell
    terms_K[terms.COMBO] += me.combos - opponent.combos
    terms_K[terms.EQUIP] += me.equipped  # a spear is weapon 1, a hammer weapon 2
    if me.dropped:
        terms_K[terms.DROP] -= 1.0


@njit
def score(me: Any, opponent: Any, last_distance: float, distance: float, terms_K: Any, stats_S: Any) -> None:
    """One frame of one seat."""
    keys_down = _count_keys(me.keys)
    if keys_down > terms.MANY_KEYS:
        terms_K[terms.MANY_KEYS_HELD] += DT
    _score_state(me, terms_K)
    _score_place(me, opponent, last_distance, distance, terms_K)
    _score_events(me, opponent, terms_K)
    stats_S[spec.DAMAGE_DEALT] += me.dealt
    stats_S[spec.DAMAGE_TAKEN] += opponent.dealt
    stats_S[spec.KNOCKOUTS] += opponent.fell
    stats_S[spec.FALLS] += me.fell
    stats_S[spec.KEYS_PRESSED] += keys_down
    stats_S[spec.DISTANCE_SUM] += distance
    stats_S[spec.SPEED_SUM] += math.sqrt(me.vx * me.vx + me.vy * me.vy)
    if not me.grounded and me.state != rules.KO:
        stats_S[spec.AIR_FRAMES] += 1.0


@njit
def score_end(outcome: float, terms_2K: Any) -> None:
    """Pays the end of a match whose outcome for seat 0 is 1, 0.5 or 0."""
    terms_2K[0, terms.WIN] += 2.0 * outcome - 1.0
    terms_2K[1, terms.WIN] -= 2.0 * outcome - 1.0
