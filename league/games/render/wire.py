"""A fight's frame as small JSON: what never changes once, and what changes as short rows
(docs/rendering.md).

Other games' frames pass through whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from league.games.brawl.rules import DODGE, KEY_NAMES

STILL: Final = ("game", "stage", "max_frames", "solids", "blast")
PLAYER: Final = (
    *("x", "y", "vx", "vy", "facing", "state", "grounded", "damage", "stocks"),
    *("weapon", "move", "move_frame", "stun_left", "stages_hit", "keys"),
)
"""Columns of a player's row; `keys` are bits in the order of `KEY_NAMES`."""
WEAPON: Final = ("x", "y", "type", "dropped", "ready", "frames_left")
"""Columns of a row for a weapon on the ground."""
DIGITS: Final = 3
"""Decimals kept: a thousandth of a unit is less than a pixel."""


def is_fight(frame: Mapping[str, Any]) -> bool:
    """Whether it is a frame of the fighter."""
    return all(name in frame for name in (*STILL, "players", "platform"))


def still_part(frame: Mapping[str, Any]) -> dict[str, Any]:
    """What holds for the whole match: the stage, and the names of the columns."""
    if not is_fight(frame):
        return {}
    size = [frame["platform"]["half_width"], frame["platform"]["half_height"]]
    columns = {"player": list(PLAYER), "weapon": list(WEAPON), "keys": list(KEY_NAMES)}
    return {**{name: frame[name] for name in STILL}, "platform": size, "columns": columns}


def moving_part(frame: Mapping[str, Any]) -> dict[str, Any]:
    """What may change: {frame, platform: [x, y], players: [row, row], weapons: [row, ...]}."""
    if not is_fight(frame):
        return dict(frame)
    rows = [
        [_short(_bits(player[name]) if name == "keys" else player.get(name, 0)) for name in PLAYER]
        for player in frame["players"]
    ]
    moving: dict[str, Any] = {
        "frame": frame["frame"],
        "platform": [_short(frame["platform"][axis]) for axis in "xy"],
        "players": rows,
    }
    if frame.get("weapons"):
        moving["weapons"] = [[_short(lying[name]) for name in WEAPON] for lying in frame["weapons"]]
    return moving


def joined(still: Mapping[str, Any], moving: Mapping[str, Any]) -> dict[str, Any]:
    """The frame that both parts came from, rounded."""
    if not still:
        return dict(moving)
    width, height = still["platform"]
    x, y = moving["platform"]
    return {
        **{name: still[name] for name in STILL},
        "frame": moving["frame"],
        "platform": {"x": x, "y": y, "half_width": width, "half_height": height},
        "players": [_player(row) for row in moving["players"]],
        "weapons": [_weapon(row) for row in moving.get("weapons", ())],
    }


def _player(row: list[Any]) -> dict[str, Any]:
    player = dict(zip(PLAYER, row, strict=True))
    player["grounded"] = bool(player["grounded"])
    player["keys"] = [name for bit, name in enumerate(KEY_NAMES) if player["keys"] >> bit & 1]
    return {**player, "invulnerable": player["state"] == DODGE}


def _weapon(row: list[Any]) -> dict[str, Any]:
    lying = dict(zip(WEAPON, row, strict=True))
    return {**lying, "dropped": bool(lying["dropped"]), "ready": bool(lying["ready"])}


def _bits(keys: list[str]) -> int:
    return sum(1 << KEY_NAMES.index(name) for name in keys)


def _short(value: Any) -> Any:
    """Whole numbers without a point, others rounded; flags as 0 and 1."""
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, float):
        return value
    rounded = round(value, DIGITS)
    return int(rounded) if rounded == int(rounded) else rounded
