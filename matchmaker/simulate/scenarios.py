"""Scenarios: players and the true chances between them, built in or read from a file.

A ``.tsv`` file is the output of `league payoff`. A ``.toml`` file has strengths and exceptions::

    draws = 0.1        # share of draws between equal players
    learner = "fox"    # the player that learners play like; the strongest by default

    [strengths]        # Elo
    hare = 100
    fox = 0
    owl = -50

    [shares.fox]       # share of a match that the fox gets, whatever the strengths say
    hare = 0.8

Shapes: N players, G games, P pairs that met, S pure strategies. Strengths are in logits: with d the
difference of two, win : draw : loss = e^{d/2} : ν : e^{−d/2} (Davidson 1970).
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from league.errors import InvalidInput, nearest
from league.ids import checked_player_name
from league.players import PayoffCell
from league.settings.base import Settings, build
from league.settings.presets import read_toml
from league.stats.ratings.fit import PairCounts, expected_score, fit, log_probabilities

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
SCENARIOS = ("elo", "rps", "disc", "blotto", "drift")
LOGITS_PER_ELO = math.log(10.0) / 400.0
BOTS = ("random", "constant", "based")
"""Of the built-in scenarios, the weakest first; the mixes of the presets name them."""
BOT_ELO = (-600.0, -300.0, 0.0)
SPREAD = 300.0
"""Standard deviation of strengths, in Elo."""
NU = 0.35
"""Davidson's ν for 15 % draws between equal players."""
PRIOR_GAMES = 10.0
"""Games that the fit of all games counts for next to a pair's own, in a payoff table."""
MAX_GAMES = 10**9
"""Of a pair in a payoff table."""


@dataclass(frozen=True)
class Chances:
    """Chances of G games from the first player's side; the rest are losses."""

    win_G: Array
    draw_G: Array

    @property
    def score_G(self) -> Array:
        """Expected scores, a draw being half a win."""
        return self.win_G + self.draw_G / 2.0


@dataclass
class Scenario:
    """The truth. Players are numbers below `players`: bots, then learners, then snapshots.

    `group_N` has a word for each player's kind, `strength_N` is in logits where one number a player
    explains everything. Without `snapshots` the simulation names them.
    """

    name: str
    group_N: list[str]
    chances: Callable[[Numbers, Numbers], Chances]
    strength_N: Array | None = None
    bots: Sequence[str] = BOTS
    snapshots: Sequence[str] = ()

    @property
    def players(self) -> int:
        return len(self.group_N)


def davidson(gap_G: Array, nu: float) -> Chances:
    """Returns the chances at differences of strength in logits."""
    log_nu = math.log(nu) if nu else -math.inf
    win_G, draw_G, _ = (np.exp(x_G) for x_G in log_probabilities(gap_G, log_nu))
    return Chances(win_G, draw_G)


def _elo(rng: np.random.Generator, players: int) -> Scenario:
    """One number a player: the stronger wins more, as Elo says."""
    elo_N = np.append(BOT_ELO, rng.normal(0.0, SPREAD, players - len(BOT_ELO)))
    strength_N = elo_N * LOGITS_PER_ELO
    quarters = np.quantile(strength_N, (0.25, 0.5, 0.75))
    words = ("weakest", "weaker", "stronger", "strongest")
    group_N = [words[place] for place in np.searchsorted(quarters, strength_N)]

    def chances(first_G: Numbers, second_G: Numbers) -> Chances:
        return davidson(strength_N[first_G] - strength_N[second_G], NU)

    return Scenario("elo", group_N, chances, strength_N)


def _rock_paper_scissors(rng: np.random.Generator, players: int) -> Scenario:
    """Three camps: each beats the next in 9 of 10 games, and equals itself. There are no draws."""
    camp_N = np.arange(players) % 3

    def chances(first_G: Numbers, second_G: Numbers) -> Chances:
        turn_G = (camp_N[second_G] - camp_N[first_G]) % 3
        return davidson(math.log(9.0) * np.choose(turn_G, (0.0, 1.0, -1.0)), 0.0)

    return Scenario("rps", [("rock", "scissors", "paper")[camp] for camp in camp_N], chances)


def _disc(rng: np.random.Generator, players: int) -> Scenario:
    """Points of a disc: a player beats those a quarter turn after it, the more the farther out."""
    angle_N, radius_N = rng.uniform(0.0, 2.0 * np.pi, players), np.sqrt(rng.random(players))
    x_N, y_N = radius_N * np.cos(angle_N), radius_N * np.sin(angle_N)

    def chances(first_G: Numbers, second_G: Numbers) -> Chances:
        return davidson(4.0 * (x_N[first_G] * y_N[second_G] - y_N[first_G] * x_N[second_G]), 0.0)

    return Scenario("disc", [f"{60 * int(part):03d}°" for part in angle_N // (np.pi / 3)], chances)


def _blotto(rng: np.random.Generator, players: int) -> Scenario:
    """Colonel Blotto, five coins on three fields: each player mixes the 21 ways to place them."""
    coins = 5
    ways = itertools.product(range(coins + 1), repeat=3)
    ways_SF = np.array([way for way in ways if sum(way) == coins])
    fields_SS = np.sign(ways_SF[:, None, :] - ways_SF[None, :, :]).sum(axis=-1)
    win_SS, draw_SS = (fields_SS > 0).astype(float), (fields_SS == 0).astype(float)
    mixture_NS = rng.dirichlet(np.full(len(ways_SF), 0.1), players)
    most_N = np.sort(ways_SF, axis=1)[:, ::-1][mixture_NS.argmax(axis=1)]

    def chances(first_G: Numbers, second_G: Numbers) -> Chances:
        first_GS, second_GS = mixture_NS[first_G], mixture_NS[second_G]
        return Chances(
            np.einsum("gs,st,gt->g", first_GS, win_SS, second_GS, optimize=True),
            np.einsum("gs,st,gt->g", first_GS, draw_SS, second_GS, optimize=True),
        )

    return Scenario("blotto", ["-".join(map(str, way)) for way in most_N], chances)


class Drift(Scenario):
    """Learners that climb with their matches and wander; snapshots, added later, stay fixed."""

    START, CLIMB, WANDERING, SETTLING = -600.0, 220.0, 40.0, 200.0
    """Elo of a new learner, gained and wandered while matches grow e-fold; matches of the start."""
    strength_N: Array

    def __init__(self, rng: np.random.Generator, players: int, learners: int) -> None:
        line = _elo(rng, players)
        snapshots = players - len(BOTS) - learners
        groups = ["bots"] * len(BOTS) + ["learners"] * learners + ["snapshots"] * snapshots
        super().__init__("drift", groups, line.chances, line.strength_N)
        self._rng = rng
        self._played = np.zeros(players)
        self.strength_N[len(BOTS) :] = self.START * LOGITS_PER_ELO

    def advance(self, learner: int, matches: int) -> None:
        """Lets a learner learn from another `matches` matches."""
        before = self._played[learner]
        self._played[learner] += matches
        folds = math.log((self._played[learner] + self.SETTLING) / (before + self.SETTLING))
        gained = self.CLIMB * folds + self.WANDERING * math.sqrt(folds) * self._rng.normal()
        self.strength_N[learner] += gained * LOGITS_PER_ELO

    def reset(self, learner: int) -> None:
        """Lets a learner start from nothing again."""
        self._played[learner] = 0.0
        self.strength_N[learner] = self.START * LOGITS_PER_ELO


_FIXED = {"elo": _elo, "rps": _rock_paper_scissors, "disc": _disc, "blotto": _blotto}


def scenario_of(name: str, rng: np.random.Generator, players: int, learners: int) -> Scenario:
    """Returns a built-in scenario, or that of a `.toml` or `.tsv` file, which has its players."""
    if Path(name).suffix in (".toml", ".tsv"):
        return _scenario_of_file(Path(name), learners)
    if name not in SCENARIOS:
        hint = nearest(name, SCENARIOS) or ", ".join(SCENARIOS)
        raise InvalidInput(f"there is no scenario {name!r}: {hint}, or a .toml or .tsv file")
    if players < len(BOTS) + learners + 1:
        raise InvalidInput(
            f"--players {players} is too few for {len(BOTS)} bots, {learners} learners and a "
            "snapshot"
        )
    return Drift(rng, players, learners) if name == "drift" else _FIXED[name](rng, players)


def _scenario_of_file(path: Path, learners: int) -> Scenario:
    """Names with an @ are snapshots, others are bots; without any @, all are snapshots."""
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}: name a scenario, or a .toml or .tsv file")
    read = _of_toml if path.suffix == ".toml" else _of_payoff
    names, score_NN, draw_NN, learner = read(path)
    snapshots = [name for name in names if "@" in name]
    bots = [name for name in names if "@" not in name] if snapshots else []
    copied = names.index(learner) if learner else int(score_NN.mean(axis=1).argmax())
    players = [*bots, *[names[copied]] * learners, *(snapshots or names)]
    order = [names.index(name) for name in players]
    score_NN = score_NN[np.ix_(order, order)]
    draw_NN = np.minimum(draw_NN[np.ix_(order, order)], 2 * np.minimum(score_NN, 1 - score_NN))

    def chances(first_G: Numbers, second_G: Numbers) -> Chances:
        draw_G = draw_NN[first_G, second_G]
        return Chances(score_NN[first_G, second_G] - draw_G / 2.0, draw_G)

    named = snapshots or [f"{name}@1" for name in names]
    return Scenario(path.stem, players, chances, bots=bots, snapshots=named)


class _Document(Settings):
    """A scenario's TOML."""

    draws: float = Field(default=0.0, ge=0.0, le=0.9)
    learner: str = ""
    strengths: dict[str, Annotated[float, Field(ge=-5000.0, le=5000.0)]] = Field(default={})
    shares: dict[str, dict[str, Annotated[float, Field(ge=0.0, le=1.0)]]] = Field(default={})


def _of_toml(path: Path) -> tuple[list[str], Array, Array, str]:
    """Returns names, shares of a match that rows get against columns, draws, and the learner."""
    given = build(_Document, str(path), read_toml(path))
    others = (other for row in given.shares.values() for other in row)
    names = _checked(path, dict.fromkeys([*given.strengths, *given.shares, *others]))
    if given.learner and given.learner not in names:
        raise InvalidInput(f"{path}: learner = {given.learner!r} is not one of {', '.join(names)}")
    elo_N = np.array([given.strengths.get(name, 0.0) for name in names])
    gap_NN = (elo_N[:, None] - elo_N[None, :]) * LOGITS_PER_ELO
    chances = davidson(gap_NN, 2.0 * given.draws / (1.0 - given.draws))
    score_NN = np.array(chances.score_G)
    for one, row in given.shares.items():
        for other, share in row.items():
            score_NN[names.index(one), names.index(other)] = share
            score_NN[names.index(other), names.index(one)] = 1.0 - share
    np.fill_diagonal(score_NN, 0.5)
    return names, score_NN, np.array(chances.draw_G), given.learner


def _of_payoff(path: Path) -> tuple[list[str], Array, Array, str]:
    """Returns the same of a payoff table; pairs that met seldom get what the fit predicts."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = map(_cell, csv.DictReader(file, delimiter="\t"))
            cells = {(cell.row, cell.column): cell for cell in rows}
        if not cells:
            raise ValueError("no rows")
    except (KeyError, TypeError, ValueError, csv.Error):  # a file that is not text is a ValueError
        raise InvalidInput(
            f"{path} is not a payoff table: its columns are row, column, games, wins, draws, losses"
        ) from None
    counts, names = PairCounts.of_cells(cells.values())
    _checked(path, names)
    found = fit(counts, len(names))
    gap_NN = (found.rating_N[:, None] - found.rating_N[None, :]) / found.points_per_logit
    score_NN, draw_NN, games_NN = np.zeros((3, len(names), len(names)))
    score_P = counts.wins_P + counts.draws_P / 2.0
    first, second = (counts.first_P, counts.second_P), (counts.second_P, counts.first_P)
    for pair, scored_P in ((first, score_P), (second, counts.games_P - score_P)):
        score_NN[pair], draw_NN[pair], games_NN[pair] = scored_P, counts.draws_P, counts.games_P
    share = float(counts.draws_P.sum() / max(1.0, counts.games_P.sum()))
    score_NN += PRIOR_GAMES * expected_score(gap_NN, found.nu)
    games_NN += PRIOR_GAMES
    return names, score_NN / games_NN, (draw_NN + PRIOR_GAMES * share) / games_NN, ""


def _cell(row: dict[str, str]) -> PayoffCell:
    """Returns a row's counts, those of the smaller name; a table may have a pair once or twice."""
    wins, draws, losses = (int(row[name]) for name in ("wins", "draws", "losses"))
    if min(wins, draws, losses) < 0 or wins + draws + losses > MAX_GAMES:
        raise ValueError(f"counts are 0 to {MAX_GAMES}")
    one, other = row["row"], row["column"]
    if one > other:
        one, other, wins, losses = other, one, losses, wins
    return PayoffCell(row=one, column=other, wins=wins, draws=draws, losses=losses)


def _checked(path: Path, names: Sequence[str] | dict[str, None]) -> list[str]:
    if len(names) < 2:
        raise InvalidInput(f"{path} has {len(names)} players: a scenario needs two")
    return [checked_player_name(name) for name in names]
