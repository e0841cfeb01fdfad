"""Studies the structure of a table, with 95 % intervals from draws of its posterior.

Shapes: N players, D draws, G pairs of groups, C clusters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.stats.structure.clusters import Clusters, clusters_of
from league.stats.structure.cycles import (
    Cycle,
    Cyclicity,
    cyclicity,
    strongest_cycles,
    sure_cycles,
)
from league.stats.structure.equilibria import (
    alpha_rank,
    nash_averaging,
    relative_performance,
)
from league.stats.structure.table import Matrix, Table, margins

PERCENTILES = (2.5, 97.5)
HAS_MASS = 1e-6
"""Least mass (a player's share of a mixture) that counts."""
Group = tuple[Sequence[int], Sequence[int]]
"""Indices of the players of two groups to compare."""


@dataclass(frozen=True)
class Estimate:
    """Gives a value of each player, or a single value, with its 95 % interval over draws of the
    posterior.
    """

    value: Matrix
    low: Matrix
    high: Matrix


@dataclass(frozen=True, kw_only=True)
class Structure:
    """Describes the structure of a league, as `study` finds it.

    Attributes:
        mass, score: each player's mass in the Nash mixture, and its score against the mixture. In
            games with payoffs, a score is a payoff per match.
        supported_N: share of the draws of the posterior in which a player has mass.
        cluster_mass: total mass of each cluster's members. It is reliable even if chance decides
            which member has the mass.
        performances: for each pair of groups, the first group's expected share of a match if both
            play their best mixtures. In games with payoffs, the first group's payoff per match.
    """

    table: Table
    draws: int
    mass: Estimate
    score: Estimate
    supported_N: Matrix
    alpha_mass: Estimate
    cyclicity: Cyclicity
    cycles: tuple[Cycle, ...]
    sure_cycles: int
    clusters: Clusters
    cluster_mass: Estimate
    performances: tuple[Estimate, ...]

    @property
    def order(self) -> NDArray[np.intp]:
        """Returns players by score, then by mass, then as in the table."""
        places = np.arange(len(self.table.names))
        return np.lexsort((places, -self.mass.value.round(6), -self.score.value.round(6)))

    @property
    def pairs_met(self) -> int:
        return int(self.table.known_NN.sum()) // 2


def study(
    table: Table,
    groups: Sequence[Group] = (),
    *,
    cycles: int = 10,
    draws: int = 0,
    seed: int = 0,
) -> Structure:
    """Computes the structure of a table. The same arguments give the same result.

    Args:
        groups: pairs of groups to compare.
        cycles: number of strongest three-cycles to list.
        draws: number of draws of the posterior. 0 means 200 draws for up to 200 players, and fewer
            for more players, but at least 20.
    """
    rng = np.random.default_rng(seed)
    draws = draws or max(20, min(200, 40_000 // len(table.names)))
    figures = _figures(table, table.chance_NN, groups)
    drawn = [_figures(table, table.drawn(rng), groups) for _ in range(draws)]
    masses_DN, *others = (np.array(column) for column in zip(*drawn, strict=True))
    clusters = clusters_of(table)
    member_NC = np.eye(clusters.count)[clusters.cluster_N]
    score, alpha_mass, performance = map(_estimate, figures[1:], others)
    return Structure(
        table=table,
        draws=draws,
        mass=_estimate(figures[0], masses_DN),
        score=score,
        supported_N=np.mean(masses_DN > HAS_MASS, axis=0),
        alpha_mass=alpha_mass,
        cyclicity=cyclicity(table, draws, rng),
        cycles=tuple(strongest_cycles(table, cycles)),
        sure_cycles=sure_cycles(table),
        clusters=clusters,
        cluster_mass=_estimate(figures[0] @ member_NC, masses_DN @ member_NC),
        performances=tuple(map(Estimate, performance.value, performance.low, performance.high)),
    )


def _figures(
    table: Table, chance_NN: Matrix, groups: Sequence[Group]
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Returns the players' masses and scores in the Nash mixture, their masses in α-rank, and the
    first group's share of a match (or payoff) for each pair of groups.
    """
    margin_NN = margins(chance_NN)
    values = [relative_performance(margin_NN[np.ix_(ours, theirs)]) for ours, theirs in groups]
    nash, stake = nash_averaging(margin_NN), table.stake
    earned = stake * np.array(values) if stake else 0.5 + 0.5 * np.array(values)
    return nash.mass_N, nash.score_N * (stake or 1.0), alpha_rank(margin_NN), earned


def _estimate(value: Matrix, drawn: Matrix) -> Estimate:
    low, high = np.percentile(drawn, PERCENTILES, axis=0)
    return Estimate(value, np.minimum(low, value), np.maximum(high, value))


def as_json(structure: Structure) -> dict[str, Any]:
    """Returns all values as JSON values, with players in the table's order. NaN becomes null."""
    table, clusters = structure.table, structure.clusters
    cyclic = {key: None if math.isnan(x) else x for key, x in vars(structure.cyclicity).items()}

    def interval(estimate: Estimate, index: int) -> dict[str, float]:
        return {name: float(values[index]) for name, values in vars(estimate).items()}

    return {
        "draws": structure.draws,
        "prior_games": table.prior_games,
        "pairs_met": structure.pairs_met,
        "matches": int(table.matches_NN.sum()) // 2,
        "stake": table.stake,
        "cyclic": cyclic,
        "players": [
            {
                "player": name,
                "games": int(table.matches_NN[index].sum()),
                "nash": interval(structure.mass, index),
                "in_support": float(structure.supported_N[index]),
                "score": interval(structure.score, index),
                "alpha_rank": interval(structure.alpha_mass, index),
                "cluster": int(clusters.cluster_N[index]),
                "cluster_weight": float(clusters.weight_N[index]),
            }
            for index, name in enumerate(table.names)
        ],
        "sure_cycles": structure.sure_cycles,
        "cycles": [
            {
                "players": [table.names[index] for index in cycle.players],
                "shares": list(cycle.chances),
                "games": list(cycle.games),
                "p_value": cycle.p_value,
            }
            for cycle in structure.cycles
        ],
        "clusters": [
            {
                "players": [table.names[index] for index in members],
                "nash": interval(structure.cluster_mass, number),
            }
            for number, members in enumerate(clusters.members())
        ],
    }
