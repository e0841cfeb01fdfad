"""Scenarios: players with traits, and the true chances of winning that follow from them.

Shapes: N players, G games, S pure strategies. Strengths are in logits: with d the difference of
two, win : draw : loss = e^{d/2} : ν : e^{−d/2} (Davidson 1970).
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.errors import InvalidInput, nearest
from league.stats.ratings.fit import log_probabilities

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
LOGITS_PER_ELO = math.log(10.0) / 400.0
BOTS = ("random", "constant", "based")
"""Of the built-in scenarios, the weakest first; the mixes of the presets name them."""
BOT_ELO = (-600.0, -300.0, 0.0)
NU = 0.35
"""Davidson's ν for 15 % draws between equal players."""


@dataclass(frozen=True)
class Chances:
    """Chances of G games from the first player's side; the rest are losses."""

    win_G: Array
    draw_G: Array

    @property
    def score_G(self) -> Array:
        """Expected scores, a draw being half a win."""
        return self.win_G + self.draw_G / 2.0


class Scenario(ABC):
    """The truth. Players are numbers below `players`, bots first (`bots` of them).

    Attributes:
        group_N: a word for each player's kind, for tables of shares.
        strength_N: in logits where one number a player explains everything, else None.
        drifts: whether learners change while they play.
    """

    name: str
    players: int
    bots: int = len(BOTS)
    group_N: list[str]
    strength_N: Array | None = None
    drifts = False

    @abstractmethod
    def chances(self, first_G: Numbers, second_G: Numbers) -> Chances:
        """Returns how games between these players truly end."""


def davidson(gap_G: Array, nu: float) -> Chances:
    """Returns the chances at differences of strength in logits."""
    log_nu = math.log(nu) if nu else -math.inf
    win_G, draw_G, _ = (np.exp(x_G) for x_G in log_probabilities(gap_G, log_nu))
    return Chances(win_G, draw_G)


class EloLine(Scenario):
    """One number a player: the stronger wins more, as Elo says."""

    name = "elo"
    SPREAD = 300.0
    strength_N: Array

    def __init__(self, rng: np.random.Generator, players: int):
        self.players = players
        elo_N = np.append(BOT_ELO, rng.normal(0.0, self.SPREAD, players - len(BOT_ELO)))
        self.strength_N = elo_N * LOGITS_PER_ELO
        quarters = np.quantile(self.strength_N, (0.25, 0.5, 0.75))
        words = ("weakest", "weaker", "stronger", "strongest")
        self.group_N = [words[place] for place in np.searchsorted(quarters, self.strength_N)]

    def chances(self, first_G: Numbers, second_G: Numbers) -> Chances:
        return davidson(self.strength_N[first_G] - self.strength_N[second_G], NU)


class RockPaperScissors(Scenario):
    """Three camps: each beats the next in 9 of 10 games, and equals itself. There are no draws."""

    name = "rps"
    CAMPS = ("rock", "scissors", "paper")
    BEATS = math.log(9.0)

    def __init__(self, rng: np.random.Generator, players: int):
        self.players = players
        self.camp_N = np.arange(players) % 3
        self.group_N = [self.CAMPS[camp] for camp in self.camp_N]

    def chances(self, first_G: Numbers, second_G: Numbers) -> Chances:
        turn_G = (self.camp_N[second_G] - self.camp_N[first_G]) % 3
        return davidson(self.BEATS * np.choose(turn_G, (0.0, 1.0, -1.0)), 0.0)


class Disc(Scenario):
    """Points of a disc: a player beats those a quarter turn after it, the more the farther out."""

    name = "disc"
    SHARPNESS = 4.0

    def __init__(self, rng: np.random.Generator, players: int):
        self.players = players
        angle_N, radius_N = rng.uniform(0.0, 2.0 * np.pi, players), np.sqrt(rng.random(players))
        self.x_N, self.y_N = radius_N * np.cos(angle_N), radius_N * np.sin(angle_N)
        self.group_N = [f"{60 * int(part):03d}°" for part in angle_N // (np.pi / 3.0)]

    def chances(self, first_G: Numbers, second_G: Numbers) -> Chances:
        turn_G = self.x_N[first_G] * self.y_N[second_G] - self.y_N[first_G] * self.x_N[second_G]
        return davidson(self.SHARPNESS * turn_G, 0.0)


class Blotto(Scenario):
    """Colonel Blotto, five coins on three fields: each player mixes the 21 ways to place them."""

    name = "blotto"
    COINS, FIELDS = 5, 3

    def __init__(self, rng: np.random.Generator, players: int):
        self.players = players
        ways = itertools.product(range(self.COINS + 1), repeat=self.FIELDS)
        ways_SF = np.array([way for way in ways if sum(way) == self.COINS])
        fields_SS = np.sign(ways_SF[:, None, :] - ways_SF[None, :, :]).sum(axis=-1)
        self.win_SS, self.draw_SS = (fields_SS > 0).astype(float), (fields_SS == 0).astype(float)
        self.mixture_NS = rng.dirichlet(np.full(len(ways_SF), 0.1), players)
        most_N = np.sort(ways_SF, axis=1)[:, ::-1][self.mixture_NS.argmax(axis=1)]
        self.group_N = ["-".join(map(str, way)) for way in most_N]

    def chances(self, first_G: Numbers, second_G: Numbers) -> Chances:
        first_GS, second_GS = self.mixture_NS[first_G], self.mixture_NS[second_G]
        return Chances(
            np.einsum("gs,st,gt->g", first_GS, self.win_SS, second_GS, optimize=True),
            np.einsum("gs,st,gt->g", first_GS, self.draw_SS, second_GS, optimize=True),
        )


class Drift(EloLine):
    """Learners that climb with their matches, steeply at first, and wander; snapshots stay fixed.

    After the bots come the learners, then snapshots in the order in which they are made.
    """

    name = "drift"
    drifts = True
    START, CLIMB, WANDERING, SETTLING = -600.0, 220.0, 40.0, 200.0
    """Elo of a new learner; Elo gained, and wandered, while its matches grow by a factor of e;
    matches that count as the start.
    """

    def __init__(self, rng: np.random.Generator, players: int, learners: int = 1):
        super().__init__(rng, players)
        self._rng = rng
        self._played = np.zeros(players)
        self.strength_N[self.bots :] = self.START * LOGITS_PER_ELO
        self.group_N = ["bots"] * self.bots + ["learners"] * learners
        self.group_N += ["snapshots"] * (players - self.bots - learners)

    def advance(self, learner: int, matches: int) -> None:
        """Lets a learner learn from another `matches` matches."""
        before = self._played[learner]
        self._played[learner] += matches
        folds = math.log((self._played[learner] + self.SETTLING) / (before + self.SETTLING))
        gained = self.CLIMB * folds + self.WANDERING * math.sqrt(folds) * self._rng.normal()
        self.strength_N[learner] += gained * LOGITS_PER_ELO

    def copied(self, learner: int, snapshot: int) -> None:
        """Makes a snapshot as strong as its learner is now."""
        self.strength_N[snapshot] = self.strength_N[learner]

    def reset(self, learner: int) -> None:
        """Lets a learner start from nothing again."""
        self._played[learner] = 0.0
        self.strength_N[learner] = self.START * LOGITS_PER_ELO


SCENARIOS = ("elo", "rps", "disc", "blotto", "drift")
_FIXED = {cls.name: cls for cls in (EloLine, RockPaperScissors, Disc, Blotto)}


def scenario_of(name: str, rng: np.random.Generator, players: int, learners: int) -> Scenario:
    """Returns a built-in scenario.

    Raises:
        InvalidInput: the scenario is unknown, or there are too few players.
    """
    if name not in SCENARIOS:
        hint = nearest(name, SCENARIOS) or ", ".join(SCENARIOS)
        raise InvalidInput(f"there is no scenario {name!r}: {hint}, or a .toml or .tsv file")
    if players < len(BOTS) + learners + 1:
        raise InvalidInput(
            f"--players {players} is too few for {len(BOTS)} bots, {learners} learners and a snapshot"
        )
    return Drift(rng, players, learners) if name == "drift" else _FIXED[name](rng, players)
