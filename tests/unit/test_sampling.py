"""Opponent sampling: weights against quadrature, mixes, degenerate cases, one seed one draw."""

import numpy as np
import pytest
import trueskill
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from league.players import Book, Player, PlayerKind
from league.stats.payoff import Counts
from league.stats.ratings import Belief, Link, RatingTable
from league.stats.ratings.belief import spread
from matchmaker.sampling.candidates import Pool, candidates_of
from matchmaker.sampling.draw import (
    Distribution,
    Stream,
    derived_seed,
    draws,
)
from matchmaker.sampling.mixes import (
    Candidates,
    adapted_mix,
    normalised,
    weights_of,
)
from matchmaker.settings import MatchmakerSettings

MAIN = Player(name="main", game="brawl", kind=PlayerKind.LIVE)
MIX = {"snapshots": 7.0, "constant": 0.5, "based": 1.5, "random": 1.0}


def candidates(*rows):
    """Of (wins, draws, losses, predicted, quality)."""
    names = tuple(f"p{place}" for place in range(len(rows)))
    return Candidates(names, *np.array(rows, np.float64).reshape(-1, 5).T)


def pool(train, clean, **wanted):
    return Pool(MatchmakerSettings(**wanted), MAIN, {}, {Book.TRAIN: train, Book.EVAL: clean})


def snapshot(name):
    return Player(name=name, game="brawl", kind=PlayerKind.SNAPSHOT)


@pytest.mark.parametrize(
    ("rule", "function"),
    [
        ("pfsp_hard", lambda x: (1 - x) ** 2),
        ("pfsp_var", lambda x: x * (1 - x)),
        ("pfsp_linear", lambda x: 1 - x),
        ("pfsp_capped", lambda x: np.minimum(0.5, 1 - x)),
    ],
)
def test_pfsp_is_the_expectation_over_the_posterior(rule, function):
    """The prior of .6 counts for ten games, a draw for half a win."""
    x = (np.arange(200_000) + 0.5) / 200_000
    density = stats.beta(6.0 + 12 + 1.5, 4.0 + 5 + 1.5).pdf(x)
    expected = float((function(x) * density).sum() / density.sum())
    (weight,) = weights_of(rule, candidates((12, 3, 5, 0.6, 0.4)))
    assert weight == pytest.approx(expected, rel=1e-5)


def test_a_newcomer_takes_a_bounded_share():
    """50 opponents beaten at .95: a flat prior of ½ would give the newcomer 67 % of all matches."""
    beaten = [(190, 0, 10, 0.95, 0.4)] * 50
    weights = weights_of("pfsp_hard", candidates(*beaten, (0, 0, 0, 0.8, 0.4)))
    assert 0.20 < normalised(weights)[-1] < 0.33


def test_rules_by_age_and_quality():
    many = candidates(*[(0, 0, 0, 0.5, 0.4)] * 20)
    latest, recent = weights_of("latest", many), weights_of("recent", many)
    assert (latest[-1], latest.sum()) == (1.0, 1.0)
    assert recent[-10:].sum() == pytest.approx(0.99)
    assert recent[:-10].sum() == pytest.approx(0.01)
    assert weights_of("recent", candidates(*[(0, 0, 0, 0.5, 0.4)] * 5)).tolist() == [1.0] * 5
    two = candidates((0, 0, 0, 0.5, 0.44), (0, 0, 0, 0.5, 0.01))
    assert weights_of("quality", two).tolist() == [0.44, 0.01]
    assert weights_of("uniform", two).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="'best'"):
        weights_of("best", two)


def test_vanishing_weights_mean_uniform():
    assert normalised(np.zeros(4)).tolist() == [0.25] * 4
    assert normalised(np.array([np.nan, 1.0])).tolist() == [0.5, 0.5]


def test_candidates_hold_counts_and_what_the_ratings_predict():
    train, clean = RatingTable(), RatingTable()
    for game in [*[("main", "main@1", 1.0)] * 3, ("main@1", "main", 0.5)]:
        train.fold(*game)
    train.begin_epoch(0, 0.1, Link(0.8, 0.5))
    train.inherit("main@2", "main", 5)
    clean.fold("main@1", "based", 1.0)
    names = ["main@1", "main@2", "main@3"]
    found = candidates_of([snapshot(name) for name in names], pool(train, clean))
    mine = train.belief("main")
    theirs = [clean.belief("main@1"), train.belief("main@2"), mine]  # main@3 is taken for a copy
    assert (found.wins_N[0], found.draws_N[0], found.losses_N[0]) == (3, 1, 0)

    def predicted(other):
        return float(train.link.curve((mine.mu - other.mu) / spread(mine, other)))

    assert found.predicted_N == pytest.approx([predicted(one) for one in theirs], abs=1e-12)
    ratings = [trueskill.Rating(one.mu, one.sigma) for one in (mine, *theirs)]
    quality = [trueskill.quality_1vs1(ratings[0], one) for one in ratings[1:]]
    assert found.quality_N == pytest.approx(np.array(quality))
    (stranger,) = candidates_of(
        [Player(name="based", game="brawl", kind=PlayerKind.BOT)], pool(train, RatingTable())
    ).predicted_N
    assert stranger == pytest.approx(predicted(Belief()))


def test_an_adapted_weight_grows_with_the_share_of_matches_not_won():
    met = {"constant": Counts(wins=90, losses=90), "based": Counts(draws=60)}
    adapted = adapted_mix(MIX, met, strength=4.0)
    assert adapted["constant"] == adapted["based"] / 3.0 == pytest.approx(0.5 * (1 + 4 * 0.5))
    assert (adapted["snapshots"], adapted["random"]) == (7.0, 1.0), "nothing is known of them"
    assert adapted_mix(MIX, {"based": Counts(losses=1)}, 1.0)["based"] == pytest.approx(
        1.5 * (1 + 6 / 11)
    )


@example([0.0, 1.0], 0.0)
@example([0.5, 0.0, 0.5], 0.5)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0, 1, exclude_max=True))
def test_pick_never_takes_what_has_no_probability(weights, uniform):
    probabilities = tuple(normalised(np.array(weights)).tolist())
    index = Distribution(tuple("abcdefgh"[: len(weights)]), probabilities).pick(uniform)
    assert probabilities[index] > 0.0


def test_derived_seeds_fit_and_differ():
    seeds = {derived_seed(1, i) for i in range(1000)} | {derived_seed(i, 1) for i in range(2, 1000)}
    assert len(seeds) == 1998
    assert all(0 <= seed < 1 << 63 for seed in seeds)
    assert derived_seed(1, 23) != derived_seed(12, 3)


@settings(max_examples=30)
@given(
    st.integers(0, 2**63), st.lists(st.tuples(st.integers(0, 500), st.integers(1, 9)), max_size=8)
)
def test_a_streams_words_are_its_seeds_from_any_place_on(seed, asked):
    stream, whole = Stream(seed), np.random.PCG64(seed).random_raw(600).tolist()
    for first, count in asked:
        assert stream.words(first, count) == whole[first : first + count]


SHARES = Distribution(("a", "b"), (0.25, 0.75))
WITHIN = {"a": Distribution(("x",), (1.0,)), "b": Distribution(("y", "z"), (0.5, 0.5))}


@pytest.mark.parametrize("in_a_row", [1, 4])
def test_a_draw_depends_on_its_ordinal_alone_and_follows_the_probabilities(in_a_row):
    together = list(draws(SHARES, WITHIN, Stream(5), range(2, 8002), in_a_row))
    for ordinal in (2, 3, 4, 7, 8001):
        (alone,) = draws(SHARES, WITHIN, Stream(5), [ordinal], in_a_row)
        assert together[ordinal - 2] == alone
    single = list(draws(SHARES, WITHIN, Stream(5), range(8002)))
    for ordinal, drawn in enumerate(together, 2):
        first, own = single[ordinal - ordinal % in_a_row], single[ordinal]
        assert (drawn.category, drawn.opponent, drawn.probability) == first[:3]
        assert (drawn.learner_seat, drawn.match_seed) == own[3:]
    assert len({drawn.match_seed for drawn in together}) == len(together)
    assert stats.binomtest(sum(d.learner_seat for d in together), len(together)).pvalue > 1e-3
    count = 8000 / in_a_row
    for name, share in (("x", 0.25), ("y", 0.375), ("z", 0.375)):
        found = sum(drawn.opponent == name for drawn in together) / in_a_row
        assert found == pytest.approx(count * share, abs=5 * (count * share * (1 - share)) ** 0.5)
        assert all(drawn.probability == share for drawn in together if drawn.opponent == name)
