"""A frame of a game without a scene, in words: cards, boards and payoffs as lines
(docs/rendering.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_LONE = ("game", "frame", "max_frames", "seats", "ended")
"""Fields with a line of their own, or none."""


@dataclass(frozen=True)
class Line:
    """One line. `seat` says whose it is; `even` that its characters want the same room, as on a
    board.
    """

    label: str
    text: str
    seat: int | None = None
    even: bool = False


def frame_lines(frame: Mapping[str, Any], names: Sequence[str]) -> list[Line]:
    """The seats, then what lies on the table, then how far the match is; empty fields are left
    out.
    """
    lines = [
        Line(name or f"seat {seat}", say_seat(fields, ended=bool(frame.get("ended"))), seat)
        for seat, (name, fields) in enumerate(zip(names, frame.get("seats", ()), strict=False))
    ]
    for name, value in frame.items():
        if name not in _LONE:
            lines += _field(name, value)
    if "frame" in frame:
        most = f" of at most {frame['max_frames']}" if "max_frames" in frame else ""
        lines.append(Line("played", f"{frame['frame']}{most}"))
    return lines


def say_seat(fields: Mapping[str, Any], *, ended: bool = False) -> str:
    """A seat's fields; a payoff of 0 is one only at the end, before it says that nothing was
    paid yet.
    """
    return say_fields(
        {name: value for name, value in fields.items() if ended or name != "payoff" or value}
    )


def say_fields(fields: Mapping[str, Any]) -> str:
    """{"card": "Q", "acts": True, "last": "", "payoff": 0.5} as `card Q · acts · payoff 0.5`."""
    return " · ".join(
        name if value is True else f"{name} {_plain(value)}"
        for name, value in fields.items()
        if _is_told(value)
    )


def _field(name: str, value: Any) -> list[Line]:
    if isinstance(value, Mapping):
        return [line for inner, item in value.items() for line in _field(inner, item)]
    if not _is_told(value):
        return []
    rows = _plain(value).splitlines()
    return [
        Line(name if row == 0 else "", text, even=len(rows) > 1) for row, text in enumerate(rows)
    ]


def _is_told(value: Any) -> bool:
    return value not in ("", None) and value is not False and value != [] and value != {}


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return say_fields(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(_plain(item) for item in value)
    return str(value)
