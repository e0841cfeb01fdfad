"""Values of policies in a game tree. All are chips (payoffs) a match, of player 0 unless said
otherwise.

NashConv and exploitability as in Lanctot et al., "A unified game-theoretic approach to multiagent
reinforcement learning" (2017), and OpenSpiel:

    NashConv(π) = Σ_i max_{π'_i} u_i(π'_i, π_-i) - u_i(π)        exploitability(π) = NashConv(π) / 2

Shape suffixes: M positions of a level, E edges, K infosets, A actions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import InvalidInput
from league.games.exact.tree import END, GameTree, Level

Table = NDArray[np.float64]
"""[K, A]: a policy for both players, the probability of each action in each infoset."""
TOLERANCE = 1e-6


@dataclass(frozen=True)
class BestResponse:
    """What `player` can get at most against a table, [its own payoff], and how: a choice by
    infoset.

    `choices_K` is -1 in the infosets of the other player.
    """

    value: float
    choices_K: NDArray[np.intp]


def checked_table(tree: GameTree, table_KA: Table) -> Table:
    """`table_KA` as float64 when it is a policy of this tree; raises `InvalidInput` with the
    infoset.
    """
    table_KA = np.asarray(table_KA, np.float64)
    if table_KA.shape != tree.legal_KA.shape:
        raise InvalidInput(f"the table has shape {table_KA.shape}, {tree.legal_KA.shape} is wanted")
    wrong_K = (
        ~np.isfinite(table_KA).all(-1)
        | (table_KA < -TOLERANCE).any(-1)
        | (np.abs(table_KA * ~tree.legal_KA) > TOLERANCE).any(-1)
        | (np.abs(table_KA.sum(-1) - 1.0) > TOLERANCE)
    )
    if wrong_K.any():
        k = int(np.flatnonzero(wrong_K)[0])
        raise InvalidInput(
            f"in infoset {k} ({tree.labels()[k]}) the probabilities are {table_KA[k].tolist()}: "
            "they must "
            "sum to 1 over what is legal there"
        )
    return table_KA


def _by_view(tree: GameTree, table_KA: Table) -> Table:
    """Probabilities in every view, [V, A]: where one choice alone is legal it is taken."""
    by_view_VA = tree.views.legal_VA.astype(np.float64)
    by_view_VA[tree.infosets_K] = table_KA
    return by_view_VA


def _edge_probabilities(level: Level, by_view_VA: Table, player: int) -> NDArray[np.float64]:
    """[E]: how likely `player` is to take each edge from where it begins."""
    views_E = level.views_M2[level.nodes_E, player]
    return by_view_VA[views_E, level.choices_E2[:, player]]


def _edge_values(level: Level, sign: int, next_M: NDArray[np.float64]) -> NDArray[np.float64]:
    """[E]: what is paid on an edge and after it."""
    padded_M = np.append(next_M, 0.0)  # END, -1, reads the last
    return sign * level.paid_E + padded_M[np.where(level.next_E == END, len(next_M), level.next_E)]


def expected_value(tree: GameTree, table_KA: Table) -> float:
    """What player 0 gets on average when both play by the table; player 1 gets the negative."""
    by_view_VA = _by_view(tree, checked_table(tree, table_KA))
    values_M: NDArray[Any] = np.zeros(0)
    for level in reversed(tree.levels):
        taken_E = _edge_probabilities(level, by_view_VA, 0) * _edge_probabilities(
            level, by_view_VA, 1
        )
        values_E = taken_E * _edge_values(level, 1, values_M)
        values_M = np.bincount(level.nodes_E, values_E, len(level.views_M2))
    return float(values_M.mean())


def best_response(tree: GameTree, table_KA: Table, player: int) -> BestResponse:
    """The best that `player` can do against the other's half of the table.

    Backwards over the levels: in each infoset the action with the greatest value, summed over its
    positions by how likely chance and the opponent lead there. (The player's own choices before do
    not matter for it: it remembers them.)
    """
    by_view_VA = _by_view(tree, checked_table(tree, table_KA))
    sign = (1, -1)[player]
    opponent = [_edge_probabilities(level, by_view_VA, 1 - player) for level in tree.levels]
    reaches = _reaches(tree, opponent)
    best_V = tree.views.legal_VA.argmax(-1)
    values_M: NDArray[Any] = np.zeros(0)
    for level, opponent_E, reach_M in zip(
        reversed(tree.levels), reversed(opponent), reversed(reaches), strict=True
    ):
        values_E = opponent_E * _edge_values(level, sign, values_M)
        views_E, choices_E = level.views_M2[level.nodes_E, player], level.choices_E2[:, player]
        views, index_E = np.unique(views_E, return_inverse=True)
        actions = by_view_VA.shape[1]
        cells_E = index_E.reshape(-1) * actions + choices_E
        sums = np.bincount(cells_E, reach_M[level.nodes_E] * values_E, len(views) * actions)
        worth = np.where(tree.views.legal_VA[views], sums.reshape(-1, actions), -np.inf)
        best_V[views] = worth.argmax(-1)
        values_M = np.bincount(
            level.nodes_E, values_E * (choices_E == best_V[views_E]), len(reach_M)
        )
    choices_K = np.where(tree.players_K == player, best_V[tree.infosets_K], -1)
    return BestResponse(float(values_M.mean()), choices_K)


def _reaches(tree: GameTree, opponent: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """By level, [M]: how likely chance and the opponent lead to each position, if the player
    wants to.
    """
    first = len(tree.levels[0].views_M2)
    reaches = [np.full(first, 1.0 / first)]
    for level, opponent_E in zip(tree.levels[:-1], opponent[:-1], strict=True):
        reach_E = reaches[-1][level.nodes_E] * opponent_E
        reaches.append(reach_E[level.next_E != END])
    return reaches


def best_response_value(tree: GameTree, table_KA: Table, player: int) -> float:
    """What `player` gets at most, on average, against the other's half of the table."""
    return best_response(tree, table_KA, player).value


def nash_conv(tree: GameTree, table_KA: Table) -> float:
    """What both players together could gain by answering best; 0 exactly at an equilibrium.

    The games are zero-sum, so that the values that the players have now cancel out.
    """
    return sum(best_response_value(tree, table_KA, player) for player in range(2))


def exploitability(tree: GameTree, table_KA: Table) -> float:
    """NashConv / 2: what a policy that plays both sides in turn loses to its best answer, a
    match.
    """
    return nash_conv(tree, table_KA) / 2.0
