"""Means that merge, and intervals against published values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from league.errors import InvalidInput
from league.metrics import Mean, mean_interval, wilson_interval


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


def test_the_interval_of_a_mean_is_agresti_and_coull_s_where_values_are_wins_and_losses() -> None:
    # 9 wins of 10: (9 + 1.92) / 13.84 = .789 ± 1.96 √(.789 · .211 / 13.84), as 2p − 1
    found = mean_interval([1.0] * 9 + [-1.0], 1.0)
    assert found.value == pytest.approx(0.8)
    assert (found.low, found.high) == pytest.approx((2 * 0.574 - 1, 1.0), abs=1e-3)
    alike = mean_interval([2.0] * 400, 2.0)
    assert alike.value == alike.high == 2.0
    assert 1.9 < alike.low < 1.97


def test_the_interval_of_a_mean_holds_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    values = rng.choice([-2.0, -1.0, 1.0, 2.0], (2000, 100), p=[0.1, 0.2, 0.3, 0.4])
    held = [(found := mean_interval(row.tolist(), 2.0)).low <= 0.7 <= found.high for row in values]
    assert 0.94 <= np.mean(held) <= 0.97
