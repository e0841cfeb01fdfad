"""Tables of payoffs: the built-in ones, and those read from CSV files. R rows, C columns."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError, nearest

MAX_ACTIONS = 100
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,31}")


@dataclass(frozen=True)
class Payoffs:
    """A zero-sum game: player 0 picks a row, player 1 a column and pays `matrix_RC` to player 0."""

    name: str
    matrix_RC: NDArray[np.float64]
    action_names: tuple[str, ...]  # max(R, C): of both players' choices, by index


_HANDS = ("rock", "paper", "scissors")
_BUILT_IN: dict[str, tuple[Sequence[Sequence[float]], tuple[str, ...]]] = {
    "rps": (((0, -1, 1), (1, 0, -1), (-1, 1, 0)), _HANDS),
    # Biased rock-paper-scissors, OpenSpiel's matrix_brps: equilibrium (1/16, 10/16, 5/16).
    "brps": (((0, -25, 50), (25, 0, -5), (-50, 5, 0)), _HANDS),
    "mp": (((1, -1), (-1, 1)), ("heads", "tails")),
}


def named_payoffs(argument: str) -> Payoffs:
    """The game that `matrix:ARGUMENT` names; raises `ConfigError`."""
    if argument in _BUILT_IN:
        rows, names = _BUILT_IN[argument]
        return Payoffs(f"matrix:{argument}", np.array(rows, np.float64), names)
    if not argument.lower().endswith(".csv"):
        known = ", ".join(_BUILT_IN)
        near = nearest(argument, _BUILT_IN)
        raise ConfigError(
            f"there is no matrix game {argument!r}: name it matrix:NAME with one of {known}, or "
            f"matrix:FILE.csv for a table of your own{near and '; ' + near}"
        )
    return read_payoffs(Path(argument))


def read_payoffs(path: Path) -> Payoffs:
    """The game in a CSV file: a line for each choice of player 0, a column for each of player 1.

    A first line of words names the columns, and with them the choices of both players. Raises
    `ConfigError` with the file and line for whatever can't be used.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [
                (number, line)
                for number, line in enumerate(csv.reader(file), 1)
                if any(map(str.strip, line))
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(
            f"the payoffs in {path} can't be read ({error}): name a CSV file"
        ) from None
    header: list[str] = []
    if lines and all(_number(cell) is None for cell in lines[0][1]):
        header = [cell.strip().lower() for cell in lines.pop(0)[1]]
    if not lines:
        raise ConfigError(
            f"{path} has no payoffs: write a line for each of the first player's choices"
        )
    width = len(header) or len(lines[0][1])
    matrix_RC = np.array([_payoff_line(path, number, line, width) for number, line in lines])
    if max(matrix_RC.shape) > MAX_ACTIONS:
        raise ConfigError(
            f"{path} has {matrix_RC.shape} choices: {MAX_ACTIONS} a player are the most"
        )
    return Payoffs(f"matrix:{path}", matrix_RC, _action_names(path, header, max(matrix_RC.shape)))


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _payoff_line(path: Path, number: int, line: Sequence[str], width: int) -> list[float]:
    if len(line) != width:
        raise ConfigError(
            f"{path} line {number} has {len(line)} payoffs and the first line {width}: make them "
            "equally long"
        )
    values = []
    for cell in line:
        value = _number(cell)
        if value is None or not math.isfinite(value):
            raise ConfigError(
                f"{path} line {number} holds {cell.strip()!r}: a payoff is a finite number"
            )
        values.append(value)
    return values


def _action_names(path: Path, header: Sequence[str], count: int) -> tuple[str, ...]:
    """The header's names, and where they do not reach (more rows than columns) the choice's
    number.
    """
    names = (*header, *(str(index) for index in range(len(header), count)))
    for name in names:
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{path} names a choice {name!r}: use up to 32 of a-z 0-9 _ . -")
    if len(set(names)) < len(names):
        raise ConfigError(
            f"{path} names two choices alike ({', '.join(names)}): give each its own name"
        )
    return names
