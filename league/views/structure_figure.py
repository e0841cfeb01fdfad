"""Draws a league's structure: shares of matches, Nash mixture, α-rank and ratings.

Shapes: N players.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from league.stats.structure.study import Structure
from league.views import style as figures
from league.views.style import FAINT, GRID, INK, png_of

UNKNOWN = "#CDD3DA"
NASH, ALPHA, RATING = "#0072B2", "#009E73", "#8A94A0"
CLUSTERS = ("#E69F00", "#56B4E9", "#CC79A7", "#7F4FC9", "#D55E00", "#8C6D31", "#F0C808", "#2E8B8B")
LOSS_WIN: Final = LinearSegmentedColormap.from_list(
    "loss and win", ["#9C2F1F", "#E5A48F", "#FFFFFF", "#8FBFE0", "#12588F"]
)
"""Red means losses and blue means wins. Colour-blind people can distinguish these colours."""
STYLE: Final[Any] = figures.STYLE | {"ytick.color": INK}
NUMBERS_UP_TO = 20
"""Largest number of players for which each cell shows its number."""
NAMES_UP_TO = 60
"""Largest number of players for which every row has a name. With more players, only some rows have
a name.
"""


def draw(structure: Structure, rating_N: Sequence[float], title: str) -> bytes:
    """Draws a league's structure as a PNG of 1600 x 1000 pixels. `rating_N` has the leaderboard's
    scores in the order of the structure's table.
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(16, 10), dpi=100, facecolor="white")
        figure.subplots_adjust(left=0.115, right=0.975, top=0.855, bottom=0.05, wspace=0.07)
        table, nash, alpha, ratings = figure.subplots(1, 4, width_ratios=(6.2, 2, 1.5, 1.5))
        _heading(figure, structure, title)
        order = structure.order
        _table(table, structure, order)
        for axes, name, mass, color in (
            (nash, "Nash mixture", structure.mass, NASH),
            (alpha, "α-rank", structure.alpha_mass, ALPHA),
        ):
            value, low, high = (array[order] for array in (mass.value, mass.low, mass.high))
            places = np.arange(len(order))
            axes.set_title(name)
            axes.barh(places, value, height=0.72, color=color)
            axes.hlines(places, low, high, color=INK, linewidth=1.1, alpha=0.75)
            axes.set_xlim(0, max(0.05, float(high.max()), float(value.max())) * 1.05)
            axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
            # The label 0 % is left out, because it would touch the neighbour's 100 %.
            axes.xaxis.set_major_locator(MaxNLocator(4, steps=(1, 2, 5, 10), prune="lower"))
        ratings.set_title("Rating (score)")
        ratings.plot(np.asarray(rating_N)[order], np.arange(len(order)), "o", color=RATING)
        ratings.margins(x=0.12)
        step = 1 if len(order) <= NUMBERS_UP_TO else -(-len(order) // 40)
        for axes in (nash, alpha, ratings):  # rows are aligned with the table's rows
            axes.set_ylim(len(order) - 0.5, -0.5)
            axes.set_yticks(range(0, len(order), step), [])
            axes.grid(axis="y", color=GRID, linewidth=0.8)
            axes.set_axisbelow(True)
            axes.tick_params(length=0)
            axes.spines["left"].set_visible(False)
        return png_of(figure)


def _heading(figure: Figure, structure: Structure, title: str) -> None:
    figure.text(0.02, 0.955, title, fontsize=17, fontweight="bold")
    matches = int(structure.table.matches_NN.sum()) // 2
    players = f"{len(structure.table.names)} players, {structure.pairs_met:,} pairs met"
    figure.text(0.02, 0.925, f"{players}, {matches:,} matches", color=FAINT)
    words = f"cyclic part of the payoff: {structure.cyclicity}"
    figure.text(0.975, 0.955, words, ha="right", fontsize=12)
    cycles = f"three-cycles that are sure: {structure.sure_cycles:,}"
    clusters = f"{structure.clusters.count} clusters of {len(structure.table.names)} players"
    figure.text(0.975, 0.925, f"{cycles}, {clusters}", ha="right", color=FAINT)


def _table(axes: Axes, structure: Structure, order: NDArray[np.intp]) -> None:
    axes.set_title("Share of a match that the row gets of the column", pad=22)
    count = len(order)
    chance_NN = structure.table.chance_NN[np.ix_(order, order)]
    known_NN = structure.table.known_NN[np.ix_(order, order)]
    axes.set_facecolor(UNKNOWN)
    axes.imshow(
        np.ma.masked_array(chance_NN, ~known_NN), cmap=LOSS_WIN, vmin=0, vmax=1, aspect="auto",
        interpolation="none",
    )  # fmt: skip
    if count <= NUMBERS_UP_TO:
        for row, column in zip(*np.nonzero(known_NN), strict=True):
            chance = chance_NN[row, column]
            color = "white" if abs(chance - 0.5) > 0.36 else INK
            axes.text(column, row, f"{100 * chance:.0f}", ha="center", va="center", color=color,
                      fontsize=9 if count <= 14 else 7.5)  # fmt: skip
    words = "columns as the rows; % posterior mean; grey: never met"
    axes.text(1.0, 1.008, words, transform=axes.transAxes, ha="right", color=FAINT, fontsize=9)
    step = 1 if count <= NAMES_UP_TO else -(-count // 40)
    names = [structure.table.names[index] for index in order[::step]]
    short = [name if len(name) <= 20 else f"{name[:19]}…" for name in names]
    axes.set_yticks(range(0, count, step), short, fontsize=10 if count <= 24 else 7.5)
    axes.set_xticks([])
    axes.tick_params(length=0, pad=12)
    axes.spines[:].set_visible(False)
    colors, width = iter(CLUSTERS * count), 0.013
    for members in structure.clusters.members():
        if len(members) < 2:
            continue
        color = next(colors)  # the colour of a strip to the left of the near-copies' rows
        for index in np.flatnonzero(np.isin(order, members)):
            corner, at = (-width * 1.25, index - 0.46), axes.get_yaxis_transform()
            strip = Rectangle(corner, width, 0.92, color=color, clip_on=False, transform=at)
            axes.add_patch(strip)
