"""Writes a match's frames as compact JSON: the constant part once, and moving parts as short rows.

docs/rendering.md lists the fields. Frames of games without a drawing stay unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from league.games.brawl import moves, rules
from league.games.drawing.lines import frame_lines

STILL: Final = ("game", "stage", "max_frames", "solids", "blast")
PLAYER: Final = (
    *("x", "y", "vx", "vy", "facing", "state", "grounded", "damage", "stocks"),
    *("weapon", "move", "move_frame", "power", "power_frame", "stun_left", "keys"),
)
"""Columns of a player's row. `keys` are bits in the order of `KEY_NAMES`."""
WEAPON: Final = ("x", "y", "type", "dropped", "ready", "frames_left")
"""Columns of a row for a weapon on the ground."""
DIGITS: Final = 3
"""Number of decimals to keep. A thousandth of a unit is less than a pixel."""


def is_fight(frame: Mapping[str, Any]) -> bool:
    """Returns whether a frame comes from the fighting game."""
    return all(name in frame for name in (*STILL, "players", "platform"))


def still_part(frame: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the constant part of a match: the stage, the powers (parts of moves), and the names
    of columns and states.
    """
    if not is_fight(frame):
        return {}
    platform = frame["platform"]
    return {
        **{name: frame[name] for name in STILL},
        "frames_per_second": rules.FRAMES_PER_SECOND,
        "stocks": rules.STOCKS,
        "platform": [platform["half_width"], platform["half_height"]],
        "columns": {"player": PLAYER, "weapon": WEAPON, "keys": rules.KEY_NAMES},
        "states": rules.STATE_NAMES,
        "powers": _powers(),
    }


def _powers() -> list[dict[str, Any]]:
    """Returns the data that draw.js needs for the powers, the parts of moves, ordered by number.

    Each entry of `hits` is [from, to, capsules]. The capsules hit from the power's frame `from` to
    the frame before `to`. If `to` is 0 or less, the entry holds the last capsules of the previous
    power. Such an entry comes first.
    """
    rows: list[dict[str, Any]] = []
    for move in moves.all_moves().values():
        before: dict[int, list[list[Any]]] = {}
        for number, power in enumerate(move):
            hits, frames = before.get(number, []), 0
            for cast in power.casts:
                begin = frames + cast.startup
                frames = begin + cast.active + 1
                if cast.active and cast.boxes:
                    hits.append([begin, frames - 1, cast.boxes])
            rows.append({"charge": power.charge, "hits": hits})
            frames += power.recovery
            for after in (power.hit, power.miss, power.ground):
                before[after] = [[begin - frames, end - frames, at] for begin, end, at in hits[-1:]]
    return rows


def moving_part(frame: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the moving part of a frame: {frame, platform: [x, y], players: [row, row], weapons:
    [row, …]}.
    """
    if not is_fight(frame):
        return dict(frame)
    players = [
        {**player, "keys": sum(1 << rules.KEY_NAMES.index(name) for name in player["keys"])}
        for player in frame["players"]
    ]
    moving: dict[str, Any] = {
        "frame": frame["frame"],
        "platform": _row(frame["platform"], ("x", "y")),
        "players": [_row(player, PLAYER) for player in players],
    }
    if frame.get("weapons"):
        moving["weapons"] = [_row(weapon, WEAPON) for weapon in frame["weapons"]]
    return moving


def _row(fields: Mapping[str, Any], columns: tuple[str, ...]) -> list[Any]:
    """Writes whole numbers without a decimal point, rounds other numbers, and turns flags into 0
    and 1.
    """
    row: list[Any] = []
    for name in columns:
        value = fields.get(name, 0)
        if isinstance(value, float):
            value = round(value, DIGITS)
            value = int(value) if value.is_integer() else value
        row.append(int(value) if isinstance(value, bool) else value)
    return row


def drawable(frame: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Returns a frame for draw.js: `moving_part`, or lines of text for games without a drawing."""
    if is_fight(frame):
        return moving_part(frame)
    lines = [[line.label, line.text, line.seat, line.mono] for line in frame_lines(frame, names)]
    return {"frame": frame.get("frame", 0), "lines": lines}


def verdict(names: Sequence[str], winner: int | None) -> dict[str, Any]:
    """Returns a frame's `verdict`: the outcome in words, and the winner's seat."""
    return {"text": "a draw" if winner is None else f"{names[winner]} wins", "winner": winner}
