"""The picture of a training run: twelve panels over the learner's steps, 1600 x 1000 pixels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    EngFormatter,
    LogLocator,
    MaxNLocator,
    NullLocator,
    PercentFormatter,
    StrMethodFormatter,
)
from numpy.typing import NDArray

from league.views import style as figures
from league.views.curves.history import TOGETHER, History, WinRate
from league.views.style import FAINT, GRID, INK, png_of

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
PALETTE: Final = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"),
    *("#7F4FC9", "#8C6D31", "#555555"),
)
"""Okabe and Ito's colours, which colour-blind people can distinguish, and three more."""
COLORS: Final = (*PALETTE, *PALETTE)
TIMES: Final = {
    "learning": "#009E73",
    "inference": "#CC79A7",
    "opponents": "#E69F00",
    "game": "#0072B2",
    "waiting": "#D55E00",
}
LABEL_GAP = 0.06
"""Least distance of two labels next to a panel, as a share of its height."""
Label = tuple[float, str, str]
"""Height in data units, text, colour."""


def draw(history: History) -> bytes:
    """The picture as PNG."""
    with rc_context(STYLE):
        return png_of(figure_of(history))


def figure_of(history: History) -> Figure:
    """The figure itself; its first axes are the twelve panels, row by row."""
    figure = Figure(figsize=(16, 10), dpi=100, facecolor="white")
    grid = figure.add_gridspec(
        3, 4, left=0.035, right=0.93, top=0.915, bottom=0.045, hspace=0.3, wspace=0.52,
        height_ratios=(1.35, 1, 1),
    )  # fmt: skip
    panels = [figure.add_subplot(grid[row, column]) for row in range(3) for column in range(4)]
    ends = [int(series.steps[-1]) for series in history.scalars.values() if len(series.steps)]
    ends += [int(rate.steps[-1]) for rate in (*history.trained.values(), *history.others.values())]
    last = max(ends, default=1)
    for axes, fill in zip(panels, PANELS, strict=True):
        fill(axes, history)
        axes.set_xlim(0, last)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.tick_params(length=0)
        if not axes.lines and not axes.collections:
            if not axes.texts:
                _say(axes, "nothing yet")
            axes.set_yticks([])
        for stage in history.stages[1:]:
            dashes = (0, (3, 3))
            axes.axvline(stage.step, color=FAINT, linewidth=0.9, linestyle=dashes, zorder=0.9)
    figure.text(0.035, 0.965, history.title, fontsize=16, fontweight="bold")
    facts = [f"{last:,} steps (to the right in every panel)"]
    if "progress/frames" in history.scalars:
        frames = EngFormatter(places=1)(history.scalars["progress/frames"].values[-1])
        facts.append(f"{frames} frames")
    if "rate/steps_per_second" in history.scalars:
        speed = history.scalars["rate/steps_per_second"].values[-1]
        facts.append(f"{speed:,.0f} steps/s at the end")
    if history.stages:
        facts.append("stages " + " → ".join(stage.name for stage in history.stages))
    figure.text(0.985, 0.965, "  ·  ".join(facts), fontsize=10, color=FAINT, ha="right")
    return figure


def _say(axes: Axes, words: str) -> None:
    axes.text(0.5, 0.5, words, color=FAINT, ha="center", transform=axes.transAxes)


def _smooth(values: NDArray[np.float64], width: int = 0) -> NDArray[np.float64]:
    """Running median over `width` values (by default a fiftieth of them), shorter at the ends."""
    half = (width or max(1, len(values) // 50)) // 2
    return np.array(
        [np.median(values[max(0, i - half) : i + half + 1]) for i in range(len(values))]
    )


def _draw_lines(
    axes: Axes, history: History, names: Mapping[str, str], color: str = ""
) -> list[Label]:
    """Each series faint, and smoothed over it; returns their labels at the right."""
    shown = [(history.scalars[name], label) for name, label in names.items()
             if name in history.scalars]  # fmt: skip
    labels = []
    for shade, (series, label) in zip(COLORS, shown, strict=False):
        paint, middle = color or shade, _smooth(series.values)
        axes.plot(series.steps, series.values, color=paint, linewidth=0.6, alpha=0.3)
        axes.plot(series.steps, middle, color=paint)
        labels.append((float(middle[-1]), label, paint))
    return labels


def _label_right(axes: Axes, labels: Sequence[Label]) -> None:
    """Names at the lines' ends, moved apart so that they do not overlap."""
    axes.get_ylim()  # includes the last line in the limits
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


def _percent_axis(axes: Axes) -> None:
    axes.set_ylim(-0.02, 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _win_rates(axes: Axes, title: str, rates: Mapping[str, WinRate]) -> None:
    axes.set_title(title, pad=14)
    labels = []
    for color, (bot, rate) in zip(COLORS, rates.items(), strict=False):
        axes.fill_between(rate.steps, rate.low, rate.high, color=color, alpha=0.13, linewidth=0)
        axes.plot(rate.steps, rate.rate, color=color)
        labels.append((float(rate.rate[-1]), f"{bot} {rate.rate[-1] * 100:.0f}", color))
    _percent_axis(axes)
    _label_right(axes, labels)
    if rates:
        words = f"wins, 95 % Wilson bands, {TOGETHER} snapshots at a time"
        axes.text(0.0, 1.015, words, color=FAINT, fontsize=7.5, transform=axes.transAxes)


def _scores(axes: Axes, history: History) -> None:
    axes.set_title("Score of snapshots, and of bots (μ − 3σ)", pad=14)
    series = history.scores
    if series is None:  # the leaderboard's file is what it is drawn from
        _say(axes, "drawn when the run has ended")
        return
    axes.plot(series.steps, series.values, ".", color=PALETTE[0], markersize=4, alpha=0.45)
    axes.plot(series.steps, _smooth(series.values, 5), color=PALETTE[0])
    low, high = axes.get_ylim()
    axes.set_ylim(low, high)
    labels: list[Label] = []
    for bot, score in sorted(history.bot_scores.items(), key=lambda item: -item[1]):
        if low <= score <= high:
            axes.axhline(score, color=FAINT, linewidth=0.7, alpha=0.5, zorder=1)
            if not labels or labels[-1][0] - score > LABEL_GAP / 2 * (high - low):
                labels.append((score, bot, FAINT))
    _label_right(axes, labels)


def _training_wins(axes: Axes, history: History) -> None:
    axes.set_title("Wins in training, last 100 matches", pad=14)
    labels = []
    found = {name[8:]: s for name, s in history.scalars.items() if name.startswith("winrate/")}
    best_first = sorted(found.items(), key=lambda item: -item[1].values[-1])
    for color, (kind, series) in zip(COLORS, best_first, strict=False):
        axes.plot(series.steps, series.values, color=color, linewidth=1.3)
        labels.append((float(series.values[-1]), f"{kind} {series.values[-1] * 100:.0f}", color))
    _percent_axis(axes)
    _label_right(axes, labels)


def _reward(axes: Axes, history: History) -> None:
    axes.set_title("Reward of a match")
    _draw_lines(axes, history, {"reward/episode_mean": ""}, PALETTE[2])


def _entropy(axes: Axes, history: History) -> None:
    axes.set_title("Entropy, nats")
    _draw_lines(axes, history, {"policy/entropy": ""}, PALETTE[6])
    axes.set_ylim(bottom=0)
    for stage in history.stages[1:]:
        axes.annotate(
            f"stage {stage.name}", (stage.step, 0.02), (3, 0), ("data", "axes fraction"),
            "offset points", color=FAINT, fontsize=7.5, rotation=90, va="bottom",
        )  # fmt: skip


def _kl(axes: Axes, history: History) -> None:
    axes.set_title("KL of an update, share clipped")
    other = axes.twinx()
    handles = {}
    for side, metric, label, color in (
        (axes, "policy/approx_kl", "KL", PALETTE[1]),
        (other, "policy/clip_fraction", "clipped (right)", PALETTE[5]),
    ):
        if _draw_lines(side, history, {metric: ""}, color):
            handles[label] = side.get_lines()[1]
        side.set_ylim(bottom=0)
    other.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    other.tick_params(length=0)
    other.grid(False)
    other.spines["right"].set_visible(False)
    if handles:
        axes.legend(
            list(handles.values()), list(handles), frameon=False, fontsize=7.5, loc="lower right",
            ncols=2,
        )  # fmt: skip


def _explained(axes: Axes, history: History) -> None:
    axes.set_title("Explained variance of the critic")
    if _draw_lines(axes, history, {"value/explained_variance": ""}, PALETTE[0]):
        axes.axhline(0, color=FAINT, linewidth=0.9)
        axes.set_ylim(max(-1.0, axes.get_ylim()[0]), 1.0)


def _losses(axes: Axes, history: History) -> None:
    axes.set_title("Losses")
    names = [name for name in sorted(history.scalars) if name.startswith("loss/")]
    labels = {name: name[5:] for name in names if name != "loss/total"}
    _label_right(axes, _draw_lines(axes, history, labels))


def _gradients(axes: Axes, history: History) -> None:
    axes.set_title("Gradient norm by module")
    modules = {name: name[9:] for name in sorted(history.scalars) if name.startswith("gradient/")}
    labels = _draw_lines(axes, history, modules or {"learning/gradient_norm": "all"})
    if labels:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    _label_right(axes, labels)


def _latent(axes: Axes, history: History) -> None:
    axes.set_title("Strategy latent and attention")
    names = {
        "latent/separation": "separation",
        "latent/drift": "drift",
        "attention/entropy_share": "entropy of\nattention",
    }
    labels = _draw_lines(axes, history, names)
    if labels:
        axes.set_ylim(min(0.0, axes.get_ylim()[0]), 1.05)
    _label_right(axes, labels)


def _speed(axes: Axes, history: History) -> None:
    axes.set_title("Steps/s, and where its time goes")
    speed = history.scalars.get("rate/steps_per_second")
    if speed is None:
        return
    floor = np.zeros(len(speed.steps))
    for kind, color in TIMES.items():
        share = history.scalars.get(f"time/{kind}_share")
        if share is None:
            continue
        top = floor + np.interp(speed.steps, share.steps, share.values) * speed.values
        axes.fill_between(speed.steps, floor, top, color=color, alpha=0.55, linewidth=0, label=kind)
        floor = top
    axes.plot(speed.steps, speed.values, color=INK, linewidth=1.3)
    axes.set_ylim(0, float(speed.values.max()) * 1.25)
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.legend(
        frameon=False, fontsize=7.5, ncols=3, loc="upper right", handlelength=1.0, columnspacing=1.0
    )


PANELS: Final[tuple[Callable[[Axes, History], None], ...]] = (
    lambda axes, history: _win_rates(
        axes, "Clean matches: bots it trains against", history.trained
    ),
    lambda axes, history: _win_rates(axes, "Clean matches: bots it never meets", history.others),
    *(_scores, _training_wins, _reward, _entropy, _kl, _explained),
    *(_losses, _gradients, _latent, _speed),
)
"""From the top left."""
