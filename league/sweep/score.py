"""Scores a player by its clean matches against a fixed field of opponents."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from league.errors import NotFound
from league.metrics import Measured
from league.players import PayoffCell
from league.stats.gates.multinomial import elo_of
from league.stats.payoff import Stakes

Z = 1.96
"""Half the width of a 95 % interval, in standard deviations."""
SUREST = 1e-4
"""An Elo lead is computed from a share of the points that is at least this far from 0 and 1."""


def value_against(
    cells: Iterable[PayoffCell], members: Mapping[str, float], field: Sequence[str]
) -> tuple[Measured, bool]:
    """Computes the mean value of a match against the field. Each opponent counts equally, however
    often it was met.

    A match is worth its payment (`PayoffCell`) in games with payoffs. Otherwise a win is worth 1, a
    draw 0 and a loss -1. The interval is normal, for the effective number of matches 1 / Σ w²
    (Kish), after z² imaginary matches with mean 0 have been added (see `Stakes.mean`).

    Args:
        cells: counts of clean matches, of the members against the field at least.
        members: shares of the players that are scored as a mixture. The shares sum to 1.
        field: the opponents.

    Returns:
        The value with its 95 % interval, and whether the game has payoffs.

    Raises:
        NotFound: a member has not met an opponent.
    """
    met = {(cell.row, cell.column): cell for cell in cells if cell.games}
    stakes = Stakes.of(met.values())
    mean = square = squares = 0.0
    for member, share in members.items():
        for opponent in field:
            cell = met.get((member, opponent))
            if cell is None:
                raise NotFound(f"{member} has no clean match against {opponent} yet: wait for it")
            paid, paid_squares = float(cell.wins - cell.losses), float(cell.wins + cell.losses)
            if stakes.stake:
                paid, paid_squares = cell.paid, cell.squares
            weight = share / len(field) / cell.games
            mean += weight * paid
            square += weight * paid_squares
            squares += weight**2 * cell.games
    worth = 1.0 / squares + Z**2
    centre = mean * (worth - Z**2) / worth
    half = Z * math.sqrt(max(square - centre**2, 0.0) / worth)
    return Measured(mean, min(centre - half, mean), max(centre + half, mean)), bool(stakes.stake)


def elo_lead(value: Measured) -> Measured:
    """Converts the mean value of a match, from -1 to 1, to the lead over the field in Elo: the
    lead at which a player would be expected to score as much against a single opponent.
    """

    def lead(mean: float) -> float:
        points = min(max((1.0 + mean) / 2.0, SUREST), 1.0 - SUREST)
        return elo_of(points)

    return Measured(lead(value.value), lead(value.low), lead(value.high))
