"""What is measured from the log, and when: epochs, the share of draws, the link of predictions."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league.stats.ratings import BETA, Drift, Link, PredictionRecord, RatedGame, RatingTable
from league.stats.ratings.belief import draw_margin
from league.stats.ratings.epochs import (
    DRAWS_CEILING,
    DRAWS_FLOOR,
    FIRST_GAMES,
    GROWTH,
    PRIOR_GAMES,
    Epoch,
    curve,
    is_due,
    measured_draw_probability,
    measured_link,
    next_epoch,
)
from league.stats.ratings.record import BINS


def record_of(games, draws=0.0):
    """As many games on one gap, `draws` of them drawn."""
    record = PredictionRecord()
    record.games[0], record.draws[0] = float(games), float(draws)
    record.narrowness[0], record.scores[0] = games / 6.0, games / 2.0
    return record


def test_epochs_are_rare_and_rarer():
    due, games = [], 0
    for now in range(20_001):
        if is_due(games, now):
            games = now
            due.append(now)
    assert due[0] == FIRST_GAMES
    assert all(
        later / earlier == pytest.approx(GROWTH, abs=0.001) for earlier, later in pairwise(due)
    )
    games, count = 0, 0
    while games < 10_000_000:
        games, count = max(FIRST_GAMES, int(np.ceil(GROWTH * games))), count + 1
    assert count < 25


def test_an_epoch_measures_the_games_since_the_last_one():
    first = next_epoch(Epoch(0, 0, 0.1), 1_234, record_of(FIRST_GAMES, 500))
    assert (first.after_position, first.games) == (1_234, FIRST_GAMES)
    assert first.draw_probability == pytest.approx((500 + 10) / (FIRST_GAMES + PRIOR_GAMES))
    record = record_of(FIRST_GAMES, 500)
    record.games[0] += 499
    assert next_epoch(first, 2_000, record) is None
    record.games[0] += 1
    second = next_epoch(first, 2_000, record)
    expected = PRIOR_GAMES * first.draw_probability / (500 + PRIOR_GAMES)
    assert second.draw_probability == pytest.approx(expected), "no draw among the 500 games since"
    record.games[0] += 1_000
    assert second.record.total == 1_500, "an epoch keeps its own copy"


@given(st.integers(0, 10**7), st.floats(0.0, 1.0), st.floats(DRAWS_FLOOR, DRAWS_CEILING))
def test_the_draw_probability_keeps_its_bounds(games, share, before):
    draws = int(games * share)
    measured = measured_draw_probability(record_of(games, draws), before)
    assert DRAWS_FLOOR <= measured <= DRAWS_CEILING
    if games > 10**6:
        assert measured == pytest.approx(
            min(max(draws / games, DRAWS_FLOOR), DRAWS_CEILING), abs=1e-3
        )
    if games == 0:
        assert measured == pytest.approx(before)


def planted(link, draws=0.1, games=50_000):
    """The record of games that came out as `link` says, without chance."""
    record, margin = PredictionRecord(), draw_margin(draws)
    for b in range(BINS - 10):
        t, c = 0.1 * b + 0.05, 6.5
        score = (
            curve(np.array(t - margin / c), link) + curve(np.array(t + margin / c), link)
        ) / 2.0
        record.games[b], record.gaps[b] = float(games), games * t
        record.narrowness[b], record.scores[b] = games / c, games * float(score)
    return record


@pytest.mark.parametrize("link", [Link(), Link(0.8, 0.0), Link(1.2, 1.0), Link(0.93, 0.5)])
def test_the_link_that_made_the_games_is_found(link):
    assert measured_link(planted(link), 0.1) == link


def test_few_games_bend_nothing():
    assert measured_link(PredictionRecord(), 0.1).sharpness == 1.0
    few = measured_link(planted(Link(0.6), games=1), 0.1)
    assert few.sharpness > 0.8


games = st.lists(
    st.builds(
        RatedGame,
        st.sampled_from("abc"),
        st.sampled_from("abc"),
        st.sampled_from([0.0, 0.5, 1.0]),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
    ),
    max_size=25,
)


@settings(max_examples=40, deadline=None)
@given(games)
def test_a_table_records_what_it_believed_before_each_game(log):
    table, record = RatingTable(Drift(10.0)), PredictionRecord()
    table.learns("a")
    known: dict[str, int] = {}
    for one in log:
        if one.seat0 != one.seat1:
            first, second = table.belief(one.seat0), table.belief(one.seat1)
            grown = 0.0
            if "a" in (one.seat0, one.seat1):
                step = one.step0 if one.seat0 == "a" else one.step1
                since = known.get("a", step)
                grown, known["a"] = Drift(10.0).variance(since, step), max(since, step)
            c = (2 * BETA**2 + first.sigma**2 + second.sigma**2 + grown) ** 0.5
            t = np.array([(first.mu - second.mu) / c])
            record.add_all(t, np.array([c]), np.array([one.outcome]))
        table.fold(one)
    got, wanted = table.record, record
    assert got.total == wanted.total
    for column in ("games", "draws", "gaps", "narrowness", "scores"):
        assert getattr(got, column) == pytest.approx(getattr(wanted, column), abs=1e-9)


def test_records_add_up():
    record = PredictionRecord()
    record.add_all(np.array([0.31]), np.array([6.0]), np.array([1.0]))
    earlier = record.copy()
    record.add_all(np.array([-0.31, 99.0]), np.array([6.0, 6.0]), np.array([0.0, 0.5]))
    assert record.since(earlier).games[3] == 1.0
    assert record.scores[3] == 2.0, "both times the one ahead won"
    assert (record.games[-1], record.draws[-1]) == (1.0, 1.0)
    assert earlier.total == 1
