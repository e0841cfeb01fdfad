"""The fit of all games at once: known answers, another optimiser, what intervals are of,
anchors, misfit.
"""

import math

import numpy as np
import pytest

from league.errors import InvalidInput
from league.stats.payoff import PayoffTable
from league.stats.ratings import BETA, Link
from league.stats.ratings.belief import draw_margin
from league.stats.ratings.fit import (
    MAX_NODES,
    PairCounts,
    expected_score,
    fit,
    fit_cells,
    log_probabilities,
    points_per_logit,
)


def counts(*rows):
    """Of (first, second, wins, draws, losses)."""
    first, second, *results = np.array(rows, np.float64).T
    return PairCounts(first.astype(np.int64), second.astype(np.int64), *results)


def games(rng, theta, size, nu=0.35):
    """The counts of random games of players so strong."""
    players = len(theta)
    first, second = np.nonzero(np.triu(np.ones((players, players)), 1))
    log_nu = math.log(nu) if nu else -math.inf
    chances = np.exp(np.array(log_probabilities(theta[first] - theta[second], log_nu))).T
    met = rng.multinomial(size, np.full(len(first), 1 / len(first)))
    wins, draws, losses = rng.multinomial(met, chances).T.astype(np.float64)
    return PairCounts(first, second, wins, draws, losses)


def test_three_wins_of_four_are_odds_of_three():
    many = counts((0, 1, 3e6, 0, 1e6))
    found = fit(many, 2)
    gap = found.difference(0, 1)
    assert gap.value / found.points_per_logit == pytest.approx(math.log(3.0), abs=1e-5)
    assert found.win_probability(0, 1).value == pytest.approx(0.75, abs=1e-6)
    variance = found.points_per_logit**2 * (1 / 3e6 + 1 / 1e6)  # of a logit of two counts
    assert gap.high - gap.value == pytest.approx(1.959964 * math.sqrt(variance), rel=1e-4)


def test_draws_of_equals_are_their_share():
    found = fit(counts((0, 1, 1e6, 2e6, 1e6)), 2)
    assert found.nu == pytest.approx(2.0, rel=1e-5)
    assert found.win_probability(0, 1).value == pytest.approx(0.25, abs=1e-6)


def test_ratings_are_means_and_sigmas_of_the_posterior():
    """Against the posterior itself on a grid, where games are few: three wins in three games. The
    others, which met only the anchor too, show how wide the league is.
    """
    rng, others = np.random.default_rng(2), range(2, 302)
    wins = rng.binomial(10, 1 / (1 + np.exp(-rng.normal(0, 2.4, len(others)))))
    rows = [(n, 1, won, 0, 10 - won) for n, won in zip(others, wins, strict=True)]
    found = fit(counts((0, 1, 3, 0, 0), *rows), 302, anchors={1: 25.0})
    theta = np.linspace(-12, 12, 20_001)
    win, _, _ = log_probabilities(theta, math.log(found.nu))
    prior = -((theta * found.points_per_logit / found.spread) ** 2) / 2
    weight = np.exp(prior + 3 * win)
    mean = 25.0 + found.points_per_logit * np.average(theta, weights=weight)
    mode = 25.0 + found.points_per_logit * theta[np.argmax(weight)]
    assert abs(found.rating_N[0] - mean) < 0.35 * abs(mode - mean)
    interval = found.interval(0)
    held = (theta > (interval.low - 25) / found.points_per_logit) & (
        theta < (interval.high - 25) / found.points_per_logit
    )
    assert weight[held].sum() / weight.sum() == pytest.approx(0.95, abs=0.015)


def test_without_anchors_the_mean_is_25_and_ratings_are_of_differences_to_it():
    rng = np.random.default_rng(3)
    theta = rng.normal(0, 1.5, 12)
    found = fit(games(rng, theta, 4_000), 12)
    assert not found.is_anchored
    assert found.rating_N.mean() == pytest.approx(25.0, abs=1e-9)
    assert found.covariance_NN.sum(axis=0) == pytest.approx(np.zeros(12), abs=1e-9)
    gap = found.difference(3, 7)
    c = found.covariance_NN
    assert gap.value == pytest.approx(found.rating_N[3] - found.rating_N[7])
    reach = 1.959964 * found.widening * math.sqrt(c[3, 3] + c[7, 7] - 2 * c[3, 7])
    assert (gap.low, gap.high) == pytest.approx((gap.value - reach, gap.value + reach), abs=1e-6)


def test_anchors_stay_and_move_all_others_with_them():
    rng = np.random.default_rng(5)
    met = games(rng, rng.normal(0, 1.0, 8), 20_000)
    found, shifted = (
        fit(met, 8, anchors={0: 20.0, 1: 28.0}),
        fit(met, 8, anchors={0: 120.0, 1: 128.0}),
    )
    assert found.is_anchored
    assert found.rating_N[:2].tolist() == [20.0, 28.0]
    assert not found.covariance_NN[:2].any()
    assert found.interval(0).low == found.interval(0).high == 20.0
    # but for the prior
    assert shifted.rating_N - found.rating_N == pytest.approx(np.full(8, 100.0), abs=0.6)
    one = fit(met, 8, anchors={0: 20.0})
    assert one.difference(3, 5).value == pytest.approx(fit(met, 8).difference(3, 5).value, abs=0.02)


@pytest.mark.parametrize("apart", [50.0, 100.0, 1000.0, 1e6])
@pytest.mark.parametrize("games", [1, 10, 1000])
def test_anchors_far_apart_may_draw(apart, games):
    """However little that fits their ratings, the fit ends and everything is finite."""
    anchors = {0: 25.0, 1: 25.0 + apart}
    alone = fit(counts((0, 1, 0, games, 0)), 2, anchors=anchors)
    met = fit(counts((0, 1, 0, games, 0), (1, 2, 3, 2, 1), (0, 2, 1, 5, 6)), 3, anchors=anchors)
    assert alone.rating_N.tolist() == list(anchors.values())
    assert np.isfinite(met.rating_N).all()
    assert np.isfinite(met.covariance_NN).all()
    for found in (alone, met):
        odds = found.win_probability(0, 1)
        assert 0 <= odds.low <= odds.value <= odds.high <= 1


def test_who_won_all_games_and_who_met_nobody_stay_finite():
    """Two islands, an all-winner on one, and a player without a game."""
    found = fit(counts((0, 1, 50, 0, 0), (2, 3, 10, 0, 10)), 5, anchors={3: 25.0})
    assert np.isfinite(found.rating_N).all()
    assert found.rating_N[0] > 30.0
    assert found.rating_N[4] == pytest.approx(25.0, abs=1e-9)
    assert found.interval(4).high - 25.0 == pytest.approx(1.959964 * found.spread, rel=1e-6)
    across, on_one = found.difference(1, 2), found.difference(2, 3)
    assert across.high - across.low > 3 * (on_one.high - on_one.low)


def test_neither_the_order_of_pairs_nor_of_players_nor_the_seats_matter():
    rng = np.random.default_rng(1)
    met = games(rng, rng.normal(0, 1.5, 9), 300)
    found = fit(met, 9)
    order, renamed = rng.permutation(len(met.first_P)), rng.permutation(9)
    swapped = rng.random(len(order)) < 0.5
    first, second = np.where(swapped, (met.second_P, met.first_P), (met.first_P, met.second_P))
    wins, losses = np.where(swapped, (met.losses_P, met.wins_P), (met.wins_P, met.losses_P))
    columns = (renamed[first], renamed[second], wins, met.draws_P, losses)
    again = fit(PairCounts(*(column[order] for column in columns)), 9)
    assert again.rating_N[renamed] == pytest.approx(found.rating_N, abs=1e-5)
    assert again.covariance_NN[np.ix_(renamed, renamed)] == pytest.approx(
        found.covariance_NN, abs=1e-5
    )


def test_counts_of_a_payoff_table_have_each_pair_once():
    table = PayoffTable()
    for game in [("b", "a", 1.0), ("a", "b", 0.5), ("c", "b", 0.0), ("b", "a", 1.0)]:
        table.add(*game)
    found, names = PairCounts.of_cells(table.cells())
    assert names == ["a", "b", "c"]
    columns = (found.first_P, found.second_P, found.wins_P, found.draws_P, found.losses_P)
    assert np.transpose(columns).tolist() == [[0, 1, 0, 1, 2], [1, 2, 1, 0, 0]]
    plain, anchored = fit_cells(table.cells()), fit_cells(table.cells(), {"b": 30.0, "absent": 1.0})
    assert plain.names == anchored.names == tuple(names)
    assert plain.rating_N.tolist() == fit(found, 3).rating_N.tolist()
    assert anchored.rating_N.tolist() == fit(found, 3, anchors={1: 30.0}).rating_N.tolist()
    assert (plain.rating_N.mean(), anchored.rating_N[1]) == pytest.approx((25.0, 30.0))


def test_rock_paper_scissors_is_a_misfit_with_wide_intervals():
    cycle = fit(counts((0, 1, 90, 0, 10), (1, 2, 90, 0, 10), (2, 0, 90, 0, 10)), 3)
    assert cycle.misfit > 50.0
    many = fit(counts((0, 1, 9e4, 0, 1e4), (1, 2, 9e4, 0, 1e4), (2, 0, 9e4, 0, 1e4)), 3)
    assert many.freedom == pytest.approx(1.0, abs=0.02), "three pairs, two differences"
    assert cycle.widening == pytest.approx(
        math.sqrt(cycle.misfit - 2 * math.sqrt(2 / cycle.freedom))
    )
    even = fit(counts((0, 1, 50, 0, 50), (1, 2, 50, 0, 50), (2, 0, 50, 0, 50)), 3)
    assert even.widening == 1.0
    assert cycle.interval(0).high - cycle.interval(0).low > 5 * (
        even.interval(0).high - even.interval(0).low
    )
    rng = np.random.default_rng(7)
    line = fit(games(rng, rng.normal(0, 1.5, 60), 60_000), 60)
    assert line.misfit == pytest.approx(1.0, abs=0.12)
    assert line.freedom == pytest.approx(60 * 59 / 2 - 59, rel=0.05)
    assert line.widening < 1.02
    assert fit(counts((0, 1, 9, 0, 1)), 2).freedom == 0.0, "one pair is always explained"


def test_points_agree_with_trueskill_where_they_are_matched():
    c = math.sqrt(2) * BETA
    for nu in (0.0, 0.05, 0.35, 2.0, 18.0):
        margin = draw_margin(max(nu / (2 + nu), 1e-9))
        x = np.linspace(0.0, 12.0, 1_001)
        d = float(x[np.argmin(np.abs(expected_score(x, nu) - 0.9))])
        score = Link().score(points_per_logit(nu) * d / c, margin / c)
        assert score == pytest.approx(0.9, abs=0.002)
    assert points_per_logit(0.0) == pytest.approx(3.44, abs=0.005)
    assert points_per_logit(0.0) > points_per_logit(0.35) > points_per_logit(2.0)


def test_the_spread_of_a_league_is_found_and_unequal_leagues_are_not_pulled_together():
    rng = np.random.default_rng(11)
    for logits in (0.5, 2.0, 4.0):
        theta = rng.normal(0, logits, 80)
        found = fit(games(rng, theta, 4_000), 80)
        spread = found.points_per_logit * theta.std()
        assert found.spread == pytest.approx(spread, rel=0.2)
        assert found.rating_N.std() == pytest.approx(spread, rel=0.2)


@pytest.mark.parametrize(
    ("wrong", "value"),
    [
        ({"players": MAX_NODES + 1}, str(MAX_NODES + 1)),
        ({"anchors": {5: 25.0}}, "anchor 5"),
        ({"anchors": {0: math.inf}}, "inf"),
    ],
)
def test_what_can_not_be_fitted_is_refused(wrong, value):
    with pytest.raises(InvalidInput, match=value):
        fit(counts((0, 1, 3, 0, 1)), **{"players": 3, **wrong})
