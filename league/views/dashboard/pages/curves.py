"""Shows a learner's curves over its steps, optionally next to the curves of a second run."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from league.errors import NotFound
from league.ids import lineage_of
from league.players import Book, PlayerKind
from league.runs.files import read_json
from league.runs.finding import FORMAT
from league.runs.records import read_rows
from league.stats.ratings.elo import HALF_WIDTH
from league.views.curves import History, WinRate, gather
from league.views.dashboard.blocks import Block, Chart, band, choice, form, line, lines
from league.views.dashboard.source import Source
from league.views.html import section
from league.views.style import SCREEN_PALETTE

SECONDS = 10.0
"""Largest age of curves. The files of a long run take a second to read."""
TERMS = 8
"""Number of reward terms to draw, starting with the largest."""


def show(source: Source, parameters: Mapping[str, str]) -> list[Block]:
    if source.run_dir is None:
        words = "This league is known by its address alone: open the dashboard with --run-dir."
        return [section("Curves", words=words)]
    learners = sorted(path.name[8:] for path in source.run_dir.glob("learner-*/"))
    workers = [one.worker.removeprefix("learner-") for one in source.status().workers if one.player]
    away = ", ".join(sorted({*workers} - {*learners}))
    others = _runs_beside(source.run_dir)
    learner, other = parameters.get("learner", ""), parameters.get("with", "")
    learner = learner if learner in learners else ""
    usual = "main" if "main" in learners else next(iter(learners), "")
    picker = section(
        "Curves",
        form(
            choice("learner", "learner", {name: name for name in learners}, learner or usual),
            choice("with", "beside", {"": "no other run"} | {name: name for name in others}, other),
        ),
        words=f"The curves of {away} are on another machine." if away else "",
    )
    runs = [(source.run_dir, learner)]
    if other in others:
        runs.append((source.run_dir.parent / other, ""))
    histories = []
    for folder, name in runs:
        try:
            history = source.kept(("curves", folder, name), SECONDS, lambda: gather(folder, name))  # noqa: B023
            histories.append((folder, history))
        except NotFound as error:
            return [picker, section("Nothing yet", words=str(error))]
    return [picker, *_charts(source, histories)]


def _runs_beside(run_dir: Path) -> list[str]:
    """Returns the names of the runs in the same folder."""
    return sorted(
        path.parent.name
        for path in run_dir.absolute().parent.glob("*/run.json")
        if path.parent.name != run_dir.absolute().name and read_json(path).get("format") == FORMAT
    )


def _charts(source: Source, histories: Sequence[tuple[Path, History]]) -> Iterator[Chart]:
    several = len(histories) > 1
    yield from _ratings(source)
    for folder, history in histories:
        after = f", {folder.name}" if several else ""
        yield _win_rates(f"Clean wins: bots of training{after}", history.trained)
        yield _win_rates(f"Clean wins: bots never met{after}", history.others)
        kinds = [name for name in sorted(history.scalars) if name.startswith("winrate/")]
        series = [
            line(name[8:], *history.scalars[name], colour)
            for name, colour in zip(kinds, SCREEN_PALETTE, strict=False)
        ]
        yield lines(f"Wins in training{after}", "Of the last 100 matches.", series, shares=True)
        yield _rewards(f"Reward terms of a match{after}", folder, history)
    for title, words, name, log in (
        ("Reward of a match", "The mean of those that ended.", "reward/episode_mean", False),
        ("Entropy", "Of the policy, in nats.", "policy/entropy", False),
        ("Explained variance", "Of the critic: 1 is perfect.", "value/explained_variance", False),
        ("KL divergence", "Of an update.", "policy/approx_kl", True),
        ("Value loss", "Of an update.", "loss/value", True),
        ("Steps/s", "Of all ranks together.", "rate/steps_per_second", False),
    ):
        series = [
            line(folder.name if several else title, *history.scalars[name], colour)
            for (folder, history), colour in zip(histories, SCREEN_PALETTE, strict=False)
            if name in history.scalars
        ]
        if series:
            yield lines(title, words, series, log=log)


def _ratings(source: Source) -> Iterator[Chart]:
    """Yields ratings of snapshots over steps and over time, by lineage."""
    lanes: dict[str, list[tuple[float, float, float, float]]] = {}
    for rating in source.ratings(Book.EVAL):
        if rating.player.kind is PlayerKind.SNAPSHOT:
            lane = lineage_of(rating.player.name)
            half = HALF_WIDTH * rating.sigma
            point = (rating.player.step, 1000 * rating.player.created_at, rating.mu, half)
            lanes.setdefault(lane, []).append(point)
    if not lanes:
        return
    for title, words, column, kind in (
        ("Rating over steps", "mu of each snapshot, with its 95 % interval.", 0, "value"),
        ("Rating over time", "The same by the time at which the snapshot entered.", 1, "time"),
    ):
        series = []
        for (lane, points), colour in zip(sorted(lanes.items()), SCREEN_PALETTE, strict=False):
            found_N = np.array(sorted(points, key=operator.itemgetter(column)))
            x_N, mu_N, half_N = found_N[:, column], found_N[:, 2], found_N[:, 3]
            series += band(lane, x_N, mu_N - half_N, mu_N + half_N, colour)
            series.append(line(lane, x_N, mu_N, colour))
        yield lines(title, words, series, x=kind)


def _win_rates(title: str, rates: Mapping[str, WinRate]) -> Chart:
    series = []
    for (bot, rate), colour in zip(rates.items(), SCREEN_PALETTE, strict=False):
        series += [*band(bot, rate.steps, rate.low, rate.high, colour),
                   line(bot, rate.steps, rate.rate, colour)]  # fmt: skip
    words = "Three snapshots at a time, with 95 % Wilson bands."
    return lines(title, words, series, shares=True)


def _rewards(title: str, folder: Path, history: History) -> Chart:
    rows = read_rows(folder / f"learner-{history.learner}" / "reward_breakdown.csv")
    names = [name for name in (rows[0] if rows else ()) if name not in ("step", "matches", "total")]
    steps = np.array([int(row["step"]) for row in rows])
    terms = {name: np.array([float(row[name]) for row in rows]) for name in names}
    largest = sorted(names, key=lambda name: -float(np.abs(terms[name]).mean()) if rows else 0.0)
    series = [
        line(name, steps, terms[name], colour)
        | {
            "stack": "terms",
            "areaStyle": {"opacity": 0.5, "color": colour},
            "lineStyle": {"width": 0},
        }
        for name, colour in zip(largest[:TERMS], SCREEN_PALETTE, strict=False)
        if np.abs(terms[name]).max() > 0
    ]
    return lines(title, f"Means over rollouts of the {TERMS} largest.", series)
