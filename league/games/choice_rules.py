"""Defines the rules of a small two-player game of choices, as functions over many positions.

`ChoiceGame` plays batched matches by these rules, and `league.games.exact` walks the whole tree of
the game. So training and exact solutions use the same rules.

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
"""(positions [N], the player to choose in each position [N], this player's legal choices [N, A]) →
probabilities [N, A]. Rows with a single legal choice are ignored.
"""


@dataclass(frozen=True, kw_only=True)
class ScriptedBot:
    """Describes a bot by its (mixed) strategy."""

    name: str
    summary: str
    strategy: Strategy


class TreeRules(ABC):
    """Defines a game for players 0 and 1 whose tree `league.games.exact` can walk.

    Attributes:
        bots: the bots, in the order of the game's spec.
        most_positions: largest number of positions in a level of the tree. A larger tree is not
            walked.
    """

    name: str
    bots: tuple[ScriptedBot, ...]
    most_positions = 1_000_000_000

    @abstractmethod
    def deal(self) -> tuple[Positions, NDArray[np.float64]]:
        """Returns the positions before the first choice, and their probabilities, both [N]."""

    @abstractmethod
    def legal(self, positions_N: Positions) -> NDArray[np.bool_]:
        """Returns each player's legal choices, [N, 2, A].

        Each player has at least one legal choice. A player with nothing to decide has exactly one.
        """

    @abstractmethod
    def observe(self, positions_N: Positions) -> NDArray[np.float32]:
        """Returns each player's observation, [N, 2, O] in [-1, 1]."""

    @abstractmethod
    def follow(
        self, positions_E: Positions, choices_E2: NDArray[np.intp]
    ) -> tuple[
        NDArray[np.intp], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_], Positions
    ]:
        """Plays a frame in every way that chance allows. This may change `positions_E` in place.

        Args:
            positions_E: the positions.
            choices_E2: legal choices.

        Returns:
            Five arrays with an entry for each possible outcome of the frame, ordered by position:
            the index of the position that the outcome follows, the outcome's probability, the
            payoff from player 1 to player 0, whether the match ends, and the position after the
            frame.
        """

    @abstractmethod
    def label(self, position: Any, player: int) -> str:
        """Describes in a few words everything that a player knows.

        Args:
            position: a position.
            player: 0 or 1.

        Returns:
            The same text for all positions that the player can't distinguish.
        """


class ChoiceRules(TreeRules):
    """Defines a game for players 0 and 1, who choose frame by frame, simultaneously or in turns.

    All randomness comes from the deal before the first choice. There are `deals` deals, all equally
    likely. Parts of a deal may stay hidden at first. A player knows nothing but its observations
    since the first frame. From these observations it must be clear which choices the player
    made, and which choices were legal.

    Attributes:
        longest: number of frames of the longest match.
        draws_sides: whether a match's seed decides which seat is player 0. Games whose two sides
            differ need this, so that matches are fair and an agent learns both sides.
        payoff_unit: unit of payoffs, such as "chips".
        largest_payoff: largest payoff that a player can get from a match.
        record: dtype of a position.
    """

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
    record: np.dtype[np.void]

    @abstractmethod
    def begin(self, deals_N: NDArray[np.int64]) -> Positions:
        """Returns the positions before the first choice. `deals_N` are deals, numbered from 0."""

    @abstractmethod
    def play(
        self, positions_N: Positions, choices_N2: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Plays a frame, and updates the positions in place.

        Args:
            positions_N: the positions.
            choices_N2: [N, 2], legal choices.

        Returns:
            The payoffs from player 1 to player 0 in this frame, and whether each match ends, [N].
        """

    def deal(self) -> tuple[Positions, NDArray[np.float64]]:
        """Returns the positions of all deals, with equal probabilities."""
        return self.begin(np.arange(self.deals)), np.full(self.deals, 1.0 / self.deals)

    def follow(
        self, positions_E: Positions, choices_E2: NDArray[np.intp]
    ) -> tuple[
        NDArray[np.intp], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_], Positions
    ]:
        """Plays a frame, which has a single outcome because the deal holds all randomness."""
        paid_E, ended_E = self.play(positions_E, choices_E2)
        return np.arange(len(paid_E)), np.ones(len(paid_E)), paid_E, ended_E, positions_E

    @abstractmethod
    def describe(self, position: np.void) -> dict[str, Any]:
        """Describes a position for renderers: a dict of each player under `players`, and the fields
        that both players can see.
        """


def uniform(
    positions_N: Positions, players_N: NDArray[np.intp], legal_NA: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Takes every legal choice with the same probability."""
    return legal_NA / legal_NA.sum(-1, keepdims=True)


def always(*preferred: int) -> Strategy:
    """Returns a strategy that takes the first choice in `preferred` that is legal. If there is no
    such choice, the strategy takes every legal choice with the same probability.
    """

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
    """Returns the probabilities with which a strategy takes each choice.

    Args:
        strategy: the strategy.
        positions_N: the positions.
        players_N: [N], the player who has to choose in each position.
        legal_NA: bool[N, A], the legal choices.

    Returns:
        Probabilities, [N, A]. A single legal choice has probability 1.
    """
    forced_N1 = legal_NA.sum(-1, keepdims=True) == 1
    return np.where(forced_N1, legal_NA, strategy(positions_N, players_N, legal_NA))
