"""Writes the 74 numbers that a seat sees: two halves, and the keys that it held in the last frame.

The seat's own half comes first, then the opponent's, in the same layout. A half depends only on its
player and the match, so both seats see the same two halves, in opposite order.
"""

from __future__ import annotations

import math
from typing import Any, Final

from league.games.brawl import rules
from league.games.brawl.compiling import inner
from league.games.brawl.layout import SLOTS
from league.games.brawl.moves import UNARMED
from league.games.brawl.rules import KEY_NAMES
from league.games.brawl.variation import blur
from league.games.brawl.weapons import SPAWNERS

VELOCITY_SCALE: Final = 12.0
MOST_SPEED: Final = 10.0
"""Larger speeds are shown as this speed, as in the original game."""
STUN_SCALE: Final = 17.0
_RANDOM: Final = 1
"""The type that every weapon on a spawner shows. A dropped weapon shows its type plus 1."""


@inner
def _clipped(value: float) -> float:
    return min(max(value, -1.0), 1.0)


@inner
def _squashed(speed: float) -> float:
    """Returns tanh(speed / 12). The exponential takes a third of the time of `math.tanh`."""
    speed = min(max(speed, -MOST_SPEED), MOST_SPEED)
    return 1.0 - 2.0 / (math.exp(speed * (2.0 / VELOCITY_SCALE)) + 1.0)


@inner
def _write_player(half: Any, player: Any) -> None:
    """Writes a player's numbers, scaled to [-1, 1]."""
    half.x = _clipped(player.x / 14.0)
    half.y = min(max(player.y, -7.0), 7.0) / 8.0
    half.vx = _squashed(player.vx)
    half.vy = _squashed(player.vy)
    half.facing = player.facing
    half.grounded = player.grounded
    half.aerial = 1 - player.grounded
    half.air_jumps = player.air_jumps / 2.0
    half.state = player.state / 12.0
    half.recoveries = player.recoveries
    half.dodge_left = player.state_left / 10.0 if player.state == rules.DODGE else 0.0
    half.stun_left = min(player.stun_left / STUN_SCALE, 1.0)
    half.damage = player.damage / rules.MAX_DAMAGE
    half.stocks = player.stocks / 3.0
    half.move = player.move / 12.0
    half.weapon = player.weapon / 2.0


@inner
def _write_match(half: Any, other: Any, match: Any) -> None:
    """Writes weapons and platform, scaled to [-1, 1], into both halves."""
    for p in range(SLOTS):
        kind = match.weapons[p].type
        shown = 0 if kind == UNARMED else (_RANDOM if p < SPAWNERS else kind + 1)
        half.slots[p, 0] = other.slots[p, 0] = _clipped(match.weapons[p].shown_x / 14.0)
        half.slots[p, 1] = other.slots[p, 1] = min(max(match.weapons[p].shown_y, -7.0), 7.0) / 8.0
        half.slots[p, 2] = other.slots[p, 2] = shown / 3.0
    half.platform_x = other.platform_x = match.platform_x / 14.0
    half.platform_y = other.platform_y = match.platform_y / 8.0
    half.platform_vx = other.platform_vx = match.platform_vx / 2.0
    half.platform_vy = other.platform_vy = match.platform_vy / 2.0


@inner
def write_views(
    view_0: Any, view_1: Any, player_0: Any, player_1: Any, match: Any, stage: Any
) -> None:
    """Writes each seat's view, a record of layout.OBSERVATION."""
    _write_player(view_0.own, player_0)
    _write_player(view_1.own, player_1)
    _write_match(view_0.own, view_1.own, match)
    if stage.variation > 0.0:
        blur(view_0.own, match, stage)
        blur(view_1.own, match, stage)
    view_0.opponent = view_1.own
    view_1.opponent = view_0.own
    for key in range(len(KEY_NAMES)):
        view_0.keys[key] = player_0.keys >> key & 1
        view_1.keys[key] = player_1.keys >> key & 1
