"""Opponent sampling: weights against quadrature, mixes, degenerate cases, one seed one draw."""

from dataclasses import replace

import numpy as np
import pytest
import trueskill
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from league.players import Book, Player, PlayerKind
from league.stats.ratings import Belief, Drift, Link, RatingTable
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
from matchmaker.state.analysis import Analysis

MAIN = Player(name="main", game="brawl", kind=PlayerKind.LIVE)
MIX = {"snapshots": 7.0, "constant": 0.5, "based": 1.5, "random": 1.0}


def candidates(*rows):
    """Of (wins, draws, losses, predicted, quality)."""
    names = tuple(f"p{place}" for place in range(len(rows)))
    wins, draws, losses, predicted, quality = np.array(rows, np.float64).reshape(-1, 5).T
    points = wins + draws / 2
    return Candidates(names, wins + draws + losses, points, predicted, quality, quality / 2)


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
    """The prior of .6 counts for five games, a draw for half a win."""
    x = (np.arange(200_000) + 0.5) / 200_000
    density = stats.beta(3.0 + 12 + 1.5, 2.0 + 5 + 1.5).pdf(x)
    expected = float((function(x) * density).sum() / density.sum())
    (weight,) = weights_of(rule, candidates((12, 3, 5, 0.6, 0.4)))
    assert weight == pytest.approx(expected, rel=1e-5)


def test_a_newcomer_takes_a_bounded_share():
    """50 opponents beaten at .95: a flat prior of ½ would give the newcomer 68 % of all matches."""
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
    assert weights_of("nash", two).tolist() == [0.22, 0.005]
    assert weights_of("uniform", two).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="'best'"):
        weights_of("best", two)


def test_who_had_no_clean_match_yet_has_the_mean_share_of_the_nash_mixture():
    analysis = Analysis(shares={"main@1": 0.75, "main@2": 0.0, "other@1": 0.25, "other@2": 0.0})
    league = replace(pool(RatingTable(), RatingTable()), analysis=analysis)
    found = candidates_of([snapshot(name) for name in ("main@1", "main@2", "main@3")], league)
    assert found.nash_N.tolist() == [0.75, 0.0, 0.25]


def test_vanishing_weights_mean_uniform():
    assert normalised(np.zeros(4)).tolist() == [0.25] * 4
    assert normalised(np.array([np.nan, 1.0])).tolist() == [0.5, 0.5]


def test_candidates_hold_recent_matches_and_what_the_ratings_predict():
    train, clean = RatingTable(), RatingTable()
    train.learns("main")
    for game in [*[("main", "main@1", 1.0)] * 3, ("main@1", "main", 0.5)]:
        train.fold(*game)
    train.begin_epoch(0, 0.1, Link(0.8, 0.5))
    train.inherit("main@2", "main", 5)
    clean.fold("main@1", "based", 1.0)
    names = ["main@1", "main@2", "main@3"]
    found = candidates_of([snapshot(name) for name in names], pool(train, clean))
    mine = train.belief("main")
    theirs = [clean.belief("main@1"), train.belief("main@2"), mine]  # main@3 is taken for a copy
    games = 1 + 0.99 + 0.99**2 + 0.99**3
    assert (found.games_N[0], found.points_N[0]) == pytest.approx((games, games - 0.5))

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


def test_against_a_clean_rating_the_learner_is_as_strong_as_its_two_newest_clean_snapshots():
    train, clean = RatingTable(), RatingTable(Drift())
    for name, score in (("main@1000", 0.0), ("main@300000", 1.0), ("main@900000", 1.0)):
        for _ in range(5):
            clean.fold(name, "based", score)
    train.fold("main", "random", 0.0)
    bots = [Player(name=name, game="brawl", kind=PlayerKind.BOT) for name in ("based", "random")]
    steps = {"main@1000": 1000, "main@300000": 300_000, "main@900000": 900_000, "other@5": 5}
    found = {name: replace(snapshot(name), step=step) for name, step in steps.items()}
    league = replace(pool(train, clean), players=found)
    older, newer = clean.belief("main@300000"), clean.belief("main@900000")
    weights = [1 / (older.sigma**2 + 10 * np.log(95 / 35)), 1 / newer.sigma**2]
    mine = Belief(float(np.average([older.mu, newer.mu], weights=weights)), sum(weights) ** -0.5)

    def predicted(me, other):
        return float(train.link.curve((me.mu - other.mu) / spread(me, other)))

    wanted = [predicted(mine, clean.belief("based"))]
    wanted.append(predicted(train.belief("main"), train.belief("random")))  # it has no clean match
    assert candidates_of(bots, league).predicted_N == pytest.approx(wanted, abs=1e-12)
    clean.pin("main@900000", 40.0)
    assert candidates_of(bots, league).predicted_N[0] > 0.9, "a pinned one has no variance"


def test_an_adaptive_mix_moves_weight_among_bots_alone():
    adapted = adapted_mix(MIX, {"constant": 0.2, "based": 0.9, "random": 0.9}, strength=4.0)
    grown = {"constant": 0.5 * (1 + 4 * 0.8), "based": 1.5 * 1.4, "random": 1.0 * 1.4}
    total = sum(grown.values())
    wanted = {bot: 3.0 * weight / total for bot, weight in grown.items()}
    assert adapted == pytest.approx({"snapshots": 7.0} | wanted)
    assert adapted_mix({"self": 1.0, "based": 0.0}, {"based": 0.5}, 4.0) == {
        "self": 1.0,
        "based": 0.0,
    }


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
