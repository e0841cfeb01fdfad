"""Reads the files that a learner and an evaluator have left in a run folder."""

from __future__ import annotations

import csv
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from league.errors import DataCorrupt
from league.runs.alarms import MatchFacts, UpdateFacts
from league.runs.columns import REWARDS

if TYPE_CHECKING:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

Row = dict[str, str]


class Series(NamedTuple):
    """Keeps the values of a metric, in the order of the learner's steps."""

    steps: NDArray[np.int64]
    values: NDArray[np.float64]


GAP = 10.0
"""If the distance between two points is more than this multiple of the usual distance, there is a
gap: nothing is known about the values between them.
"""


def broken(
    x: NDArray[Any], values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Inserts NaN in each gap of a line with positions `x` and `values`, both [N], so that nothing
    is drawn across it.
    """
    x = np.asarray(x, float)
    if len(x) < 3:
        return x, values
    apart = np.diff(x)
    gaps = np.flatnonzero(apart > GAP * np.median(apart)) + 1
    return np.insert(x, gaps, x[gaps - 1]), np.insert(values, gaps, np.nan)


def read_rows(path: Path) -> list[Row]:
    """Returns the rows of a run's CSV, or [] if there is no file. It leaves out comments and an
    incomplete last row.

    Raises:
        DataCorrupt: the file is not a table.
    """
    if not path.is_file():
        return []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataCorrupt(f"{path} is no table of a run ({error}): move it away") from None
    return [row for row in rows if None not in row and None not in row.values()]


def read_scalars(folder: Path) -> dict[str, Series]:
    """Returns all scalars of the TensorBoard files in `folder` (`ScalarReader.read`)."""
    return ScalarReader(folder).read()


class ScalarReader:
    """Reads the scalars of the TensorBoard files in `folder`, and later only those that were added.
    Several threads may use it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._events: EventAccumulator | None = None
        self._lock = threading.Lock()

    def read(self) -> dict[str, Series]:
        """Returns all scalars so far. If a resumed run repeated a step, the step is returned only
        once.
        """
        if not self._folder.is_dir():
            return {}
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        with self._lock:
            if self._events is None:
                self._events = EventAccumulator(
                    str(self._folder), size_guidance={"scalars": 0}, purge_orphaned_data=False
                )
            read = self._events.Reload()
            return {name: _without_repeats(read.Scalars(name)) for name in read.Tags()["scalars"]}


def _without_repeats(events: list) -> Series:
    """Returns the points of a metric. A run that continued from an earlier checkpoint has written
    steps again: of a step, and of all steps after it, the points that were written last count.
    """
    order = np.argsort([event.wall_time for event in events], kind="stable")
    step_N = np.array([event.step for event in events], np.int64)[order]
    value_N = np.array([event.value for event in events], float)[order]
    later_N = np.minimum.accumulate(step_N[::-1])[::-1]  # the smallest step from here on
    stays_N = np.append(step_N[:-1] < later_N[1:], True)
    return Series(step_N[stays_N], value_N[stays_N])


def read_updates(learner: Path, weights: Callable[[int], Mapping[str, float]]) -> list[UpdateFacts]:
    """Reads a learner's history from its files, for the alarms of `league.runs.alarms`.

    The files have only the mean reward terms of a rollout, so each match of a rollout gets these
    means.

    Args:
        learner: the learner's folder.
        weights: returns the weight of each reward term at a step.

    Returns:
        An entry for each step with measurements.
    """
    scalars = read_scalars(learner / "tensorboard")
    metrics: dict[int, dict[str, float]] = defaultdict(dict)
    for name, series in scalars.items():
        for step, value in zip(series.steps.tolist(), series.values.tolist(), strict=True):
            metrics[step][name] = value
    rewards = {int(row["step"]): _terms(row) for row in read_rows(learner / "reward_breakdown.csv")}
    scores: dict[int, list[tuple[str, float]]] = defaultdict(list)
    for row in read_rows(learner / "behavior_metrics.csv"):
        scores[int(row["step"])].append((row["category"], float(row["score"])))
    return [
        UpdateFacts(
            step=step,
            metrics=metrics.get(step, {}),
            matches=[
                MatchFacts(kind, score, rewards.get(step, {}))
                for kind, score in scores.get(step, ())
            ],
            weights=weights(step),
        )
        for step in sorted(metrics.keys() | scores.keys())
    ]


def _terms(row: Row) -> dict[str, float]:
    return {name: float(value) for name, value in row.items() if name not in REWARDS}
