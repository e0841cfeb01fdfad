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
from league.stats.structure.equilibria import alpha_rank, nash_averaging, zero_sum
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
    figures, compared = _figures(table, table.chance_NN), [_Compared(table, its) for its in groups]
    drawn = []
    for _ in range(draws):
        chance_NN = table.drawn(rng)
        drawn.append(_figures(table, chance_NN))
        for its in compared:
            its.add(chance_NN)
    masses_DN, *others = (np.array(column) for column in zip(*drawn, strict=True))
    clusters = clusters_of(table)
    member_NC = np.eye(clusters.count)[clusters.cluster_N]
    score, alpha_mass = map(_estimate, figures[1:], others)
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
        performances=tuple(its.estimate() for its in compared),
    )


def _figures(table: Table, chance_NN: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Returns the players' masses and scores in the Nash mixture, and their masses in α-rank."""
    margin_NN = margins(chance_NN)
    nash = nash_averaging(margin_NN)
    return nash.mass_N, nash.score_N * (table.stake or 1.0), alpha_rank(margin_NN)


class _Compared:
    """Compares two groups of R and C players that both play their best mixtures x and y.

    The value of noisy margins is biased towards the larger group, which has more chances to look
    good by luck. So the values of draws give no interval. Let A be the true margins, and Â their
    estimates. If x and y are the groups' best mixtures for A,

        val(Â) − val(A) ≤ max_i ((Â − A) y)_i,   val(A) − val(Â) ≤ max_j ((A − Â)ᵀ x)_j.

    The interval takes the 97.5th percentiles of these bounds, with draws of the posterior as A, and
    with the best mixtures for Â as x and y. For two single players, it has the middle 95 % of the
    draws.
    """

    def __init__(self, table: Table, group: Group) -> None:
        self._stake, self._rows = table.stake, np.ix_(*group)
        self._margin_RC = margins(table.chance_NN)[self._rows]
        self._x_R, self._value = zero_sum(self._margin_RC)
        self._y_C, _ = zero_sum(-self._margin_RC.T)
        self._bounds = list[tuple[float, float]]()

    def add(self, chance_NN: Matrix) -> None:
        """Adds a draw of the posterior."""
        missing_RC = self._margin_RC - margins(chance_NN)[self._rows]
        self._bounds.append(((missing_RC @ self._y_C).max(), (-self._x_R @ missing_RC).max()))

    def estimate(self) -> Estimate:
        """Returns the first group's share of a match, or its payoff."""
        below, above = np.maximum(np.percentile(self._bounds, PERCENTILES[1], axis=0), 0.0)
        values = np.array([self._value, self._value - below, self._value + above])
        return Estimate(*(self._stake * values if self._stake else 0.5 + 0.5 * values))


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
