"""The whole tree of a game of choices, walked frame by frame with the very rules that matches are
played by.

A *view* is all that a player was shown up to a frame: its observations from the first one on. Two
positions with the same view look alike, whatever else differs. An *infoset* is a view in which the
player has something to decide. Players are 0 and 1 of the rules (who opens, who picks rows), not
seats.

Shape suffixes: M positions of a level, E edges out of it, 2 players, A actions, O observation
width, V views, K infosets (of both players and all levels).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.errors import InvalidInput
from league.games.base import BatchedGame
from league.games.choice_game import ChoiceGame
from league.games.choice_rules import ChoiceRules, Positions

END = -1
"""In `Level.next_E`: the match ended there."""
NO_VIEW = -1
MAX_POSITIONS = 1_000_000
"""In a level; beyond, a tree would take minutes and gigabytes."""


@dataclass(frozen=True, kw_only=True)
class Level:
    """Every position at one depth, and every choice from there.

    Attributes:
        views_M2: what each player was shown, an index into the tree's views.
        nodes_E: the position where an edge begins. choices_E2: what both choose on it.
        paid_E: what player 0 is paid on it. next_E: position of the next level, or `END`.
    """

    views_M2: NDArray[np.intp]
    nodes_E: NDArray[np.intp]
    choices_E2: NDArray[np.intp]
    paid_E: NDArray[np.float64]
    next_E: NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Views:
    """What players may be shown, by player, each after its parent (`NO_VIEW` in the first
    frame).
    """

    players_V: NDArray[np.intp]
    parents_V: NDArray[np.intp]
    observations_VO: NDArray[np.float32]
    legal_VA: NDArray[np.bool_]
    positions_V: Positions  # one of those that look so


@dataclass(frozen=True, kw_only=True)
class GameTree:
    """A game's levels and views; `infosets_K` are the views in which there is something to decide.

    Every position of the first level is equally likely. A policy is a table `[K, A]` of
    probabilities.
    """

    rules: ChoiceRules
    levels: tuple[Level, ...]
    views: Views
    infosets_K: NDArray[np.intp]

    @property
    def players_K(self) -> NDArray[np.intp]:
        """Who decides in each infoset."""
        return self.views.players_V[self.infosets_K]

    @property
    def legal_KA(self) -> NDArray[np.bool_]:
        """What is legal in each infoset."""
        return self.views.legal_VA[self.infosets_K]

    def labels(self) -> list[str]:
        """What the player knows in each infoset, in a few words of the rules."""
        views = self.views
        return [
            self.rules.label(views.positions_V[view], int(views.players_V[view]))
            for view in self.infosets_K
        ]


def rules_of(game: BatchedGame) -> ChoiceRules:
    """The rules that `game` plays; raises `InvalidInput` for a game whose tree can't be walked."""
    if not isinstance(game, ChoiceGame):
        raise InvalidInput(
            f"{game.spec.name} has no exact values: matrix games, kuhn and leduc are small enough"
        )
    return game.rules


def game_tree(rules: ChoiceRules) -> GameTree:
    """The tree of `rules`.

    Raises `InvalidInput` when it has more than `MAX_POSITIONS` in a level, or when the observations
    are not enough to play by: a player would forget its own choice, or could not know what is
    legal.
    """
    positions_M = rules.begin(np.arange(rules.deals))
    views = _Growing(rules)
    parents_M2 = np.full((len(positions_M), 2), NO_VIEW)
    choices_M2 = np.zeros((len(positions_M), 2), np.intp)
    levels = []
    while len(positions_M):
        legal_M2A = rules.legal(positions_M)
        views_M2 = views.add(positions_M, parents_M2, choices_M2, legal_M2A)
        level, positions_M = _level(rules, positions_M, views_M2, legal_M2A)
        goes_on_E = level.next_E != END
        parents_M2, choices_M2 = views_M2[level.nodes_E[goes_on_E]], level.choices_E2[goes_on_E]
        levels.append(level)
    done = views.done()
    infosets_K = np.flatnonzero(done.legal_VA.sum(-1) > 1)
    return GameTree(rules=rules, levels=tuple(levels), views=done, infosets_K=infosets_K)


def _level(
    rules: ChoiceRules,
    positions_M: Positions,
    views_M2: NDArray[np.intp],
    legal_M2A: NDArray[np.bool_],
) -> tuple[Level, Positions]:
    """The edges out of `positions_M`, and the positions they lead to."""
    counts_M = legal_M2A[:, 0].sum(-1) * legal_M2A[:, 1].sum(-1)
    if counts_M.sum() > MAX_POSITIONS:
        raise InvalidInput(
            f"the tree of {rules.name} is too large: more than {MAX_POSITIONS:,} positions after "
            "some frame "
            "(in matrix games, ask for fewer rounds)"
        )
    nodes_E, *choices = np.nonzero(legal_M2A[:, 0, :, None] & legal_M2A[:, 1, None, :])
    choices_E2 = np.stack(choices, -1)
    positions_E = positions_M[nodes_E]
    paid_E, ended_E = rules.play(positions_E, choices_E2)
    next_E = np.where(ended_E, END, np.cumsum(~ended_E) - 1)
    level = Level(
        views_M2=views_M2, nodes_E=nodes_E, choices_E2=choices_E2, paid_E=paid_E, next_E=next_E
    )
    return level, positions_E[~ended_E]


class _Growing:
    """Views while the tree is walked."""

    def __init__(self, rules: ChoiceRules) -> None:
        self._rules = rules
        self._parts: list[Views] = []
        self._count = 0

    def add(
        self,
        positions_M: Positions,
        parents_M2: NDArray[np.intp],
        choices_M2: NDArray[np.intp],
        legal_M2A: NDArray[np.bool_],
    ) -> NDArray[np.intp]:
        """The view of each position of a level, [M, 2]; `choices_M2` led there from
        `parents_M2`.
        """
        views_M2 = np.empty_like(parents_M2)
        observations_M2O = self._rules.observe(positions_M)
        for player in range(2):
            parents_M, observations_MO = parents_M2[:, player], observations_M2O[:, player]
            keys = np.column_stack([parents_M, observations_MO])
            _, first_V, view_M = np.unique(keys, axis=0, return_index=True, return_inverse=True)
            view_M = view_M.reshape(-1)
            self._check(view_M, first_V, choices_M2[:, player], legal_M2A[:, player])
            part = Views(
                players_V=np.full(len(first_V), player),
                parents_V=parents_M[first_V],
                observations_VO=observations_MO[first_V],
                legal_VA=legal_M2A[first_V, player],
                positions_V=positions_M[first_V],
            )
            views_M2[:, player] = view_M + self._count
            self._count += len(first_V)
            self._parts.append(part)
        return views_M2

    def _check(
        self,
        view_M: NDArray[np.intp],
        first_V: NDArray[np.intp],
        choice_M: NDArray[np.intp],
        legal_MA: NDArray[np.bool_],
    ) -> None:
        if (choice_M != choice_M[first_V][view_M]).any():
            raise InvalidInput(
                f"the observations of {self._rules.name} let a player forget what it chose"
            )
        if (legal_MA != legal_MA[first_V][view_M]).any():
            raise InvalidInput(f"the observations of {self._rules.name} do not tell what is legal")

    def done(self) -> Views:
        def joined(name: str) -> NDArray:
            return np.concatenate([getattr(part, name) for part in self._parts])

        return Views(
            players_V=joined("players_V"),
            parents_V=joined("parents_V"),
            observations_VO=joined("observations_VO"),
            legal_VA=joined("legal_VA"),
            positions_V=joined("positions_V"),
        )
