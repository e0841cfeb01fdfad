"""Log-likelihood ratios, what they are made of, estimates: known answers, properties, other ways
to them.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from league.errors import InvalidInput
from league.stats.gates import (
    BernoulliTest,
    EloModel,
    MultinomialTest,
    Risks,
    elo_of,
    estimated,
    foreseen,
    score_of,
)
from league.stats.gates.elo import NORMALISED_UNIT
from league.stats.gates.likelihood import (
    likeliest_of_mean,
    likeliest_of_ratio,
    likelihood,
    moments,
    regularised,
    scores_of,
)
from league.stats.gates.walk import worse_outcome

FISHTEST = (10789, 19328, 33806, 19402, 10543)
NARROW = (39, 2226, 31451, 2412, 40)
LOPSIDED = (40, 20, 140)
NORMALISED = MultinomialTest(elo0=0.764, elo1=3.439, model=EloModel.NORMALISED)
RISKS = Risks()


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
    ("test", "counts", "wanted"),
    [
        (MultinomialTest(elo0=-3, elo1=1), FISHTEST, 2.13107),
        (NORMALISED, NARROW, 2.16294),
        (MultinomialTest(elo0=0, elo1=35, cells=3), LOPSIDED, 10.10),
    ],
)
def test_known_ratios(test, counts, wanted):
    assert test.llr(counts) == pytest.approx(wanted, abs=5e-3 if wanted > 10 else 5e-6)


def normal_form(test, counts, logarithmic):
    """The two approximations of the literature: with variances about each hypothesis, or about
    the mean.
    """
    total, seen = regularised(counts)
    mean, variance = moments(seen)
    ends = [score_of(elo) for elo in test.values]
    if logarithmic:
        about = [variance + (mean - end) ** 2 for end in ends]
        return total / 2 * math.log(about[0] / about[1])
    return total * (ends[1] - ends[0]) * (2 * mean - sum(ends)) / (2 * variance)


def test_approximations_hold_for_small_differences_alone():
    far = MultinomialTest(elo0=0, elo1=35, cells=3)
    assert normal_form(far, LOPSIDED, True) == pytest.approx(10.58, abs=5e-3)
    assert normal_form(far, LOPSIDED, False) == pytest.approx(13.90, abs=5e-3)
    near = MultinomialTest(elo0=-3, elo1=1)
    for logarithmic in (True, False):
        assert normal_form(near, FISHTEST, logarithmic) == pytest.approx(
            near.llr(FISHTEST), abs=1e-3
        )


def test_known_elo_with_its_interval():
    estimate = estimated(NORMALISED, NARROW, RISKS)
    found = [elo_of(score) for score in (estimate.score, estimate.low, estimate.high)]
    assert found == pytest.approx([0.8652, 0.168, 1.541], abs=5e-4)


def test_a_bernoulli_ratio_by_hand():
    test = BernoulliTest(p0=0.55, p1=0.65)
    by_hand = 7 * math.log(0.65 / 0.55) + 3 * math.log(0.35 / 0.45)
    assert test.llr((3, 0, 7)) == pytest.approx(by_hand)
    assert test.llr((2, 2, 6)) == pytest.approx(by_hand), "two draws are a win and a loss"
    assert test.llr((0, 0, 0)) == 0.0


@settings(max_examples=60, deadline=None)
@given(shares, shares, st.floats(0, 1), st.floats(0, 1))
def test_draws_never_favour_the_stronger_hypothesis(p0, p1, score, drawn):
    """Under any share of draws, at a score of p0 or less, the likelihood ratio does not grow on
    average.
    """
    assume(p0 < p1 - 1e-3)
    score *= p0
    drawn *= 2 * min(score, 1 - score)
    test = BernoulliTest(p0=p0, p1=p1)
    factors = [math.exp(test.llr(one)) for one in ((1, 0, 0), (0, 1, 0), (0, 0, 1))]
    wins = score - drawn / 2
    mean = (1 - wins - drawn) * factors[0] + drawn * factors[1] + wins * factors[2]
    assert mean <= 1 + 1e-9


@settings(max_examples=60, deadline=None)
@given(counts_of(3), shares, shares)
def test_a_bernoulli_ratio_changes_sign_from_the_other_side(counts, one, other):
    assume(abs(one - other) > 1e-6)
    low, high = sorted((one, other))
    test, mirrored = BernoulliTest(p0=low, p1=high), BernoulliTest(p0=1 - high, p1=1 - low)
    assert mirrored.llr(counts[::-1]) == pytest.approx(-test.llr(counts), abs=1e-9 * sum(counts))


@settings(max_examples=60, deadline=None)
@given(counts_of(5), elos, elos, st.sampled_from(list(EloModel)), st.sampled_from([3, 5]))
def test_a_multinomial_ratio_changes_sign_from_the_other_side(counts, one, other, model, cells):
    assume(abs(one - other) > 1e-3)
    assume(any(counts[:cells]))
    low, high = sorted((one, other))
    test = MultinomialTest(elo0=low, elo1=high, model=model, cells=cells)
    mirrored = MultinomialTest(elo0=-high, elo1=-low, model=model, cells=cells)
    ratio = test.llr(counts[:cells])
    assert mirrored.llr(counts[:cells][::-1]) == pytest.approx(
        -ratio, abs=1e-6 + 1e-8 * sum(counts)
    )


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(*[st.integers(0, 500)] * 3).filter(any),
    st.floats(0.1, 150),
    st.sampled_from(list(EloModel)),
)
def test_symmetric_counts_favour_neither_of_symmetric_hypotheses(half, elo, model):
    counts = (*half, half[1], half[0])
    test = MultinomialTest(elo0=-elo, elo1=elo, model=model)
    assert test.llr(counts) == pytest.approx(0.0, abs=1e-6)
    assert BernoulliTest(p0=0.4, p1=0.6).llr((half[0], half[1], half[0])) == pytest.approx(
        0.0, abs=1e-9
    )


def brute_force(seen, constraint):
    """The likeliest shares by a general optimiser that knows nothing of secular equations."""
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
    mean = score_of(elo)
    scores = scores_of(cells)
    by_mean = brute_force(seen, lambda q: sum(x * s for x, s in zip(q, scores, strict=True)) - mean)
    assert likelihood(seen, likeliest_of_mean(seen, mean)) == pytest.approx(by_mean, abs=1e-6)
    ratio = elo / NORMALISED_UNIT * 2**0.5

    def off(q):
        middle = sum(x * s for x, s in zip(q, scores, strict=True))
        return (
            middle
            - 0.5
            - ratio * math.sqrt(sum(x * (s - middle) ** 2 for x, s in zip(q, scores, strict=True)))
        )

    assert likelihood(seen, likeliest_of_ratio(seen, ratio)) == pytest.approx(
        brute_force(seen, off), abs=1e-6
    )


@settings(max_examples=100, deadline=None)
@given(counts_of(5, 10**9), st.floats(-200, 200), st.sampled_from([3, 5]))
def test_the_likeliest_shares_keep_their_constraint_for_any_counts(counts, elo, cells):
    """Also where one cell holds nearly all, or empty ones must be tilted into."""
    assume(any(counts[:cells]))
    _, seen = regularised(counts[:cells])
    by_mean = likeliest_of_mean(seen, score_of(elo))
    assert moments(by_mean)[0] == pytest.approx(score_of(elo), abs=1e-9)
    ratio = elo / NORMALISED_UNIT * 2**0.5
    by_ratio = likeliest_of_ratio(seen, ratio)
    mean, variance = moments(by_ratio)
    assert mean - 0.5 == pytest.approx(ratio * math.sqrt(variance), abs=1e-7)
    for found in (by_mean, by_ratio):
        assert sum(found) == pytest.approx(1.0, abs=1e-9)
        assert min(found) > 0


def test_of_several_solutions_the_likeliest_counts():
    """One drawn pair: 200 Elo come likeliest by pairs won twice, nearly as well by pairs won
    once.
    """
    _, seen = regularised((0, 0, 1, 0, 0))
    ratio = 200 / NORMALISED_UNIT * 2**0.5
    scores = np.array(scores_of(5))

    def at_most(root):
        """The largest likelihood under the linear constraint of one root mean square."""
        lean = ratio / math.sqrt(1 + ratio**2)
        values = scores - 0.5 - lean * (root / 2 + (scores - 0.5) ** 2 / (2 * root))
        low, high = -1 / values.max(), -1 / values.min()
        tilts = low + (high - low) * np.linspace(1e-6, 1 - 1e-6, 20_001)[:, None]
        moments_ = (np.array(seen) * values / (1 + tilts * values)).sum(1)
        tilt = tilts[np.abs(moments_).argmin()]
        return float((np.array(seen) * np.log(np.array(seen) / (1 + tilt * values))).sum())

    heights = [at_most(root) for root in np.linspace(0.1, 0.49, 79)]
    peaks = [
        height
        for before, height, after in zip(heights, heights[1:], heights[2:], strict=False)
        if height > max(before, after)
    ]
    assert len(peaks) == 2
    assert likelihood(seen, likeliest_of_ratio(seen, ratio)) == pytest.approx(max(peaks), abs=1e-4)
    assert min(peaks) < max(peaks) - 1e-3


def test_no_results_say_nothing():
    assert MultinomialTest(elo0=0, elo1=5).llr((0,) * 5) == 0.0
    assert estimated(NORMALISED, (0,) * 5, RISKS) is None
    with pytest.raises(InvalidInput, match="say nothing"):
        regularised((0, 0, 0))
    with pytest.raises(InvalidInput, match="say nothing"):
        regularised((1, -2, 3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Risks(alpha=0.0), "alpha 0 is no error rate"),
        (lambda: Risks(beta=1.5), "beta 1.5 is no error rate"),
        (lambda: Risks(alpha=0.5, beta=0.5), "add up to 1 or more"),
        (lambda: BernoulliTest(p0=0.6, p1=0.6), "p0 0.6 is not below p1 0.6"),
        (lambda: BernoulliTest(p0=0.5, p1=1.0), "p1 1 is no hypothesis"),
        (lambda: BernoulliTest(p0=math.nan, p1=0.5), "p0 nan is no hypothesis"),
        (
            lambda: BernoulliTest(p0=0.5, p1=0.6).llr((1, 2)),
            "2 counts were given where 3 are wanted",
        ),
        (lambda: BernoulliTest(p0=0.5, p1=0.6).llr((1, 2, -1)), "-1 is no count"),
        (lambda: BernoulliTest(p0=0.5, p1=0.6).score(1.2, ()), "1.2 is no share of the points"),
        (lambda: MultinomialTest(elo0=3, elo1=1), "elo0 3 is not below elo1 1"),
        (lambda: MultinomialTest(elo0=0, elo1=1001), "Elo 1001 can't be tested"),
        (lambda: MultinomialTest(elo0=math.nan, elo1=1), "Elo nan can't be tested"),
        (
            lambda: MultinomialTest(elo0=0, elo1=201, model=EloModel.NORMALISED),
            "Elo 201 can't be tested",
        ),
        (lambda: MultinomialTest(elo0=0, elo1=1, cells=4), "4 kinds of results can't be tested"),
        (lambda: estimated(NORMALISED, NARROW, RISKS, 1.0), "confidence of 1 can't be used"),
        (lambda: likeliest_of_mean([0.5, 0.5], 1.0), "no score has the mean 1"),
        (lambda: likeliest_of_ratio([0.2] * 5, 4.0), "take less extreme Elo"),
    ],
)
def test_what_can_not_be_tested_is_told(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


def by_eigenfunctions(drift, variance, risks, results, position):
    """`worse_outcome` by the other series: decaying modes of the absorbed motion, slow for short
    times.
    """
    width, tilt = risks.upper - risks.lower, drift / variance
    start, end = -risks.lower, position - risks.lower
    if abs(tilt) < 1e-12:
        total = risks.upper / width
    else:
        total = 1 - (1 - math.exp(-2 * tilt * start)) / (1 - math.exp(-2 * tilt * width))
    for mode in range(1, 400):
        wave = mode * math.pi / width
        decay = math.exp(-(wave**2 + tilt**2) * variance * results / 2 + tilt * (end - start))
        slope = (tilt * math.sin(wave * end) - wave * math.cos(wave * end)) / (tilt**2 + wave**2)
        total += 2 / width * decay * math.sin(wave * start) * slope
    return total


@settings(max_examples=80, deadline=None)
@given(st.floats(-0.2, 0.2), st.floats(0.02, 0.5), st.integers(30, 2000), st.floats(0, 1))
def test_the_odds_of_a_worse_outcome_are_those_of_another_series(drift, variance, results, height):
    uneven = Risks(alpha=0.02, beta=0.1)
    assume(variance * results > 0.5)
    position = uneven.lower + height * (uneven.upper - uneven.lower)
    wanted = by_eigenfunctions(drift, variance, uneven, results, position)
    assert worse_outcome(drift, variance, uneven, results, position) == pytest.approx(
        wanted, abs=1e-8
    )


@settings(max_examples=60, deadline=None)
@given(counts_of(5), st.floats(-100, 80), st.floats(3, 60))
def test_an_estimate_lies_in_its_interval_and_mirrors(counts, elo, gap):
    test, mirrored = (MultinomialTest(elo0=low, elo1=low + gap) for low in (elo, -elo - gap))
    estimate = estimated(test, counts, RISKS)
    assert 0 <= estimate.low <= estimate.score <= estimate.high <= 1
    other = estimated(mirrored, counts[::-1], RISKS)
    assert [1 - other.score, 1 - other.high, 1 - other.low] == pytest.approx(
        [estimate.score, estimate.low, estimate.high], abs=1e-5
    )
    wider = estimated(test, counts, RISKS, 0.99)
    assert wider.low <= estimate.low + 1e-9
    assert wider.high >= estimate.high - 1e-9


def test_a_fixed_number_of_matches_gives_the_usual_interval():
    """Far from both bounds nothing would have stopped the test: the interval is that of the
    normal mean.
    """
    test = MultinomialTest(elo0=-1, elo1=1)
    counts = (100, 300, 600, 310, 105)
    _, seen = regularised(counts)
    mean, variance = moments(seen)
    estimate = estimated(test, counts, RISKS)
    half = 1.96 * math.sqrt(variance / sum(counts))
    assert estimate.score == pytest.approx(mean, abs=1e-4)
    assert (estimate.low, estimate.high) == pytest.approx((mean - half, mean + half), abs=1e-3)


def test_an_accepted_mean_is_shrunk_and_a_rejected_one_raised():
    test = BernoulliTest(p0=0.55, p1=0.65)
    assert test.llr((20, 0, 48)) > RISKS.upper
    assert estimated(test, (20, 0, 48), RISKS).score < 48 / 68
    assert test.llr((36, 0, 36)) < RISKS.lower
    assert estimated(test, (36, 0, 36), RISKS).score > 0.5


def test_results_all_alike_leave_room():
    for counts in ((0, 0, 0, 0, 20), (0, 0, 20, 0, 0), (0, 0, 0, 1, 19)):
        estimate = estimated(MultinomialTest(elo0=0, elo1=35), counts, RISKS)
        assert estimate.high - estimate.low > 0.15, counts
    drawn = estimated(BernoulliTest(p0=0.5, p1=0.6), (0, 20, 0), RISKS)
    assert drawn.high - drawn.low > 0.1


def test_a_forecast_meets_the_error_rates_at_the_hypotheses():
    """Beyond the bounds as steps are, the rates lie below alpha and beta, not above."""
    for test, none in (
        (BernoulliTest(p0=0.55, p1=0.65), (0,) * 3),
        (MultinomialTest(elo0=0, elo1=35), (0,) * 5),
    ):
        weak, strong = (
            foreseen(test.steps(test.score(one, none), none), RISKS) for one in test.values
        )
        assert 0.03 < weak.accepted < 0.05
        assert 0.95 < strong.accepted < 0.97


def test_a_forecast_of_a_level_walk_joins_its_neighbours():
    """At the drift 0 the formula is another one; and one-sided walks have none at all."""
    steps = [(-0.25, 0.5), (0.25, 0.5)]
    level = foreseen(steps, RISKS)
    assert level.accepted == pytest.approx(0.5)
    near = foreseen([(-0.25, 0.5 - 1e-5), (0.25, 0.5 + 1e-5)], RISKS)
    assert (near.accepted, near.results) == pytest.approx((level.accepted, level.results), rel=1e-3)
    always = foreseen([(0.25, 1.0)], RISKS)
    assert (always.accepted, always.results) == pytest.approx((1.0, (RISKS.upper + 0.125) / 0.25))
    never = foreseen([(-0.25, 1.0)], RISKS)
    assert (never.accepted, never.results) == pytest.approx((0.0, (RISKS.upper + 0.125) / 0.25))


def test_pairs_of_one_seed_need_fewer_matches():
    """The seat decides nearly all: a pair varies little, two independent matches much."""
    test = MultinomialTest(elo0=0, elo1=35)
    seats, chance = (2, 10, 176, 10, 2), (50, 0, 100, 0, 50)
    paired, loose = (
        foreseen(test.steps(score_of(0), counts), RISKS).results for counts in (seats, chance)
    )
    assert paired < loose / 8


def test_elo_and_score_undo_each_other():
    assert score_of(0) == 0.5
    assert score_of(200) == pytest.approx(0.7597, abs=5e-5)
    for elo in (-800, -3, 0, 1, 35, 400):
        assert elo_of(score_of(elo)) == pytest.approx(elo, abs=1e-9)
    assert (elo_of(0.0), elo_of(1.0)) == (-math.inf, math.inf)
