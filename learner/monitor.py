"""The learner's files of numbers: CSVs whose columns are fixed here, and nowhere else.

Every row carries the learner's step, so that a resumed run drops the rows beyond its checkpoint.
"""

from __future__ import annotations

import csv
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from league.games.base import GameSpec
from learner.rollout.league_vec_env import FinishedMatch

MONITOR_COLUMNS = ("r", "l", "t", "step", "opponent", "score")
"""Stable-Baselines3's three (reward, length in steps, seconds since start) and three of ours."""

MATCH_COLUMNS = ("step", "match_id", "opponent", "category", "seat", "score", "frames")
"""Leading columns of behavior_metrics.csv; one per behaviour number of the game follows."""

REWARD_COLUMNS = ("step", "matches", "total")
"""Leading columns of reward_breakdown.csv; one per reward term follows: mean weighted sum a match."""


class StepTable:
    """A CSV that grows by rows with a `step` column; rows are on disk after `flush`.

    Opened for a run that goes on from `step`, it drops the rows beyond that step.
    """

    def __init__(self, path: Path, columns: Sequence[str], step: int, head: str = "") -> None:
        self.path, self.columns = path, tuple(columns)
        kept = self._rows_until(step) if path.exists() else []
        temporary = path.with_suffix(".tmp")
        with open(temporary, "w", newline="", encoding="utf-8") as file:
            file.write(head)
            writer = csv.DictWriter(file, self.columns)
            writer.writeheader()
            writer.writerows(kept)
        os.replace(temporary, path)
        self._file = open(path, "a", newline="", encoding="utf-8")  # noqa: SIM115
        self._writer = csv.writer(self._file)

    def _rows_until(self, step: int) -> list[dict[str, str]]:
        with open(self.path, newline="", encoding="utf-8") as file:
            lines = (line for line in file if not line.startswith("#"))
            rows = [row for row in csv.DictReader(lines) if set(row) == set(self.columns)]
        whole = (row for row in rows if None not in row.values())  # a killed process leaves half a row
        return [row for row in whole if int(row["step"]) <= step]

    def append(self, values: Sequence[object]) -> None:
        """Adds a row, values in the order of the columns."""
        self._writer.writerow(values)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class MatchMonitor:
    """Writes monitor.csv, behavior_metrics.csv and reward_breakdown.csv of one learner."""

    def __init__(self, folder: Path, spec: GameSpec, step: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._spec, self._started = spec, time.time()
        head = "#" + json.dumps({"t_start": self._started, "env_id": f"league/{spec.name}"}) + "\n"
        self._monitor = StepTable(folder / "monitor.csv", MONITOR_COLUMNS, step, head)
        self._behaviour = StepTable(folder / "behavior_metrics.csv", (*MATCH_COLUMNS, *spec.stats), step)
        self._rewards = StepTable(
            folder / "reward_breakdown.csv", (*REWARD_COLUMNS, *spec.reward_terms), step
        )

    def write(self, matches: Sequence[FinishedMatch], step: int) -> None:
        """Adds the matches that ended in one rollout, the learner being at `step` at its end."""
        for match in matches:
            opponent = match.assignment.opponent.name
            elapsed = round(time.time() - self._started, 3)
            self._monitor.append((round(match.reward, 4), match.steps, elapsed, step, opponent, match.score))
            self._behaviour.append((*self._leading(match, step), *self._numbers(match.stats)))
        if matches:
            means = np.mean([match.reward_terms for match in matches], axis=0)
            terms = [round(float(value), 5) for value in means]
            self._rewards.append((step, len(matches), round(sum(terms), 5), *terms))
        for table in (self._monitor, self._behaviour, self._rewards):
            table.flush()

    def _leading(self, match: FinishedMatch, step: int) -> tuple[object, ...]:
        assignment = match.assignment
        return (
            step,
            assignment.match_id,
            assignment.opponent.name,
            assignment.category,
            assignment.learner_seat,
            match.score,
            match.frames,
        )

    def _numbers(self, stats: Mapping[str, float]) -> list[float]:
        return [round(stats[name], 4) for name in self._spec.stats]

    def close(self) -> None:
        for table in (self._monitor, self._behaviour, self._rewards):
            table.close()
