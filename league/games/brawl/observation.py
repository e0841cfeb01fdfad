"""The 64 numbers that a seat sees: its own half, then the opponent's, both laid out alike.

Each half is a function of its own player and the match alone, so the view is the same from each seat.
"""

from __future__ import annotations

import math
from typing import Any, Final

from numba import njit

from league.games.brawl import rules, spec
from league.games.brawl.weapons import PLACES

VELOCITY_SCALE: Final = 12.0
STUN_SCALE: Final = 17.0
FIELDS: Final = (
    *("x", "y", "vx", "vy", "facing", "grounded", "aerial", "air_jumps", "state", "recoveries"),
    *("dodge_left", "stun_left", "damage", "stocks", "move", "weapon"),
    *(f"slot{slot}_{field}" for slot in range(4) for field in ("x", "y", "type")),
    *("platform_x", "platform_y", "platform_vx", "platform_vy"),
)
"""What stands where in a half."""
_WEAPONS_AT = FIELDS.index("slot0_x")
_PLATFORM_AT = FIELDS.index("platform_x")


@njit
def _clipped(value: float) -> float:
    return min(max(value, -1.0), 1.0)


@njit
def _write_half(out_O: Any, player: Any, weapons_4: Any, match: Any) -> None:
    """Scaled to [-1, 1]."""
    out_O[0] = _clipped(player.x / 14.0)
    out_O[1] = _clipped(player.y / 8.0)
    out_O[2] = math.tanh(player.vx / VELOCITY_SCALE)
    out_O[3] = math.tanh(player.vy / VELOCITY_SCALE)
    out_O[4] = player.facing
    out_O[5] = player.grounded
    out_O[6] = 1 - player.grounded
    out_O[7] = player.air_jumps / 2.0
    out_O[8] = player.state / 12.0
    out_O[9] = player.recoveries
    out_O[10] = player.state_left / 10.0 if player.state == rules.DODGE else 0.0
    out_O[11] = min(player.stun_left / STUN_SCALE, 1.0)
    out_O[12] = player.damage / rules.MAX_DAMAGE
    out_O[13] = player.stocks / 3.0
    out_O[14] = player.move / 12.0
    out_O[15] = player.weapon / 2.0
    for p in range(PLACES):
        place = weapons_4[p]
        out_O[_WEAPONS_AT + 3 * p] = _clipped(place.x / 14.0)
        out_O[_WEAPONS_AT + 3 * p + 1] = _clipped(place.y / 8.0)
        out_O[_WEAPONS_AT + 3 * p + 2] = place.type / 3.0
    out_O[_PLATFORM_AT] = match.platform_x / 14.0
    out_O[_PLATFORM_AT + 1] = match.platform_y / 8.0
    out_O[_PLATFORM_AT + 2] = match.platform_vx / 2.0
    out_O[_PLATFORM_AT + 3] = match.platform_vy / 2.0


@njit
def _write_raw_half(out_O: Any, player: Any, weapons_4: Any, match: Any) -> None:
    """The same fields in units of the game."""
    out_O[0], out_O[1], out_O[2], out_O[3] = player.x, player.y, player.vx, player.vy
    out_O[4], out_O[5], out_O[6] = player.facing, player.grounded, 1 - player.grounded
    out_O[7], out_O[8], out_O[9] = player.air_jumps, player.state, player.recoveries
    out_O[10] = player.state_left if player.state == rules.DODGE else 0
    out_O[11], out_O[12], out_O[13] = player.stun_left, player.damage, player.stocks
    out_O[14], out_O[15] = player.move, player.weapon
    for p in range(PLACES):
        place = weapons_4[p]
        out_O[_WEAPONS_AT + 3 * p], out_O[_WEAPONS_AT + 3 * p + 1] = place.x, place.y
        out_O[_WEAPONS_AT + 3 * p + 2] = place.type
    out_O[_PLATFORM_AT], out_O[_PLATFORM_AT + 1] = match.platform_x, match.platform_y
    out_O[_PLATFORM_AT + 2], out_O[_PLATFORM_AT + 3] = match.platform_vx, match.platform_vy


@njit
def observe(out_2O: Any, players_2: Any, weapons_4: Any, match: Any, raw: bool) -> None:
    """Writes both seats' views of one match into float32 out_2O."""
    half = spec.OWN_SIZE
    for seat in range(2):
        if raw:
            _write_raw_half(out_2O[seat, :half], players_2[seat], weapons_4, match)
        else:
            _write_half(out_2O[seat, :half], players_2[seat], weapons_4, match)
    for seat in range(2):
        for i in range(half):
            out_2O[seat, half + i] = out_2O[1 - seat, i]


def field_index(name: str, *, opponent: bool = False) -> int:
    """Where `name` stands in an observation; raises ValueError."""
    return FIELDS.index(name) + (spec.OWN_SIZE if opponent else 0)
