"""The fit of a league that learns: snapshots of one learner, and its training matches.

Neighbours in a lineage are about as strong as each other. In x, the logarithm of a lineage's steps,
its strength is a random walk with a slope (Whole-History Rating, Coulom 2008, has one without):

    start + slope·x + w(x),   start ~ N(25, 25²), slope ~ N(0, 10²) points, w of variance κ·x

A learner climbs by some 5 points in each e-fold of steps; a walk without a slope would make every
climb too short. It begins far below the others, so the start is wide. κ is measured by the fit.

Between two snapshots the live learner is a node that plays its training matches, with the mean
strength over that stretch of steps plus an advantage that is the same in all stretches. It ties its
neighbours together and is not in the result.

Shapes: N players, K nodes of a lineage.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from league.errors import InvalidName
from league.ids import GenerationName, ReferenceName, SnapshotName
from league.players import PayoffCell, Player, PlayerKind
from league.stats.ratings.belief import MU, SIGMA, Drift
from league.stats.ratings.fit import Block, Fit, Numbers, PairCounts, fit

START_SIGMA = 3.0 * SIGMA
SLOPE_SIGMA = 10.0
"""Points by which a lineage climbs while its steps grow by e; runs of brawl climb 4 to 5."""
TRAINING_SIGMA = 1.0
"""Points by which a learner may play all its training matches better than its snapshots would: it
learns against just these opponents. A run of `laptop` measured 0.3.
"""
_APART = 1e-4
"""Least variance between two nodes in points², so that two at one step have an inverse."""
_LIVE = " "
"""Begins the name of a learner's stretch; no player's name has it, and it sorts before all."""


@dataclass(frozen=True)
class _Node:
    """What a lineage was from one step to another; they are the same for a frozen player."""

    number: int
    first: float
    last: float


def fit_league(
    cells: Iterable[PayoffCell],
    players: Sequence[Player],
    climb: Iterable[PayoffCell] = (),
    anchors: Mapping[str, float] | None = None,
) -> Fit:
    """Fits the players of a clean book, with what is known of lineages.

    Args:
        cells: of the clean book.
        players: all of the league, with those that retired.
        climb: training matches as `MatchmakerClient.payoff(Book.TRAIN, climb=True)` counts them.
        anchors: points of players that stay where they are; one without a game is left out.

    Returns:
        The fit of the players that have a game in `cells`. A league without lineages has the fit of
        `fit_cells`.

    Raises:
        InvalidInput: too many players, or an anchor that is no rating.
    """
    frozen = _frozen(players)
    stretches = _stretches(climb, frozen)
    cells = list(cells)
    rated = {name for cell in cells for name in (cell.row, cell.column)}
    counts, names = PairCounts.of_cells([*cells, *stretches])
    pinned = {n: anchors[name] for n, name in enumerate(names) if anchors and name in anchors}
    blocks = _blocks(names, frozen)
    whole = replace(fit(counts, len(names), anchors=pinned, blocks=blocks), names=tuple(names))
    kept_N = np.array([n for n, name in enumerate(names) if name in rated], np.int64)
    return whole if len(kept_N) == len(names) else _of_players(whole, kept_N)


def _frozen(players: Iterable[Player]) -> dict[str, tuple[str, int]]:
    """Returns the lineage and the step of each frozen copy of a learner, by name."""
    found = {}
    for player in players:
        if player.kind in (PlayerKind.SNAPSHOT, PlayerKind.REFERENCE):
            kind = SnapshotName if player.kind is PlayerKind.SNAPSHOT else ReferenceName
            with suppress(InvalidName):  # the name of a reference may be any
                parts = kind.parse(player.name)
                found[player.name] = parts.lineage, parts.step
    return found


def _stretches(
    climb: Iterable[PayoffCell], frozen: Mapping[str, tuple[str, int]]
) -> list[PayoffCell]:
    """Returns the cells of learners that left a snapshot, in whose rows only stretches are."""
    lineages = {lineage for lineage, _ in frozen.values()}
    return [
        replace(cell, row=_LIVE + cell.row)
        for cell in climb
        if SnapshotName.parse(cell.row).lineage in lineages
    ]


def _blocks(names: Sequence[str], frozen: Mapping[str, tuple[str, int]]) -> list[Block]:
    """Returns the prior of each lineage of several nodes; a single one is like any player."""
    steps: dict[str, list[int]] = defaultdict(list)
    for lineage, step in frozen.values():
        bisect.insort(steps[lineage], step)
    begins = {lineage: _begin(lineage, steps) for lineage in steps}
    nodes: dict[str, list[_Node]] = defaultdict(list)
    for number, name in enumerate(names):
        if name in frozen:
            lineage, step = frozen[name]
            nodes[lineage].append(_Node(number, step, step))
        elif name.startswith(_LIVE):
            row = SnapshotName.parse(name.removeprefix(_LIVE))
            nodes[row.lineage].append(_Node(number, *_ends(row.step, steps[row.lineage])))
    return [_block(found, begins[lineage]) for lineage, found in nodes.items() if len(found) > 1]


def _begin(lineage: str, steps: Mapping[str, Sequence[int]]) -> int:
    """Returns the step of new weights: for an exploiter, where its previous generation ended."""
    try:
        generation = GenerationName.parse(lineage)
    except InvalidName:
        return 0
    before = [
        steps.get(str(replace(generation, number=number)), ())
        for number in range(1, generation.number)
    ]
    return max((found[-1] for found in before if found), default=0)


def _ends(step: int, steps: Sequence[int]) -> tuple[float, float]:
    """Returns a step and where the stretch after it ends, at the latest at the next frozen copy.

    The newest stretch is taken to be as long as the one before.
    """
    place = bisect.bisect_right(steps, step)
    if place < len(steps):
        return step, steps[place]
    before = steps[place - 2] if place > 1 else 0
    return step, 2 * step - before


def _block(nodes: Sequence[_Node], begin: int) -> Block:
    """Returns the prior of a lineage's nodes.

    The walk's covariance is the earlier x of two, and a mean over a stretch from a to b has the
    variance a + (b − a)/3, as stretches follow each other.
    """
    settling = Drift().settling_steps
    ends_2K = np.array([(node.first, node.last) for node in nodes], np.float64).T - begin
    ends_2K = np.maximum(ends_2K, 0.0)
    first_K, last_K = np.log1p(ends_2K / settling)
    x_K = np.log1p(ends_2K.mean(axis=0) / settling)
    walk_KK = np.minimum.outer(x_K, x_K)
    np.fill_diagonal(walk_KK, x_K - (last_K - first_K) / 6.0)
    known_KK = START_SIGMA**2 + SLOPE_SIGMA**2 * np.outer(x_K, x_K) + _APART * np.eye(len(x_K))
    is_live_K = last_K > first_K
    known_KK += TRAINING_SIGMA**2 * np.outer(is_live_K, is_live_K)
    return Block(np.array([node.number for node in nodes], np.int64), known_KK, walk_KK)


def _of_players(whole: Fit, kept_N: Numbers) -> Fit:
    """Returns the fit of some of its players; without anchors their mean is 25."""
    rating_N, covariance_NN = whole.rating_N[kept_N], whole.covariance_NN[np.ix_(kept_N, kept_N)]
    if not whole.is_anchored and len(kept_N):
        row_N = covariance_NN.mean(axis=1)
        rating_N = rating_N - rating_N.mean() + MU
        covariance_NN = covariance_NN - row_N[:, None] - row_N[None, :] + row_N.mean()
    names = tuple(whole.names[n] for n in kept_N)
    return replace(whole, rating_N=rating_N, covariance_NN=covariance_NN, names=names)
