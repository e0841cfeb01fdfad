"""Draws a simulated league: configured, expected and realised opponents, and predicted scores."""

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

COLORS: Final = {"configured": "#C3CAD2", "expected": "#E69F00", "realised": "#0072B2",
                 "by the truth": "#E69F00"}  # fmt: skip
BOOKS: Final = {"train": ("training", "#D55E00"), "eval": ("clean matches", "#009E73")}
MOST_GROUPS = 18
"""Largest number of groups to draw. The first learners' groups come first."""
STYLE: Final[Any] = figures.STYLE | {"font.size": 10.5, "axes.titlesize": 12, "ytick.color": INK}


def draw(report: Mapping[str, Any]) -> bytes:
    """Draws a report of `league simulate --json`. Returns a PNG of 1600 x 640 pixels."""
    with rc_context(STYLE):
        figure = Figure(figsize=(16, 6.4), dpi=100, facecolor="white")
        # The layout gives each column the room that its names need.
        figure.set_layout_engine("constrained", rect=(0.012, 0.0, 0.976, 0.87), wspace=0.05)
        categories, kinds, predictions = figure.subplots(1, 3, width_ratios=(1, 1, 0.9))
        rule = report["rule"] if report["roles"] == "mix" else f"roles {report['roles']}"
        title = f"A simulated league: {report['scenario']}, {rule}"
        figure.text(0.02, 0.935, title, fontsize=16, fontweight="bold")
        size = f"{report['players']:,} players, {report['matches']:,} matches"
        figure.text(0.02, 0.89, f"{size}, seed {report['seed']}", color=FAINT)
        fit = f"χ² of opponents: p {report['opponent_fit']['p_value']:.2g}"
        figure.text(0.98, 0.935, fit, ha="right", fontsize=12)
        rows = report["shares"]
        shares = {
            name: [row[name] for row in rows] for name in ("configured", "expected", "realised")
        }
        _bars(categories, "Categories of the mix", [row["category"] for row in rows], shares)
        groups = report["groups"][:MOST_GROUPS]
        shares = {"realised": [row["realised"] for row in groups]}
        if all(row["by_the_truth"] is not None for row in groups):
            shares = {"by the truth": [row["by_the_truth"] for row in groups], **shares}
        names = [f"{row['learner']}: {row['against']}" for row in groups]
        _bars(kinds, "Opponents by kind", names, shares)
        _predictions(predictions, report["calibration"])
        return png_of(figure)


def _bars(
    axes: Axes, title: str, names: Sequence[str], columns: Mapping[str, Sequence[float]]
) -> None:
    """Draws a group of bars for each name, with a bar for each entry of `columns`."""
    axes.set_title(title)
    if not names:
        words = "one opponent in each category"
        axes.text(0.5, 0.5, words, color=FAINT, ha="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    height, places = 0.8 / len(columns), np.arange(len(names))
    for number, (label, shares) in enumerate(columns.items()):
        at = places + (number - (len(columns) - 1) / 2) * height
        axes.barh(at, shares, height * 0.9, color=COLORS[label], label=label)
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


def _predictions(axes: Axes, calibration: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Draws a point for each tenth of the matches. On the diagonal, predictions were correct."""
    axes.set_title("Scores, predicted and played")
    axes.plot([0, 1], [0, 1], color=GRID, linewidth=1.5)
    for book, (label, color) in BOOKS.items():
        if rows := calibration[book]:
            predicted, played = ([row[name] for row in rows] for name in ("predicted", "played"))
            axes.plot(predicted, played, "o-", color=color, markersize=5, label=label)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="predicted when handed out")
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.tick_params(length=0)
    axes.legend(frameon=False, fontsize=9.5, loc="upper left")
