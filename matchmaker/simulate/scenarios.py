"""Who beats whom in a simulated league: players with traits, and the true chances that follow from
them.

Shape suffixes: N players, G games, S pure strategies. Strengths are in logits: with d the
difference of two, win : draw : loss = e^{d/2} : ν : e^{−d/2} (Davidson 1970).
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
LOGITS_AN_ELO = math.log(10.0) / 400.0
BOT_ELO = (-600.0, -300.0, 0.0)
"""Of the three bots that every scenario has."""
NU = 0.35
"""Of 15 % draws between equals."""


@dataclass(frozen=True)
class Chances:
    """Of G games, from the first player's side; the rest are losses."""

    win_G: Array
    draw_G: Array

    @property
    def score_G(self) -> Array:
        return self.win_G + self.draw_G / 2.0


class Scenario(ABC):
    """The truth. Players are numbers below `players`, bots first (`bots` of them).

    Attributes:
        group_N: a word for each player's kind, by which shares are told; fixed players only.
        strength_N: in logits where one number says it all, else None.
        drifts: whether learners change while they play.
    """

    name: str
    players: int
    bots: int
    group_N: list[str]
    strength_N: Array | None = None
    drifts = False

    @abstractmethod
    def chances(self, first_G: Numbers, second_G: Numbers) -> Chances:
        """How games between these players truly end."""


def davidson(gap_G: Array, nu: float) -> Chances:
    win_G, draw_G, _ = (
        np.exp(x) for x in log_probabilities(gap_G, math.log(nu) if nu else -math.inf)
    )
    return Chances(win_G, draw_G)


def _bots_first(rng: np.random.Generator, players: int, spread: float) -> Array:
    """Strengths: the bots', then a Gaussian of `spread` Elo."""
    elo_N = np.concatenate([BOT_ELO, rng.normal(0.0, spread, players - len(BOT_ELO))])
    return elo_N * LOGITS_AN_ELO


class EloLine(Scenario):
    """One number a player: the stronger wins more, as Elo says."""

    name = "elo"
    bots = len(BOT_ELO)
    strength_N: Array

    def __init__(
        self, rng: np.random.Generator, players: int, *, spread: float = 300.0, nu: float = NU
    ):
        self.players, self.nu = players, nu
        self.strength_N = _bots_first(rng, players, spread)
        quarter_N = np.searchsorted(
            np.quantile(self.strength_N, (0.25, 0.5, 0.75)), self.strength_N
        )
        self.group_N = [
            ("weakest", "weaker", "stronger", "strongest")[quarter] for quarter in quarter_N
        ]

    def chances(self, first_G: Numbers, second_G: Numbers) -> Chances:
        return davidson(self.strength_N[first_G] - self.strength_N[second_G], self.nu)


class RockPaperScissors(Scenario):
    """Three camps: each beats the next one in 9 of 10 games, and is even with itself. Nobody
    draws.
    """

    name = "rps"
    bots = len(BOT_ELO)
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
    """Points of a disc; who is a quarter turn behind loses, the more the farther both are out."""

    name = "disc"
    bots = len(BOT_ELO)
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
    """Colonel Blotto, five coins on three fields: each player mixes the 21 ways to lay them."""

    name = "blotto"
    bots = len(BOT_ELO)
    COINS, FIELDS = 5, 3

    def __init__(self, rng: np.random.Generator, players: int):
        self.players = players
        laid = [
            ways
            for ways in itertools.product(range(self.COINS + 1), repeat=self.FIELDS)
            if sum(ways) == self.COINS
        ]
        ways_SF = np.array(laid)
        fields_SS = np.sign(ways_SF[:, None, :] - ways_SF[None, :, :]).sum(axis=-1)
        self.win_SS, self.draw_SS = (fields_SS > 0).astype(float), (fields_SS == 0).astype(float)
        self.mixture_NS = rng.dirichlet(np.full(len(laid), 0.1), players)
        most_N = np.sort(ways_SF, axis=1)[:, ::-1][self.mixture_NS.argmax(axis=1)]
        self.group_N = ["-".join(map(str, ways)) for ways in most_N]

    def chances(self, first_G: Numbers, second_G: Numbers) -> Chances:
        first_GS, second_GS = self.mixture_NS[first_G], self.mixture_NS[second_G]
        return Chances(
            np.einsum("gs,st,gt->g", first_GS, self.win_SS, second_GS, optimize=True),
            np.einsum("gs,st,gt->g", first_GS, self.draw_SS, second_GS, optimize=True),
        )


class Drift(EloLine):
    """Learners that climb with their steps, steeply at first, and wander; their snapshots stay as
    they were.

    Steps are counted in matches. Players behind the bots are learners, then snapshots in order of
    their making; `copied` and `reset` tell what becomes of a learner.
    """

    name = "drift"
    drifts = True
    START, CLIMB, WANDERING, SETTLING = -600.0, 220.0, 40.0, 200.0
    """Elo of a new learner; Elo gained and wandered as its matches grow by a factor e; matches
    before.
    """

    def __init__(self, rng: np.random.Generator, players: int, learners: int = 1):
        super().__init__(rng, players)
        self._rng = rng
        self._played = np.zeros(players)
        self.strength_N[self.bots :] = self.START * LOGITS_AN_ELO
        self.group_N = ["bots"] * self.bots + ["learners"] * learners
        self.group_N += ["snapshots"] * (players - self.bots - learners)

    def advance(self, learner: int, matches: int) -> None:
        """The learner has played so many more matches."""
        before = self._played[learner]
        self._played[learner] += matches
        folds = math.log((self._played[learner] + self.SETTLING) / (before + self.SETTLING))
        gained = self.CLIMB * folds + self.WANDERING * math.sqrt(folds) * self._rng.normal()
        self.strength_N[learner] += gained * LOGITS_AN_ELO

    def copied(self, learner: int, snapshot: int) -> None:
        self.strength_N[snapshot] = self.strength_N[learner]

    def reset(self, learner: int) -> None:
        """It begins anew."""
        self._played[learner] = 0.0
        self.strength_N[learner] = self.START * LOGITS_AN_ELO


SCENARIOS = ("elo", "rps", "disc", "blotto", "drift")
_FIXED = {cls.name: cls for cls in (EloLine, RockPaperScissors, Disc, Blotto)}


def scenario_of(name: str, rng: np.random.Generator, players: int, learners: int) -> Scenario:
    """A built-in scenario. Raises `InvalidInput` for an unknown one or too few players."""
    if name not in SCENARIOS:
        raise InvalidInput(
            f"there is no scenario {name!r}: {nearest(name, SCENARIOS) or ', '.join(SCENARIOS)}, or name a "
            "file that ends in .toml or .tsv"
        )
    if players < len(BOT_ELO) + learners + 1:
        raise InvalidInput(
            f"--players {players} is too few: {len(BOT_ELO)} bots, {learners} learners and a snapshot"
        )
    return Drift(rng, players, learners) if name == "drift" else _FIXED[name](rng, players)
