"""The twelve panels of the curves, from the top left: each fills its axes from a history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import (
    EngFormatter,
    LogLocator,
    NullLocator,
    PercentFormatter,
    StrMethodFormatter,
)
from numpy.typing import NDArray

from league.views.curves.history import TOGETHER, History, WinRate
from league.views.style import FAINT, INK

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
"""Okabe and Ito's colours, which colour-blind people can distinguish, and three more."""
LABEL_GAP = 0.06
"""Least distance of two labels next to a panel, as a share of its height."""
Label = tuple[float, str, str]
"""Height in data units, text, colour."""


def colors() -> list[str]:
    """Twice the palette, for panels with many lines."""
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


def _clean_trained(axes: Axes, history: History) -> None:
    _win_rates(axes, "Clean matches: bots it trains against", history.trained)


def _clean_others(axes: Axes, history: History) -> None:
    _win_rates(axes, "Clean matches: bots it never meets", history.others)


def _win_rates(axes: Axes, title: str, rates: Mapping[str, WinRate]) -> None:
    axes.set_title(title, pad=14)
    labels = []
    for color, (bot, rate) in zip(colors(), rates.items(), strict=False):
        axes.fill_between(rate.steps, rate.low, rate.high, color=color, alpha=0.13, linewidth=0)
        axes.plot(rate.steps, rate.rate, color=color)
        labels.append((float(rate.rate[-1]), f"{bot} {rate.rate[-1] * 100:.0f}", color))
    share_axis(axes)
    label_right(axes, labels)
    if rates:
        words = f"wins, 95 % Wilson bands, {TOGETHER} snapshots at a time"
        axes.text(0.0, 1.015, words, color=FAINT, fontsize=7.5, transform=axes.transAxes)


def _scores(axes: Axes, history: History) -> None:
    axes.set_title("Score of snapshots, and of bots (μ − 3σ)", pad=14)
    series = history.scores
    if series is None:  # the leaderboard's file is what it is drawn from
        words = "drawn when the run has ended"
        axes.text(0.5, 0.5, words, color=FAINT, ha="center", transform=axes.transAxes)
        return
    axes.plot(series.steps, series.values, ".", color=PALETTE[0], markersize=4, alpha=0.45)
    axes.plot(series.steps, smooth(series.values, 5), color=PALETTE[0])
    low, high = axes.get_ylim()
    axes.set_ylim(low, high)
    labels: list[Label] = []
    for bot, score in sorted(history.bot_scores.items(), key=lambda item: -item[1]):
        if low <= score <= high:
            axes.axhline(score, color=FAINT, linewidth=0.7, alpha=0.5, zorder=1)
            if not labels or labels[-1][0] - score > LABEL_GAP / 2 * (high - low):
                labels.append((score, bot, FAINT))
    label_right(axes, labels)


def _training_wins(axes: Axes, history: History) -> None:
    axes.set_title("Wins in training, last 100 matches", pad=14)
    labels = []
    found = {name[8:]: s for name, s in history.scalars.items() if name.startswith("winrate/")}
    best_first = sorted(found.items(), key=lambda item: -item[1].values[-1])
    for color, (kind, series) in zip(colors(), best_first, strict=False):
        axes.plot(series.steps, series.values, color=color, linewidth=1.3)
        labels.append((float(series.values[-1]), f"{kind} {series.values[-1] * 100:.0f}", color))
    share_axis(axes)
    label_right(axes, labels)


def _reward(axes: Axes, history: History) -> None:
    axes.set_title("Reward of a match")
    draw_lines(axes, history, {"reward/episode_mean": ""}, PALETTE[2])


def _entropy(axes: Axes, history: History) -> None:
    axes.set_title("Entropy, nats")
    draw_lines(axes, history, {"policy/entropy": ""}, PALETTE[6])
    axes.set_ylim(bottom=0)
    for stage in history.stages[1:]:
        where = (stage.step, 0.02)
        axes.annotate(f"stage {stage.name}", where, (3, 0), ("data", "axes fraction"), "offset points",
                      color=FAINT, fontsize=7.5, rotation=90, va="bottom")  # fmt: skip


def _kl(axes: Axes, history: History) -> None:
    axes.set_title("KL of an update, share clipped")
    draw_lines(axes, history, {"policy/approx_kl": "KL"}, PALETTE[1])
    axes.set_ylim(bottom=0)
    other = axes.twinx()
    draw_lines(other, history, {"policy/clip_fraction": "clipped"}, PALETTE[5])
    other.set_ylim(bottom=0)
    other.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    other.tick_params(length=0)
    other.grid(False)
    other.spines["right"].set_visible(False)
    ends = (*axes.get_lines()[1:2], *other.get_lines()[1:2])
    handles = dict(zip(("KL", "clipped (right)"), ends, strict=False))
    if handles:
        axes.legend(
            list(handles.values()),
            list(handles),
            frameon=False,
            fontsize=7.5,
            loc="lower right",
            ncols=2,
        )


def _explained(axes: Axes, history: History) -> None:
    axes.set_title("Explained variance of the critic")
    draw_lines(axes, history, {"value/explained_variance": ""}, PALETTE[0])
    if axes.lines:
        axes.axhline(0, color=FAINT, linewidth=0.9)
        axes.set_ylim(max(-1.0, axes.get_ylim()[0]), 1.0)


def _losses(axes: Axes, history: History) -> None:
    axes.set_title("Losses")
    names = [
        name
        for name in sorted(history.scalars)
        if name.startswith("loss/") and name != "loss/total"
    ]
    label_right(
        axes, draw_lines(axes, history, {name: name.removeprefix("loss/") for name in names})
    )


def _gradients(axes: Axes, history: History) -> None:
    axes.set_title("Gradient norm by module")
    names = [name for name in sorted(history.scalars) if name.startswith("gradient/")]
    modules = {name: name.removeprefix("gradient/") for name in names}
    labels = draw_lines(axes, history, modules or {"learning/gradient_norm": "all"})
    if labels:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    label_right(axes, labels)


def _latent(axes: Axes, history: History) -> None:
    axes.set_title("Strategy latent and attention")
    names = {
        "latent/separation": "separation",
        "latent/drift": "drift",
        "attention/entropy_share": "entropy of\nattention",
    }
    labels = draw_lines(axes, history, names)
    if labels:
        axes.set_ylim(min(0.0, axes.get_ylim()[0]), 1.05)
    label_right(axes, labels)


def _speed(axes: Axes, history: History) -> None:
    axes.set_title("Steps/s, and where its time goes")
    kinds = ("learning", "inference", "opponents", "game", "waiting")
    shares = {kind: history.scalars.get(f"time/{kind}_share") for kind in kinds}
    speed = history.scalars.get("rate/steps_per_second")
    if speed is None or any(share is None for share in shares.values()):
        return
    floor = np.zeros(len(speed.steps))
    for color, (kind, share) in zip(
        ("#009E73", "#CC79A7", "#E69F00", "#0072B2", "#D55E00"), shares.items(), strict=True
    ):
        assert share is not None
        part = np.interp(speed.steps, share.steps, share.values) * speed.values
        axes.fill_between(
            speed.steps, floor, floor + part, color=color, alpha=0.55, linewidth=0, label=kind
        )
        floor = floor + part
    axes.plot(speed.steps, speed.values, color=INK, linewidth=1.3)
    axes.set_ylim(0, float(speed.values.max()) * 1.25)
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.legend(
        frameon=False, fontsize=7.5, ncols=3, loc="upper right", handlelength=1.0, columnspacing=1.0
    )


PANELS = (
    _clean_trained, _clean_others, _scores, _training_wins,
    _reward, _entropy, _kl, _explained,
    _losses, _gradients, _latent, _speed,
)  # fmt: skip
