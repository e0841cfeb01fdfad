"""The picture of a reading: scenes, damage, both attentions and the latent over a match's time.

Shape suffixes: T decisions, P pooled outputs, C components, D width, H height, W width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator, PercentFormatter
from numpy.typing import NDArray

from league.errors import InvalidInput
from league.games.drawing.painter import Painter
from league.views.attention.reading import Reading, key_frames
from league.views.style import FAINT, GRID, INK, STYLE, png_of

NOTHING = "#EEF1F4"
SEATS = ("#C0364A", "#1373B5")
"""The fighters' colours in the scenes, dark enough for lines and words."""
COMPONENTS = ("#1F2933", "#009E73", "#B0749A")
LESS_MORE: Final = LinearSegmentedColormap.from_list(
    "less and more", ["#7A4A12", "#D9B57E", "#FFFFFF", "#7FC3B8", "#0B5F58"]
)
WIDE, TALL = 16.0, 11.6
"""Size in inches of 100 pixels."""
LEFT, RIGHT, SIDE = 0.052, 0.855, 0.985
"""Edges of the time axis and of the notes at its right, as shares of the width."""
SCENES = 5
WARM_UP = 45
"""Frames before a scene that are seen unseen, so that its camera and effects are under way."""


def draw(reading: Reading, start: float = 0.0, stop: float | None = None) -> bytes:
    """Seconds `start` to `stop` (None: the end) as PNG of 1600 x 1160 pixels."""
    with rc_context(STYLE):
        return png_of(figure_of(reading, start, stop))


def figure_of(reading: Reading, start: float = 0.0, stop: float | None = None) -> Figure:
    """The figure itself, its last four axes being the panels.

    Raises `InvalidInput` when nothing of the match lies between `start` and `stop`.
    """
    last = len(reading.frames) / reading.frames_per_second
    end = last if stop is None else min(stop, last)
    if not 0 <= start < end:
        raise InvalidInput(
            f"the match lasts {last:.1f} s: it can't be shown from {start:g} s to {end:g} s"
        )
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDE, TALL), dpi=100, facecolor="white")
        _heading(figure, reading)
        shown = _scenes(figure, reading, start, end)
        grid = figure.add_gridspec(
            4, 1, left=LEFT, right=RIGHT, top=0.715, bottom=0.045, hspace=0.42,
            height_ratios=(0.8, 1.2, 1.2, 0.95),
        )  # fmt: skip
        panels = [figure.add_subplot(grid[row]) for row in range(4)]
        _course(panels[0], reading, start, end)
        titles = (
            "Strategy latent: what the learned query looks at",
            "Context: what its own observation looks for",
        )
        _attention(panels[1], reading, reading.latent_TP, titles[0])
        _attention(panels[2], reading, reading.context_TP, titles[1])
        _components(panels[3], reading, start, end)
        for axes in panels:
            _time_axis(axes, start, end, shown)
        panels[-1].set_xlabel("seconds of the match", loc="right")
    return figure


def _heading(figure: Figure, reading: Reading) -> None:
    own, other = reading.names[reading.seat], reading.names[1 - reading.seat]
    colors = SEATS[reading.seat], SEATS[1 - reading.seat]
    title, below = f"What {own} looks at", f"in a match against {other}"
    figure.text(LEFT, 0.968, title, fontsize=17, fontweight="bold", color=colors[0])
    figure.text(LEFT, 0.946, below, color=colors[1], fontsize=11)
    step = reading.frame_skip / reading.frames_per_second
    words = [f"{len(reading.age_P)} outputs of the encoder, one every {step:.2f} s"]
    if reading.reach:
        words.append(f"each sums up its own moment and the {reading.reach * step:.2f} s before")
    match = f"match {reading.match_id[:12]}" if reading.match_id else ""
    figure.text(SIDE, 0.972, ", ".join(words), color=FAINT, ha="right")
    figure.text(SIDE, 0.948, match, color=FAINT, ha="right")


def _time_axis(axes: Axes, start: float, end: float, shown: Sequence[float]) -> None:
    axes.set_xlim(start, end)
    axes.tick_params(length=0)
    axes.xaxis.set_major_locator(MaxNLocator(14, integer=end - start > 8, prune="upper"))
    for second in shown:
        axes.axvline(second, color=INK, linewidth=0.8, linestyle=(0, (2, 3)), alpha=0.5)


def _scenes(figure: Figure, reading: Reading, start: float, end: float) -> list[float]:
    """Draws the key frames in a row; returns their seconds."""
    per_second = reading.frames_per_second
    first, last = int(start * per_second), min(int(end * per_second), len(reading.frames)) - 1
    chosen = key_frames(reading.events, first, last, SCENES)
    gap = 0.008
    width = (SIDE - LEFT - gap * (SCENES - 1)) / SCENES
    height = width * WIDE / TALL * 9 / 16
    for place, number in enumerate(chosen):
        axes = figure.add_axes((LEFT + place * (width + gap), 0.765, width, height))
        axes.imshow(scene_of(reading, number), aspect="auto", interpolation="antialiased")
        axes.xaxis.set_major_locator(NullLocator())
        axes.yaxis.set_major_locator(NullLocator())
        words = f"{number / per_second:.1f} s  {_happened(reading, number)}"
        axes.set_title(words, fontsize=10, fontweight="normal", pad=5)
    return [number / per_second for number in chosen]


def _happened(reading: Reading, frame: int) -> str:
    now = [event for event in reading.events if event.frame == frame]
    worst = max(now, key=lambda event: event.damage, default=None)
    if worst is None:
        return ""
    what = "is knocked out" if np.isinf(worst.damage) else f"is hit for {worst.damage:.0f}"
    return f"{reading.names[worst.victim]} {what}"


def scene_of(reading: Reading, number: int) -> NDArray[np.uint8]:
    """Frame `number` in pixels, [H, W, 3], with the sparks and the camera of its moment."""
    painter = Painter(640, 360, reading.names)
    for frame in reading.frames[max(0, number - WARM_UP) : number + 1]:
        painter.see(frame)
    return painter.paint()


def _course(axes: Axes, reading: Reading, start: float, end: float) -> None:
    """Damage of both fighters, a dot for each hit, a cross for each knock-out."""
    axes.set_title("The match: damage taken, with hits (dots) and knock-outs (crosses)")
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    if not reading.frames[0].get("players"):
        axes.text(
            0.5, 0.5, "a game without fighters", color=FAINT, ha="center", transform=axes.transAxes
        )
        axes.set_yticks([])
        return
    seconds = np.arange(len(reading.frames)) / reading.frames_per_second
    axes.set_xlim(start, end)
    for seat, color in enumerate(SEATS):
        damage = np.array([frame["players"][seat]["damage"] for frame in reading.frames])
        axes.plot(seconds, damage, color=color, linewidth=1.5)
        own = [event for event in reading.events if event.victim == seat]
        hits = [event.frame for event in own if np.isfinite(event.damage)]
        axes.plot(seconds[hits], damage[hits], ".", color=color, markersize=5)
        lost = [event.frame for event in own if np.isinf(event.damage)]
        lost = [number for number in lost if start <= seconds[number] <= end]
        before = [damage[max(0, number - 1)] for number in lost]
        axes.plot(seconds[lost], before, "X", color=color, markersize=10, markeredgecolor="white",
                  clip_on=False, zorder=4)  # fmt: skip
        axes.text(
            1.012, 0.74 - 0.24 * seat, reading.names[seat], color=color, transform=axes.transAxes
        )
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.set_ylabel("damage")


def relative(weights_TP: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How many times its output's mean each weight is, as log2, and the means [P].

    NaN where the match was too young for all outputs; means are over the other decisions.
    """
    slots = weights_TP.shape[1]
    full_TP = np.asarray(weights_TP, np.float64)[slots - 1 :]
    if not len(full_TP):
        return np.full(weights_TP.shape, np.nan), np.asarray(weights_TP, np.float64).mean(0)
    mean_P = full_TP.mean(0)
    young_TP = np.full((slots - 1, slots), np.nan)
    return np.concatenate([young_TP, np.log2(np.maximum(full_TP, 1e-12) / mean_P)]), mean_P


def _attention(axes: Axes, reading: Reading, weights_TP: NDArray[np.float32], title: str) -> None:
    """Attention compared with its average, by time and age, and the average at the right."""
    step, age_P = reading.frame_skip / reading.frames_per_second, reading.age_P
    times_TP, mean_P = relative(weights_TP)
    known = times_TP[np.isfinite(times_TP)]
    most = max(float(np.quantile(np.abs(known), 0.995)), 0.05) if known.size else 1.0
    axes.set_facecolor(NOTHING)
    axes.imshow(
        times_TP[:, ::-1].T, cmap=LESS_MORE, vmin=-most, vmax=most, aspect="auto", origin="lower",
        extent=(reading.second_T[0], reading.second_T[-1] + step, -step / 2, age_P[0] + step / 2),
        interpolation="nearest",
    )  # fmt: skip
    axes.set_title(title)
    axes.set_ylabel("looks back, seconds")
    axes.yaxis.set_major_locator(MaxNLocator(4))
    words = f"brown 1/{2**most:.2g} of its mean, green {2**most:.2g} times"
    axes.text(
        1.0, 1.03, words, color=FAINT, fontsize=9, ha="right", transform=axes.transAxes
    )  # fmt: skip
    side = axes.inset_axes((1.012, 0.0, 0.148, 1.0))
    side.barh(age_P, mean_P, height=0.82 * step, color="#B9C4CE")
    side.set_ylim(axes.get_ylim())
    side.set_xlim(0, 1.3 * float(mean_P.max()))
    side.xaxis.set_major_locator(MaxNLocator(2, prune="lower"))
    side.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    side.yaxis.set_major_locator(NullLocator())
    side.spines["bottom"].set_visible(False)
    side.tick_params(length=0)
    side.text(0.0, -0.09, "mean", color=FAINT, transform=side.transAxes, va="center")


def _components(axes: Axes, reading: Reading, start: float, end: float) -> None:
    """The latent's first principal components over the match."""
    axes.set_title("Strategy latent: its three largest principal components")
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    parts_TC, shares = principal(reading.latent_TD, len(COMPONENTS))
    inside_T = (reading.second_T >= start) & (reading.second_T <= end)
    for place in reversed(range(parts_TC.shape[1])):
        color = COMPONENTS[place]
        axes.plot(reading.second_T[inside_T], parts_TC[inside_T, place], color=color, linewidth=1.2)
        words = f"{shares[place]:.0%} of its variance"
        axes.text(1.012, 0.8 - 0.22 * place, words, color=color, transform=axes.transAxes)
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.set_ylabel("deviations")


def principal(
    values_TD: NDArray[np.floating], count: int
) -> tuple[NDArray[np.float64], Sequence[float]]:
    """The first principal components [T, C], in deviations of the first, and their shares."""
    centred_TD = np.asarray(values_TD, np.float64) - values_TD.mean(0)
    u, s, _ = np.linalg.svd(centred_TD, full_matrices=False)
    parts_TC, total = (u * s)[:, :count], float(np.square(s).sum())
    shares = [float(value) / total if total else 0.0 for value in np.square(s[:count])]
    return parts_TC / max(float(parts_TC[:, 0].std()), 1e-12), shares
