"""Leagues whose every strength is known, to hold ratings against: players that stand on a line.

Strengths are in logits: with d the difference of two, win : draw : loss = e^{d/2} : ν : e^{−d/2}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.stats.ratings import BETA, MU, NORMAL_LINK, SIGMA, PredictionRecord
from league.stats.ratings.belief import draw_margin
from league.stats.ratings.closed_form import fold
from league.stats.ratings.davidson import log_odds_free
from league.stats.ratings.epochs import Epoch, curve, next_epoch

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
FIRST_DRAW_PROBABILITY = 0.1
CANDIDATES = 32
"""Opponents that pairing by rating chooses one of, by TrueSkill's match quality."""


def played(rng: np.random.Generator, gap_G: Array, nu: float) -> Array:
    """Outcomes, in {1, ½, 0}, of G games between players so far apart."""
    win_G, draw_G, _ = (np.exp(x) for x in log_odds_free(gap_G, math.log(nu) if nu else -math.inf))
    dice_G = rng.random(len(gap_G))
    return np.where(dice_G < win_G, 1.0, np.where(dice_G < win_G + draw_G, 0.5, 0.0))


@dataclass
class Online:
    """TrueSkill as a matchmaker folds it, epochs and all, with what it predicted of each game
    before.
    """

    players: int
    mus: list[float] = field(init=False)
    variances: list[float] = field(init=False)
    epoch: Epoch = field(default_factory=lambda: Epoch(0, 0, FIRST_DRAW_PROBABILITY))
    epochs: list[Epoch] = field(default_factory=list)
    record: PredictionRecord = field(default_factory=PredictionRecord)
    plain: list[Array] = field(default_factory=list)
    predicted: list[Array] = field(default_factory=list)
    scored: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.mus, self.variances = [MU] * self.players, [SIGMA**2] * self.players

    def take(
        self,
        first_G: Numbers,
        second_G: Numbers,
        outcome_G: Array,
        growth0_G: Array,
        growth1_G: Array,
    ) -> None:
        """One batch of results: predicted from what is believed now, then folded."""
        mu_N, variance_N = np.array(self.mus), np.array(self.variances)
        c_G = np.sqrt(
            2 * BETA**2 + variance_N[first_G] + variance_N[second_G] + growth0_G + growth1_G
        )
        t_G, margin = (
            (mu_N[first_G] - mu_N[second_G]) / c_G,
            draw_margin(self.epoch.draw_probability),
        )
        for link, kept in ((NORMAL_LINK, self.plain), (self.epoch.link, self.predicted)):
            kept.append((curve(t_G - margin / c_G, link) + curve(t_G + margin / c_G, link)) / 2.0)
        self.scored.append(outcome_G)
        self.record.add_all(t_G, c_G, outcome_G)
        columns = (x.tolist() for x in (first_G, second_G, outcome_G, growth0_G, growth1_G))
        fold(self.mus, self.variances, zip(*columns, strict=True), margin)
        if opened := next_epoch(self.epoch, self.record.total, self.record):
            self.epoch = opened
            self.epochs.append(opened)

    def opponents(
        self, rng: np.random.Generator, first_G: Numbers, candidates_GC: Numbers
    ) -> Numbers:
        """One of each row's candidates, the likelier the better the match quality; never the
        player.
        """
        mu_N, variance_N = np.array(self.mus), np.array(self.variances)
        c2_GC = 2 * BETA**2 + variance_N[first_G, None] + variance_N[candidates_GC]
        gap_GC = mu_N[first_G, None] - mu_N[candidates_GC]
        log_quality_GC = -(gap_GC**2) / (2 * c2_GC) - np.log(c2_GC) / 2.0
        log_quality_GC[candidates_GC == first_G[:, None]] = -np.inf
        drawn_G = np.argmax(log_quality_GC + rng.gumbel(size=log_quality_GC.shape), axis=1)
        return candidates_GC[np.arange(len(first_G)), drawn_G]


@dataclass(frozen=True)
class LineLeague:
    """G games between N players that never change."""

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
    """Strengths drawn from a Gaussian of `elo_sd` Elo; pairs at random, or alike ones by
    TrueSkill.
    """
    theta_N = rng.normal(0.0, elo_sd * math.log(10.0) / 400.0, players)
    online = Online(players)
    columns: list[tuple[Numbers, Numbers, Array]] = []
    for start in range(0, games, batch):
        size = min(batch, games - start)
        first_G = rng.integers(players, size=size)
        if by_rating:
            second_G = online.opponents(
                rng, first_G, rng.integers(players, size=(size, CANDIDATES))
            )
        else:
            second_G = (first_G + rng.integers(1, players, size=size)) % players
        outcome_G = played(rng, theta_N[first_G] - theta_N[second_G], nu)
        still_G = np.zeros(size)
        online.take(first_G, second_G, outcome_G, still_G, still_G)
        columns.append((first_G, second_G, outcome_G))
    return LineLeague(theta_N, *(np.concatenate(x) for x in zip(*columns, strict=True)), online)
