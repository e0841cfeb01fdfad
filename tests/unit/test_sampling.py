"""Opponent sampling: the formulas against quadrature, shares, degenerate cases, one seed one
draw.
"""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from league.stats.payoff import Counts
from matchmaker.sampling.mixes import (
    Candidate,
    Distribution,
    Policy,
    Stream,
    candidate_weights,
    category_shares,
    derived_seed,
    draw,
    draws,
    normalised,
    posterior,
)

NONE = Counts()


def candidate(name="x", counts=NONE, predicted=0.5, quality=0.4):
    return Candidate(name=name, counts=counts, predicted=predicted, quality=quality)


def weights(rule, candidates, **policy):
    return candidate_weights(Policy(rule=rule, **policy), candidates)


def expectation(rule, belief):
    x = (np.arange(200_000) + 0.5) / 200_000
    f = {
        "pfsp_hard": (1 - x) ** 2,
        "pfsp_var": x * (1 - x),
        "pfsp_linear": 1 - x,
        "pfsp_capped": np.minimum(0.5, 1 - x),
    }[rule]
    density = stats.beta(belief.a, belief.b).pdf(x)
    return float((f * density).sum() / density.sum())


@pytest.mark.parametrize("rule", ["pfsp_hard", "pfsp_var", "pfsp_linear", "pfsp_capped"])
def test_pfsp_is_the_expectation_over_the_posterior(rule):
    seen = candidate(counts=Counts(wins=12, draws=3, losses=5), predicted=0.6)
    (weight,) = weights(rule, [seen])
    assert weight == pytest.approx(expectation(rule, posterior(seen.counts, 0.6, 10.0)), rel=1e-5)


def test_pfsp_closed_forms():
    belief = posterior(Counts(wins=7, draws=2, losses=1), 0.5, 10.0)
    a, b = belief.a, belief.b
    assert (a, b) == (13.0, 7.0)
    assert belief.mean_loss_power(2.0) == pytest.approx(
        b * (b + 1) / ((a + b) * (a + b + 1)), rel=1e-12
    )
    assert belief.variance_weight() == pytest.approx(a * b / ((a + b) * (a + b + 1)), rel=1e-12)


def test_a_draw_counts_half_a_win():
    drawn = posterior(Counts(draws=4), 0.5, 10.0)
    split = posterior(Counts(wins=2, losses=2), 0.5, 10.0)
    assert drawn == split


def test_a_newcomer_takes_a_bounded_share():
    """50 opponents beaten at .95; the notes: 67 % with a flat prior, about 30 % with a rating
    prior.
    """
    beaten = [candidate(counts=Counts(wins=190, losses=10), predicted=0.95) for _ in range(50)]
    newcomer = candidate(predicted=0.8)
    share = normalised(weights("pfsp_hard", [*beaten, newcomer]))[-1]
    assert 0.20 < share < 0.33
    flat = [0.05**2] * 50 + [0.5**2]
    assert normalised(flat)[-1] == pytest.approx(0.667, abs=0.001)


@pytest.mark.parametrize(
    "rule", ["pfsp_hard", "pfsp_var", "pfsp_capped", "quality", "uniform", "recent"]
)
def test_one_candidate_is_certain(rule):
    assert normalised(weights(rule, [candidate()])) == [1.0]


def test_vanishing_weights_mean_uniform():
    hopeless = [candidate(quality=0.0) for _ in range(4)]
    assert weights("quality", hopeless) == [0.0] * 4
    assert normalised(weights("quality", hopeless)) == [0.25] * 4
    assert normalised([float("nan"), 1.0]) == [0.5, 0.5]


def test_latest_and_recent_prefer_the_newest():
    many = [candidate(str(i)) for i in range(20)]
    assert weights("latest", many)[-1] == 1.0
    assert sum(weights("latest", many)) == 1.0
    recent = weights("recent", many, recent_count=5, recent_share=0.99)
    assert sum(recent[-5:]) == pytest.approx(0.99)
    assert sum(recent[:-5]) == pytest.approx(0.01)
    assert weights("recent", many[:5], recent_count=5) == [1.0] * 5


def test_quality_prefers_the_equal():
    near, far = candidate(quality=0.44), candidate(quality=0.01)
    assert weights("quality", [near, far]) == [0.44, 0.01]


MIX = {"snapshots": 7.0, "constant": 0.5, "based": 1.5, "random": 1.0}


def test_mix_weights_are_relative():
    shares = category_shares(MIX, dict.fromkeys(MIX, True))
    assert shares == pytest.approx(
        {"snapshots": 0.70, "constant": 0.05, "based": 0.15, "random": 0.10}
    )


def test_an_empty_categorys_share_is_spread_by_weight_and_returns():
    empty = category_shares(MIX, {"constant": True, "based": True, "random": True})
    assert empty == pytest.approx({"constant": 1 / 6, "based": 1 / 2, "random": 1 / 3})
    assert category_shares(MIX, dict.fromkeys(MIX, True))["snapshots"] == pytest.approx(0.7)
    assert category_shares(MIX, {}) == {}
    assert category_shares({"self": 0.0}, {"self": True}) == {}


@example([0.0, 1.0], 0.0)
@example([0.5, 0.0, 0.5], 0.5)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0, 1, exclude_max=True))
def test_pick_never_takes_what_has_no_probability(weights_, uniform):
    probabilities = normalised(weights_)
    index = Distribution(tuple("abcdefgh"[: len(probabilities)]), tuple(probabilities)).pick(
        uniform
    )
    assert probabilities[index] > 0.0


def test_draws_follow_the_probabilities():
    shares = Distribution(("snapshots", "based"), (0.7, 0.3))
    within = {
        "snapshots": Distribution(("a", "b"), (0.25, 0.75)),
        "based": Distribution(("based",), (1.0,)),
    }
    drawn = [draw(shares, within, derived_seed(5, i)) for i in range(4000)]
    counts = [sum(d.opponent == name for d in drawn) for name in ("a", "b", "based")]
    assert stats.chisquare(counts, [0.175 * 4000, 0.525 * 4000, 0.3 * 4000]).pvalue > 1e-3
    assert stats.binomtest(sum(d.learner_seat for d in drawn), 4000).pvalue > 1e-3
    assert {d.probability for d in drawn} == {0.7 * 0.25, 0.7 * 0.75, 0.3}
    assert len({d.match_seed for d in drawn}) == 4000
    assert draw(shares, within, 99) == draw(shares, within, 99)


def test_derived_seeds_fit_and_differ():
    seeds = {derived_seed(1, i) for i in range(1000)} | {derived_seed(i, 1) for i in range(2, 1000)}
    assert len(seeds) == 1998
    assert all(0 <= seed < 1 << 63 for seed in seeds)
    assert derived_seed(1, 23) != derived_seed(12, 3)


@given(
    st.integers(0, 2**63), st.lists(st.tuples(st.integers(0, 500), st.integers(1, 9)), max_size=8)
)
def test_a_streams_words_are_its_seeds_from_any_place_on(seed, asked):
    stream, whole = Stream(seed), np.random.PCG64(seed).random_raw(600).tolist()
    for first, count in asked:
        assert stream.words(first, count) == whole[first : first + count]


def test_several_matches_of_a_draw_have_one_opponent_and_everybody_the_same_share():
    shares = Distribution(("a", "b"), (0.25, 0.75))
    within = {"a": Distribution(("x",), (1.0,)), "b": Distribution(("y", "z"), (0.5, 0.5))}
    single = list(draws(shares, within, Stream(5), range(8002)))
    together = list(draws(shares, within, Stream(5), range(2, 8002), 4))
    alone = [next(draws(shares, within, Stream(5), [ordinal], 4)) for ordinal in (2, 3, 4, 7, 8001)]
    assert [together[ordinal - 2] for ordinal in (2, 3, 4, 7, 8001)] == alone
    for ordinal, drawn in enumerate(together, 2):
        first, own = single[ordinal - ordinal % 4], single[ordinal]
        assert (drawn.category, drawn.opponent, drawn.probability) == first[:3]
        assert (drawn.learner_seat, drawn.match_seed) == own[3:]
    for name, share in (("x", 0.25), ("y", 0.375), ("z", 0.375)):
        found = sum(drawn.opponent == name for drawn in together)  # of 2,000 draws, four times each
        assert found == pytest.approx(8000 * share, abs=4 * 5 * (2000 * share * (1 - share)) ** 0.5)


def test_a_draw_depends_on_its_ordinal_alone():
    shares = Distribution(("a", "b"), (0.25, 0.75))
    within = {"a": Distribution(("x",), (1.0,)), "b": Distribution(("y", "z"), (0.5, 0.5))}
    together = list(draws(shares, within, Stream(5), range(3, 4003)))
    alone = [next(draws(shares, within, Stream(5), [ordinal])) for ordinal in (3, 4, 4002)]
    assert [together[0], together[1], together[-1]] == alone
    assert {drawn.learner_seat for drawn in together} == {0, 1}
    assert all(0 <= drawn.match_seed < 2**63 for drawn in together)
    assert len({drawn.match_seed for drawn in together}) == len(together)
    for name, share in (("x", 0.25), ("y", 0.375), ("z", 0.375)):
        found = sum(drawn.opponent == name for drawn in together)
        assert found == pytest.approx(4000 * share, abs=5 * (4000 * share * (1 - share)) ** 0.5)
        assert all(drawn.probability == share for drawn in together if drawn.opponent == name)
