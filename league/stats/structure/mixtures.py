"""The Nash mixture of a league's players.

Shape suffix: N players.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from league.players import PayoffCell, Player, PlayerKind, PlayerState, Rating
from league.stats.structure.equilibria import nash_averaging
from league.stats.structure.table import Table, margins, table_of

MOST_MIXED = 500
"""Newest players of a league's mixture: 500 take 1.7 s where half of them have mass, 1,000 27 s."""
HAS_MASS = 1e-6
"""A smaller mass is rounding."""


def mixed_players(players: Iterable[Player], has_met: Callable[[str], bool]) -> list[str]:
    """The players that a league's Nash mixture may hold, the newest last: active snapshots, and
    bots that learners meet, with clean matches.
    """
    kinds = (PlayerKind.SNAPSHOT, PlayerKind.BOT)
    names = [
        one.name
        for one in players
        if one.kind in kinds
        and one.state is PlayerState.ACTIVE
        and not one.held_out
        and has_met(one.name)
    ]
    return names[-MOST_MIXED:]


def nash_mixture(table: Table) -> dict[str, float]:
    """The weights of the table's players in its Nash mixture, without those that have none."""
    mass_N = nash_averaging(margins(table.chance_NN)).mass_N
    mass_N = np.where(mass_N > HAS_MASS, mass_N, 0.0)
    masses = zip(table.names, (mass_N / mass_N.sum()).tolist(), strict=True)
    return {name: mass for name, mass in masses if mass}


def nash_of(
    players: Sequence[Player], cells: Sequence[PayoffCell], ratings: Iterable[Rating]
) -> dict[str, float]:
    """The Nash mixture of a league, by its eval book; {} without clean matches."""
    rated = {one.player.name: one for one in ratings if one.games}
    names = mixed_players(players, rated.__contains__)
    if len(names) < 2:
        return dict.fromkeys(names, 1.0)
    return nash_mixture(table_of(cells, [rated[name] for name in names]))
