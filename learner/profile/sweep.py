"""Which configurations a sweep measures, in which order, and which of them it recommends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from league.errors import ConfigError
from league.settings.base import build
from learner.profile.rows import Changes, Row, Setting
from learner.profile.worker import Measured
from learner.settings import LearnerSettings

AXES = ("matches", "batch_size", "threads", "precision", "gradient_parts")
"""Settings of [learner] that a sweep may change."""
CHANGES_LEARNING = ("matches", "batch_size")
"""Those of them that change what a step teaches: other rollouts, fewer or more steps of the
optimizer.
"""
ROUNDS = 3
"""Times that each configuration is measured, in a process of its own each time."""
CLOSE = 0.03
"""Speeds that differ by less than this share count as equal."""


@dataclass(frozen=True)
class Plan:
    """The configurations of a sweep, and those left out with the reason."""

    cells: list[Changes]
    left_out: list[str]


def plan(
    learner: Mapping[str, Any], wanted: Mapping[str, Sequence[Setting]], cores: int, gpu: bool
) -> Plan:
    """All combinations of the values of each axis: those that were asked for, else some around the
    preset's.

    Raises `ConfigError` when nothing is left.
    """
    values = {axis: list(wanted.get(axis) or _around(axis, learner, cores, gpu)) for axis in AXES}
    own = {axis: learner[axis] for axis in AXES}
    cells: list[Changes] = [own] if all(own[axis] in values[axis] for axis in AXES) else []
    left_out = []
    for combination in product(*values.values()):
        cell = dict(zip(AXES, combination, strict=True))
        reason = _impossible({**learner, **cell})
        if reason:
            left_out.append(reason)
        elif cell not in cells:
            cells.append(cell)
    if not cells:
        raise ConfigError(f"the sweep has no configuration that can be: {left_out[0]}")
    return Plan(cells, sorted(set(left_out)))


def _around(axis: str, learner: Mapping[str, Any], cores: int, gpu: bool) -> list[Setting]:
    own = learner[axis]
    if axis == "matches":
        return [max(1, own // 2), own, own * 2]
    if axis == "batch_size":
        n_steps = learner["n_steps"]
        return [max(1, own // n_steps // 2) * n_steps, own, own * 2]
    if axis == "threads":
        return sorted({own, 1, min(2, cores)})
    if axis == "precision" and gpu:
        return [own, "auto" if own == "float32" else "float32"]
    return [own]  # more gradient_parts only where memory wants them: `in_more_parts`


def _impossible(learner: Mapping[str, Any]) -> str:
    """Why these values can't be those of [learner]; "" when they can."""
    try:
        build(LearnerSettings, "learner", learner)
    except ConfigError as error:
        values = ", ".join(f"{axis} {learner[axis]}" for axis in AXES)
        return f"{values}: {error}"
    return ""


def run_rounds(
    cells: Sequence[Changes],
    rounds: int,
    measure: Callable[[Changes, int], Measured],
    instead: Callable[[Changes], Changes | None] = lambda changes: None,
) -> Iterator[list[Row]]:
    """Measures every cell once a round, every other round backwards; yields all rows after each
    measurement.

    So a machine that is busy for a while shows as spread in all rows, not as a slow row. A
    configuration that failed is not tried again; for one that ran out of memory comes what
    `instead` makes of it.
    """
    rows = [Row(cell) for cell in cells]
    for number in range(rounds):
        # forwards it comes by what is added behind
        for row in rows if number % 2 == 0 else rows[::-1]:
            if row.failure:
                continue
            measured = measure(row.changes, number)
            row.add(measured)
            smaller = instead(row.changes) if measured.out_of_memory else None
            if smaller is not None and all(dict(smaller) != dict(other.changes) for other in rows):
                rows.append(Row(smaller))
            yield rows


def in_more_parts(learner: Mapping[str, Any], changes: Changes) -> Changes | None:
    """The same configuration with a minibatch's gradient in twice the parts, which takes about
    half the memory of an update; None where a part would be less than one sequence.
    """
    cell = {**changes, "gradient_parts": 2 * int(changes["gradient_parts"])}
    return None if _impossible({**learner, **cell}) else cell


def recommended(rows: Sequence[Row], own: Changes) -> Row | None:
    """The fastest configuration; of those as fast within `CLOSE`, the one that changes least of
    `own`.

    What changes learning counts before what changes speed alone. None when nothing was measured.
    """
    counted = [row for row in rows if row.counts]
    if not counted:
        return None
    best = max(row.steps_per_second().median for row in counted)
    equals = [row for row in counted if row.steps_per_second().median >= (1 - CLOSE) * best]
    return min(
        equals, key=lambda row: (*_distance(row.changes, own), -row.steps_per_second().median)
    )


def _distance(changes: Changes, own: Changes) -> tuple[int, int]:
    different = [axis for axis in changes if changes[axis] != own[axis]]
    return sum(axis in CHANGES_LEARNING for axis in different), len(different)
