"""The picture of a training run: twelve panels over the learner's steps, 1600 x 1000 pixels."""

from __future__ import annotations

import io
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from league.views import style as figures
from league.views.curves.history import History
from league.views.curves.panels import PANELS
from league.views.style import FAINT, GRID

STYLE: Final[Any] = figures.STYLE | {
    "font.size": 8.5,
    "axes.titlesize": 10,
    "axes.titlepad": 6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
}


def draw(history: History) -> bytes:
    """The picture as PNG."""
    with rc_context(STYLE):
        figure = Figure(figsize=(16, 10), dpi=100, facecolor="white")
        grid = figure.add_gridspec(
            3, 4, left=0.035, right=0.93, top=0.915, bottom=0.045, hspace=0.3, wspace=0.52,
            height_ratios=(1.35, 1, 1),
        )  # fmt: skip
        panels = [figure.add_subplot(grid[row, column]) for row in range(3) for column in range(4)]
        last = _last_step(history)
        for axes, fill in zip(panels, PANELS, strict=True):
            fill(axes, history)
            _finish(axes, history, last)
        _heading(figure, history, last)
        png = io.BytesIO()
        FigureCanvasAgg(figure).print_png(png)
    return png.getvalue()


def _last_step(history: History) -> int:
    ends = [int(series.steps[-1]) for series in history.scalars.values() if len(series.steps)]
    ends += [int(rate.steps[-1]) for rate in (*history.trained.values(), *history.others.values())]
    return max(ends, default=1)


def _heading(figure: Figure, history: History, last: int) -> None:
    figure.text(0.035, 0.965, history.title, fontsize=16, fontweight="bold")
    facts = [f"{last:,} steps (to the right in every panel)"]
    frames = _newest(history, "progress/frames")
    speed = _newest(history, "rate/steps_per_second")
    if frames is not None:
        facts.append(f"{frames / 1e6:.1f} M frames")
    if speed is not None:
        facts.append(f"{speed:,.0f} steps/s at the end")
    names = [stage.name for stage in history.stages]
    if names:
        facts.append("stages " + " → ".join(names))
    figure.text(0.985, 0.965, "  ·  ".join(facts), fontsize=10, color=FAINT, ha="right")


def _newest(history: History, name: str) -> float | None:
    series = history.scalars.get(name)
    return float(series.values[-1]) if series is not None and len(series.values) else None


def _finish(axes: Axes, history: History, last: int) -> None:
    axes.set_xlim(0, last)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.tick_params(length=0)
    if not axes.lines and not axes.collections and not axes.patches:
        if not axes.texts:
            axes.text(0.5, 0.5, "nothing yet", color=FAINT, ha="center", transform=axes.transAxes)
        axes.set_yticks([])
    for stage in history.stages[1:]:
        axes.axvline(stage.step, color=FAINT, linewidth=0.9, linestyle=(0, (3, 3)), zorder=0.9)
