"""What is measured from the log itself, and when: the share of draws, and the link of predictions.

A number that moved with every result would rate no two results alike, so these move only at epochs,
which stand in the log. The rule: the first one when a book holds FIRST_GAMES rated results, the
next each time it holds GROWTH times those of the last. Ten million results make two dozen. An epoch
speaks for the results behind it and is never revised; it measures the games since the one before
it, for those are about beliefs like today's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.stats.ratings.belief import draw_margin
from league.stats.ratings.link import LOGISTIC_SCALE, NORMAL_LINK, Link
from league.stats.ratings.record import PredictionRecord

Array = NDArray[np.float64]
FIRST_GAMES = 1_000
GROWTH = 1.5
DRAWS_FLOOR, DRAWS_CEILING = 1e-3, 0.9
"""Of the draw probability: one that was never seen may still come, and one is never all."""
PRIOR_GAMES = 100
"""Games that the draw probability in force counts for beside those measured."""
_SHARPNESS = np.round(np.arange(0.4, 1.6001, 0.01), 2)
_SHARES = np.round(np.arange(0.0, 1.0001, 0.1), 1)
_SHARPNESS_SIGMA = 0.2
"""Of the prior of ln a, around 0."""


@dataclass(frozen=True)
class Epoch:
    """What holds for the results of a book behind `after_position`; `games` of it had been rated by
    then.

    `record` is a copy of the book's from then: what comes in behind it is measured next.
    """

    after_position: int
    games: int
    draw_probability: float
    link: Link = NORMAL_LINK
    record: PredictionRecord = field(default_factory=PredictionRecord)


def is_due(games_then: int, games_now: int) -> bool:
    """Whether a book of `games_now` rated results opens an epoch; it held `games_then` at the
    last one.
    """
    return games_now >= max(FIRST_GAMES, math.ceil(GROWTH * games_then))


def next_epoch(last: Epoch, position: int, record: PredictionRecord) -> Epoch | None:
    """The epoch that begins behind `position`, None while it isn't due.

    Args:
        record: of all the book's predictions up to `position`.
    """
    if not is_due(last.games, record.total):
        return None
    recent = record.since(last.record)
    link = measured_link(recent, last.draw_probability)
    probability = measured_draw_probability(recent, last.draw_probability)
    return Epoch(position, record.total, probability, link, record.copy())


def measured_draw_probability(record: PredictionRecord, before: float) -> float:
    """Share of the games that were drawn, between the floor and the ceiling.

    `before`, the probability in force, counts for PRIOR_GAMES games more. Equals draw more often
    than all do (.15 and .10 in leagues of brawl, by `Fit.draw_probability`), but how many games are
    between equals is known by the ratings alone, and a draw margin measured by them feeds back: a
    wide margin spreads ratings, spread ratings ask for a wider margin. Predictions with the plain
    share are as good.
    """
    share = (sum(record.draws) + PRIOR_GAMES * before) / (record.total + PRIOR_GAMES)
    return min(max(share, DRAWS_FLOOR), DRAWS_CEILING)


def measured_link(record: PredictionRecord, draw_probability: float) -> Link:
    """The link under which the scores of the record are likeliest, on a grid of .01 and .1."""
    games_B, t_B, e_B = _means(record, draw_margin(draw_probability))
    played_B = games_B > 0.0
    earned_B = np.array(record.scores)[played_B]
    lost_B, t_B, e_B = games_B[played_B] - earned_B, t_B[played_B], e_B[played_B]
    prior_A = -((np.log(_SHARPNESS) / _SHARPNESS_SIGMA) ** 2) / 2.0
    score_ASB = (_curves(t_B - e_B) + _curves(t_B + e_B)) / 2.0
    score_ASB = np.clip(score_ASB, 1e-12, 1.0 - 1e-12)
    likelihood_AS = np.log(score_ASB) @ earned_B + np.log1p(-score_ASB) @ lost_B + prior_A[:, None]
    sharpness, share = np.unravel_index(int(np.argmax(likelihood_AS)), likelihood_AS.shape)
    return Link(float(_SHARPNESS[sharpness]), float(_SHARES[share]))


def _curves(t_B: Array) -> Array:
    """`curve` for every link of the grid: by sharpness, logistic share and gap."""
    normal_AB, logistic_AB = _both(_SHARPNESS[:, None] * t_B)
    return np.asarray(
        normal_AB[:, None] + _SHARES[None, :, None] * (logistic_AB - normal_AB)[:, None]
    )


def _means(record: PredictionRecord, margin: float) -> tuple[Array, Array, Array]:
    """Games of each bin, and the mean gap and draw margin in them in units of c."""
    games_B = np.array(record.games)
    several_B = np.maximum(games_B, 1.0)
    return (
        games_B,
        np.array(record.gaps) / several_B,
        margin * np.array(record.narrowness) / several_B,
    )


def curve(t_B: Array, link: Link) -> Array:
    """`Link` of many gaps."""
    normal_B, logistic_B = _both(link.sharpness * t_B)
    return np.asarray(normal_B + link.logistic_share * (logistic_B - normal_B))


def _both(t: Array) -> tuple[Array, Array]:
    """Φ and the logistic curve that is near it."""
    from scipy.special import ndtr  # half a second to load, and only an epoch wants it

    return ndtr(t), 0.5 + np.tanh(LOGISTIC_SCALE * t / 2.0) / 2.0
