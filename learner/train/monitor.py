"""Writes the learner's CSV files, with the columns of `league.runs.columns`.

Every row has the learner's step. So a run that continues from a checkpoint can drop the rows after
the checkpoint's step.
"""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from league.errors import suppress_full
from league.games.base import GameSpec
from league.runs.columns import BEHAVIOUR, MONITOR, REWARDS, STRATEGY
from learner.rollout.matches import FinishedMatch


class StepTable:
    """Appends rows to a CSV file with a `step` column. If the file exists, its rows after `step`
    are dropped first.

    `flush` writes the rows to the disk. While the disk is full, the rows stay in memory until the
    next flush.

    Args:
        path: the file.
        columns: names of the columns.
        step: the last step to keep.
        head: comment line before the columns.
    """

    def __init__(self, path: Path, columns: Sequence[str], step: int, head: str = "") -> None:
        self.path, self.columns = path, tuple(columns)
        rows = self._rows_until(step) if path.exists() else []
        temporary = path.with_suffix(".tmp")
        with open(temporary, "w", newline="", encoding="utf-8") as file:
            file.write(head)
            writer = csv.DictWriter(file, self.columns)
            writer.writeheader()
            writer.writerows(rows)
        os.replace(temporary, path)
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115
        self._rows, self._unwritten = io.StringIO(), b""
        self._writer = csv.writer(self._rows)

    def _rows_until(self, step: int) -> list[dict[str, str]]:
        with open(self.path, newline="", encoding="utf-8") as file:
            lines = (line for line in file if not line.startswith("#"))
            rows = [row for row in csv.DictReader(lines) if set(row) == set(self.columns)]
        # A learner that was killed may leave half a row.
        whole = [row for row in rows if None not in row.values()]
        return [row for row in whole if int(row["step"]) <= step]

    def append(self, values: Sequence[object]) -> None:
        """Adds a row, with the values in the order of the columns."""
        self._writer.writerow(values)

    def flush(self) -> None:
        self._unwritten += self._rows.getvalue().encode()
        self._rows.seek(0)
        self._rows.truncate()
        with suppress_full():
            while self._unwritten:
                written = self._file.write(self._unwritten)
                self._unwritten = self._unwritten[written:]

    def close(self) -> None:
        self.flush()
        self._file.close()


class MatchMonitor:
    """Writes a learner's four CSVs about its matches, its rewards and its strategy latent.

    Args:
        folder: folder of the files.
        spec: the game.
        step: the last step to keep in existing files.
    """

    def __init__(self, folder: Path, spec: GameSpec, step: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._spec, self._started = spec, time.time()
        head = "#" + json.dumps({"t_start": self._started, "env_id": f"league/{spec.name}"}) + "\n"
        self._monitor = StepTable(folder / "monitor.csv", tuple(MONITOR), step, head)
        self._behaviour = StepTable(
            folder / "behavior_metrics.csv", (*BEHAVIOUR, *spec.stats), step
        )
        self._rewards = StepTable(
            folder / "reward_breakdown.csv", (*REWARDS, *spec.reward_terms), step
        )
        self._strategy = StepTable(folder / "strategy_analysis.csv", tuple(STRATEGY), step)
        self._tables = (self._monitor, self._behaviour, self._rewards, self._strategy)

    def write(self, matches: Sequence[FinishedMatch], step: int) -> None:
        """Adds the matches that ended in a rollout. `step` is the learner's step at the end of the
        rollout.
        """
        for match in matches:
            played, name = match.assignment, match.assignment.opponent.name
            elapsed = round(time.time() - self._started, 3)
            self._monitor.append(
                (round(match.reward, 4), match.steps, elapsed, step, name, match.score)
            )
            stats = [round(match.stats[name], 4) for name in self._spec.stats]
            leading = (step, played.match_id, name, played.category, played.learner_seat)
            self._behaviour.append((*leading, match.score, match.frames, *stats))
        if matches:
            means = np.mean([match.reward_terms for match in matches], axis=0)
            terms = [round(float(value), 5) for value in means]
            self._rewards.append((step, len(matches), round(sum(terms), 5), *terms))
        self._flush()

    def write_strategy(self, metrics: Mapping[str, float], step: int) -> None:
        """Adds an update's diagnostics of the strategy latent, if there are any."""
        columns = [name for name in STRATEGY if name != "step"]
        values = [metrics.get(name.replace("_", "/", 1)) for name in columns]
        if any(value is not None for value in values):
            shown = ["" if value is None else f"{value:.6g}" for value in values]
            self._strategy.append((step, *shown))
            self._flush()

    def _flush(self) -> None:
        for table in self._tables:
            table.flush()

    def close(self) -> None:
        for table in self._tables:
            table.close()
