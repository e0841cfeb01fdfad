"""The calibration study in small: leagues of 150 players and 24,000 games, with wide tolerances."""

import pytest
from bench_programs import bench_program


@pytest.fixture(scope="module")
def studies():
    program = bench_program("calibration")
    line = program.line_study("line", 1, 150, 24_000, 0.0, by_rating=True, elo_sd=300.0)
    return [line, program.learner_study("learners", 1, 24_000, program.DRAWS, by_rating=False)]


def test_intervals_of_the_fit_hold(studies):
    for study in studies:
        assert study.share("ratings") == pytest.approx(0.95, abs=0.06), study.name
        assert study.share("scores") == pytest.approx(0.95, abs=0.06), study.name
        assert study.misfits[0] == pytest.approx(1.0, abs=0.15), study.name


def test_predictions_come_true_by_the_measured_link(studies):
    for study in studies:
        assert study.worst() < 0.04, study.name
        assert study.games == 24_000
    by_rating = studies[0]
    assert by_rating.worst("plain") > by_rating.worst()


def test_sigma_is_no_interval(studies):
    assert min(study.share("sigmas") for study in studies) < 0.85
