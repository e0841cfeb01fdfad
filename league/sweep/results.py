"""Writes the results of a sweep: a table (CSV), a page, and a settings file to start from."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from markupsafe import Markup

from league.console.text import measured
from league.metrics import Measured
from league.runs.files import write_whole
from league.settings.base import NONE, Sections, lay_over, resolve
from league.sweep.space import assignment
from league.sweep.trial import Order, Trial
from league.views.html import joined, page, section, table, tag

COLUMNS = (
    *("rank", "trial", "state", "steps", "final", "final_low", "final_high"),
    *("score", "low", "high", "unit", "matches", "seconds"),
)
"""Columns of the CSV file. The searched settings and `fault` follow."""


def state_of(order: Order, trial: Trial) -> str:
    """Returns how far a trial is: done, stopped (by ASHA), failed, or open."""
    if len(trial.rungs) == len(order.rungs):
        return "done"
    return "stopped" if trial.stopped else "failed" if trial.fault else "open"


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Orders trials, the best first: those that trained longer, then by the final if it was played,
    and then by score. Scores at different rungs can't be compared.
    """

    def key(trial: Trial) -> tuple[float, float, float]:
        if trial.last is None:
            return -1.0, 0.0, 0.0
        return trial.last.steps, trial.final.value if trial.final else 0.0, trial.last.score.value

    return sorted(trials, key=key, reverse=True)


def rows_of(order: Order, trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Returns the row of each trial, the best first."""
    rows = []
    for rank, trial in enumerate(ranked(trials), 1):
        row: dict[str, Any] = dict.fromkeys(COLUMNS, "")
        row |= {"trial": trial.number, "state": state_of(order, trial)}
        if last := trial.last:
            row |= {"rank": rank, "steps": last.steps, "unit": last.unit}
            row |= {"matches": last.matches, "seconds": last.seconds}
            row |= _rounded(last.score, ("score", "low", "high"))
            row |= _rounded(trial.final, ("final", "final_low", "final_high"))
        rows.append(row | dict(trial.settings) | {"fault": trial.fault})
    return rows


def _rounded(value: Measured | None, names: tuple[str, str, str]) -> dict[str, float]:
    numbers = () if value is None else (value.value, value.low, value.high)
    return {name: float(f"{number:.5g}") for name, number in zip(names, numbers, strict=False)}


def write_results(order: Order, trials: Sequence[Trial]) -> tuple[Path, Path]:
    """Writes ``sweep.csv`` and ``sweep.html`` into the sweep's folder, and returns their paths."""
    text, names = io.StringIO(), list(trials[0].settings)
    writer = csv.DictWriter(text, [*COLUMNS, *names, "fault"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows_of(order, trials))
    files = order.folder / "sweep.csv", order.folder / "sweep.html"
    write_whole(files[0], text.getvalue())
    write_whole(files[1], render(order, trials))
    return files


def render(order: Order, trials: Sequence[Trial]) -> str:
    """Returns the page of a sweep. It has no scripts and loads nothing."""
    names = list(trials[0].settings)
    best = next((trial for trial in ranked(trials) if trial.last), None)
    facts = {
        "trials": str(len(trials)),
        "trained to the end": str(sum(state_of(order, one) == "done" for one in trials)),
        "clean matches": f"{sum(rung.matches for one in trials for rung in one.rungs):,}",
        "hours of training": f"{sum(one.seconds for one in trials) / 3600:.2f}",
    }
    rows = [
        [
            str(trial.number),
            tag(state_of(order, trial)),
            *(_value(trial.settings[name]) for name in names),
            *(_cell(rung.score) for rung in trial.rungs),
            *[""] * (len(order.rungs) - len(trial.rungs)),
            _cell(trial.final),
            f"{trial.seconds:.0f}" if trial.rungs else "",
            trial.fault,
        ]
        for trial in ranked(trials)
    ]
    unit = best.last.unit if best and best.last else "score"
    headings = ["trial#", "state", *(f"{name}#" for name in names)]
    headings += [*(f"{steps:,} steps#" for steps in order.rungs), "final#", "seconds#", "fault"]
    field = "every bot of the game" if order.score == "rating" else order.score
    words = (
        f"The score is in {unit} against {field}, in at least {order.matches:,} clean matches "
        "against each opponent: both players frozen, seats swapped, common seeds. All trials train "
        "with the same learner.seed, unless it is searched. Below each score is its 95 % interval. "
        "Each number of steps is a rung, at which the worst trials stop. The final, if it was "
        "played, ranks the trials that reached the last rung, by their matches against each other."
    )
    parts = [section("Trials", table(headings, rows), words=words)]
    if best is not None:
        flags = (f"--set {assignment(*one)}" for one in best.settings.items())
        shown = Markup("<p>{}</p>").format(
            joined((Markup("<code>{}</code>").format(flag) for flag in flags), " ")
        )
        parts.insert(0, section("The best trial", shown, words=_lead(best, trials)))
    title = f"Sweep {order.folder.name}"
    return page(title, title, "A search of settings", facts, parts, str(order.folder))


def _lead(best: Trial, trials: Sequence[Trial]) -> str:
    """Says in words how much the value of the best trial proves."""
    if best.final is not None:
        highs = [trial.final.high for trial in trials if trial is not best and trial.final]
        low, how = best.final.low, "that won the final"
    else:
        assert best.last is not None
        low, steps, how = best.last.score.low, best.last.steps, "with the highest score"
        lasts = [trial.last for trial in trials if trial is not best and trial.last is not None]
        highs = [last.score.high for last in lasts if last.steps == steps]
    close = sum(high >= low for high in highs)
    return (
        f"The trial {how}. Its interval overlaps with the intervals of {close} other "
        f"trial{'s' * (close != 1)}. The highest of many values is too high on average, so measure "
        "the winner again."
    )


def _cell(score: Measured | None) -> Markup | str:
    if score is None:
        return ""
    value, _, rest = measured(score).partition(" ")
    return joined([value, Markup("<br><small>{}</small>").format(rest)])


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def write_preset(file: Path, trial: Trial, sections: Sections, extends: str) -> None:
    """Writes a settings file with a trial's settings, for ``--config``: all in which the trial
    differed from the preset that it extends.

    Args:
        file: the file to write.
        trial: the trial.
        sections: the settings that all trials shared.
        extends: the preset that all trials extended.
    """
    found = lay_over(sections, None, [assignment(*one) for one in trial.settings.items()])
    below = resolve(extends, environment={})
    # with the whole value of each setting, because a file's table replaces the preset's table
    tables = {
        name: {key: value for key, value in values.items() if value != below[name][key]}
        for name, values in found.items()
    }
    last = trial.last
    how, value = "with the highest score", last and last.score
    if trial.final:
        how, value = "that won the final", trial.final
    score = f", {value.value:.4g} {last.unit} at {last.steps:,} steps" if last and value else ""
    heading = f"# The trial of a sweep {how}{score}.\n"
    content = {"extends": extends, **{name: table for name, table in tables.items() if table}}
    write_whole(file, heading + tomlkit.dumps(_written(content)))


def _written(value: Any) -> Any:
    """Replaces None by "none", because TOML has no null."""
    if isinstance(value, Mapping):
        return {key: _written(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_written(inner) for inner in value]
    return NONE if value is None else value
