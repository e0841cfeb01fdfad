"""Fits the ratings of a league with learners, from matches of their snapshots and from their
training matches.

A lineage consists of a learner's snapshots, and neighbouring snapshots are about equally strong. So
the strength of a lineage is modelled as a random walk with a slope, over the logarithm x of the
learner's steps (Whole-History Rating, Coulom 2008, has no slope):

    start + slope·x + w(x),   start ~ N(25, 25²), slope ~ N(0, 10²) points, w of variance κ·x

A learner climbs by about 5 points in each e-fold of steps. A walk without a slope would make every
climb too short. A learner begins far below the others, so the prior of its start is wide. The fit
estimates κ from the matches.

Between two snapshots, the live learner is represented by a node, an extra player that plays the
training matches of this stretch of steps. The node's strength is the walk's mean over the stretch,
plus an advantage that is the same in all stretches. The node connects the two snapshots and is not
part of the result.

A bot does not change, but its strength relative to a learner does. For example, a learner that has
found a bot's only weakness early gains nothing against this bot later. So a bot's strength is
modelled as a walk too, with a node for each eighth of an e-fold of steps. A match against a bot
counts for the bot's node at the opponent's number of steps. With a single strength for each bot,
the gaps between the snapshots of a `laptop` run were a tenth too small (docs/ratings.md). The bot's
rating is the rating of its last node, which is its strength against the newest snapshots. Half of
the variance of a bot's walk belongs to a walk that all bots have in common.

Shapes: N players, K nodes of a lineage or a bot.
"""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from league.errors import InvalidName
from league.ids import GenerationName, ReferenceName, SnapshotName
from league.players import PayoffCell, Player, PlayerKind
from league.stats.ratings.belief import MU, SIGMA, Drift
from league.stats.ratings.fit import Block, Fit, PairCounts, fit

START_SIGMA = 3.0 * SIGMA
SLOPE_SIGMA = 10.0
"""Standard deviation of a lineage's slope: the points by which it climbs while its steps grow by a
factor of e. Learners of brawl climb 4 to 5 points.
"""
TRAINING_SIGMA = 1.0
"""Standard deviation of the prior of a learner's advantage, in points: how much better it plays its
training matches than its snapshots would. A learner may have an advantage because it learns against
just these opponents. In a run of `laptop`, the advantage was 0.3 points.
"""
_APART = 1e-4
"""Variance in points² that is added to each node, so that the covariance has an inverse even if two
nodes are at the same step.
"""
_LIVE = " "
"""The name of a node for a stretch of a learner's training begins with this text. No player's name
contains the text, and it sorts before all names.
"""
_SEEN = " "
"""Separates the name of a bot from the number of the bot's node."""
_BIN = 0.125
"""E-folds of steps between two nodes of a bot."""
_LINEAGES, _BOTS = 0, 1
"""Groups of blocks (joint priors). Each group has its own κ, the variance of its walks."""
_SETTLING = Drift().settling_steps


class _Node(NamedTuple):
    """Represents a lineage between two steps. For a frozen player, the two steps are equal."""

    owner: str
    first: float
    last: float

    @property
    def x(self) -> float:
        return math.log1p((self.first + self.last) / 2.0 / _SETTLING)


def fit_league(
    cells: Iterable[PayoffCell],
    players: Sequence[Player],
    climb: Iterable[PayoffCell] = (),
    anchors: Mapping[str, float] | None = None,
) -> Fit:
    """Fits the players of a clean book (matches of frozen players), with a joint prior for the
    snapshots of each learner.

    Args:
        cells: the clean book's payoffs.
        climb: training matches as `MatchmakerClient.payoff(Book.TRAIN, climb=True)` counts them.
        anchors: ratings in points of the players whose rating is fixed. Anchors without a game are
            left out.

    Returns:
        The fit of the players that have a game in `cells`. Without lineages it is the fit of
        `fit_cells`.

    Raises:
        InvalidInput: there are too many players, or an anchor is not a number of points.
    """
    anchors, cells, climb = anchors or {}, list(cells), list(climb)
    nodes = _nodes(players, climb)
    bots = {player.name for player in players if player.kind is PlayerKind.BOT} - anchors.keys()
    stretches = [replace(cell, row=_LIVE + cell.row) for cell in climb if _LIVE + cell.row in nodes]
    rated = {name for cell in cells for name in (cell.row, cell.column)}
    newest = max((int(nodes[name].x / _BIN) for name in rated & nodes.keys()), default=0)
    last = {bot: _seen(bot, newest) for bot in bots & rated if nodes}

    def node(name: str, by: str) -> str:
        if name not in bots or not nodes:
            return name
        return _seen(name, int(nodes[by].x / _BIN) if by in nodes else newest)

    met = [
        replace(cell, row=node(cell.row, cell.column), column=node(cell.column, cell.row))
        for cell in (*cells, *stretches)
    ]
    counts, names = PairCounts.of_cells(met, last.values())
    pinned = {n: anchors[name] for n, name in enumerate(names) if name in anchors}
    blocks = _blocks(names, nodes)
    whole = replace(fit(counts, len(names), anchors=pinned, blocks=blocks), names=tuple(names))
    players_N = {last.get(name, name): name for name in rated}
    selected = {n: players_N[name] for n, name in enumerate(names) if name in players_N}
    return _of_players(whole, selected)


def _nodes(players: Iterable[Player], climb: Iterable[PayoffCell]) -> dict[str, _Node]:
    """Returns a node for each frozen copy of a learner and for each stretch of its training, by
    name.

    A node's steps are counted from the step at which the lineage began with new weights. Stretches
    must not overlap, so each begins and ends where copies were frozen, even if a caller read
    `climb` after a new copy and `players` before.
    """
    frozen = dict[str, tuple[str, int]]()
    for player in players:
        if player.kind in (PlayerKind.SNAPSHOT, PlayerKind.REFERENCE):
            kind = SnapshotName if player.kind is PlayerKind.SNAPSHOT else ReferenceName
            with suppress(InvalidName):  # a reference may have any name
                parts = kind.parse(player.name)
                frozen[player.name] = parts.lineage, parts.step
    rows = {cell.row: SnapshotName.parse(cell.row) for cell in climb}
    copies: dict[str, set[int]] = defaultdict(set)
    for lineage, step in frozen.values():
        copies[lineage].add(step)
    rows = {name: row for name, row in rows.items() if row.lineage in copies}
    for row in rows.values():
        copies[row.lineage].add(row.step)
    steps = {lineage: sorted(found) for lineage, found in copies.items()}
    ends: dict[str, tuple[str, float, float]] = {
        name: (lineage, step, step) for name, (lineage, step) in frozen.items()
    }
    for name, row in rows.items():
        ends[_LIVE + name] = row.lineage, *_ends(row.step, steps[row.lineage])
    begins = {lineage: _begin(lineage, steps) for lineage in steps}
    return {
        name: _Node(lineage, *(max(step - begins[lineage], 0.0) for step in both))
        for name, (lineage, *both) in ends.items()
    }


def _seen(bot: str, number: int) -> str:
    """Returns the name of the bot's node with this number."""
    return f"{bot}{_SEEN}{number:03d}"


def _blocks(names: Sequence[str], nodes: Mapping[str, _Node]) -> list[Block]:
    """Returns the prior of each lineage with several nodes. If bots were met at several times, also
    returns the joint prior of all bots.

    All other nodes have the prior of ordinary players.
    """
    walks: dict[str, list[tuple[int, _Node]]] = defaultdict(list)
    for number, name in enumerate(names):
        bot, _, ordinal = name.partition(_SEEN)
        if name in nodes:
            walks[nodes[name].owner].append((number, nodes[name]))
        elif ordinal:
            step = _SETTLING * math.expm1((int(ordinal) + 0.5) * _BIN)
            walks[_SEEN].append((number, _Node(bot, step, step)))
    seen = walks.pop(_SEEN, [])
    blocks = [_block(walk, _LINEAGES) for walk in walks.values() if len(walk) > 1]
    return [*blocks, _block(seen, _BOTS)] if len({node.x for _, node in seen}) > 1 else blocks


def _begin(lineage: str, steps: Mapping[str, Sequence[int]]) -> int:
    """Returns the step at which a lineage began with new weights. For an exploiter, this is the end
    of its previous generation.
    """
    try:
        generation = GenerationName.parse(lineage)
    except InvalidName:
        return 0
    before = [
        steps.get(str(replace(generation, number=number)), ())
        for number in range(1, generation.number)
    ]
    return max((earlier[-1] for earlier in before if earlier), default=0)


def _ends(step: int, steps: Sequence[int]) -> tuple[float, float]:
    """Returns both ends of the stretch that begins at a step. The stretch ends at the step of the
    next frozen copy.

    The newest stretch is assumed to be as long as the stretch before it.
    """
    index = bisect.bisect_right(steps, step)
    if index < len(steps):
        return step, steps[index]
    before = steps[index - 2] if index > 1 else 0
    return step, 2 * step - before


def _block(walk: Sequence[tuple[int, _Node]], group: int) -> Block:
    """Returns the prior of the nodes of a lineage, or of all bots.

    The covariance of the walk's values at two nodes is κ times the smaller x of the two nodes,
    because stretches follow each other without overlap. The walk's mean over a stretch from x = a
    to x = b has the variance κ·(a + (b − a)/3). Half of a bot's walk is common to all bots.
    """
    numbers, nodes = zip(*walk, strict=True)
    first_K, last_K = np.log1p(np.array([(n.first, n.last) for n in nodes]).T / _SETTLING)
    x_K = np.array([node.x for node in nodes])
    is_live_K = last_K > first_K
    same_KK = np.array([[node.owner == other.owner for other in nodes] for node in nodes])
    walk_KK = np.minimum.outer(x_K, x_K)
    np.fill_diagonal(walk_KK, x_K - (last_K - first_K) / 6.0)
    walk_KK *= (1.0 + same_KK) / 2.0
    known_KK = START_SIGMA**2 * same_KK + SLOPE_SIGMA**2 * np.outer(x_K, x_K)
    known_KK += TRAINING_SIGMA**2 * np.outer(is_live_K, is_live_K) + _APART * np.eye(len(x_K))
    return Block(np.array(numbers, np.int64), known_KK, walk_KK, group)


def _of_players(whole: Fit, selected: Mapping[int, str]) -> Fit:
    """Restricts a fit to some nodes, and renames them. Without anchors, the ratings are shifted to
    a mean of 25.
    """
    kept_N = np.array(list(selected), np.int64)
    rating_N, covariance_NN = whole.rating_N[kept_N], whole.covariance_NN[np.ix_(kept_N, kept_N)]
    if not whole.is_anchored and len(kept_N):
        row_N = covariance_NN.mean(axis=1)
        rating_N = rating_N - rating_N.mean() + MU
        covariance_NN = covariance_NN - row_N[:, None] - row_N[None, :] + row_N.mean()
    names = tuple(selected.values())
    return replace(whole, rating_N=rating_N, covariance_NN=covariance_NN, names=names)
