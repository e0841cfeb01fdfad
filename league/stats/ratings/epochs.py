"""Epochs: when a book measures its share of draws and its link from the log, and how.

A number that moved with every result would rate no two results alike, so these numbers change only
at epochs, which are events of the log. A book opens its first epoch at FIRST_GAMES rated results,
and the next one each time its results have grown by GROWTH: two dozen for ten million results. An
epoch measures the games since the one before, holds for the games after it and is never revised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.stats.ratings.belief import NORMAL_LINK, Link, draw_margin

Array = NDArray[np.float64]
FIRST_GAMES = 1_000
GROWTH = 1.5
DRAWS_FLOOR, DRAWS_CEILING = 1e-3, 0.9
"""Bounds of the draw probability: a draw that was never seen may still come."""
PRIOR_GAMES = 100
"""Games that the draw probability in force counts for, next to those measured."""
_BIN, _BINS = 0.1, 51
"""Width and number of the bins of |t|; the last one holds everything from 5 on."""
_SHARPNESS = np.round(np.arange(0.4, 1.6001, 0.01), 2)
_SHARES = np.round(np.arange(0.0, 1.0001, 0.1), 1)
_SHARPNESS_SIGMA = 0.2
"""Of the prior of ln a, around 0."""


def _zeros() -> list[float]:
    return [0.0] * _BINS


@dataclass
class PredictionRecord:
    """How TrueSkill's predictions came out, as sums by bin of |t|, t = (μ₁ − μ₂)/c.

    A game is counted before it is rated, so nothing is predicted from itself.

    Attributes:
        games: number of games.
        draws: how many of them were drawn.
        gaps: sum of |t|.
        narrowness: sum of 1/c in 1/points, which turns a draw margin into units of t.
        scores: what the player believed to be stronger earned: 1 for a win, ½ for a draw.
    """

    games: list[float] = field(default_factory=_zeros)
    draws: list[float] = field(default_factory=_zeros)
    gaps: list[float] = field(default_factory=_zeros)
    narrowness: list[float] = field(default_factory=_zeros)
    scores: list[float] = field(default_factory=_zeros)

    def add(self, t: float, c: float, outcome: float) -> None:
        """Counts one game. `outcome` is that of the player who is ahead by `t`, which may be < 0."""
        place = min(int(abs(t) / _BIN), _BINS - 1)
        self.games[place] += 1.0
        self.draws[place] += outcome == 0.5
        self.gaps[place] += abs(t)
        self.narrowness[place] += 1.0 / c
        self.scores[place] += 1.0 - outcome if t < 0.0 else outcome

    @property
    def total(self) -> int:
        """Number of games in all bins."""
        return int(sum(self.games))


@dataclass(frozen=True)
class Epoch:
    """What holds for the results of a book after `after_position`; it had `games` by then."""

    after_position: int
    games: int
    draw_probability: float
    link: Link = NORMAL_LINK


def is_due(games_then: int, games_now: int) -> bool:
    """Returns whether a book that had `games_then` rated results at its last epoch opens one."""
    return games_now >= max(FIRST_GAMES, math.ceil(GROWTH * games_then))


def measured_draw_probability(record: PredictionRecord, before: float) -> float:
    """Returns the share of drawn games, with PRIOR_GAMES games at `before` added.

    Equal players draw more often than all do (.15 against .10 in leagues of brawl, by
    `Fit.draw_probability`), but only the ratings know which players are equal, and a draw margin
    that the ratings measure feeds back: a wide margin spreads ratings, and spread ratings ask for a
    wider margin. The plain share predicts as well.
    """
    share = (sum(record.draws) + PRIOR_GAMES * before) / (record.total + PRIOR_GAMES)
    return min(max(share, DRAWS_FLOOR), DRAWS_CEILING)


def measured_link(record: PredictionRecord, draw_probability: float) -> Link:
    """Returns the most likely link given the scores of the record, on a grid of .01 and .1."""
    games_B, earned_B = np.array(record.games), np.array(record.scores)
    count_B = np.maximum(games_B, 1.0)
    t_B = np.array(record.gaps) / count_B
    e_B = draw_margin(draw_probability) * np.array(record.narrowness) / count_B
    best, most = NORMAL_LINK, -math.inf
    for sharpness in _SHARPNESS:
        prior = -((math.log(sharpness) / _SHARPNESS_SIGMA) ** 2) / 2.0
        for share in _SHARES:
            link = Link(float(sharpness), float(share))
            score_B = np.clip(link.score(t_B, e_B), 1e-12, 1.0 - 1e-12)
            likelihood = earned_B @ np.log(score_B) + (games_B - earned_B) @ np.log1p(-score_B)
            if likelihood + prior > most:
                best, most = link, float(likelihood + prior)
    return best
