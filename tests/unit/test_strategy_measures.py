"""Measures of recognition find what was planted, and nothing where only matches differ."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import silhouette_samples

from evaluator.analysis.measures import (
    DRIFT_BY_CHANCE,
    Labels,
    Points,
    by_opponent,
    drift,
    interval,
    moments,
    probe,
    silhouette,
)

OPPONENTS, SEEDS, MOMENTS, WIDTH = 4, 10, 6, 24
LABELS = Labels(
    np.tile(np.repeat(np.arange(OPPONENTS), 2), SEEDS), np.repeat(np.arange(SEEDS), 2 * OPPONENTS)
)
MATCHES = len(LABELS.seed_M)


def points_of(rng, by_match_MD=None, noise=1.0):
    """Rows of every match: what is planted in it, and noise."""
    match_N = np.repeat(np.arange(MATCHES), MOMENTS)
    x_ND = noise * rng.normal(size=(len(match_N), WIDTH))
    return Points(x_ND if by_match_MD is None else x_ND + by_match_MD[match_N], match_N)


def planted(rng, size=3.0):
    return size * rng.normal(size=(OPPONENTS, WIDTH))[LABELS.opponent_M]


def test_a_planted_signal_is_found():
    rng = np.random.default_rng(0)
    found, named_MK = probe(points_of(rng, planted(rng)), LABELS)
    assert found.value > 0.99
    assert found.chance_low < 1 / OPPONENTS < found.chance_high < 0.5
    assert found.p_value == pytest.approx(1 / 201)
    assert by_opponent(named_MK, LABELS) == pytest.approx(np.eye(OPPONENTS), abs=0.02)


@pytest.mark.parametrize("apart", [1.0, 2.0])
def test_a_weak_signal_is_found_as_often_as_it_can_be(apart):
    """It lies in a small difference of two numbers that vary much."""
    rng, seeds = np.random.default_rng(1), 200
    labels = Labels(np.tile([0, 0, 1, 1], seeds), np.repeat(np.arange(seeds), 4))
    match_N = np.repeat(np.arange(4 * seeds), 8)
    common_N = 5.0 * rng.normal(size=len(match_N))
    signal_N = rng.normal(size=len(match_N)) + apart * labels.opponent_M[match_N]
    points = Points(np.stack([common_N, common_N + signal_N], axis=1), match_N)
    found, _ = probe(points, labels, shuffles=5)
    assert found.value == pytest.approx(norm.cdf(apart / 2), abs=0.015)


@pytest.mark.parametrize("seeds", [4, 20])
def test_intervals_hold(seeds):
    """Of shares that differ by seed as well as by match."""
    labels = Labels(np.tile([0, 0, 1, 1], seeds), np.repeat(np.arange(seeds), 4))
    held = 0
    for number in range(300):
        rng = np.random.default_rng(number)
        value_M = rng.normal(size=seeds)[labels.seed_M] + rng.normal(size=4 * seeds)
        low, high = interval(value_M, np.ones(4 * seeds), labels)
        held += low < 0.0 < high
    assert held / 300 == pytest.approx(0.95, abs=0.03)


@pytest.mark.long
def test_without_a_signal_p_values_are_fair():
    found = [
        probe(points_of(np.random.default_rng(seed)), LABELS, seed=seed, shuffles=19)[0]
        for seed in range(60)
    ]
    below = np.array([one.p_value for one in found])
    assert np.mean([one.value for one in found]) == pytest.approx(1 / OPPONENTS, abs=0.01)
    assert 0 <= (below <= 0.05).sum() <= 9
    assert (below <= 0.5).mean() == pytest.approx(0.5, abs=0.2)


def identities(rng, what):
    """A strong mark that every match has, or every pair of matches, or every seed."""
    keys = {
        "match": np.arange(MATCHES),
        "pair": np.arange(MATCHES) // 2,
        "seed": LABELS.seed_M,
    }[what]
    return 5.0 * rng.normal(size=(MATCHES, WIDTH))[keys]


@pytest.mark.parametrize("what", ["match", "pair", "seed"])
@pytest.mark.parametrize(("measure", "chance"), [(probe, 1 / OPPONENTS), (silhouette, 0.0)])
def test_who_remembers_the_match_does_not_recognise_the_opponent(measure, chance, what):
    """Were a match, a pair or a seed in training and test, each would score near 100 %."""
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        points = points_of(rng, identities(rng, what), noise=0.1)
        found.append(measure(points, LABELS, shuffles=99)[0])
    assert np.mean([one.value for one in found]) < chance + 0.08
    assert np.median([one.p_value for one in found]) > 0.05


def test_clusters_have_the_silhouette_of_the_textbook():
    rng, rows = np.random.default_rng(3), 60
    labels = Labels(np.arange(rows) % 3, np.arange(rows))  # a seed each: no distance is left out
    x_ND = rng.normal(size=(rows, 5)) + 1.5 * labels.opponent_M[:, None]
    found, width_M = silhouette(Points(x_ND, np.arange(rows)), labels, shuffles=1)
    wanted = silhouette_samples(x_ND, labels.opponent_M)
    assert width_M == pytest.approx(wanted)
    assert found.value == pytest.approx(wanted.mean())


def test_planted_clusters_are_clusters():
    rng = np.random.default_rng(4)
    found, _ = silhouette(points_of(rng, planted(rng, 20.0)), LABELS, shuffles=50)
    assert found.value > 0.8
    assert found.p_value == pytest.approx(1 / 51)
    assert found.chance_high < 0.1


def test_drift_is_a_seventh_in_random_order_and_one_of_a_lasting_change():
    rng, steps = np.random.default_rng(5), 80
    still = [rng.normal(size=(steps, WIDTH)) for _ in range(MATCHES)]
    moved = [part + 9.0 * (np.arange(steps) >= steps // 2)[:, None] for part in still]
    *each, over_all = drift(still, LABELS)
    assert over_all.share == pytest.approx(DRIFT_BY_CHANCE, abs=0.01)
    assert over_all.low < DRIFT_BY_CHANCE < over_all.high
    assert [one.matches for one in each] == [2 * SEEDS] * OPPONENTS
    *_, lasting = drift(moved, LABELS)
    assert lasting.share > 0.99
    assert lasting.moved == pytest.approx(1.4, abs=0.1), "as far as two moments of both halves"
    assert over_all.moved < 0.3
    assert drift([part[:5] for part in still], LABELS) == [None] * (OPPONENTS + 1)


def test_moments_are_spread_over_each_match():
    parts = [np.arange(length)[:, None] for length in (100, 3)]
    points = moments(parts, 4)
    assert points.x_ND[:, 0].tolist() == [12, 37, 62, 87, 0, 1, 2]
    assert points.match_N.tolist() == [0] * 4 + [1] * 3


def test_an_interval_of_a_drift_has_shares_at_its_ends():
    rng, rises = np.random.default_rng(0), [0.2] * 4 + [0.02] * 4
    parts = [rng.normal(size=(40, 3)) + rise * np.arange(40)[:, None] for rise in rises]
    two_seeds = Labels(np.tile([0, 0, 1, 1], 2), np.repeat([0, 1], 4))
    for one in drift(parts, two_seeds):
        assert (one.low, one.high) == (0.0, 1.0), "with 12.7 standard errors either way"
