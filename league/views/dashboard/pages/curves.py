"""Shows a learner's curves over its steps, optionally next to the curves of a second run."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from league.errors import NotFound
from league.ids import lineage_of
from league.players import Book, PlayerKind
from league.runs.files import read_json
from league.runs.finding import FORMAT
from league.runs.records import read_rows
from league.stats.ratings.elo import SIGMAS
from league.views.curves import History, WinRate, gather, smooth
from league.views.dashboard.blocks import (
    MOST_POINTS,
    Block,
    Chart,
    Filters,
    band,
    choice,
    entry,
    filters,
    line,
    lines,
    suggestions,
)
from league.views.dashboard.source import Source
from league.views.html import section
from league.views.style import SCREEN_PALETTE

SECONDS = 10.0
"""Largest age of curves. The files of a long run take a second to read."""
TERMS = 8
"""How many reward terms are drawn, the largest first."""
FOUND, DENSE = 24, 2000
"""Largest number of charts of chosen metrics, and largest number of points in each of their lines.
"""
ALL = "*"
SMOOTH = {"": "no", "5": "over 5 points", "20": "over 20 points", "80": "over 80 points"}
USUAL = (
    ("Reward of a match", "The mean of those that ended.", "reward/episode_mean", False),
    ("Entropy", "Of the policy, in nats.", "policy/entropy", False),
    ("Explained variance", "Of the critic: 1 is perfect.", "value/explained_variance", False),
    ("KL divergence", "Of an update.", "policy/approx_kl", True),
    ("Value loss", "Of an update.", "loss/value", True),
    ("Steps/s", "Of all ranks together.", "rate/steps_per_second", False),
)
"""Titles, words, names and logarithmic axes of the metrics that are drawn unless others are
chosen.
"""
Stages = Sequence[tuple[float, str]]


def show(source: Source, parameters: Mapping[str, str]) -> Iterator[Block]:
    if source.run_dir is None:
        words = "This league is known by its address alone: open the dashboard with --run-dir."
        yield section("Curves", words=words)
        return
    learners = sorted(path.name[8:] for path in source.run_dir.glob("learner-*/"))
    workers = [one.worker.removeprefix("learner-") for one in source.status().workers if one.player]
    away = ", ".join(sorted({*workers} - {*learners}))
    others = _other_runs(source)
    learner, other = parameters.get("learner", ""), parameters.get("with", "")
    learner = learner if learner in learners else ""
    usual = "main" if "main" in learners else next(iter(learners), "")
    metric, width = parameters.get("metric", ""), parameters.get("smooth", "")
    runs = {name: name for name in others} | ({ALL: "all of them"} if len(others) > 1 else {})
    yield Filters(
        section(
            "Curves",
            filters(
                choice("learner", "learner", {name: name for name in learners}, learner or usual),
                choice("with", "beside", {"": "no other run"} | runs, other),
                entry("metric", "metric", metric, names="metrics"),
                choice("smooth", "smoothed", SMOOTH, width),
            ),
            words=f"The curves of {away} are on another machine." if away else "",
        )
    )
    chosen = {source.run_dir.absolute().name: source.run_dir}
    chosen |= {name: folder for name, folder in others.items() if other in (ALL, name)}
    histories: dict[str, tuple[Path, History]] = {}
    for run, folder in chosen.items():
        name = learner if folder is source.run_dir else ""
        try:
            history = source.kept(
                ("curves", folder, name),
                SECONDS,
                lambda: gather(folder, name, source.scalars),  # noqa: B023
            )
            histories[run] = folder, history
        except NotFound as error:
            if folder is source.run_dir:
                yield section("Nothing yet", words=str(error))
                return
    names = sorted({name for _, history in histories.values() for name in history.scalars})
    drawn = _Drawn(histories, int(width) if width in SMOOTH and width else 1)
    yield from drawn.found(names, metric) if metric else drawn.usual(source)
    yield suggestions("metrics", names)


def _other_runs(source: Source) -> dict[str, Path]:
    """Returns other runs by name: the runs in the same folder, and the runs that the operator
    named.
    """
    assert source.run_dir is not None
    own, runs = source.run_dir.absolute(), dict[str, Path]()
    for path in sorted(own.parent.glob("*/run.json")):
        if path.parent.name != own.name and read_json(path).get("format") == FORMAT:
            runs[path.parent.name] = path.parent
    for folder in (folder.absolute() for folder in source.beside):
        is_taken = folder.name in (own.name, *runs) and runs.get(folder.name) != folder
        runs[f"{folder.parent.name}/{folder.name}" if is_taken else folder.name] = folder
    return runs


class _Drawn:
    """Draws the histories of one or more runs.

    Args:
        histories: folder and history of each run, by the run's name. The page's own run comes
            first.
        width: over how many points the metrics are smoothed.
    """

    def __init__(self, histories: Mapping[str, tuple[Path, History]], width: int) -> None:
        self._histories, self._width = histories, width
        own = next(iter(histories.values()))[1]
        ends = [float(one.steps[-1]) for one in own.scalars.values() if len(one.steps)]
        self._stages = [(float(stage.step), stage.name) for stage in own.stages]
        self._stages += [(max(ends, default=0.0), "")]

    def usual(self, source: Source) -> Iterator[Chart]:
        run, *others = self._histories
        words = (
            f" Only {run} is shown: ratings of different runs are not comparable, and "
            "bin/league compare RUN/main OTHER/main decides which run is stronger."
        )
        yield from _ratings(source, self._stages, words if others else "")
        for run, (folder, history) in self._histories.items():
            after = f", {run}" if len(self._histories) > 1 else ""
            own = () if after else self._stages
            yield _win_rates(f"Clean wins: bots of training{after}", history.trained, own)
            yield _win_rates(f"Clean wins: bots never met{after}", history.others, own)
            kinds = [name for name in sorted(history.scalars) if name.startswith("winrate/")]
            series = [
                line(name[8:], *history.scalars[name], colour)
                for name, colour in zip(kinds, SCREEN_PALETTE, strict=False)
            ]
            title, words = f"Wins in training{after}", "Of the last 100 matches."
            yield lines(title, words, series, shares=True, stages=own)
            yield _rewards(f"Reward terms of a match{after}", folder, history, own)
        for title, words, name, is_log in USUAL:
            if any(name in history.scalars for _, history in self._histories.values()):
                yield self._metric(title, words, name, is_log)

    def found(self, names: Sequence[str], metric: str) -> Iterator[Block]:
        """Yields the chart of the metric called `metric`. If there is no such metric, yields a
        chart of each metric whose name contains `metric`.
        """
        found = [name for name in names if metric.lower() in name.lower()]
        found = [metric] if metric in names else found
        if not found:
            yield section("No such metric", words=f"No name of a metric has {metric!r} in it.")
        elif len(found) > FOUND:
            yield section("Metrics", words=f"The first {FOUND} of {len(found)}.")
        for name in found[:FOUND]:
            title = name.replace("/", ", ").replace("_", " ")
            chart = self._metric(title, f"Logged as {name}.", name, False, DENSE)
            is_alone = len(found) == 1
            yield replace(chart, wide=is_alone, height=440 if is_alone else chart.height)

    def _metric(
        self, title: str, words: str, name: str, is_log: bool, most: int = MOST_POINTS
    ) -> Chart:
        """Returns the chart of a metric of all runs. Under a smoothed line, the original line is
        drawn faintly.
        """
        series = []
        for (run, (_, history)), colour in zip(
            self._histories.items(), SCREEN_PALETTE, strict=False
        ):
            if name not in history.scalars:
                continue
            steps, values = history.scalars[name]
            label = run if len(self._histories) > 1 else title
            if self._width > 1:
                faint = {"lineStyle": {"color": colour, "width": 1, "opacity": 0.3}}
                behind = line(label, steps, values, colour, most) | faint
                series.append(behind | {"silent": True, "tooltip": {"show": False}})
                values = smooth(values, self._width)
            series.append(line(label, steps, values, colour, most))
        return lines(title, words, series, log=is_log, stages=self._stages)


def _ratings(source: Source, stages: Stages, more: str) -> Iterator[Chart]:
    """Yields ratings of snapshots over steps and over time, by lineage. `more` follows the charts'
    words.
    """
    lanes: dict[str, list[tuple[float, float, float, float]]] = {}
    for rating in source.ratings(Book.EVAL):
        if rating.player.kind is PlayerKind.SNAPSHOT:
            lane = lineage_of(rating.player.name)
            half = SIGMAS * rating.sigma
            milliseconds = round(1000 * rating.player.created_at)  # ECharts clips fractions away
            point = (rating.player.step, milliseconds, rating.mu, half)
            lanes.setdefault(lane, []).append(point)
    if not lanes:
        return
    for title, words, column, kind in (
        ("Rating over steps", "mu of each snapshot ± 2 sigma.", 0, "value"),
        ("Rating over time", "The same by the time at which the snapshot entered.", 1, "time"),
    ):
        series = []
        for (lane, points), colour in zip(sorted(lanes.items()), SCREEN_PALETTE, strict=False):
            found_N = np.array(sorted(points, key=operator.itemgetter(column)))
            x_N, mu_N, half_N = found_N[:, column], found_N[:, 2], found_N[:, 3]
            series += band(lane, x_N, mu_N - half_N, mu_N + half_N, colour)
            series.append(line(lane, x_N, mu_N, colour))
        yield lines(title, words + more, series, x=kind, stages=stages if kind == "value" else ())


def _win_rates(title: str, rates: Mapping[str, WinRate], stages: Stages) -> Chart:
    series = []
    for (bot, rate), colour in zip(rates.items(), SCREEN_PALETTE, strict=False):
        series += [*band(bot, rate.steps, rate.low, rate.high, colour),
                   line(bot, rate.steps, rate.rate, colour)]  # fmt: skip
    words = "Three snapshots at a time, with 95 % Wilson bands."
    return lines(title, words, series, shares=True, stages=stages)


def _rewards(title: str, folder: Path, history: History, stages: Stages) -> Chart:
    rows = read_rows(folder / f"learner-{history.learner}" / "reward_breakdown.csv")
    names = [name for name in (rows[0] if rows else ()) if name not in ("step", "matches", "total")]
    steps = np.array([int(row["step"]) for row in rows])
    terms = {name: np.array([float(row[name]) for row in rows]) for name in names}
    largest = sorted(names, key=lambda name: -float(np.abs(terms[name]).mean()) if rows else 0.0)
    series = [
        line(name.replace("_", " "), steps, terms[name], colour)
        | {
            "stack": "terms",
            "areaStyle": {"opacity": 0.5, "color": colour},
            "lineStyle": {"width": 0},
        }
        for name, colour in zip(largest[:TERMS], SCREEN_PALETTE, strict=False)
        if np.abs(terms[name]).max() > 0
    ]
    words = f"Means over rollouts of the {TERMS} largest."
    return lines(title, words, series, stages=stages)
