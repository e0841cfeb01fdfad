"""The picture of a simulated league: opponents as drawn and as configured, and predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from league.views import style as figures
from league.views.style import FAINT, GRID, INK, png_of

REALISED, EXPECTED, CONFIGURED = "#0072B2", "#E69F00", "#C3CAD2"
TRAIN, CLEAN = "#D55E00", "#009E73"
MOST_GROUPS = 18
"""Groups that are drawn: those of the first learners."""
STYLE: Final[Any] = figures.STYLE | {"font.size": 10.5, "axes.titlesize": 12, "ytick.color": INK}


def draw(report: Mapping[str, Any]) -> bytes:
    """1600 x 640 pixels as PNG, of a report of `league simulate --json`."""
    with rc_context(STYLE):
        figure = Figure(figsize=(16, 6.4), dpi=100, facecolor="white")
        # Each column gets the room that its names need.
        figure.set_layout_engine("constrained", rect=(0.012, 0.0, 0.976, 0.87), wspace=0.05)
        grid = figure.add_gridspec(1, 3, width_ratios=(1, 1, 0.9))
        _heading(figure, report)
        _categories(figure.add_subplot(grid[0, 0]), report)
        _groups(figure.add_subplot(grid[0, 1]), report["groups"])
        _predictions(figure.add_subplot(grid[0, 2]), report["calibration"])
        return png_of(figure)


def _heading(figure: Figure, report: Mapping[str, Any]) -> None:
    rule = report["rule"] if report["roles"] == "mix" else f"roles {report['roles']}"
    title = f"A simulated league: {report['scenario']}, {rule}"
    figure.text(0.02, 0.935, title, fontsize=16, fontweight="bold")
    size = f"{report['players']:,} players, {report['matches']:,} matches, seed {report['seed']}"
    figure.text(0.02, 0.89, size, color=FAINT)
    fit = f"χ² of opponents: p {report['opponent_fit']['p_value']:.2g}"
    figure.text(0.98, 0.935, fit, ha="right", fontsize=12)


def _bars(
    axes: Axes, names: Sequence[str], columns: Sequence[tuple[str, str, Sequence[float]]]
) -> None:
    """Bars side by side for every name, one of each column (label, colour, shares)."""
    height, places = 0.8 / len(columns), np.arange(len(names))
    for number, (label, color, shares) in enumerate(columns):
        axes.barh(
            places + (number - (len(columns) - 1) / 2) * height,
            shares,
            height * 0.9,
            color=color,
            label=label,
        )
    axes.set_yticks(places, names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.legend(
        frameon=False, fontsize=9.5, loc="upper center", bbox_to_anchor=(0.5, -0.055),
        ncols=len(columns), columnspacing=1.0, handlelength=1.2,
    )  # fmt: skip


def _categories(axes: Axes, report: Mapping[str, Any]) -> None:
    axes.set_title("Categories of the mix")
    rows = report["shares"]
    columns = [
        (name, color, [row[name] for row in rows])
        for name, color in (
            ("configured", CONFIGURED),
            ("expected", EXPECTED),
            ("realised", REALISED),
        )
    ]
    _bars(axes, [row["category"] for row in rows], columns)


def _groups(axes: Axes, groups: Sequence[Mapping[str, Any]]) -> None:
    axes.set_title("Opponents by kind")
    if not groups:
        axes.text(
            0.5,
            0.5,
            "one opponent in each category",
            color=FAINT,
            ha="center",
            transform=axes.transAxes,
        )
        axes.set_axis_off()
        return
    rows = groups[:MOST_GROUPS]
    names = [f"{row['learner']}: {row['group']}" for row in rows]
    columns = [("realised", REALISED, [row["realised"] for row in rows])]
    if all(row["ideal"] is not None for row in rows):
        columns.insert(0, ("by the truth", EXPECTED, [row["ideal"] for row in rows]))
    _bars(axes, names, columns)


def _predictions(axes: Axes, calibration: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Tenths of all matches: on the line, the ratings predicted the results."""
    axes.set_title("Scores, predicted and played")
    axes.plot([0, 1], [0, 1], color=GRID, linewidth=1.5)
    for book, label, color in (("train", "training", TRAIN), ("eval", "clean matches", CLEAN)):
        rows = calibration[book]
        if rows:
            predicted, played = ([row[name] for row in rows] for name in ("predicted", "played"))
            axes.plot(
                predicted, played, "o-", color=color, markersize=5, linewidth=1.2, label=label
            )
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("predicted when handed out")
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.tick_params(length=0)
    axes.legend(frameon=False, fontsize=9.5, loc="upper left")
