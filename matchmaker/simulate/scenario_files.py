"""Scenarios of one's own: strengths and exceptions in a .toml file, or the table of `league
payoff`.

draws = 0.1                 # share of draws between equals
learner = "fox"             # whom the learners play like; the strongest without

[strengths]                 # Elo
hare = 100
fox = 0
owl = -50

[shares.fox]                # share of a match that the fox gets of others, whatever the strengths
say hare = 0.8
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
from matchmaker.settings import MatchmakerSettings
from matchmaker.simulate.cast import Cast, cast_of
from matchmaker.simulate.scenarios import LOGITS_AN_ELO, Array, Chances, Numbers, Scenario, davidson

PRIOR_GAMES = 10.0
"""What the fit of all games is worth beside a pair's own, where a payoff table is the truth."""
MAX_GAMES = 10**9
"""Of a pair."""
KEYS = ("draws", "learner", "strengths", "shares")


@dataclass(frozen=True)
class Table:
    """Shares of a match that rows get of columns, and how much of it are draws."""

    names: tuple[str, ...]
    score_NN: Array
    draw_NN: Array


class TableScenario(Scenario):
    """The chances of a table; learners play like one of its players."""

    def __init__(self, name: str, table: Table, order: list[int], bots: int, learners: int) -> None:
        self.name, self.bots, self.players = name, bots, len(order)
        self.group_N = [table.names[row] for row in order]
        self._score_NN = table.score_NN[np.ix_(order, order)]
        room_NN = 2.0 * np.minimum(self._score_NN, 1.0 - self._score_NN)
        self._draw_NN = np.minimum(table.draw_NN[np.ix_(order, order)], room_NN)

    def chances(self, first_G: Numbers, second_G: Numbers) -> Chances:
        draw_G = self._draw_NN[first_G, second_G]
        return Chances(self._score_NN[first_G, second_G] - draw_G / 2.0, draw_G)


def scenario_of_file(
    path: Path, settings: MatchmakerSettings, learners: int
) -> tuple[Scenario, Cast, MatchmakerSettings]:
    """The scenario, its players, and the settings with the file's bots in the mix `league`.

    A name with an @ is a snapshot's, others are bots'; without any @, all are snapshots.

    Raises:
        InvalidInput: the file is not there, or not what it should be.
    """
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}: name a scenario, or a .toml or .tsv file")
    table, learner = _of_toml(path) if path.suffix == ".toml" else (_of_cells(path), "")
    copied = _learner(path, table, learner)
    snapshots = [name for name in table.names if "@" in name]
    bots = tuple(name for name in table.names if "@" not in name) if snapshots else ()
    cast = cast_of(settings, learners, bots)
    row = {name: place for place, name in enumerate(table.names)}
    order = [row[name] for name in bots] + [row[copied]] * learners
    given = snapshots or [f"{name}@1" for name in table.names]
    order += [row[name] if name in row else row[name.removesuffix("@1")] for name in given]
    cast.given = given
    scenario = TableScenario(path.stem, table, order, len(bots), learners)
    mix = {"snapshots": 7.0} | {bot: 3.0 / len(bots) for bot in bots}
    if not set(settings.mixes.get("league", {})) & set(bots):
        settings = settings.model_copy(update={"mixes": settings.mixes | {"league": mix}})
    return scenario, cast, settings


def _learner(path: Path, table: Table, name: str) -> str:
    if name and name not in table.names:
        raise InvalidInput(
            f"{path}: learner = {name!r} is none of its players: {', '.join(table.names)}"
        )
    return name or table.names[int(table.score_NN.mean(axis=1).argmax())]


def _checked(path: Path, names: Iterable[str]) -> tuple[str, ...]:
    found = tuple(checked_player_name(name) for name in names)
    if len(found) < 2:
        raise InvalidInput(f"{path} has {len(found)} players: two are the least")
    return found


def _of_toml(path: Path) -> tuple[Table, str]:
    content = read_toml(path)
    for key in content:
        if key not in KEYS:
            raise InvalidInput(f"{path}: {key!r} is nothing that a scenario has: {', '.join(KEYS)}")
    strengths, shares = _table(path, content, "strengths"), _table(path, content, "shares")
    shares = {name: _table(path, shares, name) for name in shares}
    names = _checked(
        path, dict.fromkeys([*strengths, *shares, *(o for row in shares.values() for o in row)])
    )
    draws = _number(path, "draws", content.get("draws", 0.0), 0.0, 0.9)
    nu = 2.0 * draws / (1.0 - draws)
    elo_N = np.array(
        [_number(path, name, strengths.get(name, 0.0), -5000.0, 5000.0) for name in names]
    )
    gap_NN = (elo_N[:, None] - elo_N[None, :]) * LOGITS_AN_ELO
    chances = davidson(gap_NN, nu)
    score_NN = np.array(chances.score_G)
    place = {name: number for number, name in enumerate(names)}
    for one, row in shares.items():
        for other, share in row.items():
            value = _number(path, f"shares.{one}.{other}", share, 0.0, 1.0)
            score_NN[place[one], place[other]], score_NN[place[other], place[one]] = (
                value,
                1.0 - value,
            )
    np.fill_diagonal(score_NN, 0.5)
    return Table(names, score_NN, np.array(chances.draw_G)), str(content.get("learner", ""))


def _table(path: Path, content: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = content.get(key, {})
    if not isinstance(found, dict):
        raise InvalidInput(f"{path}: {key} = {found!r} can't be: a table of players is wanted")
    return found


def _number(path: Path, key: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InvalidInput(
            f"{path}: {key} = {value!r} can't be: a number from {low:g} to {high:g} is wanted"
        )
    return float(value)


def _of_cells(path: Path) -> Table:
    """Pairs that met little are what a fit of all games says of them."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        if not rows:
            raise ValueError("no rows")
        cells = [_cell(row) for row in rows]
    # a file that is no text is a ValueError too
    except (KeyError, TypeError, ValueError, csv.Error):
        raise InvalidInput(
            f"{path} is no payoff table: its columns are row, column, games, wins, draws, losses"
        ) from None
    both = {(cell.row, cell.column): cell for cell in cells}
    both |= {
        (c.column, c.row): PayoffCell(
            row=c.column, column=c.row, wins=c.losses, draws=c.draws, losses=c.wins
        )
        for c in cells
    }
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
    score_NN = (won_NN + drawn_NN / 2.0 + PRIOR_GAMES * predicted_NN) / (games_NN + PRIOR_GAMES)
    share = float(counts.draws_P.sum() / max(1.0, counts.games_P.sum()))
    return Table(
        tuple(names), score_NN, (drawn_NN + PRIOR_GAMES * share) / (games_NN + PRIOR_GAMES)
    )


def _cell(row: Mapping[str, str]) -> PayoffCell:
    wins, draws, losses = (int(row[name]) for name in ("wins", "draws", "losses"))
    if min(wins, draws, losses) < 0 or wins + draws + losses > MAX_GAMES:
        raise ValueError(f"counts are 0 to {MAX_GAMES}")
    return PayoffCell(row=row["row"], column=row["column"], wins=wins, draws=draws, losses=losses)
