"""The calibration study in small: leagues of 300 players and 110,000 games, with tolerances for so
few.

A coverage of 300 intervals has a standard error of 1.3 %, and a decile of 11,000 games one of 0.5
%.
"""

import sys

import pytest
from bench_programs import bench_program


@pytest.fixture(scope="module")
def calibration():
    return bench_program("calibration")


@pytest.fixture(scope="module")
def studies(calibration):
    return list(calibration.studies(1, 300, 110_000, more=False))


def test_intervals_of_the_fit_hold(studies):
    for study in studies:
        assert study.share("ratings") == pytest.approx(0.95, abs=0.04), study.name
        assert study.share("scores") == pytest.approx(0.95, abs=0.04), study.name
        assert study.misfits[0] == pytest.approx(1.0, abs=0.1), study.name


def test_predictions_come_true(studies):
    for study in studies:
        assert study.worst() < 0.02, study.name
        assert study.games == 110_000


def test_what_makes_them_come_true(studies):
    """Without the measured link, leagues paired by rating are told apart too boldly."""
    uniform, by_rating = studies[0], studies[1]
    assert by_rating.worst("plain") > 0.025 > 0.02 > by_rating.worst()
    assert uniform.worst("plain") > uniform.worst()


def test_sigma_is_no_interval(studies):
    shares = [study.share("sigmas") for study in studies]
    assert min(shares) < 0.8
    assert sum(share < 0.93 for share in shares) >= 4


def test_a_missed_bar_is_named(calibration, studies, capsys):
    good = studies[0]
    bad = calibration.Study("bad", 0.0, 110_000, [~good.ratings[0]], good.scores, good.sigmas)
    bad.plain, bad.linked, bad.played = good.plain, [1.0 - x for x in good.linked], good.played
    bad.misfits = [1.0]
    assert bad.misses() == ["ratings", "deciles"]
    assert calibration.row(bad).endswith("ratings deciles")


def test_the_picture_is_drawn(calibration, studies, tmp_path):
    calibration.plot(studies, tmp_path / "calibration.png")
    assert (tmp_path / "calibration.png").stat().st_size > 20_000


@pytest.mark.slow
def test_both_bars_are_met_by_a_million_games(calibration, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["calibration.py"])
    assert calibration.main() == 0, capsys.readouterr().out
