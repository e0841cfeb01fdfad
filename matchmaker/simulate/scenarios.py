"""Defines scenarios: players and the true chances between them.

Shapes: N players, G games, S pure strategies. Strengths are in logits. If two
strengths differ by d, win : draw : loss = e^{d/2} : ν : e^{−d/2} (Davidson 1970).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.errors import InvalidInput, nearest
from league.stats.ratings.fit import log_probabilities

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
LOGITS_PER_ELO = math.log(10.0) / 400.0
BOTS = ("random", "constant", "based")
"""Names of bots, the weakest first. The mixes of the presets name them."""
BOT_ELO = (-600.0, -300.0, 0.0)
SPREAD = 300.0
"""Standard deviation of strengths, in Elo."""
NU = 0.35
"""Davidson's ν for 15 % draws between equal players."""


@dataclass(frozen=True)
class Chances:
    """Gives the first player's chances of a win and of a draw in each of G games."""

    win_G: Array
    draw_G: Array

    @property
    def score_G(self) -> Array:
        """Returns expected scores, a draw being half a win."""
        return self.win_G + self.draw_G / 2.0


@dataclass
class Scenario:
    """Holds the true strengths. Players are numbers below `players`: bots, then learners, then
    snapshots. `group_N` has a word for each player's kind. `strength_N` is in logits, or None if
    one strength per player does not determine all chances.
    """

    name: str
    group_N: list[str]
    chances: Callable[[Numbers, Numbers], Chances]
    strength_N: Array | None = None

    @property
    def players(self) -> int:
        return len(self.group_N)


def davidson(gap_G: Array, nu: float) -> Chances:
    """Returns the chances that follow from differences in strength. `gap_G` is in logits."""
    log_nu = math.log(nu) if nu else -math.inf
    win_G, draw_G, _ = (np.exp(x_G) for x_G in log_probabilities(gap_G, log_nu))
    return Chances(win_G, draw_G)


def _elo(rng: np.random.Generator, players: int) -> Scenario:
    """Gives each player a strength. The stronger player wins more often, as in the Elo model."""
    elo_N = np.append(BOT_ELO, rng.normal(0.0, SPREAD, players - len(BOT_ELO)))
    strength_N = elo_N * LOGITS_PER_ELO
    quarters = np.quantile(strength_N, (0.25, 0.5, 0.75))
    words = ("weakest", "weaker", "stronger", "strongest")
    group_N = [words[quarter] for quarter in np.searchsorted(quarters, strength_N)]

    def chances(first_G: Numbers, second_G: Numbers) -> Chances:
        return davidson(strength_N[first_G] - strength_N[second_G], NU)

    return Scenario("elo", group_N, chances, strength_N)


def _rock_paper_scissors(rng: np.random.Generator, players: int) -> Scenario:
    """Makes three groups. Players beat the players of the next group in 9 of 10 games, and win half
    of the games within their group. There are no draws."""
    camp_N = np.arange(players) % 3

    def chances(first_G: Numbers, second_G: Numbers) -> Chances:
        turn_G = (camp_N[second_G] - camp_N[first_G]) % 3
        return davidson(math.log(9.0) * np.choose(turn_G, (0.0, 1.0, -1.0)), 0.0)

    return Scenario("rps", [("rock", "scissors", "paper")[camp] for camp in camp_N], chances)


def _disc(rng: np.random.Generator, players: int) -> Scenario:
    """Places players on a disc. A player does best against players who are a quarter turn ahead of
    it. The farther both players are from the centre, the larger this advantage is.
    """
    angle_N, radius_N = rng.uniform(0.0, 2.0 * np.pi, players), np.sqrt(rng.random(players))
    x_N, y_N = radius_N * np.cos(angle_N), radius_N * np.sin(angle_N)

    def chances(first_G: Numbers, second_G: Numbers) -> Chances:
        return davidson(4.0 * (x_N[first_G] * y_N[second_G] - y_N[first_G] * x_N[second_G]), 0.0)

    return Scenario(
        "disc", [f"{60 * int(sector):03d}°" for sector in angle_N // (np.pi / 3)], chances
    )


def _blotto(rng: np.random.Generator, players: int) -> Scenario:
    """Plays Colonel Blotto with five coins on three fields. Each player draws from the 21 ways to
    place the coins, with probabilities of its own.
    """
    coins = 5
    ways = itertools.product(range(coins + 1), repeat=3)
    ways_SF = np.array([allocation for allocation in ways if sum(allocation) == coins])
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

    return Scenario("blotto", ["-".join(map(str, allocation)) for allocation in most_N], chances)


class Drift(Scenario):
    """Makes learners whose strength rises with their matches and also changes at random. Snapshots,
    which are added later, stay fixed.
    """

    START, CLIMB, WANDERING, SETTLING = -600.0, 220.0, 40.0, 200.0
    """`START` is a new learner's Elo. `CLIMB` is the Elo that a learner gains on average while its
    number of matches grows by a factor of e, and `WANDERING` is the standard deviation of this
    gain. `SETTLING` is added to the number of matches, so that a learner's first matches do not
    change its Elo too much.
    """
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
        """Changes a learner's strength as `matches` further matches do."""
        before = self._played[learner]
        self._played[learner] += matches
        folds = math.log((self._played[learner] + self.SETTLING) / (before + self.SETTLING))
        gained = self.CLIMB * folds + self.WANDERING * math.sqrt(folds) * self._rng.normal()
        self.strength_N[learner] += gained * LOGITS_PER_ELO


class Forget(Drift):
    """Makes drifting learners that each begin to lose to an opponent after half their matches."""

    BEATEN, LOST = 0.9, 0.3
    """Scores of a learner against the opponent that it forgets, before and after."""

    def __init__(self, rng: np.random.Generator, players: int, learners: int) -> None:
        super().__init__(rng, players, learners)
        self.name = "forget"
        self.forgotten: dict[int, int] = {}
        by_strength = self.chances

        def chances(first_G: Numbers, second_G: Numbers) -> Chances:
            chances_G = by_strength(first_G, second_G)
            for learner, other in self.forgotten.items():
                for one_G, two_G, win in (
                    (first_G, second_G, self.LOST),
                    (second_G, first_G, 1.0 - self.LOST),
                ):
                    is_theirs_G = (one_G == learner) & (two_G == other)
                    chances_G.win_G[is_theirs_G], chances_G.draw_G[is_theirs_G] = win, 0.0
            return chances_G

        self.chances = chances

    def forget(self, learner: int, others: Numbers) -> int | None:
        """Chooses an opponent that a learner beats (with a score of about `BEATEN`), and makes the
        learner lose to it from now on.

        Args:
            learner: number of the learner.
            others: numbers of opponents to choose from.

        Returns:
            The opponent's number, None if no score is within .03 of `BEATEN`.
        """
        gap_G = np.abs(self.chances(np.full(len(others), learner), others).score_G - self.BEATEN)
        if gap_G.min() > 0.03:
            return None
        self.forgotten[learner] = int(others[np.argmin(gap_G)])
        return self.forgotten[learner]


_DRIFTING = {"drift": Drift, "forget": Forget}
_FIXED = {"elo": _elo, "rps": _rock_paper_scissors, "disc": _disc, "blotto": _blotto}
SCENARIOS = (*_FIXED, *_DRIFTING)


def scenario_of(name: str, rng: np.random.Generator, players: int, learners: int) -> Scenario:
    """Makes the scenario with a name from `SCENARIOS`. Raises `InvalidInput` for an unknown name or
    too few players.
    """
    if name not in SCENARIOS:
        hint = nearest(name, SCENARIOS) or ", ".join(SCENARIOS)
        raise InvalidInput(f"there is no scenario {name!r}: use {hint}")
    if players < len(BOTS) + learners + 1:
        raise InvalidInput(
            f"--players {players} is too few for {len(BOTS)} bots, {learners} learners and a "
            "snapshot"
        )
    if name in _DRIFTING:
        return _DRIFTING[name](rng, players, learners)
    return _FIXED[name](rng, players)
