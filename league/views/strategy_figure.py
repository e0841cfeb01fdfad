"""Draws how well an agent's strategy latent distinguishes opponents, for `bin/league analyze`.

A probe is a linear classifier that names the opponent (docs/evaluation.md).

Shapes: K opponents.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from league.views.style import FAINT, GRID, INK, STYLE, png_of

READINGS: Final = (
    ("latent", "latent", "#0072B2"),
    ("untrained", "untrained encoder", "#E69F00"),
    ("seen", "bare view", "#8A94A0"),
)
NUMBERS_UP_TO = 20
"""Largest number of opponents for which each cell of the table shows its number."""
SHOWN_NAME = 16


def draw(report: dict[str, Any]) -> bytes:
    """Draws an analysis. Returns a PNG of 1600 x 1080 pixels."""
    names = [_short(opponent["name"]) for opponent in report["opponents"]]
    hues = colormaps["turbo"](np.linspace(0.04, 0.96, len(names)))
    hues = hues[np.random.default_rng(2).permutation(len(names))]
    with rc_context(STYLE):
        figure = Figure(figsize=(16, 10.8), dpi=100, facecolor="white")
        figure.subplots_adjust(
            left=0.03, right=0.985, top=0.865, bottom=0.115, wspace=0.36, hspace=0.27
        )
        title = f"What {report['player']} makes of its opponents"
        figure.text(0.02, 0.962, title, fontsize=17, fontweight="bold")
        figure.text(0.02, 0.932, report["verdict"], color=INK)
        words = f"{report['matches']} matches of {report['game']}, step {report['step']:,}"
        figure.text(0.985, 0.965, words, color=FAINT, ha="right")
        (pca, tsne, after), (table, drift, attention) = figure.subplots(2, 3)
        shares = " and ".join(f"{share:.0%}" for share in report["points"]["pca_shares"])
        _scatter(pca, report, "pca", hues, f"Latents: principal components ({shares})")
        _scatter(tsne, report, "tsne", hues, "Latents: t-SNE")
        for name, hue in zip(names, hues, strict=True):
            pca.plot([], [], "o", color=hue, markersize=5, label=name)
        columns = 2 if len(names) > NUMBERS_UP_TO else 1
        tsne.legend(*pca.get_legend_handles_labels(), fontsize=7.5, frameon=False, ncols=columns,
                    loc="center left", bbox_to_anchor=(0.99, 0.5), handletextpad=0.1,
                    labelspacing=0.3)  # fmt: skip
        _after(after, report)
        _table(table, report, names)
        _drift(drift, report, names)
        _attention(attention, report)
        return png_of(figure)


def _short(name: str) -> str:
    """Shortens a name, and escapes it so that Matplotlib doesn't read it as a formula."""
    name = name.replace("$", r"\$")
    return name if len(name) <= SHOWN_NAME else f"{name[: SHOWN_NAME - 1]}…"


def _scatter(axes: Axes, report: dict[str, Any], kind: str, hues: Any, title: str) -> None:
    """Draws a point for each moment of the matches, in the opponent's colour."""
    axes.set_title(title)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(True)
    if (places := report["points"][kind]) is None:
        words = "needs scikit-learn:\nbin/bootstrap --all"
        axes.text(0.5, 0.5, words, color=FAINT, ha="center", transform=axes.transAxes)
        return
    (x_N, y_N), opponent_N = np.transpose(places), np.asarray(report["points"]["opponent"])
    # Points are drawn in random order, so that no opponent covers the others.
    order = np.random.default_rng(0).permutation(len(x_N))
    hues_N = hues[opponent_N[order]]
    axes.scatter(x_N[order], y_N[order], c=hues_N, s=9, alpha=0.75, linewidths=0)


def _after(axes: Axes, report: dict[str, Any]) -> None:
    """Draws how often the probes are right, by the time since the start of the match."""
    axes.set_title("How often the probe is right, by time")
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    rows, places = report["after"], np.arange(len(report["after"]))
    if rows:
        low, high = ([row["latent"][f"chance_{end}"] for row in rows] for end in ("low", "high"))
        axes.fill_between(places, low, high, color=GRID, label="shuffled opponents", zorder=1)
        axes.plot(places, [row["chance"] for row in rows], ":", color=FAINT, label="chance")
    for name, words, color in READINGS:
        value, lowest, highest = (
            np.array([row[name][key] for row in rows]) for key in ("value", "low", "high")
        )
        ends = np.abs(np.stack([value - lowest, highest - value]))
        axes.errorbar(places, value, ends, color=color, fmt="o-", markersize=4, label=words)
    axes.set_xticks(places, [f"{row['seconds']:g} s\n{row['matches']}" for row in rows])
    axes.set_xlabel("into the match, and how many last so long", loc="right")
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.tick_params(length=0)
    axes.legend(fontsize=9, edgecolor="none", framealpha=0.85)


def _table(axes: Axes, report: dict[str, Any], names: list[str]) -> None:
    """Draws a table of how often the probe names each opponent (column) in the matches against an
    opponent (row).
    """
    axes.set_title("Opponents in rows, what each is called below, %")
    named_KK = np.array([opponent["named"] for opponent in report["opponents"]])
    axes.imshow(named_KK, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    if len(names) <= NUMBERS_UP_TO:
        for row, column in zip(*np.nonzero(named_KK >= 0.005), strict=True):
            color = "white" if named_KK[row, column] > 0.55 else INK
            axes.text(column, row, f"{100 * named_KK[row, column]:.0f}", ha="center", va="center",
                      color=color, fontsize=8)  # fmt: skip
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.yaxis.tick_right()
    axes.set_xticks(range(len(names)), names, fontsize=8, rotation=90 if len(names) > 3 else 0)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _drift(axes: Axes, report: dict[str, Any], names: list[str]) -> None:
    """Draws the drift against each opponent.

    A match is divided into equal blocks, and the latents are averaged over each block. The drift is
    the share of the variance of these means that lies between the two halves of the match
    (docs/evaluation.md).
    """
    axes.set_title("Drift: change between a match's halves", pad=8)
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    axes.axvline(report["drift_by_chance"], color=FAINT, linestyle=":", label="in random order")
    for row, opponent in enumerate(report["opponents"]):
        if drift := opponent["drift"]:
            axes.plot([drift["low"], drift["high"]], [row, row], color=INK, linewidth=1.2)
            axes.plot(drift["share"], row, "o", color="#0072B2", markersize=5)
    axes.set_yticks(range(len(names)), [""] * len(names))
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of all slow change", loc="right")
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.tick_params(length=0)
    axes.legend(frameon=False, fontsize=9, loc="lower right")


def _attention(axes: Axes, report: dict[str, Any]) -> None:
    """Draws the mean attention weights of the latent and the context, by the age of the encoder's
    outputs.
    """
    axes.set_title("Attention by the age of what is looked at")
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    for (name, curve), color in zip(
        report["attention"].items(), ("#0072B2", "#009E73"), strict=True
    ):
        if curve["weight"] is not None:
            axes.plot(curve["age_seconds"], curve["weight"], "o-", color=color, markersize=4,
                      label="strategy latent" if name == "latent" else name)  # fmt: skip
    slots = len(report["attention"]["latent"]["age_seconds"])
    axes.axhline(1 / slots, color=FAINT, linestyle=":", label="all alike")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds ago", loc="right")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.tick_params(length=0)
    axes.legend(frameon=False, fontsize=9)
