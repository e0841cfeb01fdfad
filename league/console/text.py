"""Formats values as short texts, reads numbers of steps, and makes untrusted text safe for a
terminal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from rich.text import Text

from league.errors import InvalidInput, plain
from league.metrics import Measured

SPEEDS = {"rate/steps_per_second": "steps/s", "rate/matches_per_second": "matches/s"}
"""Units of the metrics by which workers report their speed."""


class Words(Text):
    """Holds text for a terminal, without markup and control characters.

    The live view and the tables of commands use it, because text from a worker, or from a log that
    an earlier version wrote, may contain anything.
    """

    def __init__(self, text: str = "", *style: Any, **more: Any) -> None:
        super().__init__(plain(text), *style, **more)

    def append(self, text: Text | str, style: Any = None) -> Words:
        super().append(plain(text) if isinstance(text, str) else text, style)
        return self


def when(seconds: float) -> str:
    """Returns a Unix time as text in UTC, or "" for 0."""
    if seconds <= 0:
        return ""
    try:
        return datetime.fromtimestamp(seconds, tz=UTC).isoformat(sep=" ", timespec="seconds")
    except (OSError, OverflowError, ValueError):  # after the year 9999
        return f"{seconds:g} s"


def steps_of(text: str) -> int:
    """Reads "500000", "500_000", "500,000", "500k" or "1.5M" as a number of steps.

    Raises:
        InvalidInput: for other texts, and if the number is below 1 or has a fraction.
    """
    match = re.fullmatch(r"(\d[\d_,]{,17}(?:\.\d{1,6})?)([kM]?)", text, re.ASCII)
    unit = {"": 1, "k": 1_000, "M": 1_000_000}[match[2]] if match else 0
    number = Decimal(re.sub("[_,]", "", match[1])) * unit if match else Decimal(0)
    if number < 1 or number % 1:
        raise InvalidInput(f"--steps {text!r} is no number of steps: write 500000, 500k or 1.5M")
    return int(number)


def share(part: float, whole: float) -> str:
    """Returns a part as a percentage, or "" if `whole` is 0."""
    return f"{100 * part / whole:.1f}%" if whole else ""


def percent(value: float | None) -> str:
    """Returns a share as a percentage, with a space before the percent sign, or "" for None."""
    return "" if value is None else f"{100 * value:.1f} %"


def speed(metrics: Mapping[str, float]) -> str:
    """Returns a worker's speed with its unit, or "" if the worker does not report a speed above 0.

    A learner reports steps per second, and an evaluator matches per second. A speed below 1 is
    shown per minute.
    """
    for name, unit in SPEEDS.items():
        if metrics.get(name):
            value = metrics[name]
            if value < 1.0:
                value, unit = 60.0 * value, unit.replace("/s", "/min")
            return f"{value:,.{0 if value >= 10 else 1}f} {unit}"
    return ""


def number(value: float) -> str:
    """Formats a number, such as «0.53», «12.4» or «312». A million or more looks like «3e+07»."""
    return f"{value:.{_digits(value)}f}" if abs(value) < 1e6 else f"{value:.0e}"


def span(low: float, high: float, digits: int = 2) -> str:
    """Returns an interval whose ends may be negative, such as ``−5.26 to −0.68``."""
    return f"{low:.{digits}f} to {high:.{digits}f}".replace("-", "−")


def measured(mean: Measured) -> str:
    """Returns «1.20 ±0.15», or «1.20 (0.95–1.50)» if the interval is asymmetric, or «1.20» without
    an interval.
    """
    if not math.isfinite(mean.low):
        return number(mean.value)
    digits = _digits(mean.value)
    if abs((mean.low + mean.high) / 2 - mean.value) < 0.5 / 10**digits:
        return f"{number(mean.value)} ±{(mean.high - mean.low) / 2:.{digits}f}"
    return f"{number(mean.value)} ({number(mean.low)}–{number(mean.high)})"


def interval(mean: Measured) -> str:
    """Returns a share's interval: «91.2–100.0%»."""
    return f"{100 * mean.low:.1f}–{100 * mean.high:.1f}%"


def at_least(value: float) -> str:
    """Formats a lower bound, rounded down, such as «+0.41». Returns "" for -inf."""
    return "" if math.isinf(value) else f"{math.floor(100 * value) / 100:+.2f}"


def _digits(value: float) -> int:
    return 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2


def long_duration(seconds: float) -> str:
    """Returns «12 s», «3 min», «2 h 5 min» or «4 d 3 h»."""
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 60:
        return f"{seconds:.0f} s"
    if hours < 1:
        return f"{minutes:.0f} min"
    if days < 1:
        return f"{hours:.0f} h {minutes % 60:.0f} min"
    return f"{days:.0f} d {hours % 24:.0f} h"
