"""The estimate of a learner's present win rate: known answers, which matches count, and that its
intervals hold.
"""

import re

import numpy as np
import pytest
from scipy.special import expit, logit

from league.errors import InvalidInput
from league.players import PayoffCell
from league.stages import Stage
from league.stats.climb import (
    FIRST_SD,
    MOST_POINTS,
    WinRate,
    goal_reached,
    win_rate_at,
    win_rate_now,
)


def cell(row, wins, losses, draws=0):
    return PayoffCell(row=row, column="based", wins=wins, draws=draws, losses=losses)


@pytest.mark.parametrize(("wins", "games"), [(0, 0), (7, 10), (300, 400), (0, 60), (20, 20)])
def test_counts_at_the_present_step_give_the_exact_posterior(wins, games):
    """By numerical integration of prior times likelihood, to a tenth of its deviation."""
    logits = np.linspace(-15, 15, 30_001)
    log_density = -0.5 * (logits / FIRST_SD) ** 2 - games * np.logaddexp(0, logits) + wins * logits
    mass = np.exp(log_density - log_density.max())
    mass /= mass.sum()
    median = logits[np.searchsorted(mass.cumsum(), 0.5)]
    sd = np.sqrt(mass @ logits**2 - (mass @ logits) ** 2)
    found = win_rate_at(500, [500], [wins], [games])
    assert found.mean == pytest.approx(median, abs=0.35 * sd if wins in (0, games) else 0.1 * sd)
    assert found.sd == pytest.approx(sd, rel=0.2)
    assert found.matches == games


def test_many_matches_at_one_level_give_that_level():
    found = win_rate_at(41_000, np.arange(40) * 1000, np.full(40, 70), np.full(40, 100))
    interval = found.interval()
    assert found.estimate == pytest.approx(0.7, abs=0.01)
    alone = win_rate_at(41_000, [39_000], [70], [100]).interval()
    assert interval.high - interval.low < 0.5 * (alone.high - alone.low)
    assert interval.low < 0.7 < interval.high


def test_a_quick_climb_is_followed_to_the_present():
    logits = np.linspace(-4, 1, 11)
    games = np.full(11, 200)
    found = win_rate_at(11.0, np.arange(11), np.round(games * expit(logits)), games)
    assert found.estimate == pytest.approx(expit(1.5), abs=0.04), "one point after the last one"


def test_the_unit_of_steps_and_the_name_of_the_winner_do_not_matter():
    rng = np.random.default_rng(1)
    steps, games = np.sort(rng.uniform(0, 9, 12)), rng.integers(1, 50, 12)
    wins = rng.binomial(games, 0.4)
    found = win_rate_at(10.0, steps, wins, games)
    longer = win_rate_at(7e5 + 1e6, 7e5 + steps * 1e5, wins, games)
    assert longer.mean == pytest.approx(found.mean)
    assert longer.sd == pytest.approx(found.sd)
    other = win_rate_at(10.0, steps, games - wins, games)
    assert (other.mean, other.sd) == (pytest.approx(-found.mean), pytest.approx(found.sd))


def test_intervals_hold_the_truth():
    rng, held = np.random.default_rng(2), 0
    for _ in range(300):
        steps = np.arange(25)
        walk = np.cumsum(rng.normal(rng.normal(0, 0.15), 0.1, 26)) + rng.normal(0, 1.5)
        games = rng.integers(4, 60, 25)
        found = win_rate_at(25.0, steps, rng.binomial(games, expit(walk[:25])), games)
        interval = found.interval()
        held += interval.low <= expit(walk[25]) <= interval.high
    assert 0.92 <= held / 300 <= 0.99


@pytest.mark.parametrize("won", [[400] * 64, [0] * 64, [0] * 32 + [400] * 32, [0, 400] * 32])
def test_extreme_counts_stay_finite(won):
    found = win_rate_at(64.0, np.arange(64), won, [400] * 64)
    assert np.isfinite([found.mean, found.sd]).all()
    assert found.sd > 0


@pytest.mark.parametrize(
    ("steps", "wins", "games"),
    [
        ([], [], []),
        ([1, 2], [1], [2]),
        ([2, 1], [1, 1], [2, 2]),
        ([1, 11], [1, 1], [2, 2]),
        ([1, 2], [1, 3], [2, 2]),
        ([1, 2], [-1, 1], [2, 2]),
    ],
)
def test_counts_that_can_not_be(steps, wins, games):
    with pytest.raises(InvalidInput):
        win_rate_at(10, steps, wins, games)


def test_which_matches_count_and_where():
    clean = [
        cell("main@100", 2, 8),
        cell("main.2@200", 5, 4, draws=1),  # of a later incarnation; a draw is no win
        cell("main@900", 10, 0),  # of a run that was taken back
        cell("mainly@150", 10, 0),
        cell("main.reference-150", 10, 0),
        cell("random", 10, 0),
    ]
    training = [cell("main@0", 1, 9), cell("main@200", 30, 10), cell("second@0", 10, 0)]
    found = win_rate_now("main", clean, training, 260)
    steps, wins, games = [50, 100, 200, 230], [1, 2, 5, 30], [10, 10, 10, 40]
    assert found == win_rate_at(260, steps, wins, games)
    assert win_rate_now("main", clean, training, 260, after=199) == win_rate_at(
        260, [200, 230], [5, 30], [10, 40]
    )
    assert win_rate_now("main", clean, training, 260, after=200) is None
    assert win_rate_now("main", [], [], 260) is None


def test_training_matches_count_from_enough_on():
    """The first that end are short ones."""
    clean, training = [cell("main@100", 5, 5)], [cell("main@100", 8, 0), cell("main@200", 2, 0)]
    alone = win_rate_now("main", clean, [], 260)
    assert win_rate_now("main", clean, training, 260, least=11) == alone
    assert win_rate_now("main", clean, training, 260, least=10).matches == 20


def test_the_newest_points_count():
    old = [cell(f"main@{step}", 0, 9) for step in range(1, 11)]
    new = [cell(f"main@{step}", 9, 0) for step in range(100, 100 + MOST_POINTS)]
    found = win_rate_now("main", [*new, *old], [], 200)
    assert found == win_rate_now("main", new, [], 200)


@pytest.mark.parametrize(
    ("rate", "matches", "expected"),
    [(0.71, 30, True), (0.69, 3000, False), (0.99, 29, False), (0.71, 3000, True)],
)
def test_what_reaches_a_goal(rate, matches, expected):
    stage = Stage(name="a", mix="a", until_opponent="based", until_win_rate=0.7)
    found = WinRate(mean=float(logit(rate)), sd=1.0, matches=matches)
    assert goal_reached(stage, found) == expected
    assert not goal_reached(stage, None)


def test_the_estimate_in_words():
    found = WinRate(mean=float(logit(0.72)), sd=0.14, matches=1412)
    sentence = found.sentence("main", "based")
    assert re.findall(r"main|based|[\d,]*\d", sentence) == [
        "main",
        "72",
        "66",
        "77",
        "based",
        "1,412",
    ]
