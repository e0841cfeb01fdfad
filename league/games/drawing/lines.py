"""Writes frames of games without a drawing as lines of text: cards, boards, payoffs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_NOT_LISTED = ("game", "frame", "max_frames", "seats", "ended")
"""Fields that get a line of another form, or no line."""


@dataclass(frozen=True)
class Line:
    """Holds a line of text. `seat` is the seat that the line describes, if any. `mono` asks for a
    fixed-width font.
    """

    label: str
    text: str
    seat: int | None = None
    mono: bool = False


def frame_lines(frame: Mapping[str, Any], names: Sequence[str]) -> list[Line]:
    """Returns lines for the seats, then for the other fields, then for the match's length."""
    lines = [
        Line(name or f"seat {seat}", seat_text(fields, ended=bool(frame.get("ended"))), seat)
        for seat, (name, fields) in enumerate(zip(names, frame.get("seats", ()), strict=False))
    ]
    for name, value in frame.items():
        if name not in _NOT_LISTED:
            lines += _field_lines(name, value)
    if "frame" in frame:
        most = f" of at most {frame['max_frames']}" if "max_frames" in frame else ""
        lines.append(Line("played", f"{frame['frame']}{most}"))
    return lines


def seat_text(fields: Mapping[str, Any], *, ended: bool = False) -> str:
    """Returns a seat's fields in a line. A payoff of 0 is left out until the match has ended."""
    return fields_text(
        {name: value for name, value in fields.items() if ended or name != "payoff" or value}
    )


def fields_text(fields: Mapping[str, Any]) -> str:
    """Writes {"card": "Q", "acts": True, "last": "", "payoff": 0.5} as `card Q · acts · payoff
    0.5`.
    """
    return " · ".join(
        name if value is True else f"{name} {_value_text(value)}"
        for name, value in fields.items()
        if _has_content(value)
    )


def _field_lines(name: str, value: Any) -> list[Line]:
    if isinstance(value, Mapping):
        return [line for inner, item in value.items() for line in _field_lines(inner, item)]
    if not _has_content(value):
        return []
    rows = _value_text(value).splitlines()
    mono = len(rows) > 1
    return [Line(name if row == 0 else "", text, mono=mono) for row, text in enumerate(rows)]


def _has_content(value: Any) -> bool:
    return value not in ("", None) and value is not False and value != [] and value != {}


def _value_text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return fields_text(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(_value_text(item) for item in value)
    return str(value)
