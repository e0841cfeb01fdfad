"""Numbers at a glance: bars, sparklines, durations, counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from rich.text import Text

ACCENT = "bright_cyan"
GOOD = "green"
MIDDLING = "yellow"
POOR = "red"
FAINT = "bright_black"
BOT = "bright_blue"

_LEVELS = "▁▂▃▄▅▆▇█"
_FULL, _HALF = "━", "╸"


def bar(share: float, width: int, style: str = ACCENT) -> Text:
    """A horizontal bar filled to `share` in [0, 1], `width` cells long."""
    halves = round(min(1.0, max(0.0, share)) * width * 2)
    filled = _FULL * (halves // 2) + _HALF * (halves % 2)
    return Text.assemble((filled, style), (_FULL * (width - len(filled)), FAINT))


def stacked_bar(parts: Sequence[tuple[float, str]], width: int) -> Text:
    """Shares side by side, each `(share, style)`; what they leave of 1 stays faint."""
    text, drawn, total = Text(), 0, 0.0
    for share, style in parts:
        total += max(0.0, share)
        end = min(width, round(total * width))
        text.append(_FULL * (end - drawn), style)
        drawn = max(drawn, end)
    return text.append(_FULL * (width - drawn), FAINT)


def sparkline(
    values: Sequence[float], width: int, *, low: float = 0.0, high: float | None = None
) -> str:
    """The series in at most `width` cells (averaging values), scaled to [low, high]."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite or width <= 0:
        return ""
    cells = min(width, len(finite))
    edges = [len(finite) * cell // cells for cell in range(cells + 1)]
    means = [sum(finite[a:b]) / (b - a) for a, b in pairwise(edges)]
    top = max(means) if high is None else high
    span = top - low
    if span <= 0:
        return _LEVELS[0] * cells
    return "".join(_LEVELS[min(7, max(0, int((mean - low) / span * 8)))] for mean in means)


def win_style(share: float) -> str:
    """Colour of a win rate: green from 70 %, yellow from 45 %."""
    return GOOD if share >= 0.7 else MIDDLING if share >= 0.45 else POOR


def percent(share: float) -> str:
    """« 97%», in four cells."""
    return f"{share * 100:3.0f}%"


def count(number: float) -> str:
    """«845», «12.3k», «1.50M»."""
    if not math.isfinite(number):
        return "–"
    if abs(number) >= 1e6:
        return f"{number / 1e6:.2f}M"
    if abs(number) >= 1e4:
        return f"{number / 1e3:.1f}k"
    return f"{number:,.0f}"


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
