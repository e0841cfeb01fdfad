"""The calibration study in small: 100 players and 10,000 games, with wide tolerances."""

import pytest
from bench_programs import bench_program


@pytest.fixture(scope="module")
def study():
    line_study = bench_program("calibration").line_study
    return line_study("line", 1, 100, 10_000, 0.0, by_rating=True, elo_sd=300.0)


def test_intervals_of_the_fit_hold(study):
    assert study.share("ratings") == pytest.approx(0.95, abs=0.06)
    assert study.share("scores") == pytest.approx(0.95, abs=0.06)
    assert study.misfits[0] == pytest.approx(1.0, abs=0.15)


def test_predictions_come_true_by_the_measured_link_and_sigma_is_no_interval(study):
    assert study.worst() < 0.04
    assert study.worst("plain") > study.worst()
    assert study.games == 10_000
    assert study.share("sigmas") < 0.85
