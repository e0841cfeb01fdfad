"""Rules of a small two-player game of choices, as functions over many positions at once.

`ChoiceGame` plays them as batched matches, `league.games.exact` walks their whole tree, so that
what is trained and what is solved is the same game.

Shape suffixes: N positions, 2 players, A actions, O observation width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.void]
"""[N] records of the rules' own `record` type."""
Strategy = Callable[[Positions, NDArray[np.intp], NDArray[np.bool_]], NDArray[np.float64]]
"""(positions [N], the player asked in each [N], its legal choices [N, A]) → probabilities [N,
A]. Where one choice alone is legal the answer is not read.
"""


@dataclass(frozen=True, kw_only=True)
class ScriptedBot:
    """A bot that is a (mixed) strategy of the rules."""

    name: str
    summary: str
    strategy: Strategy


class ChoiceRules(ABC):
    """A game of two players, 0 and 1, whose choices fall frame by frame, both at once or by turns.

    All chance falls before the first choice, in one of `deals` equally likely ways (what is hidden
    of it is shown later). What a player knows is what `observe` showed it, from the first frame
    on: from its observations a player must be able to recall what it did and saw.

    Attributes:
        longest: frames of the longest match. draws_sides: whether the seed of a match draws which
        seat is player 0. Games whose sides differ do
            so, that they are fair and an agent learns both.
        payoff_unit: as "chips". largest_payoff: the most that one match can pay to a player.
        record: type of a position.
    """

    name: str
    version: str
    action_names: tuple[str, ...]
    longest: int
    deals: int
    draws_sides: bool
    observation_size: int
    own_size: int
    observation_names: tuple[str, ...] = ()
    payoff_unit: str = "payoff"
    largest_payoff: float
    bots: tuple[ScriptedBot, ...]
    record: np.dtype[np.void]

    @abstractmethod
    def begin(self, deals_N: NDArray[np.int64]) -> Positions:
        """Positions before the first choice; `deals_N` says how chance fell, each below `deals`."""

    @abstractmethod
    def legal(self, positions_N: Positions) -> NDArray[np.bool_]:
        """[N, 2, A]: each player's choices, at least one; exactly one where it has nothing to
        decide.
        """

    @abstractmethod
    def play(
        self, positions_N: Positions, choices_N2: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Moves `positions_N` on by one frame, in place; the choices are legal.

        Returns what player 0 is paid in this frame (player 1 pays it), [N], and where the match
        ends, [N].
        """

    @abstractmethod
    def observe(self, positions_N: Positions) -> NDArray[np.float32]:
        """[N, 2, O] in [-1, 1]: what each player sees now."""

    @abstractmethod
    def label(self, position: np.void, player: int) -> str:
        """In a few words all that `player` knows, the same for every position it can't distinguish
        apart.
        """

    @abstractmethod
    def describe(self, position: np.void) -> dict[str, Any]:
        """For renderers: `players` (two dicts) and what lies open on the table."""


def uniform(
    positions_N: Positions, players_N: NDArray[np.intp], legal_NA: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Every legal choice alike."""
    return legal_NA / legal_NA.sum(-1, keepdims=True)


def always(*preferred: int) -> Strategy:
    """The first of `preferred` that is legal, and where none is, any legal choice."""

    def strategy(
        positions_N: Positions, players_N: NDArray[np.intp], legal_NA: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        probabilities_NA = uniform(positions_N, players_N, legal_NA)
        for action in reversed(preferred):
            rows = legal_NA[:, action]
            probabilities_NA[rows] = 0.0
            probabilities_NA[rows, action] = 1.0
        return probabilities_NA

    return strategy


RANDOM_BOT = ScriptedBot(name="random", summary="takes every legal choice alike", strategy=uniform)


def probabilities_of(
    strategy: Strategy,
    positions_N: Positions,
    players_N: NDArray[np.intp],
    legal_NA: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """[N, A]: what `strategy` answers, and the one legal choice where there is but one."""
    forced_N1 = legal_NA.sum(-1, keepdims=True) == 1
    return np.where(forced_N1, legal_NA, strategy(positions_N, players_N, legal_NA))
