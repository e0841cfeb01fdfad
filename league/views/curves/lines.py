"""Lines, labels and colours that the panels of the curves share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from league.views.curves.history import History

PALETTE: Final = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#7F4FC9",
    "#8C6D31",
    "#555555",
)
"""Okabe and Ito's colours for all kinds of sight, and three more."""
LABEL_GAP = 0.06
"""Least distance of two labels beside a panel, as a share of its height."""
Label = tuple[float, str, str]
"""Height in data units, text, colour."""


def colors() -> list[str]:
    """For as many lines as a panel may have."""
    return [*PALETTE, *PALETTE]


def smooth(values: NDArray[np.float64], width: int = 0) -> NDArray[np.float64]:
    """Running median over `width` values (by default a fiftieth of them), shorter at the ends."""
    half = (width or max(1, len(values) // 50)) // 2
    return np.array(
        [np.median(values[max(0, i - half) : i + half + 1]) for i in range(len(values))]
    )


def draw_lines(
    axes: Axes, history: History, names: Mapping[str, str], color: str = ""
) -> list[Label]:
    """Each series faint, and smoothed over it; returns their labels at the right."""
    shown = [
        (history.scalars[name], label) for name, label in names.items() if name in history.scalars
    ]
    labels = []
    for shade, (series, label) in zip(colors(), shown, strict=False):
        paint, middle = color or shade, smooth(series.values)
        axes.plot(series.steps, series.values, color=paint, linewidth=0.6, alpha=0.3)
        axes.plot(series.steps, middle, color=paint)
        labels.append((float(middle[-1]), label, paint))
    return labels


def share_axis(axes: Axes) -> None:
    """From 0 to 100 %, with a little room."""
    axes.set_ylim(-0.02, 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def label_right(axes: Axes, labels: Sequence[Label]) -> None:
    """Names at the lines' ends, moved apart until none covers another."""
    axes.get_ylim()  # makes what was drawn last count
    ordered = sorted(labels)
    ends = [axes.transData.transform((0.0, value)) for value, _, _ in ordered]
    places = [float(axes.transAxes.inverted().transform(end)[1]) for end in ends]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + LABEL_GAP)
    over = max(0.0, places[-1] - 1.0) if places else 0.0
    places = [place - over for place in places]
    for i in range(len(places) - 2, -1, -1):
        places[i] = min(places[i], places[i + 1] - LABEL_GAP)
    for place, (_, text, color) in zip(places, ordered, strict=True):
        axes.text(
            1.02, place, text, color=color, fontsize=7.5, va="center", transform=axes.transAxes
        )
