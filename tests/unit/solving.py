"""A solver for game trees, to see that their known values come out: regret matching+ on
counterfactual values, linearly averaged (Tammelin, "Solving large imperfect information games using
CFR+", 2014).

Shape suffixes: M positions of a level, E edges, K infosets, A actions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.games.exact import (
    GameTree,
    Table,
    _by_view,
    _edge_probabilities,
    _edge_values,
    _reaches,
    uniform_table,
)


def regret_matching(tree: GameTree, rounds: int) -> Table:
    """The average policy after `rounds` updates of each player in turn."""
    regrets_KA, total_KA = np.zeros(tree.legal_KA.shape), np.zeros(tree.legal_KA.shape)
    for now in range(1, rounds + 1):
        for player in range(2):
            table_KA = _normal(tree, regrets_KA)
            gains_KA, weights_K = _pass(tree, table_KA, player)
            regrets_KA = np.maximum(regrets_KA + gains_KA, 0.0) * tree.legal_KA
            total_KA += now * weights_K[:, None] * table_KA
    return _normal(tree, total_KA)


def _normal(tree: GameTree, weights_KA: NDArray[np.float64]) -> Table:
    sums_K1 = weights_KA.sum(-1, keepdims=True)
    return np.where(
        sums_K1 > 0, weights_KA / np.where(sums_K1 > 0, sums_K1, 1.0), uniform_table(tree)
    )


def _pass(
    tree: GameTree, table_KA: Table, player: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What each action would have gained `player` over the policy, and how likely it comes to be
    asked.
    """
    by_view_VA = _by_view(tree, table_KA)
    # forced moves are summed in a row of their own
    place_V = np.full(len(by_view_VA), len(table_KA))
    place_V[tree.infosets_K] = np.arange(len(table_KA))
    own, other = (
        [_edge_probabilities(level, by_view_VA, who) for level in tree.levels]
        for who in (player, 1 - player)
    )
    gains_KA, weights_K = (
        np.zeros((len(table_KA) + 1, table_KA.shape[1])),
        np.zeros(len(table_KA) + 1),
    )
    values_M = np.zeros(0)
    parts = zip(tree.levels, own, other, _reaches(tree, other), _reaches(tree, own), strict=True)
    for level, own_E, other_E, reach_M, own_reach_M in reversed(list(parts)):
        worth_E = other_E * _edge_values(level, (1, -1)[player], values_M)
        values_M = np.bincount(level.nodes_E, worth_E * own_E, len(reach_M))
        place_M = place_V[level.views_M2[:, player]]
        cells = place_M[level.nodes_E], level.choices_E2[:, player]
        np.add.at(gains_KA, cells, reach_M[level.nodes_E] * worth_E)
        np.add.at(gains_KA, place_M, -(reach_M * values_M)[:, None])
        weights_K[place_M] = own_reach_M
    return gains_KA[:-1], weights_K[:-1]
