"""Plays matrix games of one or more rounds, in which both players choose at once.

A table has the payoff of each pair of choices. Tables are built in (rock-paper-scissors, matching
pennies) or read from CSV files. Shape suffixes: N positions, 2 players, A actions, O observation
width, R rows, C columns.
"""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError, nearest
from league.games.choice_game import ChoiceGame
from league.games.choice_rules import RANDOM_BOT, ChoiceRules, Positions, ScriptedBot, always

MAX_ACTIONS = 100
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,31}")


Payoffs = tuple[NDArray[np.float64], tuple[str, ...]]
"""A zero-sum game's matrix, and the names of both players' choices. Player 0 picks a row, and
player 1 picks a column. Player 1 pays the number in this row and column to player 0.
"""

_HANDS = ("rock", "paper", "scissors")
_BUILT_IN: dict[str, tuple[Sequence[Sequence[float]], tuple[str, ...]]] = {
    "rps": (((0, -1, 1), (1, 0, -1), (-1, 1, 0)), _HANDS),
    # Biased rock-paper-scissors, OpenSpiel's matrix_brps: equilibrium (1/16, 10/16, 5/16).
    "brps": (((0, -25, 50), (25, 0, -5), (-50, 5, 0)), _HANDS),
    "mp": (((1, -1), (-1, 1)), ("heads", "tails")),
}


def named_payoffs(argument: str) -> Payoffs:
    """Returns the game that `matrix:ARGUMENT` names, or raises `ConfigError`."""
    if argument in _BUILT_IN:
        rows, names = _BUILT_IN[argument]
        return np.array(rows, np.float64), names
    if not argument.lower().endswith(".csv"):
        near = nearest(argument, _BUILT_IN)
        raise ConfigError(
            f"there is no matrix game {argument!r}: name it matrix:NAME with one of "
            f"{', '.join(_BUILT_IN)}, or matrix:FILE.csv for a table of your own"
            f"{near and '; ' + near}"
        )
    return read_payoffs(Path(argument))


def read_payoffs(path: Path) -> Payoffs:
    """Reads a game from a CSV file with a line for each choice of player 0 and a column for each
    choice of player 1.

    If the first line holds words, they name the choices of both players in order. A choice without
    a name is named by its number.

    Raises:
        ConfigError: the file can't be used. The message names the file and the wrong line.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [(n, line) for n, line in enumerate(csv.reader(file), 1) if any(line)]
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
    for number, line in lines:
        if len(line) != width or any(_number(cell) is None for cell in line):
            raise ConfigError(
                f"{path} line {number} is {','.join(line)!r}: write {width} finite numbers"
            )
    matrix_RC = np.array([[float(cell) for cell in line] for _, line in lines])
    count = max(matrix_RC.shape)
    if count > MAX_ACTIONS:
        raise ConfigError(
            f"{path} has {matrix_RC.shape} choices: {MAX_ACTIONS} a player are the most"
        )
    names = (*header, *(str(index) for index in range(len(header), count)))
    if len(set(names)) < len(names) or not all(map(_NAME.fullmatch, names)):
        raise ConfigError(
            f"{path} names its choices {', '.join(names)}: give each a name of its own, of up to "
            "32 of a-z 0-9 _ . -"
        )
    return matrix_RC, names


def _number(cell: str) -> float | None:
    """Returns the finite number in a cell, or None."""
    try:
        return float(cell) if math.isfinite(float(cell)) else None
    except ValueError:
        return None


NOTHING = -1
MAX_ROUNDS = 10_000


class MatrixRules(ChoiceRules):
    """Defines a match of several rounds of a matrix game.

    The own part of an observation (about the player itself) shows the player's previous choice, and
    whether it picks rows or columns. The rest is the opponent's previous choice. A player doesn't
    see the opponent's choice of the current round.

    Raises:
        ConfigError: a wrong number of rounds.
    """

    deals = 1
    record = np.dtype([("round", np.int32), ("last", np.int16, (2,))])

    def __init__(self, name: str, payoffs: Payoffs, rounds: int = 1) -> None:
        if isinstance(rounds, bool) or not isinstance(rounds, int) or not 1 <= rounds <= MAX_ROUNDS:
            raise ConfigError(f"rounds is {rounds!r}: a match has 1 to {MAX_ROUNDS}")
        self.name, self.longest = name, rounds
        self.matrix_RC, self.action_names = payoffs
        matrix_RC = self.matrix_RC
        # The version depends on the table.
        text = f"{matrix_RC.tolist()} {self.action_names}"
        self.version = f"1-{hashlib.sha256(text.encode()).hexdigest()[:8]}-{rounds}"
        # In a symmetric game the two sides are alike, so the sides need not be drawn.
        self.draws_sides = not np.array_equal(matrix_RC, -matrix_RC.T)
        self._count = len(self.action_names)
        self.own_size = 2 + self._count
        self.observation_size = 2 + 2 * self._count
        seen = [
            f"{who} last choice was {name}"
            for who in ("own", "the other's")
            for name in self.action_names
        ]
        self.observation_names = ("plays the rows", "plays the columns", *seen)
        self.largest_payoff = rounds * float(np.abs(matrix_RC).max())
        self._legal_2A = np.arange(self._count) < np.array(matrix_RC.shape)[:, None]
        # The last row is all zeros, for no choice yet. The index NOTHING (-1) selects this row.
        self._one_hot = np.eye(self._count + 1, self._count, dtype=np.float32)
        fixed = (
            ScriptedBot(name=f"always-{name}", summary=f"always takes {name}", strategy=always(n))
            for n, name in enumerate(self.action_names)
        )
        self.bots = (RANDOM_BOT, *fixed)

    def begin(self, deals_N: NDArray[np.int64]) -> Positions:
        positions_N = np.zeros(len(deals_N), self.record)
        positions_N["last"] = NOTHING
        return positions_N

    def legal(self, positions_N: Positions) -> NDArray[np.bool_]:
        return np.broadcast_to(self._legal_2A, (len(positions_N), *self._legal_2A.shape))

    def play(
        self, positions_N: Positions, choices_N2: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        positions_N["round"] += 1
        positions_N["last"] = choices_N2
        paid_N = self.matrix_RC[choices_N2[:, 0], choices_N2[:, 1]]
        return paid_N, positions_N["round"] >= self.longest

    def observe(self, positions_N: Positions) -> NDArray[np.float32]:
        last_N2A = self._one_hot[positions_N["last"]]
        views_N2O = np.empty((len(positions_N), 2, self.observation_size), np.float32)
        views_N2O[:, :, :2] = np.eye(2)
        views_N2O[:, :, 2 : self.own_size] = last_N2A
        views_N2O[:, :, self.own_size :] = last_N2A[:, ::-1]
        return views_N2O

    def label(self, position: np.void, player: int) -> str:
        """Names the side, the round and the last choices."""
        own, other = (self._said(position["last"][who]) for who in (player, 1 - player))
        side = ("rows", "columns")[player]
        return f"{side} round {int(position['round']) + 1}" + (
            f" after {own}, {other}" if own else ""
        )

    def describe(self, position: np.void) -> dict[str, Any]:
        return {
            "players": [
                {"side": side, "last": self._said(last)}
                for side, last in zip(("rows", "columns"), position["last"], strict=True)
            ],
            "round": min(int(position["round"]) + 1, self.longest),
            "rounds": self.longest,
        }

    def _said(self, action: int) -> str:
        return "" if action == NOTHING else self.action_names[action]


def make_matrix(
    num_matches: int, *, max_frames: int | None = None, argument: str = "", rounds: int = 1
) -> ChoiceGame:
    """Makes N matches of a matrix game. The player with the greater total payoff wins.

    Args:
        max_frames: None, or at least `rounds`.
        argument: rps, brps, mp, or a path to a CSV of player 0's payoffs.

    Raises:
        ConfigError: an unknown name, or a table that can't be read.
    """
    rules = MatrixRules(f"matrix:{argument}", named_payoffs(argument), rounds)
    return ChoiceGame(rules, num_matches, max_frames)
