"""Log-likelihood ratios and estimates: known answers, properties, independent computations."""

from __future__ import annotations

import math
import random
import time

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from league.errors import InvalidInput
from league.stats.gates import (
    BernoulliTest,
    Gate,
    MultinomialTest,
    Risks,
    estimate,
    forecast,
    score_of,
)
from league.stats.gates.estimate import worse_outcome
from league.stats.gates.multinomial import (
    likeliest_of_mean,
    likelihood,
    moments,
    regularised,
)

FISHTEST = (10789, 19328, 33806, 19402, 10543)
RISKS = Risks()
SHARES = BernoulliTest(p0=0.55, p1=0.65)
NONE = (0,) * 5


def counts_of(cells, most=2000):
    """Counts of all kinds: many, few, and none in some cells."""
    small, large = st.integers(0, 5), st.integers(0, most)
    return st.one_of(st.tuples(*[small] * cells), st.tuples(*[large] * cells)).filter(any)


shares = st.floats(0.05, 0.95)
elos = st.floats(-150, 150)


def test_bounds_are_walds():
    assert (RISKS.lower, RISKS.upper) == pytest.approx((-2.9444, 2.9444), abs=5e-5)
    uneven = Risks(alpha=0.01, beta=0.2)
    assert uneven.upper == pytest.approx(math.log(80))
    assert uneven.lower == pytest.approx(math.log(0.2 / 0.99))


@pytest.mark.parametrize(
    ("test", "counts", "wanted", "within"),
    [
        (MultinomialTest(elo0=-3, elo1=1), FISHTEST, 2.13107, 5e-6),
        (MultinomialTest(elo0=0, elo1=35, cells=3), (40, 20, 140), 10.10, 5e-3),
        (MultinomialTest(elo0=0, elo1=5), NONE, 0.0, 0.0),
        (SHARES, (3, 0, 7), 7 * math.log(65 / 55) + 3 * math.log(35 / 45), 1e-12),
        (SHARES, (2, 2, 6), 7 * math.log(65 / 55) + 3 * math.log(35 / 45), 1e-12),
        (SHARES, (0, 0, 0), 0.0, 0.0),
    ],
)
def test_known_ratios(test, counts, wanted, within):
    assert test.llr(counts) == pytest.approx(wanted, abs=within)


@settings(max_examples=60, deadline=None)
@given(shares, shares, st.floats(0, 1), st.floats(0, 1))
def test_draws_never_favour_the_stronger_hypothesis(p0, p1, score, drawn):
    """At a score of p0 or less the likelihood ratio does not grow on average."""
    assume(p0 < p1 - 1e-3)
    score *= p0
    drawn *= 2 * min(score, 1 - score)
    test = BernoulliTest(p0=p0, p1=p1)
    factors = [math.exp(test.llr(one)) for one in ((1, 0, 0), (0, 1, 0), (0, 0, 1))]
    wins = score - drawn / 2
    mean = (1 - wins - drawn) * factors[0] + drawn * factors[1] + wins * factors[2]
    assert mean <= 1 + 1e-9


@settings(max_examples=60, deadline=None)
@given(counts_of(5), elos, elos, st.sampled_from([3, 5]))
def test_a_ratio_changes_sign_from_the_other_side(counts, one, other, cells):
    assume(abs(one - other) > 1e-3)
    assume(any(counts[:cells]))
    low, high = sorted((one, other))
    test = MultinomialTest(elo0=low, elo1=high, cells=cells)
    mirrored = MultinomialTest(elo0=-high, elo1=-low, cells=cells)
    near = 1e-6 + 1e-8 * sum(counts)
    ratio = mirrored.llr(counts[:cells][::-1])
    assert ratio == pytest.approx(-test.llr(counts[:cells]), abs=near)
    p0, p1 = score_of(low), score_of(high)
    plain, other_side = BernoulliTest(p0=p0, p1=p1), BernoulliTest(p0=1 - p1, p1=1 - p0)
    ratio = other_side.llr(counts[:3][::-1])
    assert ratio == pytest.approx(-plain.llr(counts[:3]), abs=1e-6)


def brute_force(seen, constraint):
    """The likeliest shares by a general optimiser."""
    found = [
        minimize(
            lambda q: -sum(p * math.log(max(x, 1e-12)) for p, x in zip(seen, q, strict=True)),
            start,
            jac=lambda q: -np.array(seen) / np.maximum(q, 1e-12),
            bounds=[(1e-9, 1)] * len(seen),
            constraints=[
                {"type": "eq", "fun": lambda q: sum(q) - 1},
                {"type": "eq", "fun": lambda q: constraint(list(q))},
            ],
            options={"maxiter": 400, "ftol": 1e-13},
        )
        for start in (np.array(seen), np.full(len(seen), 1 / len(seen)))
    ]
    return max(-one.fun for one in found if one.success)


@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.integers(20, 400), min_size=5, max_size=5),
    st.floats(-80, 80),
    st.sampled_from([3, 5]),
)
def test_the_likeliest_shares_are_those_of_an_optimiser(counts, elo, cells):
    _, seen = regularised(counts[:cells])
    wanted = score_of(elo)
    found = likelihood(seen, likeliest_of_mean(seen, wanted))
    best = brute_force(seen, lambda q: moments(q)[0] - wanted)
    assert found == pytest.approx(best, abs=1e-6)


@settings(max_examples=100, deadline=None)
@given(counts_of(5, 10**9), st.floats(-200, 200), st.sampled_from([3, 5]))
def test_the_likeliest_shares_keep_their_constraint_for_any_counts(counts, elo, cells):
    """Also where one cell holds nearly all, or empty ones must be tilted into."""
    assume(any(counts[:cells]))
    _, seen = regularised(counts[:cells])
    found = likeliest_of_mean(seen, score_of(elo))
    assert moments(found)[0] == pytest.approx(score_of(elo), abs=1e-9)
    assert sum(found) == pytest.approx(1.0, abs=1e-9)
    assert min(found) > 0


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (lambda: Risks(alpha=0.0), "alpha 0 "),
        (lambda: Risks(beta=1.5), "beta 1.5"),
        (lambda: Risks(alpha=0.5, beta=0.5), "alpha 0.5"),
        (lambda: BernoulliTest(p0=0.6, p1=0.6), "p0 0.6"),
        (lambda: BernoulliTest(p0=0.5, p1=1.0), "p1 1 "),
        (lambda: BernoulliTest(p0=math.nan, p1=0.5), "p0 nan"),
        (lambda: BernoulliTest(p0=0.5, p1=0.5 + 1e-9), "p1 0.500000001"),
        (lambda: SHARES.llr((1, 2)), "2 counts"),
        (lambda: SHARES.llr((1, 2, -1)), "-1"),
        (lambda: SHARES.score(1.2), "1.2"),
        (lambda: MultinomialTest(elo0=3, elo1=1), "elo0 3"),
        (lambda: MultinomialTest(elo0=0, elo1=1e-4), "elo1 0.0001"),
        (lambda: MultinomialTest(elo0=0, elo1=1001), "1001"),
        (lambda: MultinomialTest(elo0=math.nan, elo1=1), "nan"),
    ],
)
def test_what_can_not_be_tested_is_refused(make, value):
    with pytest.raises(InvalidInput, match=value):
        make()


def by_eigenfunctions(drift, variance, risks, results, position):
    """`worse_outcome` by another series: decaying modes of the absorbed motion."""
    width, tilt = risks.upper - risks.lower, drift / variance
    start, end = -risks.lower, position - risks.lower
    if abs(tilt) < 1e-9:  # expm1 of a smaller one has lost its digits
        total = risks.upper / width
    else:
        total = 1 - math.expm1(-2 * tilt * start) / math.expm1(-2 * tilt * width)
    for mode in range(1, 400):
        wave = mode * math.pi / width
        decay = math.exp(-(wave**2 + tilt**2) * variance * results / 2 + tilt * (end - start))
        slope = (tilt * math.sin(wave * end) - wave * math.cos(wave * end)) / (tilt**2 + wave**2)
        total += 2 / width * decay * math.sin(wave * start) * slope
    return total


@settings(max_examples=80, deadline=None)
@given(
    st.floats(-0.2, 0.2),
    st.floats(0.02, 0.5),
    st.integers(30, 2000) | st.integers(2000, 10**8),
    st.floats(0, 1),
)
@example(1e-9, 0.125, 2670, 0.0)  # nearly without drift
def test_the_odds_of_a_worse_outcome_are_those_of_another_series(drift, variance, results, height):
    uneven = Risks(alpha=0.02, beta=0.1)
    assume(variance * results > 0.5)
    position = uneven.lower + height * (uneven.upper - uneven.lower)
    wanted = by_eigenfunctions(drift, variance, uneven, results, position)
    found = worse_outcome(drift, variance, uneven, results, position)
    assert found == pytest.approx(wanted, abs=1e-8)


@settings(max_examples=60, deadline=None)
@given(counts_of(5), st.floats(-100, 80), st.floats(3, 60))
def test_an_estimate_lies_in_its_interval_and_mirrors(counts, elo, gap):
    test, mirrored = (MultinomialTest(elo0=low, elo1=low + gap) for low in (elo, -elo - gap))
    found = estimate(test, counts, RISKS)
    assert 0 <= found.low <= found.score <= found.high <= 1
    other = estimate(mirrored, counts[::-1], RISKS)
    assert [1 - other.score, 1 - other.high, 1 - other.low] == pytest.approx(
        [found.score, found.low, found.high], abs=1e-5
    )


@pytest.mark.parametrize("test", [SHARES, MultinomialTest(elo0=0, elo1=35)], ids=str)
def test_a_forecast_meets_the_error_rates_at_the_hypotheses(test):
    none = (0,) * test.cells
    weak, strong = (forecast(test, test.score(one), none, RISKS) for one in test.values)
    assert 0.03 < weak.accepted < 0.051
    assert 0.949 < strong.accepted < 0.97


def test_a_forecast_is_continuous_where_the_walk_has_no_drift():
    test = BernoulliTest(p0=0.4, p1=0.6)
    level, near = (forecast(test, score, (0, 0, 0), RISKS) for score in (0.5, 0.5 + 1e-5))
    assert level.accepted == pytest.approx(0.5)
    assert (near.accepted, near.results) == pytest.approx((level.accepted, level.results), rel=1e-3)
    sure = forecast(test, 1.0, (0, 0, 0), RISKS)
    assert (sure.accepted, sure.results) == pytest.approx((1.0, RISKS.upper / test.win))


def random_case(rng):
    """A test, its risks and counts: hypotheses close and far, few results and many, even or all
    alike.
    """
    gap, cells = 10 ** rng.uniform(-7, 3.3), rng.choice([3, 5])
    if rng.random() < 0.5:
        low = rng.choice([0.0, -gap / 2, rng.uniform(-1000, 1000)])
        test = MultinomialTest(elo0=low, elo1=low + gap, cells=cells)
    else:
        low, cells = rng.choice([0.5, 0.5 - gap / 2, rng.random(), 10 ** rng.uniform(-300, -1)]), 3
        test = BernoulliTest(p0=low, p1=rng.choice([low + gap, rng.random(), 1 - 1e-16]))
    risks = Risks(alpha=rng.choice([0.05, rng.random()]), beta=rng.choice([0.05, 1e-300]))
    counts = [round(10 ** rng.uniform(-2, rng.uniform(0, 12))) for _ in range(cells)]
    kind = rng.randrange(4)
    if kind == 0:
        counts = [max(one, other) for one, other in zip(counts, counts[::-1], strict=True)]
    if kind == 1:
        kept = rng.randrange(cells)
        counts = [count * (cell == kept) for cell, count in enumerate(counts)]
    return test, risks, tuple(counts)


@pytest.mark.long
def test_any_counts_get_a_verdict_and_an_ordered_estimate_or_a_sentence_in_time():
    rng, judged = random.Random(0), 0
    for _ in range(2000):
        begun = time.process_time()
        try:
            test, risks, counts = random_case(rng)
        except InvalidInput:
            continue
        judged += 1
        gate = Gate(test=test, risks=risks, counts=counts)
        assert gate.verdict
        assert math.isfinite(gate.llr), (test, counts)
        found = estimate(test, counts, risks)
        assert found is None or 0 <= found.low <= found.score <= found.high <= 1, (gate, found)
        for value in (*test.values, sum(test.values) / 2):
            ahead = forecast(test, test.score(value), counts, risks)
            assert 0 <= ahead.accepted <= 1, (gate, value)
            assert 0 <= ahead.results < math.inf, (gate, value)
        assert time.process_time() - begun < 0.5, gate
    assert judged > 700
