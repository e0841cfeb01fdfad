"""Computes exact values of small games: trees, best responses, NashConv and exploitability.

    tree = game_tree(rules_of(make_batched("kuhn", 1)))
    nash_conv(tree, uniform_table(tree))             # 0.916667
    exploitability(tree, table_of(tree, policy))     # for any policy that answers observations

The tree of a game of choices is walked frame by frame, with the rules that matches use. A *view* is
the list of a player's observations from the first frame to the current frame. A player can't
distinguish positions with the same view. An *infoset* is a view in which the player has a decision.
Players 0 and 1 are the players of the rules (0 opens, or picks rows), not seats.

Values are payoffs (chips) per match to player 0, unless stated otherwise. NashConv and
exploitability are as in Lanctot et al., "A unified game-theoretic approach to multiagent
reinforcement learning" (2017), and in OpenSpiel:

    NashConv(π) = Σ_i max_{π'_i} u_i(π'_i, π_-i) - u_i(π)        exploitability(π) = NashConv(π) / 2

Shape suffixes: M positions of a level, E edges that leave it, 2 players, A actions, O observation
width, V views, K infosets (of both players and all levels), T frames.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from league.errors import InvalidInput, LeagueError
from league.games.base import CHOICE, BatchedGame
from league.games.choice_rules import Positions, Strategy, TreeRules, probabilities_of
from league.games.registry import game_spec, make_batched

END = -1
"""Value of `Level.next_E` where the match ends."""
NO_VIEW = -1
MAX_POSITIONS = 1_000_000
"""Largest number of positions in a level. A larger tree would take minutes and gigabytes."""


class Level(NamedTuple):
    """Holds all positions at a depth of the tree, and the edges that lead from them to the next
    level. An edge is a pair of choices with a possible outcome of chance.

    Attributes:
        views_M2: each player's view, as an index into the tree's views.
        nodes_E: the position where each edge begins.
        choices_E2: both players' choices on the edge.
        chance_E: the probability that chance takes the edge, given the choices.
        paid_E: the payoff to player 0 on the edge.
        next_E: the position in the next level to which the edge leads, or `END`.
    """

    views_M2: NDArray[np.intp]
    nodes_E: NDArray[np.intp]
    choices_E2: NDArray[np.intp]
    chance_E: NDArray[np.float64]
    paid_E: NDArray[np.float64]
    next_E: NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class GameTree:
    """Holds a game's levels and views. A view's parent is the player's view one frame earlier
    (`NO_VIEW` in the first frame). Parents come before their children.

    `dealt_M` holds the probabilities of the first level's positions. `infosets_K` holds the indices
    of the views with a decision. A policy is a table `[K, A]` of probabilities.
    """

    rules: TreeRules
    levels: tuple[Level, ...]
    dealt_M: NDArray[np.float64]
    players_V: NDArray[np.intp]
    parents_V: NDArray[np.intp]
    observations_VO: NDArray[np.float32]
    legal_VA: NDArray[np.bool_]
    positions_V: Positions  # for each view, a position in which the player has it
    infosets_K: NDArray[np.intp]

    @property
    def players_K(self) -> NDArray[np.intp]:
        """The player that decides in each infoset."""
        return self.players_V[self.infosets_K]

    @property
    def legal_KA(self) -> NDArray[np.bool_]:
        """The legal choices in each infoset."""
        return self.legal_VA[self.infosets_K]

    def labels(self) -> list[str]:
        """Describes the player's knowledge in each infoset, with the rules' `label`."""
        return [
            self.rules.label(self.positions_V[view], int(self.players_V[view]))
            for view in self.infosets_K
        ]


def rules_of(game: BatchedGame) -> TreeRules:
    """Returns a game's rules. Raises `InvalidInput` for a game whose tree can't be walked."""
    rules = game.tree_rules()
    if rules is None:
        raise InvalidInput(
            f"{game.spec.name} has no exact values: matrix games, kuhn, leduc and small zero-sum "
            "games of OpenSpiel have them"
        )
    return rules


def is_exact(name: str, **options: Any) -> bool:
    """Returns whether this module can compute a game's exact values on this machine."""
    try:
        if game_spec(name, **options).action_kind != CHOICE:  # checked first: starts no processes
            return False
        game = make_batched(name, 1, **options)
        try:
            game_tree(rules_of(game))
        finally:
            game.close()
    except LeagueError:  # too large, or its package is missing
        return False
    return True


def game_tree(rules: TreeRules) -> GameTree:
    """Builds the tree of `rules`.

    Raises:
        InvalidInput: a level has too many positions (`MAX_POSITIONS` or `rules.most_positions`), or
            the observations don't determine a player's earlier choices or its legal choices.
    """
    positions_M, dealt_M = rules.deal()
    most = min(MAX_POSITIONS, rules.most_positions)
    parents_M2 = np.full((len(positions_M), 2), NO_VIEW)
    choices_M2 = np.zeros((len(positions_M), 2), np.intp)
    levels: list[Level] = []
    parts: list[tuple[NDArray[Any], ...]] = []  # arrays of the views, by level and player
    count = 0
    while len(positions_M):
        legal_M2A, observed_M2O = rules.legal(positions_M), rules.observe(positions_M)
        if (legal_M2A[:, 0].sum(-1) * legal_M2A[:, 1].sum(-1)).sum() > most:
            raise InvalidInput(
                f"the tree of {rules.name} is too large: more than {most:,} positions "
                "after some frame (in matrix games, ask for fewer rounds)"
            )
        views_M2 = np.empty_like(parents_M2)
        for player in range(2):
            parents_M, observed_MO = parents_M2[:, player], observed_M2O[:, player]
            choice_M, legal_MA = choices_M2[:, player], legal_M2A[:, player]
            looks = np.column_stack([parents_M, observed_MO])
            _, first_V, view_M = np.unique(looks, axis=0, return_index=True, return_inverse=True)
            alike_M = first_V[view_M.reshape(-1)]  # the first position with the same view
            if (choice_M != choice_M[alike_M]).any():
                raise InvalidInput(
                    f"the observations of {rules.name} let a player forget what it chose"
                )
            if (legal_MA != legal_MA[alike_M]).any():
                raise InvalidInput(f"the observations of {rules.name} do not tell what is legal")
            views_M2[:, player] = view_M.reshape(-1) + count
            count += len(first_V)
            seen = (parents_M, observed_MO, legal_MA, positions_M)
            parts.append((np.full(len(first_V), player), *(array[first_V] for array in seen)))
        nodes_E, *choices = np.nonzero(legal_M2A[:, 0, :, None] & legal_M2A[:, 1, None, :])
        choices_E2 = np.stack(choices, -1)
        ways_E, chance_E, paid_E, ended_E, positions_E = rules.follow(
            positions_M[nodes_E], choices_E2
        )
        nodes_E, choices_E2 = nodes_E[ways_E], choices_E2[ways_E]
        next_E = np.where(ended_E, END, np.cumsum(~ended_E) - 1)
        levels.append(Level(views_M2, nodes_E, choices_E2, chance_E, paid_E, next_E))
        positions_M, choices_M2 = positions_E[~ended_E], choices_E2[~ended_E]
        parents_M2 = views_M2[nodes_E[~ended_E]]
    players_V, parents_V, observed_VO, legal_VA, positions_V = map(
        np.concatenate, zip(*parts, strict=True)
    )
    return GameTree(
        rules=rules,
        levels=tuple(levels),
        dealt_M=dealt_M,
        players_V=players_V,
        parents_V=parents_V,
        observations_VO=observed_VO,
        legal_VA=legal_VA,
        positions_V=positions_V,
        infosets_K=np.flatnonzero(legal_VA.sum(-1) > 1),
    )


Table = NDArray[np.float64]
"""[K, A]: a policy of both players, as the probability of each action in each infoset."""
TOLERANCE = 1e-6


def checked_table(tree: GameTree, table_KA: Table) -> Table:
    """Checks that a table is a policy of this tree.

    Args:
        tree: the tree.
        table_KA: [K, A].

    Raises:
        InvalidInput: the table is no policy. The message names the first wrong infoset.
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
            "they must sum to 1 over what is legal there"
        )
    return table_KA


def _by_view(tree: GameTree, table_KA: Table) -> Table:
    """Returns probabilities in every view, [V, A]. A single legal choice has probability 1."""
    by_view_VA = tree.legal_VA.astype(np.float64)
    by_view_VA[tree.infosets_K] = table_KA
    return by_view_VA


def _edge_probabilities(level: Level, by_view_VA: Table, player: int) -> NDArray[np.float64]:
    """Returns the probability that `player` takes each edge from its node, [E]."""
    views_E = level.views_M2[level.nodes_E, player]
    return by_view_VA[views_E, level.choices_E2[:, player]]


def _edge_values(level: Level, sign: int, next_M: NDArray[Any]) -> NDArray[np.float64]:
    """Returns the sum of the payoffs on each edge and after it, [E]."""
    padded_M = np.append(next_M, 0.0)  # an edge with END reads the 0 at the end
    return sign * level.paid_E + padded_M[np.where(level.next_E == END, len(next_M), level.next_E)]


def expected_value(tree: GameTree, table_KA: Table) -> float:
    """Returns player 0's mean payoff if both play by the table. Player 1 gets minus this value."""
    by_view_VA = _by_view(tree, checked_table(tree, table_KA))
    values_M: NDArray[Any] = np.zeros(0)
    for level in reversed(tree.levels):
        taken_E = _edge_probabilities(level, by_view_VA, 0) * _edge_probabilities(
            level, by_view_VA, 1
        )
        values_E = taken_E * level.chance_E * _edge_values(level, 1, values_M)
        values_M = np.bincount(level.nodes_E, values_E, len(level.views_M2))
    return float(tree.dealt_M @ values_M)


def best_response_value(tree: GameTree, table_KA: Table, player: int) -> float:
    """Returns a player's mean payoff with a best response to the other player's part of the table.

    A pass runs backwards over the levels. In each infoset it takes the action with the greatest
    value. This value is a weighted sum over the infoset's positions. A position's weight is the
    probability that chance and the opponent lead to it. The player's own earlier choices don't
    enter the weights, because they are the same in all positions of an infoset.

    Args:
        tree: the tree.
        table_KA: [K, A], a policy.
        player: the player that responds.

    Returns:
        Payoff per match to that player.

    Raises:
        InvalidInput: the table is not a policy of this tree.
    """
    by_view_VA = _by_view(tree, checked_table(tree, table_KA))
    sign = (1, -1)[player]
    opponent = [  # probabilities of the opponent's choices and of chance
        level.chance_E * _edge_probabilities(level, by_view_VA, 1 - player) for level in tree.levels
    ]
    reaches = [tree.dealt_M]  # by level, the weight of each position
    for level, opponent_E in zip(tree.levels[:-1], opponent[:-1], strict=True):
        reaches.append((reaches[-1][level.nodes_E] * opponent_E)[level.next_E != END])
    best_V = tree.legal_VA.argmax(-1)
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
        worth = np.where(tree.legal_VA[views], sums.reshape(-1, actions), -np.inf)
        best_V[views] = worth.argmax(-1)
        values_M = np.bincount(
            level.nodes_E, values_E * (choices_E == best_V[views_E]), len(reach_M)
        )
    return float(tree.dealt_M @ values_M)


def nash_conv(tree: GameTree, table_KA: Table) -> float:
    """Returns the sum of both players' gains from best responses. It is 0 only in an equilibrium.

    The gain of a best response is its payoff minus the payoff under the table. The games are
    zero-sum, so the two payoffs under the table add up to 0.
    """
    return sum(best_response_value(tree, table_KA, player) for player in range(2))


def exploitability(tree: GameTree, table_KA: Table) -> float:
    """Returns NashConv / 2: the mean loss per match against a best response, if the players swap
    sides after each match.
    """
    return nash_conv(tree, table_KA) / 2.0


@dataclass(frozen=True)
class Histories:
    """Holds a history for each infoset: the deciding player's observations from the match's start.

    A history includes frames in which the player waits. A recurrent policy reads the observations
    in order, starting from its initial state.

    Attributes:
        observations_KTO: float32, zeros after the history's end.
        legal_KTA: bool, the legal choices in each frame, all true after the history's end.
        lengths_K: number of frames of each history. The policy decides in frame `lengths_K - 1`.
    """

    observations_KTO: NDArray[np.float32]
    legal_KTA: NDArray[np.bool_]
    lengths_K: NDArray[np.intp]


def histories(tree: GameTree) -> Histories:
    """Returns the history of every infoset, in the tree's order."""
    paths: list[list[int]] = []
    for view in tree.infosets_K:
        path = []
        while view != NO_VIEW:
            path.append(int(view))
            view = tree.parents_V[view]
        paths.append(path[::-1])
    lengths_K = np.array([len(path) for path in paths], np.intp)
    shape = (len(paths), int(lengths_K.max(initial=0)))
    observations_KTO = np.zeros((*shape, tree.observations_VO.shape[1]), np.float32)
    legal_KTA = np.ones((*shape, tree.legal_VA.shape[1]), np.bool_)
    for k, path in enumerate(paths):
        observations_KTO[k, : len(path)] = tree.observations_VO[path]
        legal_KTA[k, : len(path)] = tree.legal_VA[path]
    return Histories(observations_KTO, legal_KTA, lengths_K)


def table_of(tree: GameTree, policy: Callable[[Histories], NDArray]) -> Table:
    """Computes the table of a policy that answers observations.

    Probabilities whose sum differs from 1 only by float32 rounding are normalised.

    Args:
        tree: the tree.
        policy: a function that returns the probabilities `[K, A]` for all histories at once.

    Raises:
        InvalidInput: the answers are not probabilities over the legal choices.
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
    """Returns the policy that takes each legal action with the same probability."""
    legal_KA = tree.legal_KA
    return legal_KA / legal_KA.sum(-1, keepdims=True)


def average_table(tree: GameTree, tables: Sequence[Table], weights: Sequence[float]) -> Table:
    """Returns the policy of a player that draws a table before each match and then plays by it.

    In an infoset, the probability of an action is the average of the tables' probabilities. A
    table's weight in this average is the probability that the table was drawn and that the player's
    own choices led to the infoset (Kuhn's theorem). w_i is the probability that table i is drawn,
    and r_i(I) is the probability that the player's own choices by table i lead to infoset I:

        π(a|I) = Σ_i w_i r_i(I) π_i(a|I) / Σ_i w_i r_i(I)

    In an infoset that no table reaches, the policy is uniform. This doesn't affect any value.

    Args:
        tree: the tree.
        tables: the policies, [K, A] each.
        weights: the tables' probabilities.
    """
    total_KA = np.zeros(tree.legal_KA.shape)
    for table_KA, weight in zip(tables, weights, strict=True):
        by_view_VA = _by_view(tree, checked_table(tree, table_KA))
        reach_V = np.ones(len(tree.players_V))
        for level, following in pairwise(tree.levels):
            goes_on_E = level.next_E != END
            for player in range(2):
                views_E = level.views_M2[level.nodes_E, player]
                taken_E = _edge_probabilities(level, by_view_VA, player)
                reach_E = reach_V[views_E] * taken_E
                reach_V[following.views_M2[:, player]] = reach_E[goes_on_E]
        total_KA += weight * reach_V[tree.infosets_K, None] * table_KA
    reached_K1 = total_KA.sum(-1, keepdims=True)
    return np.where(
        reached_K1 > 0.0,
        total_KA / np.where(reached_K1 > 0.0, reached_K1, 1.0),
        uniform_table(tree),
    )


def strategy_table(tree: GameTree, strategy: Strategy) -> Table:
    """Returns the table of a bot's strategy, for example `rules.bots[0].strategy`."""
    positions_K = tree.positions_V[tree.infosets_K]
    return checked_table(
        tree, probabilities_of(strategy, positions_K, tree.players_K, tree.legal_KA)
    )
