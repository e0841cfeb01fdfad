"""The calibration study's own fold is the matchmaker's: what it shows holds for served ratings."""

import math
from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest
from bench_programs import bench_program

from league.stats.ratings import NEWCOMER, RatingTable
from league.stats.ratings.belief import outlook
from league.stats.ratings.drift import Drift

PLAYERS, GAMES, PACE = 12, 4_000, 1_000
DRIFT = Drift(15.0)


@pytest.fixture(scope="module")
def program():
    return bench_program("simulated_players")


def test_game_by_game_it_believes_and_opens_epochs_as_a_rating_table_does(program):
    """Player 0 learns: by `PACE` steps from each of its games to the next."""
    rng = np.random.default_rng(5)
    online, table = program.Online(PLAYERS), RatingTable(DRIFT)
    table.learns("0")
    steps, epochs = 0, []
    theta = np.linspace(-1.5, 1.5, PLAYERS)
    for position in range(1, GAMES + 1):
        first, second = (int(number) for number in rng.choice(PLAYERS, 2, replace=False))
        outcome = program.played(rng, np.array([theta[first] - theta[second]]), 0.4)
        grown = [0.0, 0.0]
        if 0 in (first, second):
            steps += PACE
            met_before = table.belief("0") != NEWCOMER
            grown[(first, second).index(0)] = (
                DRIFT.variance(steps - PACE, steps) if met_before else 0.0
            )
        online.take(
            np.array([first]), np.array([second]), outcome, *(np.array([one]) for one in grown)
        )
        table.fold_all([(str(first), str(second), float(outcome[0]), steps, steps)])
        if opened := table.next_epoch(position):
            table.begin_epoch(position, opened.draw_probability, opened.link)
            epochs.append(opened)
    believed = [table.belief(str(number)) for number in range(PLAYERS)]
    assert online.mus == pytest.approx([one.mu for one in believed], abs=1e-9)
    assert [math.sqrt(v) for v in online.variances] == pytest.approx(
        [b.sigma for b in believed], abs=1e-9
    )
    for name, counted in asdict(table.record).items():
        np.testing.assert_allclose(getattr(online.record, name), counted, rtol=1e-9, err_msg=name)
    assert [one.games for one in online.epochs] == [one.games for one in epochs]
    assert len(epochs) == 4
    assert all(after.games >= 1.5 * before.games for before, after in pairwise(epochs))
    for ours, theirs in zip(online.epochs, epochs, strict=True):
        assert ours.draw_probability == pytest.approx(theirs.draw_probability, abs=1e-9)
        assert ours.link.sharpness == pytest.approx(theirs.link.sharpness, abs=1e-6)


def test_what_it_predicted_is_the_tables_win_probability(program):
    online, table = program.Online(2), RatingTable()
    none, one = np.zeros(1), np.ones(1)
    for _ in range(5):
        first, second = table.belief("0"), table.belief("1")
        online.take(np.array([0]), np.array([1]), one, none, none)
        table.fold_all([("0", "1", 1.0, 0, 0)])
        expected = outlook(first, second, table.epoch.draw_probability).score
        assert online.predicted[-1][0] == pytest.approx(expected, abs=1e-9)
