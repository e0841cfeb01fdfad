"""Scenarios from files: strengths and exceptions in .toml, or the output of `league payoff`.

draws = 0.1                 # share of draws between equal players
learner = "fox"             # the player that learners play like; the strongest by default

[strengths]                 # Elo
hare = 100
fox = 0
owl = -50

[shares.fox]                # share of a match that the fox gets, whatever the strengths say
hare = 0.8
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from league.errors import InvalidInput
from league.ids import checked_player_name
from league.players import PayoffCell
from league.settings.presets import read_toml
from league.stats.ratings.fit import PairCounts, expected_score, fit
from matchmaker.simulate.scenarios import (
    LOGITS_PER_ELO,
    Array,
    Chances,
    Numbers,
    Scenario,
    davidson,
)

PRIOR_GAMES = 10.0
"""Games that the fit of all games counts for next to a pair's own, in a payoff table."""
MAX_GAMES = 10**9
"""Of a pair."""
_KEYS = ("draws", "learner", "strengths", "shares")


class TableScenario(Scenario):
    """The chances of a table; learners play like one of its players."""

    def __init__(self, name: str, table: _Table, order: list[int], bots: int) -> None:
        self.name, self.bots, self.players = name, bots, len(order)
        self.group_N = [table.names[row] for row in order]
        self._score_NN = table.score_NN[np.ix_(order, order)]
        room_NN = 2.0 * np.minimum(self._score_NN, 1.0 - self._score_NN)
        self._draw_NN = np.minimum(table.draw_NN[np.ix_(order, order)], room_NN)

    def chances(self, first_G: Numbers, second_G: Numbers) -> Chances:
        draw_G = self._draw_NN[first_G, second_G]
        return Chances(self._score_NN[first_G, second_G] - draw_G / 2.0, draw_G)


@dataclass(frozen=True)
class FileScenario:
    """A file's scenario, and the names of its bots and snapshots."""

    scenario: TableScenario
    bots: tuple[str, ...]
    snapshots: tuple[str, ...]


@dataclass(frozen=True)
class _Table:
    """Shares of a match that rows get against columns, and the part of them that is drawn."""

    names: tuple[str, ...]
    score_NN: Array
    draw_NN: Array


def scenario_of_file(path: Path, learners: int) -> FileScenario:
    """Reads a scenario.

    A name with an @ is a snapshot's, others are bots'; without any @, all are snapshots.

    Raises:
        InvalidInput: the file does not exist or is not a scenario.
    """
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}: name a scenario, or a .toml or .tsv file")
    table, learner = _of_toml(path) if path.suffix == ".toml" else (_of_payoff(path), "")
    if learner and learner not in table.names:
        raise InvalidInput(f"{path}: learner = {learner!r} is not one of {', '.join(table.names)}")
    snapshots = tuple(name for name in table.names if "@" in name)
    bots = tuple(name for name in table.names if "@" not in name) if snapshots else ()
    row = {name: place for place, name in enumerate(table.names)}
    copied = row[learner] if learner else int(table.score_NN.mean(axis=1).argmax())
    order = [row[name] for name in bots] + [copied] * learners
    order += [row[name] for name in snapshots or table.names]
    given = snapshots or tuple(f"{name}@1" for name in table.names)
    return FileScenario(TableScenario(path.stem, table, order, len(bots)), bots, given)


def _of_toml(path: Path) -> tuple[_Table, str]:
    content = read_toml(path)
    for key in content:
        if key not in _KEYS:
            raise InvalidInput(f"{path}: unknown key {key!r}; a scenario has {', '.join(_KEYS)}")
    strengths = _players(path, content, "strengths")
    shares = {name: _players(path, content["shares"], name) for name in content.get("shares", {})}
    others = (other for row in shares.values() for other in row)
    names = _checked(path, dict.fromkeys([*strengths, *shares, *others]))
    draws = _number(path, "draws", content.get("draws", 0.0), 0.0, 0.9)
    elo_N = np.array([_number(path, n, strengths.get(n, 0.0), -5000.0, 5000.0) for n in names])
    gap_NN = (elo_N[:, None] - elo_N[None, :]) * LOGITS_PER_ELO
    chances = davidson(gap_NN, 2.0 * draws / (1.0 - draws))
    score_NN = np.array(chances.score_G)
    place = {name: number for number, name in enumerate(names)}
    for one, row in shares.items():
        for other, share in row.items():
            value = _number(path, f"shares.{one}.{other}", share, 0.0, 1.0)
            score_NN[place[one], place[other]] = value
            score_NN[place[other], place[one]] = 1.0 - value
    np.fill_diagonal(score_NN, 0.5)
    return _Table(names, score_NN, np.array(chances.draw_G)), str(content.get("learner", ""))


def _players(path: Path, content: Any, key: str) -> dict[str, Any]:
    found = content.get(key, {}) if isinstance(content, dict) else content
    if not isinstance(found, dict):
        raise InvalidInput(f"{path}: {key} = {found!r}: use a table of players")
    return found


def _checked(path: Path, names: Iterable[str]) -> tuple[str, ...]:
    found = tuple(checked_player_name(name) for name in names)
    if len(found) < 2:
        raise InvalidInput(f"{path} has {len(found)} players: a scenario needs two")
    return found


def _number(path: Path, key: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InvalidInput(f"{path}: {key} = {value!r}: use a number from {low:g} to {high:g}")
    return float(value)


def _of_payoff(path: Path) -> _Table:
    """Pairs that met seldom get what a fit of all games predicts."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            cells = [_cell(row) for row in csv.DictReader(file, delimiter="\t")]
        if not cells:
            raise ValueError("no rows")
    except (KeyError, TypeError, ValueError, csv.Error):  # a file that is not text is a ValueError
        raise InvalidInput(
            f"{path} is not a payoff table: its columns are row, column, games, wins, draws, losses"
        ) from None
    swapped = [
        PayoffCell(row=c.column, column=c.row, wins=c.losses, draws=c.draws, losses=c.wins)
        for c in cells
    ]
    both = {(cell.row, cell.column): cell for cell in (*cells, *swapped)}
    counts, names = PairCounts.of_cells(both.values())
    _checked(path, names)
    found = fit(counts, len(names))
    gap_NN = (found.rating_N[:, None] - found.rating_N[None, :]) / found.points_per_logit
    predicted_NN = expected_score(gap_NN, found.nu)
    won_NN, drawn_NN, games_NN = np.zeros((3, len(names), len(names)))
    first_P, second_P = counts.first_P, counts.second_P
    won_NN[first_P, second_P], won_NN[second_P, first_P] = counts.wins_P, counts.losses_P
    for pair in ((first_P, second_P), (second_P, first_P)):
        drawn_NN[pair], games_NN[pair] = counts.draws_P, counts.games_P
    prior_NN = games_NN + PRIOR_GAMES
    share = float(counts.draws_P.sum() / max(1.0, counts.games_P.sum()))
    return _Table(
        tuple(names),
        (won_NN + drawn_NN / 2.0 + PRIOR_GAMES * predicted_NN) / prior_NN,
        (drawn_NN + PRIOR_GAMES * share) / prior_NN,
    )


def _cell(row: Mapping[str, str]) -> PayoffCell:
    wins, draws, losses = (int(row[name]) for name in ("wins", "draws", "losses"))
    if min(wins, draws, losses) < 0 or wins + draws + losses > MAX_GAMES:
        raise ValueError(f"counts are 0 to {MAX_GAMES}")
    return PayoffCell(row=row["row"], column=row["column"], wins=wins, draws=draws, losses=losses)
