"""Plays a frame of a match: both players act, hit each other, move, and use weapons.

`paid` and `stats` are records of layout.TERMS_ROW and layout.STATS_ROW. The suffixes _0 and _1 mean
seats.
"""

from __future__ import annotations

from typing import Any

from league.games.brawl import rules
from league.games.brawl.compiling import inner
from league.games.brawl.control import control, show_counts
from league.games.brawl.hits import land
from league.games.brawl.layout import MIRROR_DELAY
from league.games.brawl.physics import (
    PLAYERS,
    aim_platform,
    gap,
    is_on_floor,
    move,
    move_platform,
    update_platform_box,
)
from league.games.brawl.scoring import score
from league.games.brawl.weapons import come_and_go, drop, fall, pick_up


@inner
def _begin_frame(player: Any, keys: int, frame: int) -> None:
    player.dealt, player.combos, player.fell, player.moved_by_hand = 0.0, 0, 0, 0
    player.equipped, player.dropped = 0, 0
    player.last_x = player.x
    player.past_keys[frame % MIRROR_DELAY] = keys
    player.last_state = player.state


@inner
def _move_player(player: Any, number: int, stage: Any, match: Any) -> None:
    floats = player.state == rules.DODGE or player.state == rules.KO
    move(
        player,
        number,
        rules.HALF_WIDTH,
        rules.HALF_HEIGHT,
        match.friction,
        0.0 if floats else rules.GRAVITY_PER_FRAME,
        stage,
        match,
    )
    player.grounded = is_on_floor(player, stage, match)
    show_counts(player)


@inner
def _act(
    player_0: Any, player_1: Any, match: Any, stage: Any, tables: Any, stats_0: Any, stats_1: Any
) -> None:
    """Lets both seats turn their keys into states and speeds, and hit each other.

    Seat 0 acts first, and its hit takes effect at once. So if both players would hit in the same
    frame, only seat 0's hit counts. Under the fair rules (docs/game.md), hits take effect after
    both seats have acted.
    """
    if stage.is_fair:
        player_0.hurt_x, player_0.hurt_y = player_0.x, player_0.y
        player_1.hurt_x, player_1.hurt_y = player_1.x, player_1.y
    control(player_0, player_1, match.keys_0, match, stage, tables, stats_0)
    if not stage.is_fair:
        land(player_0, player_1, is_on_floor(player_1, stage, match), stats_0)
    control(player_1, player_0, match.keys_1, match, stage, tables, stats_1)
    if stage.is_fair:
        land(player_0, player_1, is_on_floor(player_1, stage, match), stats_0)
    land(player_1, player_0, is_on_floor(player_0, stage, match), stats_1)


@inner
def _use_weapons(
    player_0: Any,
    player_1: Any,
    pressed_0: int,
    pressed_1: int,
    match: Any,
    stage: Any,
    stats_0: Any,
    stats_1: Any,
) -> None:
    drops_0 = pressed_0 & rules.PICK != 0 and player_0.weapon and player_0.state != rules.ATTACK
    drops_1 = pressed_1 & rules.PICK != 0 and player_1.weapon and player_1.state != rules.ATTACK
    # Dropped weapons are ordered by age. Under the fair rules two weapons can't have the same age,
    # so if both players try to drop in the same frame, neither weapon is dropped.
    both = drops_0 and drops_1 and stage.is_fair
    if drops_0 and not both:
        drop(player_0, match)
    if drops_1 and not both:
        drop(player_1, match)
    if match.weapons_lying > 0:
        pick_up(player_0, player_1, pressed_0, pressed_1, match, stage, stats_0, stats_1)
        fall(match, stage)
    come_and_go(match, stage)


@inner
def play_frame(
    player_0: Any,
    player_1: Any,
    match: Any,
    stage: Any,
    tables: Any,
    paid_0: Any,
    paid_1: Any,
    stats_0: Any,
    stats_1: Any,
) -> None:
    """Plays a frame of a match with the key bits in `match`."""
    last_distance = gap(player_0, player_1)
    match.frame += 1
    pressed_0, pressed_1 = match.keys_0 & ~player_0.keys, match.keys_1 & ~player_1.keys
    _begin_frame(player_0, match.keys_0, match.frame)
    _begin_frame(player_1, match.keys_1, match.frame)
    aim_platform(match, stage)
    _act(player_0, player_1, match, stage, tables, stats_0, stats_1)
    move_platform(match, stage)
    update_platform_box(match, stage)
    _move_player(player_0, PLAYERS, stage, match)
    _move_player(player_1, PLAYERS + 1, stage, match)
    _use_weapons(player_0, player_1, pressed_0, pressed_1, match, stage, stats_0, stats_1)
    distance = gap(player_0, player_1)
    score(player_0, player_1, last_distance, distance, paid_0, stats_0)
    score(player_1, player_0, last_distance, distance, paid_1, stats_1)
