"""Reads the search space of a sweep, and chooses the settings of its trials.

The space is the section ``[sweep]`` of a settings file, which all other commands ignore. Its keys
are settings. Its values are ranges or lists of choices:

    [sweep]
    learner.learning_rate = { low = 1e-4, high = 1e-2, scale = "log" }
    learner.ent_coef = [0.0, 0.01]
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from league.errors import ConfigError
from league.settings.base import Sections, lay_over
from league.settings.file import on_one_line
from league.settings.presets import SWEEP, known_near, read_toml

RANGE = ("low", "high", "scale")
SCALES = ("linear", "log")
_EQUAL = "trials are compared after equal training"
FIXED = {
    "learner.steps": _EQUAL,
    "learner.snapshot_interval": _EQUAL,
    "cluster.store": "trials keep their weights in the sweep's folder",
}
"""Settings that are the same in all trials, and why."""
Choice = bool | int | float | str | list[Any]
_CHOICES = (bool, int, float, str, list)  # `isinstance` refuses list[Any]


@dataclass(frozen=True, kw_only=True)
class Dimension:
    """Describes the values of a setting, such as "learner.ent_coef": `choices`, or if there are
    none, the numbers from `low` to `high`, which are whole if both ends are.
    """

    name: str
    choices: tuple[Choice, ...] = ()
    low: float = 0.0
    high: float = 0.0
    scale: str = "linear"

    @property
    def ends(self) -> tuple[Choice, ...]:
        """All choices, or both ends of the range."""
        return self.choices or (self.low, self.high)

    def at(self, share: float) -> Choice:
        """Returns the value at `share`, from 0 to below 1, of the dimension."""
        if self.choices:
            return self.choices[int(share * len(self.choices))]
        is_whole = isinstance(self.low, int) and isinstance(self.high, int)
        low, high = self.low, self.high + is_whole
        if self.scale == "log":
            value = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
        else:
            value = low + share * (high - low)
        if is_whole:
            return int(value)
        return min(max(float(f"{value:.4g}"), low), high)  # rounding may leave a narrow range


def read_space(file: Path) -> tuple[Dimension, ...]:
    """Reads the section ``[sweep]`` of a settings file.

    Raises:
        ConfigError: the file can't be read, has no search space, or a value of it is neither a
            range nor a list of choices.
    """
    table = read_toml(file).get(SWEEP)
    if not isinstance(table, Mapping) or not table:
        raise ConfigError(
            f"{file} has no section [{SWEEP}] with settings to search: write for instance "
            f"[{SWEEP}] and learner.ent_coef = [0.0, 0.01]"
        )
    return tuple(_dimensions(table, f"{file}: [{SWEEP}]", ()))


def _dimensions(
    table: Mapping[str, Any], where: str, above: tuple[str, ...]
) -> Iterator[Dimension]:
    for key, value in table.items():
        path = (*above, key)
        name = ".".join(path)
        if isinstance(value, list):
            if not value or not all(isinstance(choice, _CHOICES) for choice in value):
                raise ConfigError(
                    f"{where} {name} = {value!r} is no list of choices: write numbers, words or "
                    "lists"
                )
            yield Dimension(name=name, choices=tuple(value))
        elif isinstance(value, Mapping) and len(path) > 1 and not _is_inner(value):
            yield _range(value, f"{where} {name}", name)
        elif isinstance(value, Mapping):
            yield from _dimensions(value, where, path)
        else:
            raise ConfigError(
                f"{where} {name} = {value!r} is no search: write a list of choices or "
                "{ low = 1e-4, high = 1e-2 }"
            )


def _is_inner(table: Mapping[str, Any]) -> bool:
    """Returns whether a table holds further settings, instead of a range."""
    return bool(table) and all(isinstance(value, Mapping | list) for value in table.values())


def _range(value: Mapping[str, Any], where: str, name: str) -> Dimension:
    for key in value:
        if key not in RANGE:
            raise ConfigError(f"{where}: a range has no {key!r}: {known_near(key, RANGE)}")
    low, high, scale = (value.get(key) for key in RANGE)
    scale = SCALES[0] if scale is None else scale
    if scale not in SCALES:
        raise ConfigError(f"{where}: scale = {scale!r} can't be used: write {' or '.join(SCALES)}")
    for end in (low, high):
        if isinstance(end, bool) or not isinstance(end, int | float) or not math.isfinite(end):
            raise ConfigError(f"{where}: low and high must be numbers, not {end!r}")
    assert isinstance(low, int | float)
    assert isinstance(high, int | float)
    if low >= high or (scale == "log" and low <= 0):
        positive = " above 0" if scale == "log" else ""
        raise ConfigError(f"{where}: low = {low} must lie{positive} below high = {high}")
    return Dimension(name=name, low=low, high=high, scale=scale)


def assignment(name: str, value: Choice) -> str:
    """Returns a setting as the flag ``--set`` takes it."""
    return f"{name}={on_one_line(value)}"


def trials_of(
    space: Sequence[Dimension], sections: Sections, count: int, seed: int, where: str
) -> list[dict[str, Choice]]:
    """Chooses the settings of `count` trials, by Latin hypercube sampling (McKay et al. 1979): each
    dimension is divided into `count` parts, and each part has one trial.

    Args:
        space: the dimensions.
        sections: the settings that all trials share.
        count: number of trials.
        seed: the same seed chooses the same trials.
        where: the file of the space, for errors.

    Raises:
        ConfigError: there is no such setting, or it can't have such a value.
    """
    for dimension in space:
        if why := FIXED.get(dimension.name):
            raise ConfigError(
                f"{where}: {dimension.name} can't be searched, because {why}: leave it out"
            )
        for value in dimension.ends:
            _check(sections, {dimension.name: value}, where)
    rng = np.random.default_rng(seed)
    shares = [(rng.permutation(count) + rng.random(count)) / count for _ in space]
    trials = [
        {one.name: one.at(float(share[number])) for one, share in zip(space, shares, strict=True)}
        for number in range(count)
    ]
    for trial in trials:
        _check(sections, trial, where)
    return trials


def _check(sections: Sections, trial: Mapping[str, Choice], where: str) -> None:
    given = [assignment(name, value) for name, value in trial.items()]
    try:
        lay_over(sections, None, given)
    except ConfigError as error:
        fault = str(error)
        for one in given:
            fault = fault.removeprefix(f"--set {one}: ")
        raise ConfigError(f"{where}: [{SWEEP}] {' '.join(given)}: {fault}") from None
