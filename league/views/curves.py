"""Draws a run's training curves from its files, without a service and without torch."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from league.errors import NotFound
from league.ids import lineage_of
from league.metrics import wilson_interval
from league.players import Book
from league.runs.records import Row, Series, broken, read_rows, read_scalars
from league.views import style as figures
from league.views.style import FAINT, GRID, INK, PALETTE, png_of

if TYPE_CHECKING:  # saves 22 MiB in the dashboard, which only reads histories
    from matplotlib.axes import Axes

TOGETHER = 3
"""Number of successive snapshots whose clean matches are counted together, because each snapshot
has played only a few.
"""
STYLE: Final[Any] = figures.STYLE | {
    "font.size": 8.5,
    "axes.titlesize": 10,
    "axes.titlepad": 14,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
}
COLORS: Final = (*PALETTE, *PALETTE)
SHARES: Final = ("learning", "inference", "opponents", "game", "waiting")
LABEL_GAP = 0.06
"""Smallest distance of two labels next to a panel, as a share of the panel's height."""
Label = tuple[float, str, str]
"""A label's height in data units, its text and its colour."""


class WinRate(NamedTuple):
    """Holds the share of wins in clean matches against a bot by learner steps, with its Wilson
    interval.
    """

    steps: NDArray[np.int64]
    rate: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class Stage(NamedTuple):
    """Holds a stage of the curriculum, and the step at which it was first seen."""

    step: int
    name: str


@dataclass(frozen=True, kw_only=True)
class History:
    """Holds the data of the picture. Data that a run has not written are empty."""

    title: str
    learner: str = "main"
    scalars: Mapping[str, Series] = field(default_factory=dict)
    trained: Mapping[str, WinRate] = field(default_factory=dict)  # against bots of its training
    others: Mapping[str, WinRate] = field(default_factory=dict)  # against other bots
    scores: Series | None = None  # scores of snapshots by step
    bot_scores: Mapping[str, float] = field(default_factory=dict)
    stages: Sequence[Stage] = ()


def gather(
    run_dir: Path,
    learner: str = "",
    read: Callable[[Path], Mapping[str, Series]] = read_scalars,
) -> History:
    """Reads the history of a run's learner. The default is `main`, or else the first learner.

    Args:
        run_dir: the run's folder.
        learner: the learner's name, or "".
        read: reads the scalars in a folder with TensorBoard's files.

    Raises:
        NotFound: the run has no such learner.
    """
    folders = {path.name[8:]: path for path in sorted(run_dir.glob("learner-*/"))}
    name = learner or ("main" if "main" in folders else next(iter(folders), "main"))
    if name not in folders:
        raise NotFound(
            f"{run_dir} has no learner {name!r}: it has {', '.join(folders) or 'none yet'}"
        )

    def own(file: str) -> list[Row]:
        rows = read_rows(run_dir / file)
        return [row for row in rows if row["player"].startswith((f"{name}@", f"{name}."))]

    scalars = read(folders[name] / "tensorboard")
    rates = _win_rates(own("evaluator/evaluation_results.csv"))
    met = {row["opponent"] for row in read_rows(folders[name] / "monitor.csv")}
    board = read_rows(run_dir / "leaderboard.csv")
    rated = sorted(
        (int(row["step"]), float(row["score"]))
        for row in own("leaderboard.csv")
        if row["kind"] == "snapshot"
    )
    return History(
        title=run_dir.resolve().name + ("" if name == "main" else f", {name}"),
        learner=name,
        scalars=scalars,
        trained={bot: rate for bot, rate in rates.items() if bot in met},
        others={bot: rate for bot, rate in rates.items() if bot not in met},
        scores=Series(*(np.array(column) for column in zip(*rated, strict=True)))
        if rated
        else None,
        bot_scores={row["player"]: float(row["score"]) for row in board if row["kind"] == "bot"},
        stages=_stages(scalars.get("curriculum/stage"), run_dir / "config.toml"),
    )


def _win_rates(rows: Iterable[Row]) -> dict[str, WinRate]:
    """Returns win rates by bot. The bot with the highest last win rate comes first."""
    played: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for row in rows:
        if row["book"] == Book.EVAL.value and not lineage_of(row["opponent"]):
            counts = int(row["step"]), int(row["wins"]), int(row["matches"])
            played[row["opponent"]].append(counts)
    rates = {}
    for bot, results in played.items():
        points = []
        for index, (step, _, _) in enumerate(ordered := sorted(results)):
            near = ordered[max(0, index - TOGETHER + 1) : index + 1]
            wins, matches = sum(w for _, w, _ in near), sum(m for _, _, m in near)
            interval = wilson_interval(wins, matches)
            points.append((step, wins / max(matches, 1), interval.low, interval.high))
        rates[bot] = WinRate(*(np.array(column) for column in zip(*points, strict=True)))
    return dict(sorted(rates.items(), key=lambda item: -item[1].rate[-1]))


def _stages(index: Series | None, config: Path) -> list[Stage]:
    if index is None or not len(index.steps):
        return []
    try:
        with config.open("rb") as file:
            names = [stage["name"] for stage in tomllib.load(file)["curriculum"]["stages"]]
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError):
        names = []
    changes = np.flatnonzero(np.diff(index.values, prepend=-1.0))
    begins = [(int(index.steps[change]), int(index.values[change])) for change in changes]
    return [
        Stage(step, names[number] if number < len(names) else f"stage {number + 1}")
        for step, number in begins
    ]


def draw(history: History) -> bytes:
    """Draws twelve panels over the learner's steps. Returns a PNG of 1600 x 1000 pixels."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(16, 10), dpi=100, facecolor="white")
        figure.subplots_adjust(0.035, 0.045, 0.93, 0.9, hspace=0.34, wspace=0.52)
        panels = figure.subplots(3, 4, height_ratios=(1.35, 1, 1))
        last = _panels(panels.flatten().tolist(), history)
        facts = [f"{last:,} steps (to the right in every panel)"]
        if speed := history.scalars.get("rate/steps_per_second"):
            facts.append(f"{speed.values[-1]:,.0f} steps/s at the end")
        if history.stages:
            facts.append("stages " + " → ".join(stage.name for stage in history.stages))
        figure.text(0.035, 0.965, history.title, fontsize=16, fontweight="bold")
        figure.text(0.985, 0.965, "  ·  ".join(facts), fontsize=10, color=FAINT, ha="right")
        return png_of(figure)


def _panels(panels: Sequence[Axes], history: History) -> int:
    """Fills the panels from the top left. Returns the learner's last step."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    named = history.scalars
    (trained, others, scores, training, reward, entropy, kl, critic,
     losses, gradients, latent, speed) = panels  # fmt: skip
    _win_rate_panel(trained, "Clean matches: bots it trains against", history.trained)
    _win_rate_panel(others, "Clean matches: bots it never meets", history.others)
    _scores(scores, history)
    wins = {name[8:]: s.values[-1] for name, s in named.items() if name.startswith("winrate/")}
    best_first = sorted(wins.items(), key=lambda item: -item[1])
    _lines(training, "Wins in training, last 100 matches", history,
           {f"winrate/{kind}": f"{kind} {100 * won:.0f}" for kind, won in best_first})  # fmt: skip
    _percent_axis(training)
    _lines(reward, "Reward of a match", history, {"reward/episode_mean": ""})
    _lines(entropy, "Entropy, nats", history, {"policy/entropy": ""})
    entropy.set_ylim(bottom=0)
    _lines(kl, "KL of an update, and share clipped", history,
           {"policy/approx_kl": "KL", "policy/clip_fraction": "clipped"}, scale="log")  # fmt: skip
    _lines(critic, "Explained variance of the critic", history, {"value/explained_variance": ""})
    critic.set_ylim(max(-1.0, critic.get_ylim()[0]), 1.0)
    lost = [name for name in sorted(named) if name.startswith("loss/") and name != "loss/total"]
    _lines(losses, "Losses", history, {name: name[5:] for name in lost})
    modules = {name: name[9:] for name in sorted(named) if name.startswith("gradient/")}
    _lines(gradients, "Gradient norm by module", history,
           modules or {"learning/gradient_norm": "all"}, scale="log")  # fmt: skip
    _lines(latent, "Strategy latent and attention", history,
           {"latent/separation": "separation", "latent/drift": "drift",
            "attention/entropy_share": "entropy of\nattention"})  # fmt: skip
    _speed(speed, named)
    ends = [int(series.steps[-1]) for series in named.values() if len(series.steps)]
    ends += [int(rate.steps[-1]) for rate in (*history.trained.values(), *history.others.values())]
    last = max(ends, default=1)
    for axes in panels:
        axes.set_xlim(0, last)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.tick_params(length=0, which="both")
        if not axes.lines and not axes.collections:
            lacks = axes is latent and modules and "gradient/encoder" not in modules
            words = "the agent has no encoder" if lacks else "nothing yet"
            axes.text(0.5, 0.5, words, color=FAINT, ha="center", transform=axes.transAxes)
            axes.set_yticks([])
        for stage in history.stages[1:]:
            dashes = (0, (3, 3))
            axes.axvline(stage.step, color=FAINT, linewidth=0.9, linestyle=dashes, zorder=0.9)
    return last


def smooth(values: NDArray[np.float64], width: int = 0) -> NDArray[np.float64]:
    """Returns the running median of `values` [N], over fewer values at the ends.

    Args:
        values: the values.
        width: number of values in a median. 0 means a fiftieth of all values.
    """
    half = (width or max(1, len(values) // 50)) // 2
    return np.array(
        [np.median(values[max(0, i - half) : i + half + 1]) for i in range(len(values))]
    )


def _lines(
    axes: Axes, title: str, history: History, names: Mapping[str, str], scale: str = "linear"
) -> None:
    """Draws each series faintly, its smoothed curve over it, and its label on the right."""
    axes.set_title(title)
    shown = [(history.scalars[name], label) for name, label in names.items()
             if name in history.scalars]  # fmt: skip
    labels = []
    for color, (series, label) in zip(COLORS, shown, strict=False):
        middle = smooth(series.values)
        axes.plot(*broken(*series), color=color, linewidth=0.6, alpha=0.3)
        axes.plot(*broken(series.steps, middle), color=color)
        labels.append((float(middle[-1]), label, color))
    if shown:
        axes.set_yscale(scale)
    _label_right(axes, labels)


def _label_right(axes: Axes, labels: Sequence[Label]) -> None:
    """Writes names at the lines' ends, moved apart so that they do not overlap."""
    axes.get_ylim()  # makes the limits include the last line
    ordered = sorted(labels)
    ends = [axes.transData.transform((0.0, value)) for value, _, _ in ordered]
    heights = [float(axes.transAxes.inverted().transform(end)[1]) for end in ends]
    places = [min(1.0, max(0.0, height)) for height in heights]  # on a log scale, 0 is far below
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + LABEL_GAP)
    over = max(0.0, places[-1] - 1.0) if places else 0.0
    places = [height - over for height in places]
    for i in range(len(places) - 2, -1, -1):
        places[i] = min(places[i], places[i + 1] - LABEL_GAP)
    for height, (_, text, color) in zip(places, ordered, strict=True):
        axes.text(
            1.02, height, text, color=color, fontsize=7.5, va="center", transform=axes.transAxes
        )


def _percent_axis(axes: Axes) -> None:
    from matplotlib.ticker import PercentFormatter

    axes.set_ylim(-0.02, 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _win_rate_panel(axes: Axes, title: str, rates: Mapping[str, WinRate]) -> None:
    axes.set_title(title)
    labels = []
    for color, (bot, rate) in zip(COLORS, rates.items(), strict=False):
        axes.fill_between(rate.steps, rate.low, rate.high, color=color, alpha=0.13, linewidth=0)
        axes.plot(rate.steps, rate.rate, color=color)
        labels.append((float(rate.rate[-1]), f"{bot} {rate.rate[-1] * 100:.0f}", color))
    _percent_axis(axes)
    _label_right(axes, labels)
    words = f"wins, 95 % Wilson bands, {TOGETHER} snapshots at a time"
    axes.text(0.0, 1.015, words, color=FAINT, fontsize=7.5, transform=axes.transAxes)


def _scores(axes: Axes, history: History) -> None:
    axes.set_title("Score of snapshots, and of bots (μ − 3σ)")
    words = "from leaderboard.csv, which is written when the run ends"
    axes.text(0.0, 1.015, words, color=FAINT, fontsize=7.5, transform=axes.transAxes)
    series = history.scores
    if series is None:
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
    _label_right(axes, labels)


def _speed(axes: Axes, named: Mapping[str, Series]) -> None:
    from matplotlib.ticker import EngFormatter

    axes.set_title("Steps/s, and where its time goes")
    speed = named.get("rate/steps_per_second")
    if speed is None:
        return
    kinds = {kind: named[f"time/{kind}_share"] for kind in SHARES if f"time/{kind}_share" in named}
    parts = [
        np.interp(speed.steps, share.steps, share.values) * speed.values for share in kinds.values()
    ]
    if parts:
        axes.stackplot(speed.steps, parts, labels=list(kinds), colors=PALETTE, alpha=0.55)
        axes.legend(frameon=False, fontsize=7.5, ncols=3, loc="upper right", handlelength=1.0)
    axes.plot(speed.steps, speed.values, color=INK, linewidth=1.3)
    axes.set_ylim(0, float(speed.values.max()) * 1.25)
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
