"""Exact values of small games: whole trees, best responses, NashConv and exploitability, in plain
numpy.

    tree = game_tree(rules_of(make_batched("kuhn", 1)))
    nash_conv(tree, uniform_table(tree))             # 0.916667
    exploitability(tree, table_of(tree, policy))     # of anything that answers observations

The tree of a game of choices is walked frame by frame with the very rules that matches are played
by. A *view* is all that a player was shown up to a frame: its observations from the first one on.
Two positions with the same view look alike, whatever else differs. An *infoset* is a view in which
the player has something to decide. Players are 0 and 1 of the rules (who opens, who picks rows),
not seats.

Values are chips (payoffs) a match, of player 0 unless said otherwise. NashConv and exploitability
as in Lanctot et al., "A unified game-theoretic approach to multiagent reinforcement learning"
(2017), and OpenSpiel:

    NashConv(π) = Σ_i max_{π'_i} u_i(π'_i, π_-i) - u_i(π)        exploitability(π) = NashConv(π) / 2

Shape suffixes: M positions of a level, E edges out of it, 2 players, A actions, O observation
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
from league.games.choice_game import ChoiceGame
from league.games.choice_rules import ChoiceRules, Positions, Strategy, probabilities_of
from league.games.registry import game_spec, make_batched

END = -1
"""In `Level.next_E`: the match ended there."""
NO_VIEW = -1
MAX_POSITIONS = 1_000_000
"""In a level; beyond, a tree would take minutes and gigabytes."""


class Level(NamedTuple):
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
class GameTree:
    """A game's levels, and its views by number, each after its parent (`NO_VIEW` in the first
    frame).

    Every position of the first level is equally likely. `infosets_K` are the views in which there
    is something to decide; a policy is a table `[K, A]` of probabilities.
    """

    rules: ChoiceRules
    levels: tuple[Level, ...]
    players_V: NDArray[np.intp]
    parents_V: NDArray[np.intp]
    observations_VO: NDArray[np.float32]
    legal_VA: NDArray[np.bool_]
    positions_V: Positions  # one of those that look so
    infosets_K: NDArray[np.intp]

    @property
    def players_K(self) -> NDArray[np.intp]:
        """Who decides in each infoset."""
        return self.players_V[self.infosets_K]

    @property
    def legal_KA(self) -> NDArray[np.bool_]:
        """What is legal in each infoset."""
        return self.legal_VA[self.infosets_K]

    def labels(self) -> list[str]:
        """What the player knows in each infoset, in a few words of the rules."""
        return [
            self.rules.label(self.positions_V[view], int(self.players_V[view]))
            for view in self.infosets_K
        ]


def rules_of(game: BatchedGame) -> ChoiceRules:
    """The rules that `game` plays; raises `InvalidInput` for a game whose tree can't be walked."""
    if not isinstance(game, ChoiceGame):
        raise InvalidInput(
            f"{game.spec.name} has no exact values: matrix games, kuhn and leduc are small enough"
        )
    return game.rules


def is_exact(name: str, **options: Any) -> bool:
    """Whether exact values of the game of this name, with these options, can be computed here."""
    try:
        if game_spec(name, **options).action_kind != CHOICE:  # spares a start of its processes
            return False
        game = make_batched(name, 1, **options)
        try:
            game_tree(rules_of(game))
        finally:
            game.close()
    except LeagueError:  # too large, or of another package that is not here
        return False
    return True


def game_tree(rules: ChoiceRules) -> GameTree:
    """The tree of `rules`.

    Raises `InvalidInput` when it has more than `MAX_POSITIONS` in a level, or when the observations
    are not enough to play by: a player would forget its own choice, or could not know what is
    legal.
    """
    positions_M = rules.begin(np.arange(rules.deals))
    parents_M2 = np.full((len(positions_M), 2), NO_VIEW)
    choices_M2 = np.zeros((len(positions_M), 2), np.intp)
    levels: list[Level] = []
    parts: list[tuple[NDArray[Any], ...]] = []  # of the views, by level and player
    count = 0
    while len(positions_M):
        legal_M2A, observed_M2O = rules.legal(positions_M), rules.observe(positions_M)
        if (legal_M2A[:, 0].sum(-1) * legal_M2A[:, 1].sum(-1)).sum() > MAX_POSITIONS:
            raise InvalidInput(
                f"the tree of {rules.name} is too large: more than {MAX_POSITIONS:,} positions "
                "after some frame (in matrix games, ask for fewer rounds)"
            )
        views_M2 = np.empty_like(parents_M2)
        for player in range(2):
            parents_M, observed_MO = parents_M2[:, player], observed_M2O[:, player]
            choice_M, legal_MA = choices_M2[:, player], legal_M2A[:, player]
            looks = np.column_stack([parents_M, observed_MO])
            _, first_V, view_M = np.unique(looks, axis=0, return_index=True, return_inverse=True)
            alike_M = first_V[view_M.reshape(-1)]  # the first position that looks as each does
            if (choice_M != choice_M[alike_M]).any():
                raise InvalidInput(
                    f"the observations of {rules.name} let a player forget what it chose"
                )
            if (legal_MA != legal_MA[alike_M]).any():
                raise InvalidInput(f"the observations of {rules.name} do not tell what is legal")
            views_M2[:, player] = view_M.reshape(-1) + count
            count += len(first_V)
            seen = (parents_M, observed_MO, legal_MA, positions_M)
            parts.append((np.full(len(first_V), player), *(part[first_V] for part in seen)))
        nodes_E, *choices = np.nonzero(legal_M2A[:, 0, :, None] & legal_M2A[:, 1, None, :])
        choices_E2, positions_E = np.stack(choices, -1), positions_M[nodes_E]
        paid_E, ended_E = rules.play(positions_E, choices_E2)
        next_E = np.where(ended_E, END, np.cumsum(~ended_E) - 1)
        levels.append(Level(views_M2, nodes_E, choices_E2, paid_E, next_E))
        positions_M, choices_M2 = positions_E[~ended_E], choices_E2[~ended_E]
        parents_M2 = views_M2[nodes_E[~ended_E]]
    players_V, parents_V, observed_VO, legal_VA, positions_V = map(
        np.concatenate, zip(*parts, strict=True)
    )
    return GameTree(
        rules=rules,
        levels=tuple(levels),
        players_V=players_V,
        parents_V=parents_V,
        observations_VO=observed_VO,
        legal_VA=legal_VA,
        positions_V=positions_V,
        infosets_K=np.flatnonzero(legal_VA.sum(-1) > 1),
    )


Table = NDArray[np.float64]
"""[K, A]: a policy for both players, the probability of each action in each infoset."""
TOLERANCE = 1e-6


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
            "they must sum to 1 over what is legal there"
        )
    return table_KA


def _by_view(tree: GameTree, table_KA: Table) -> Table:
    """Probabilities in every view, [V, A]: where one choice alone is legal it is taken."""
    by_view_VA = tree.legal_VA.astype(np.float64)
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


def best_response_value(tree: GameTree, table_KA: Table, player: int) -> float:
    """What `player` gets at most, on average, against the other's half of the table.

    Backwards over the levels: in each infoset the action with the greatest value, summed over its
    positions by how likely chance and the opponent lead there. (The player's own choices before do
    not matter for it: it remembers them.)
    """
    by_view_VA = _by_view(tree, checked_table(tree, table_KA))
    sign = (1, -1)[player]
    opponent = [_edge_probabilities(level, by_view_VA, 1 - player) for level in tree.levels]
    first = len(tree.levels[0].views_M2)
    reaches = [np.full(first, 1.0 / first)]  # how likely chance and the opponent lead to [M]
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
    return float(values_M.mean())


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


def average_table(tree: GameTree, tables: Sequence[Table], weights: Sequence[float]) -> Table:
    """The policy of a player that draws one of `tables` before each match and plays it throughout.

    In an infoset it takes an action as often as the drawn policy does, given that the player's own
    choices led there (Kuhn's theorem; weights w, own reaches r):

        π(a|I) = Σ_i w_i r_i(I) π_i(a|I) / Σ_i w_i r_i(I)

    Where none of them leads, every legal action alike: it does not matter.
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
    """The table of a bot's strategy (`rules.bots[...].strategy`)."""
    positions_K = tree.positions_V[tree.infosets_K]
    return checked_table(
        tree, probabilities_of(strategy, positions_K, tree.players_K, tree.legal_KA)
    )
