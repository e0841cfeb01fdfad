"""Numbers and shares as short texts, and the colours of the terminal view."""

from __future__ import annotations

import math

ACCENT = "bright_cyan"
GOOD = "green"
MIDDLING = "yellow"
POOR = "red"
FAINT = "bright_black"
BOT = "bright_blue"


def win_style(share: float) -> str:
    """Colour of a win rate: green from 70 %, yellow from 45 %."""
    return GOOD if share >= 0.7 else MIDDLING if share >= 0.45 else POOR


def percent(share: float) -> str:
    """« 97%», in four cells."""
    return f"{share * 100:3.0f}%"


def count(number: float | None) -> str:
    """«845», «12.3k», «1.50M»; «–» when unknown."""
    if number is None or not math.isfinite(number):
        return "–"
    if abs(number) >= 1e6:
        return f"{number / 1e6:.2f}M"
    return f"{number / 1e3:.1f}k" if abs(number) >= 1e4 else f"{number:,.0f}"


def counted(number: int, noun: str) -> str:
    """«1 snapshot», «2 snapshots»."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def value(number: float | None) -> str:
    """A measured number in five to eight cells, «–» when there is none."""
    if number is None or not math.isfinite(number):
        return "–"
    if number != 0 and abs(number) < 1e-3:
        return f"{number:.1e}"
    return f"{number:.3f}" if abs(number) < 100 else f"{number:.4g}"


def duration(seconds: float | None) -> str:
    """«0:42», «12:31», «1:02:03»; «–» when unknown."""
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return "–"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
