"""Epochs: when they open, and what they measure from the predictions since the last one."""

import numpy as np
import pytest

from league.stats.ratings import Link, PredictionRecord, RatedGame, RatingTable
from league.stats.ratings.belief import draw_margin
from league.stats.ratings.epochs import (
    DRAWS_CEILING,
    DRAWS_FLOOR,
    FIRST_GAMES,
    GROWTH,
    PRIOR_GAMES,
    is_due,
    measured_draw_probability,
    measured_link,
)


def test_epochs_are_rare_and_get_rarer():
    games, count = 0, 0
    while games < 10_000_000:
        due = max(FIRST_GAMES, int(np.ceil(GROWTH * games)))
        assert is_due(games, due)
        assert not is_due(games, due - 1)
        games, count = due, count + 1
    assert count < 25


def test_an_epoch_measures_the_games_since_the_last_one():
    table = RatingTable(draw_probability=0.2)
    table.fold_all([("a", "b", 0.5, 0, 0)] * 500 + [("a", "b", 1.0, 0, 0)] * 499)
    assert table.next_epoch(999) is None
    table.fold(RatedGame("b", "a", 1.0))
    first = table.next_epoch(1_234)
    assert (first.after_position, first.games) == (1_234, FIRST_GAMES)
    expected = (500 + PRIOR_GAMES * 0.2) / (FIRST_GAMES + PRIOR_GAMES)
    assert first.draw_probability == pytest.approx(expected)
    table.begin_epoch(1_234, first.draw_probability, first.link)
    table.fold_all([("a", "b", 1.0, 0, 0)] * 500)
    second = table.next_epoch(2_000)
    expected = PRIOR_GAMES * first.draw_probability / (500 + PRIOR_GAMES)
    assert second.draw_probability == pytest.approx(expected), "no draw among the 500 games since"


@pytest.mark.parametrize(("share", "bound"), [(0.0, DRAWS_FLOOR), (1.0, DRAWS_CEILING)])
def test_the_draw_probability_keeps_its_bounds(share, bound):
    record = PredictionRecord()
    record.games[0], record.draws[0] = 1e6, 1e6 * share
    assert measured_draw_probability(record, 0.1) == bound
    assert measured_draw_probability(PredictionRecord(), 0.1) == pytest.approx(0.1)


def test_a_record_counts_a_game_from_the_side_that_is_ahead():
    record = PredictionRecord()
    record.add(0.31, 6.0, 1.0)
    record.add(-0.31, 6.0, 0.0)
    record.add(99.0, 6.0, 0.5)
    assert (record.games[3], record.scores[3]) == (2.0, 2.0)
    assert (record.games[-1], record.draws[-1], record.scores[-1]) == (1.0, 1.0, 0.5)
    assert record.total == 3


def planted(link, games=50_000, c=6.5):
    """Returns the record of games that came out exactly as `link` says."""
    record, margin = PredictionRecord(), draw_margin(0.1)
    for place in range(41):
        t = 0.1 * place + 0.05
        record.games[place], record.gaps[place] = float(games), games * t
        record.narrowness[place] = games / c
        record.scores[place] = games * float(link.score(t, margin / c))
    return record


@pytest.mark.parametrize("link", [Link(), Link(0.8, 0.0), Link(1.2, 1.0), Link(0.93, 0.5)])
def test_the_link_that_made_the_games_is_found(link):
    assert measured_link(planted(link), 0.1) == link


def test_few_games_bend_little():
    assert measured_link(PredictionRecord(), 0.1).sharpness == 1.0
    assert measured_link(planted(Link(0.6), games=1), 0.1).sharpness > 0.8
