"""Simulates leagues of players with known strengths on a line, to check ratings.

Strengths are in logits. With d the difference of two players' strengths, win : draw : loss =
e^{d/2} : ν : e^{−d/2}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.stats.ratings import BETA, NORMAL_LINK, RatingTable
from league.stats.ratings.belief import draw_margin
from league.stats.ratings.fit import PairCounts, log_probabilities

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
CANDIDATES = 32
"""Number of random candidates for a pairing by rating. TrueSkill's match quality chooses an
opponent among them.
"""


def played(rng: np.random.Generator, gap_G: Array, nu: float) -> Array:
    """Draws the outcomes (1, ½ or 0) of G games. `gap_G` has the differences of the players'
    strengths.
    """
    log_nu = math.log(nu) if nu else -math.inf
    win_G, draw_G, _ = (np.exp(x) for x in log_probabilities(gap_G, log_nu))
    dice_G = rng.random(len(gap_G))
    return np.where(dice_G < win_G, 1.0, np.where(dice_G < win_G + draw_G, 0.5, 0.0))


def played_with_equal_draws(rng: np.random.Generator, gap_G: Array, share: float) -> Array:
    """Draws outcomes with this share of draws at any gap. This is not Davidson's model."""
    won_G = rng.random(len(gap_G)) < 1.0 / (1.0 + np.exp(-gap_G))
    return np.where(rng.random(len(gap_G)) < share, 0.5, won_G.astype(np.float64))


def pair_counts(first_G: Numbers, second_G: Numbers, outcome_G: Array, players: int) -> PairCounts:
    """Counts G games. Outcomes are from the first player's side."""
    outcome_G = np.where(first_G < second_G, outcome_G, 1.0 - outcome_G)
    low_G, high_G = np.minimum(first_G, second_G), np.maximum(first_G, second_G)
    pair_P, place_G = np.unique(low_G * players + high_G, return_inverse=True)
    wins_P, draws_P, losses_P = (
        np.bincount(place_G, outcome_G == outcome, len(pair_P)) for outcome in (1.0, 0.5, 0.0)
    )
    return PairCounts(*np.divmod(pair_P, players), wins_P, draws_P, losses_P)


class Online:
    """Keeps a rating table that opens its epochs, and the prediction of each game before it was
    rated.
    """

    def __init__(self, players: int) -> None:
        self.table = RatingTable()
        self.names = [str(number) for number in range(players)]
        self.plain: list[Array] = []
        self.predicted: list[Array] = []
        self.scored: list[Array] = []

    def take(self, first_G: Numbers, second_G: Numbers, outcome_G: Array) -> None:
        """Predicts a batch of results from the current ratings, then adds the results to
        the table.
        """
        mu_N, variance_N = self.beliefs()
        c_G = np.sqrt(2 * BETA**2 + variance_N[first_G] + variance_N[second_G])
        t_G = (mu_N[first_G] - mu_N[second_G]) / c_G
        epoch = self.table.epoch
        e_G = draw_margin(epoch.draw_probability) / c_G
        self.plain.append(NORMAL_LINK.score(t_G, e_G))
        self.predicted.append(epoch.link.score(t_G, e_G))
        self.scored.append(outcome_G)
        columns = (x.tolist() for x in (first_G, second_G, outcome_G))
        for first, second, outcome in zip(*columns, strict=True):
            self.table.fold(self.names[first], self.names[second], outcome)
        opened = self.table.next_epoch(self.table.games)
        if opened is not None:
            self.table.begin_epoch(self.table.games, opened.draw_probability, opened.link)

    def beliefs(self) -> tuple[Array, Array]:
        """Returns μ and σ² of every player."""
        columns = self.table.columns(self.names)
        return columns.mu_N, columns.variance_N

    def opponents(
        self, rng: np.random.Generator, first_G: Numbers, candidates_GC: Numbers
    ) -> Numbers:
        """Draws an opponent from each row's candidates by match quality, never the player
        itself.
        """
        mu_N, variance_N = self.beliefs()
        c2_GC = 2 * BETA**2 + variance_N[first_G, None] + variance_N[candidates_GC]
        gap_GC = mu_N[first_G, None] - mu_N[candidates_GC]
        log_quality_GC = -(gap_GC**2) / (2 * c2_GC) - np.log(c2_GC) / 2.0
        log_quality_GC[candidates_GC == first_G[:, None]] = -np.inf
        drawn_G = np.argmax(log_quality_GC + rng.gumbel(size=log_quality_GC.shape), axis=1)
        return candidates_GC[np.arange(len(first_G)), drawn_G]


@dataclass(frozen=True)
class LineLeague:
    """Holds G games between N players of constant strength."""

    theta_N: Array
    first_G: Numbers
    second_G: Numbers
    outcome_G: Array
    online: Online


def line_league(
    rng: np.random.Generator,
    players: int,
    games: int,
    nu: float,
    *,
    by_rating: bool,
    elo_sd: float = 300.0,
    batch: int = 500,
) -> LineLeague:
    """Simulates games of players whose strengths are normal with standard deviation `elo_sd` Elo.
    Players are paired at random or by rating.
    """
    theta_N = rng.normal(0.0, elo_sd * math.log(10.0) / 400.0, players)
    online = Online(players)
    columns: list[tuple[Numbers, Numbers, Array]] = []
    for start in range(0, games, batch):
        size = min(batch, games - start)
        first_G = rng.integers(players, size=size)
        if by_rating:
            candidates_GC = rng.integers(players, size=(size, CANDIDATES))
            second_G = online.opponents(rng, first_G, candidates_GC)
        else:
            second_G = (first_G + rng.integers(1, players, size=size)) % players
        outcome_G = played(rng, theta_N[first_G] - theta_N[second_G], nu)
        online.take(first_G, second_G, outcome_G)
        columns.append((first_G, second_G, outcome_G))
    return LineLeague(theta_N, *(np.concatenate(x) for x in zip(*columns, strict=True)), online)
