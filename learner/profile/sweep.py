"""Which configurations a sweep measures, what it knows of each, and which one it recommends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from statistics import median
from typing import Any, NamedTuple

from league.errors import ConfigError
from league.settings.base import build
from learner.profile.measuring import Measured
from learner.settings import LearnerSettings

Changes = Mapping[str, str | int]
"""Settings of [learner] by name, those that a configuration may differ in."""
AXES = ("matches", "batch_size", "threads", "precision", "gradient_parts")
"""Settings of [learner] that a sweep may change."""
CHANGES_LEARNING = ("matches", "batch_size")
"""Those of them that change what a step teaches: the rollouts, and the optimizer's steps."""
ROUNDS = 3
"""Times that each configuration is measured, in its own process each time."""
CLOSE = 0.03
"""Speeds that differ by less than this share count as equal."""


class Spread(NamedTuple):
    """The median, the least and the most over bursts."""

    median: float
    lowest: float
    highest: float


def spread_of(values: Sequence[float]) -> Spread:
    return Spread(median(values), min(values), max(values))


@dataclass
class Row(Measured):
    """One configuration and all its bursts."""

    changes: Changes

    @property
    def counts(self) -> bool:
        """Whether it was measured and nothing failed."""
        return bool(self.bursts) and not self.failure

    def steps_per_second(self) -> Spread:
        """By wall clock."""
        return spread_of([burst.steps / burst.seconds for burst in self.bursts])

    def part_steps_per_second(self, kind: str) -> Spread | None:
        """What the part alone would do; None where it took no time."""
        if any(burst.parts[kind] <= 0 for burst in self.bursts):
            return None
        return spread_of([burst.steps / burst.parts[kind] for burst in self.bursts])

    def shares(self) -> dict[str, float]:
        """Share of the time by kind of work, over all bursts; they add up to 1."""
        total = sum(sum(burst.parts.values()) for burst in self.bursts)
        kinds = self.bursts[0].parts
        return {kind: sum(burst.parts[kind] for burst in self.bursts) / total for kind in kinds}

    def slowest(self) -> str:
        """The kind of work that takes the most time."""
        shares = self.shares()
        return max(shares, key=shares.__getitem__)

    def cpu_cores(self) -> Spread:
        """CPU time over wall clock: how many cores the process kept busy."""
        return spread_of([burst.cpu_seconds / burst.seconds for burst in self.bursts])

    def steps_per_cpu_second(self) -> Spread:
        """What the process's own CPU time gives, however busy the machine is."""
        return spread_of([burst.steps / burst.cpu_seconds for burst in self.bursts])

    def to_json(self) -> dict[str, Any]:
        """Plain values, as `--output` writes them."""
        values: dict[str, Any] = {
            "settings": dict(self.changes),
            "failure": self.failure or None,
            "warning": self.warning or None,
            "memory": self.memory,
            "bursts": [asdict(burst) for burst in self.bursts],
        }
        if not self.bursts:
            return values
        speeds = {kind: self.part_steps_per_second(kind) for kind in self.shares()}
        return {
            **values,
            "steps_per_second": self.steps_per_second()._asdict(),
            "parts": {
                kind: {
                    "share": share,
                    "steps_per_second": (speed := speeds[kind]) and speed._asdict(),
                }
                for kind, share in self.shares().items()
            },
            "steps_per_cpu_second": self.steps_per_cpu_second()._asdict(),
            "cpu_cores": self.cpu_cores()._asdict(),
            "gpu_busy_share": self.gpu_busy_share,
        }


def plan(
    learner: Mapping[str, Any], wanted: Mapping[str, Sequence[str | int]], cores: int, gpu: bool
) -> tuple[list[Changes], list[str]]:
    """All combinations of each axis's values: those asked for, else some around the settings'.

    Returns:
        The configurations of the sweep, and why others are left out.

    Raises:
        ConfigError: no combination can be.
    """
    matches, batch, n_steps = (learner[name] for name in ("matches", "batch_size", "n_steps"))
    precision = learner["precision"]
    around: dict[str, Sequence[str | int]] = {
        "matches": [max(1, matches // 2), matches, matches * 2],
        "batch_size": [max(1, batch // n_steps // 2) * n_steps, batch, batch * 2],
        "threads": sorted({learner["threads"], 1, min(2, cores)}),
        "precision": [precision, *(["auto" if precision == "float32" else "float32"] * gpu)],
        "gradient_parts": [learner["gradient_parts"]],
    }
    values = {axis: list(wanted.get(axis) or around[axis]) for axis in AXES}
    own = {axis: learner[axis] for axis in AXES}
    cells: list[Changes] = [own] if all(own[axis] in values[axis] for axis in AXES) else []
    left_out = []
    for combination in product(*values.values()):
        cell = dict(zip(AXES, combination, strict=True))
        try:
            build(LearnerSettings, "learner", {**learner, **cell})
        except ConfigError as error:
            values_said = ", ".join(f"{axis} {cell[axis]}" for axis in AXES)
            left_out.append(f"{values_said}: {error}")
            continue
        if cell not in cells:
            cells.append(cell)
    if not cells:
        raise ConfigError(f"the sweep has no configuration that can be: {left_out[0]}")
    return cells, sorted(set(left_out))


def run_rounds(
    cells: Sequence[Changes], rounds: int, measure: Callable[[Changes], Measured]
) -> Iterator[list[Row]]:
    """Measures every cell once a round and yields all rows after each measurement.

    Every other round goes backwards, so a machine that is busy for a while shows as spread in all
    rows and not as a slow row. A configuration that ran out of memory is not tried again.
    """
    rows = [Row(cell) for cell in cells]
    for number in range(rounds):
        for row in rows if number % 2 == 0 else rows[::-1]:
            if not row.failure:
                row.add(measure(row.changes))
                yield rows


def recommended(rows: Sequence[Row], own: Changes) -> Row | None:
    """The fastest row; of those as fast within `CLOSE`, the one that changes least of `own`.

    What changes learning counts before what changes speed alone. None when nothing was measured.
    """
    speeds = [(row, row.steps_per_second().median) for row in rows if row.counts]
    best = max((speed for _, speed in speeds), default=0.0)

    def cost(candidate: tuple[Row, float]) -> tuple[int, int, float]:
        row, speed = candidate
        different = [axis for axis in row.changes if row.changes[axis] != own[axis]]
        return sum(axis in CHANGES_LEARNING for axis in different), len(different), -speed

    equals = [candidate for candidate in speeds if candidate[1] >= (1 - CLOSE) * best]
    return min(equals, key=cost)[0] if equals else None
