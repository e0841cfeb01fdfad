"""Computes a league's Nash mixture, and rates mixtures.

Shape suffix: N players.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from league.evaluations import members_of
from league.ids import NASH
from league.players import PayoffCell, Player, PlayerKind, PlayerState, Rating, averages
from league.stats.ratings.mixture import rating_of
from league.stats.structure.equilibria import nash_averaging
from league.stats.structure.table import Table, margins, table_of

MOST_MIXED = 500
"""Largest number of players in a league's mixture. If a league has more players, only the newest
count. If half of the players have a share of the mixture, computing it takes 1.7 s for 500 players
and 27 s for 1,000.
"""
HAS_MASS = 1e-6
"""Least mass (a player's share of a mixture). A smaller mass is a rounding error."""


def mixed_players(players: Iterable[Player], has_met: Callable[[str], bool]) -> list[str]:
    """Lists the players that may have a share in a league's Nash mixture: active snapshots with
    clean matches, in which both players are frozen.

    Bots never meet each other in clean matches, so a mixture with bots would have to rely on their
    ratings. In rock-paper-scissors it would consist of the best rated bot alone.

    Args:
        players: the league's players in order of registration.
        has_met: returns whether a player has clean matches.

    Returns:
        The names, newest last.
    """
    names = [
        player.name
        for player in players
        if player.kind is PlayerKind.SNAPSHOT
        and player.state is PlayerState.ACTIVE
        and has_met(player.name)
    ]
    return names[-MOST_MIXED:]


def nash_mixture(table: Table) -> dict[str, float]:
    """Returns the weights of the table's players in its Nash mixture, without players of weight
    0.
    """
    mass_N = nash_averaging(margins(table.chance_NN)).mass_N
    mass_N = np.where(mass_N > HAS_MASS, mass_N, 0.0)
    masses = zip(table.names, (mass_N / mass_N.sum()).tolist(), strict=True)
    return {name: mass for name, mass in masses if mass}


def nash_of(
    players: Sequence[Player], cells: Sequence[PayoffCell], ratings: Iterable[Rating]
) -> dict[str, float]:
    """Computes the weights of the league's Nash mixture from the clean matches (both players
    frozen). Returns {} without clean matches.
    """
    rated = {rating.player.name: rating for rating in ratings if rating.games}
    names = mixed_players(players, rated.__contains__)
    if len(names) < 2:
        return dict.fromkeys(names, 1.0)
    return nash_mixture(table_of(cells, [rated[name] for name in names]))


@dataclass(frozen=True, kw_only=True)
class MixtureRating:
    """Holds the rating of a mixture, computed from its members' clean matches (both players
    frozen).

    Attributes:
        weights: shares of the members that have clean matches.
        mu: the mixture's rating in points, computed by `rating_of`.
        sigma: mean of the members' σ.
        wins, draws, losses: sums of the members' results.
    """

    name: str
    weights: Mapping[str, float]
    mu: float
    sigma: float
    wins: int
    draws: int
    losses: int

    @property
    def score(self) -> float:
        """Returns μ − 3σ, as for a player."""
        return self.mu - 3.0 * self.sigma

    @property
    def games(self) -> int:
        """Returns the number of the members' clean matches."""
        return self.wins + self.draws + self.losses


def rated_mixtures(
    players: Sequence[Player], cells: Sequence[PayoffCell], ratings: Sequence[Rating]
) -> list[MixtureRating]:
    """Rates a league's mixtures by the clean matches (both players frozen): for each main (ordinary
    learner) the average of its snapshots, and the Nash mixture.

    Mixtures need no matches: their expected score against a player is the mean of their members'
    scores. The weight of members without clean matches goes to the other members.

    Args:
        players: the league's players.
        cells: payoffs of the clean matches.
        ratings: ratings by the clean matches.

    Returns:
        The ratings.
    """
    rated = {rating.player.name: rating for rating in ratings if rating.games}
    field = [rating.mu for rating in rated.values()]
    nash, mixtures = nash_of(players, cells, ratings), []
    for name in (*averages(players), *([NASH] if nash else [])):
        members = members_of(name, lambda: players, lambda: nash)
        shares = {name: share for name, share in members.items() if name in rated}
        weights = {name: share / sum(shares.values()) for name, share in shares.items()}
        rows = [rated[name] for name in weights]
        if rows:
            mixtures.append(
                MixtureRating(
                    name=name,
                    weights=weights,
                    mu=rating_of(
                        weights, {rating.player.name: rating.mu for rating in rows}, field
                    ),
                    sigma=sum(weights[rating.player.name] * rating.sigma for rating in rows),
                    wins=sum(rating.wins for rating in rows),
                    draws=sum(rating.draws for rating in rows),
                    losses=sum(rating.losses for rating in rows),
                )
            )
    return mixtures
