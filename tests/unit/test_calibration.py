"""The calibration studies in small, with wide tolerances."""

import numpy as np
import pytest
from bench_programs import bench_program


@pytest.fixture(scope="module")
def study():
    line_study = bench_program("calibration").line_study
    return line_study("line", 1, 100, 10_000, 0.0, by_rating=True, elo_sd=300.0)


@pytest.mark.long
def test_intervals_of_the_fit_hold(study):
    assert study.share("ratings") == pytest.approx(0.95, abs=0.06)
    assert study.share("scores") == pytest.approx(0.95, abs=0.06)
    assert study.misfits[0] == pytest.approx(1.0, abs=0.15)


@pytest.mark.long
def test_predictions_come_true_by_the_measured_link_and_sigma_is_no_interval(study):
    assert study.worst() < 0.04
    assert study.worst("plain") > study.worst()
    assert study.games == 10_000
    assert study.share("sigmas") < 0.85


@pytest.mark.long
@pytest.mark.parametrize("games", [10, 30])
@pytest.mark.parametrize("elo_sd", [100.0, 420.0, 800.0])
def test_intervals_hold_in_narrow_and_wide_leagues_of_few_games(elo_sd, games):
    """The share over eight leagues has a standard deviation of at most 1.7 %, as measured."""
    calibration = bench_program("calibration")
    study = calibration.width_study("", 3, 8, 60, games, elo_sd, equal=False)
    assert study.share("ratings") == pytest.approx(0.95, abs=0.05)
    assert study.share("scores") == pytest.approx(0.95, abs=0.05)
    assert np.mean(study.spreads) == pytest.approx(elo_sd, rel=0.25)
    assert sum(study.warned) <= 2


@pytest.mark.long
def test_few_players_have_intervals_that_hold_and_no_warnings():
    """Six show little of how wide their league is; four of many games, how wrong a gap may be."""
    calibration = bench_program("calibration")
    few = calibration.width_study("", 3, 80, 6, 10, 420.0, equal=False)
    assert few.share("ratings") == pytest.approx(0.95, abs=0.03)
    sure = calibration.width_study("", 3, 40, 4, 2000, 800.0, equal=False)
    assert not any(sure.warned)


@pytest.mark.long
def test_few_clean_matches_rate_the_snapshots_of_a_learner():
    """Pairs deviate, and bots wander. Errors of neighbours go together: few leagues show little."""
    budget = bench_program("evaluation_budget")
    study = budget.Study("")
    for seed in range(1, 4):
        rng = np.random.default_rng([2, seed])
        study.add(budget.League(rng, budget.fit_league, 0.5, 15.0, budget.FROZEN[1::2]))
    assert np.mean(study.held) > 0.85
    assert np.median(study.half_widths) < 40.0
    assert min(study.ranks) > 0.95
    assert np.median(study.taus) == pytest.approx(0.5, abs=0.3)


def test_the_fit_warns_of_draws_that_do_not_depend_on_the_players():
    calibration = bench_program("calibration")
    study = calibration.width_study("", 3, 8, 60, 30, 420.0, equal=True)
    assert all(study.warned)
    assert study.share("ratings") < 0.85, "which is why it warns"
