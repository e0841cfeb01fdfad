"""A run's history, gathered from its files alone for drawing. No service and no torch is needed."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from league.errors import NotFound
from league.metrics import wilson_interval
from league.players import Book
from league.runs.records import Row, Series, read_rows, read_scalars

TOGETHER = 3
"""Snapshots whose clean matches are counted together: one alone has played few."""


class WinRate(NamedTuple):
    """Clean matches against one opponent: share of wins by learner steps, with its Wilson
    interval.
    """

    steps: NDArray[np.int64]
    rate: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class Stage(NamedTuple):
    """A stage of the curriculum and the step at which it was first seen."""

    step: int
    name: str


@dataclass(frozen=True, kw_only=True)
class History:
    """What there is to draw; whatever a run has not written is empty."""

    title: str
    scalars: Mapping[str, Series] = field(default_factory=dict)
    trained: Mapping[str, WinRate] = field(default_factory=dict)  # bots that it meets in training
    others: Mapping[str, WinRate] = field(default_factory=dict)  # and the rest
    scores: Series | None = None  # of snapshots, with their steps
    bot_scores: Mapping[str, float] = field(default_factory=dict)
    stages: Sequence[Stage] = ()


def gather(run_dir: Path, learner: str = "") -> History:
    """The history of a run's learner, by default `main` or else the first; raises `NotFound`."""
    folder = _learner_folder(run_dir, learner)
    name = folder.name.removeprefix("learner-")
    scalars = read_scalars(folder / "tensorboard")
    rates = _win_rates(
        _rows_of(name, read_rows(run_dir / "evaluator" / "evaluation_results.csv"), "player")
    )
    met = {row["opponent"] for row in read_rows(folder / "monitor.csv")}
    board = read_rows(run_dir / "leaderboard.csv")
    return History(
        title=run_dir.resolve().name + ("" if name == "main" else f", {name}"),
        scalars=scalars,
        trained={bot: rate for bot, rate in rates.items() if bot in met},
        others={bot: rate for bot, rate in rates.items() if bot not in met},
        scores=_scores(_rows_of(name, board, "player")),
        bot_scores={row["player"]: float(row["score"]) for row in board if row["kind"] == "bot"},
        stages=_stages(scalars.get("curriculum/stage"), run_dir / "config.toml"),
    )


def _learner_folder(run_dir: Path, learner: str) -> Path:
    folders = {path.name[8:]: path for path in sorted(run_dir.glob("learner-*/"))}
    if learner and learner not in folders:
        raise NotFound(
            f"{run_dir} has no learner {learner!r}: it has {', '.join(folders) or 'none'}"
        )
    if not folders:
        raise NotFound(
            f"{run_dir} has no learner's folder yet: wait for the first update, or check --run-dir"
        )
    return folders[learner or ("main" if "main" in folders else next(iter(folders)))]


def _rows_of(name: str, rows: Iterable[Row], column: str) -> list[Row]:
    return [row for row in rows if row[column].startswith((f"{name}@", f"{name}."))]


def _win_rates(rows: Sequence[Row]) -> dict[str, WinRate]:
    """By bot, in the order of their last rate, the best first."""
    played: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for row in rows:
        if row["book"] == Book.EVAL.value and "@" not in row["opponent"]:
            played[row["opponent"]].append(
                (int(row["step"]), int(row["wins"]), int(row["matches"]))
            )
    rates = {bot: _pooled(sorted(counts)) for bot, counts in played.items()}
    return dict(sorted(rates.items(), key=lambda item: -item[1].rate[-1]))


def _pooled(counts: Sequence[tuple[int, int, int]]) -> WinRate:
    steps, rates, lows, highs = [], [], [], []
    for index, (step, _, _) in enumerate(counts):
        near = counts[max(0, index - TOGETHER + 1) : index + 1]
        wins, matches = sum(w for _, w, _ in near), sum(m for _, _, m in near)
        interval = wilson_interval(wins, matches)
        steps.append(step)
        rates.append(wins / max(matches, 1))
        lows.append(interval.low)
        highs.append(interval.high)
    return WinRate(np.array(steps, np.int64), np.array(rates), np.array(lows), np.array(highs))


def _scores(rows: Sequence[Row]) -> Series | None:
    rated = sorted(
        (int(row["step"]), float(row["score"])) for row in rows if row["kind"] == "snapshot"
    )
    if not rated:
        return None
    steps, scores = zip(*rated, strict=True)
    return Series(np.array(steps, np.int64), np.array(scores, float))


def _stages(index: Series | None, config: Path) -> list[Stage]:
    if index is None or not len(index.steps):
        return []
    names = _stage_names(config)
    stages = []
    for place in np.flatnonzero(np.diff(index.values, prepend=-1.0)):
        number = int(index.values[place])
        name = names[number] if number < len(names) else f"stage {number + 1}"
        stages.append(Stage(int(index.steps[place]), name))
    return stages


def _stage_names(config: Path) -> list[str]:
    try:
        with config.open("rb") as file:
            return [stage["name"] for stage in tomllib.load(file)["curriculum"]["stages"]]
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError):
        return []
