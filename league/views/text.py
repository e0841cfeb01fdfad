"""Values as short texts: times, shares, sizes and durations; and others' words on a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from league.errors import plain
from league.metrics import Measured

SPEEDS = {"rate/steps_per_second": "steps/s", "rate/matches_per_second": "matches/s"}
"""Units of the metrics by which workers report their speed."""


class Words(Text):
    """A text for a terminal: nothing in it is markup, and nothing in it steers the terminal.

    The live view and the tables of commands are made of these, because a worker or a log of an
    earlier version may say anything.
    """

    def __init__(self, text: str = "", *style: Any, **more: Any) -> None:
        super().__init__(plain(text), *style, **more)

    def append(self, text: Text | str, style: Any = None) -> Words:
        super().append(plain(text) if isinstance(text, str) else text, style)
        return self


def when(seconds: float) -> str:
    """Unix seconds as UTC text, "" for 0."""
    if seconds <= 0:
        return ""
    try:
        return datetime.fromtimestamp(seconds, tz=UTC).isoformat(sep=" ", timespec="seconds")
    except (OSError, OverflowError, ValueError):  # after the year 9999
        return f"{seconds:g} s"


def share(part: float, whole: float) -> str:
    """A percentage, "" of nothing."""
    return f"{100 * part / whole:.1f}%" if whole else ""


def percent(value: float | None) -> str:
    """A share as text with a space before its sign, "" for None."""
    return "" if value is None else f"{100 * value:.1f} %"


def speed(metrics: Mapping[str, float]) -> str:
    """Returns the first speed that a worker reports, with its unit: steps of a learner, matches of
    an evaluator. Returns "" without a speed.
    """
    for name, unit in SPEEDS.items():
        if name in metrics:
            return f"{metrics[name]:,.{0 if metrics[name] >= 10 else 1}f} {unit}"
    return ""


def number(value: float) -> str:
    """«0.53», «12.4», «312»; «3e+07» from a million on."""
    return f"{value:.{_digits(value)}f}" if abs(value) < 1e6 else f"{value:.0e}"


def measured(one: Measured) -> str:
    """«1.20 ±0.15», «1.20 (0.95–1.50)» where the interval's middle is elsewhere, or «1.20»."""
    if not math.isfinite(one.low):
        return number(one.value)
    digits = _digits(one.value)
    if abs((one.low + one.high) / 2 - one.value) < 0.5 / 10**digits:
        return f"{number(one.value)} ±{(one.high - one.low) / 2:.{digits}f}"
    return f"{number(one.value)} ({number(one.low)}–{number(one.high)})"


def interval(one: Measured) -> str:
    """A share's: «91.2–100.0%»."""
    return f"{100 * one.low:.1f}–{100 * one.high:.1f}%"


def at_least(value: float) -> str:
    """A lower bound, rounded down: «+0.41»; "" of -inf."""
    return "" if math.isinf(value) else f"{math.floor(100 * value) / 100:+.2f}"


def _digits(value: float) -> int:
    return 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2


def long_duration(seconds: float) -> str:
    """«12 s», «3 min», «2 h 5 min», «4 d 3 h»."""
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 60:
        return f"{seconds:.0f} s"
    if hours < 1:
        return f"{minutes:.0f} min"
    if days < 1:
        return f"{hours:.0f} h {minutes % 60:.0f} min"
    return f"{days:.0f} d {hours % 24:.0f} h"
