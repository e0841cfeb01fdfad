"""Means that merge, and intervals against published values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from league.errors import InvalidInput
from league.metrics import Mean, interval_at, mean_interval, wilson_interval


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_matches_newcombe(successes: int, trials: int, low: float, high: float) -> None:
    interval = wilson_interval(successes, trials)
    assert interval.low == pytest.approx(low, abs=5e-5)
    assert interval.high == pytest.approx(high, abs=5e-5)


def test_wilson_is_symmetric_and_stays_in_bounds() -> None:
    for trials in (1, 7, 400):
        for wins in (0, 1, trials // 2, trials):
            one, other = wilson_interval(wins, trials), wilson_interval(trials - wins, trials)
            assert one.low == pytest.approx(1.0 - other.high)
            assert 0.0 <= one.low <= wins / trials <= one.high <= 1.0
    assert wilson_interval(20, 20).high == 1.0


def test_wilson_without_trials_knows_nothing() -> None:
    interval = wilson_interval(0, 0)
    assert (interval.low, interval.high) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("successes", "trials", "confidence"), [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0)]
)
def test_wilson_refuses_impossible_counts(successes: int, trials: int, confidence: float) -> None:
    with pytest.raises(InvalidInput):
        wilson_interval(successes, trials, confidence)


def test_means_merge_exactly() -> None:
    first, second = Mean().add(1.0).add(2.0), Mean().add(9.0, count=2)
    assert first + second == Mean(21.0, 4)
    assert (first + second).value == 5.25
    assert math.isnan(Mean().value)


def test_the_interval_of_a_mean_counts_the_worst_that_can_happen_at_either_end() -> None:
    # 3.84 losses more than 9 wins of 10: (8 - 3.84) / 13.84 = .30, less 1.96 √((1 - .30²) / 13.84)
    found = mean_interval([1.0] * 9 + [-1.0], 1.0)
    assert (found.value, found.low, found.high) == pytest.approx((0.8, -0.202, 1.0), abs=1e-3)
    alike = mean_interval([2.0] * 400, 2.0)
    assert alike.value == alike.high == 2.0
    assert 1.8 < alike.low < 1.97


@pytest.mark.parametrize("confidence", [0.95, 0.99, 0.998])
@pytest.mark.parametrize("count", [20, 400, 10_000])
def test_a_bound_is_above_the_truth_as_seldom_as_it_says(count: int, confidence: float) -> None:
    """Exactly, for one who rarely loses 13, whether such a loss was seen or not."""
    lost = np.arange(count + 1)
    lows = []
    for n in lost.tolist():
        mean, square = (count - n - 13.0 * n) / count, (count - n + 169.0 * n) / count
        lows.append(interval_at(mean, square, count, 13.0, confidence).low)
    for chance in np.geomspace(1e-4, 0.3, 40):
        is_above = np.array(lows) > 1.0 - 14.0 * chance + 1e-9
        assert binom.pmf(lost, count, chance)[is_above].sum() <= (1.0 - confidence) / 2, chance


def test_a_payoff_beyond_the_game_s_largest_is_refused() -> None:
    with pytest.raises(InvalidInput, match="14"):
        mean_interval([1.0, -14.0], 13.0)
