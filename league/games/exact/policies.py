"""Tables of policies: uniform, of the rules' own bots, and of anything that answers observations.

Shape suffixes: K infosets, T frames, A actions, O observation width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.errors import InvalidInput
from league.games.choice_rules import Strategy, probabilities_of
from league.games.exact.tree import NO_VIEW, GameTree
from league.games.exact.values import Table, checked_table


@dataclass(frozen=True)
class Histories:
    """What the deciding player was shown in each frame from the match's start to the infoset, its
    last.

    These are the observations a seat of the game itself has, those of the frames in which it waits
    too, so a recurrent policy is fed them in order from an empty state.

    Attributes:
        observations_KTO: float32, zeros after the history's end.
        legal_KTA: bool, the legal choices in each frame, all true after the end.
        lengths_K: frames of each history; the answer asked for is that of frame `lengths_K - 1`.
    """

    observations_KTO: NDArray[np.float32]
    legal_KTA: NDArray[np.bool_]
    lengths_K: NDArray[np.intp]


def histories(tree: GameTree) -> Histories:
    """The history of every infoset, in the tree's order."""
    views = tree.views
    paths = [_path(views.parents_V, view) for view in tree.infosets_K]
    lengths_K = np.array([len(path) for path in paths], np.intp)
    shape = (len(paths), int(lengths_K.max(initial=0)))
    observations_KTO = np.zeros((*shape, views.observations_VO.shape[1]), np.float32)
    legal_KTA = np.ones((*shape, views.legal_VA.shape[1]), np.bool_)
    for k, path in enumerate(paths):
        observations_KTO[k, : len(path)] = views.observations_VO[path]
        legal_KTA[k, : len(path)] = views.legal_VA[path]
    return Histories(observations_KTO, legal_KTA, lengths_K)


def _path(parents_V: NDArray[np.intp], view: int) -> list[int]:
    path = []
    while view != NO_VIEW:
        path.append(int(view))
        view = parents_V[view]
    return path[::-1]


def table_of(tree: GameTree, policy: Callable[[Histories], NDArray]) -> Table:
    """The table of a policy that answers all histories at once with probabilities `[K, A]`.

    Answers are taken to a sum of exactly 1 when rounding to float32 is all that they lack. Raises
    `InvalidInput` when they are no probabilities over what is legal.
    """
    answers_KA = np.asarray(policy(histories(tree)), np.float64)
    if answers_KA.shape != tree.legal_KA.shape:
        raise InvalidInput(
            f"the policy answered {answers_KA.shape}, {tree.legal_KA.shape} is wanted"
        )
    sums_K1 = answers_KA.sum(-1, keepdims=True)
    near_K1 = np.abs(sums_K1 - 1.0) < 1e-4
    return checked_table(
        tree, np.where(near_K1, answers_KA / np.where(near_K1, sums_K1, 1.0), answers_KA)
    )


def uniform_table(tree: GameTree) -> Table:
    """Every legal action alike."""
    legal_KA = tree.legal_KA
    return legal_KA / legal_KA.sum(-1, keepdims=True)


def strategy_table(tree: GameTree, strategy: Strategy) -> Table:
    """The table of a bot's strategy (`rules.bots[...].strategy`)."""
    positions_K = tree.views.positions_V[tree.infosets_K]
    return checked_table(
        tree, probabilities_of(strategy, positions_K, tree.players_K, tree.legal_KA)
    )
