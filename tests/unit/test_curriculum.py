"""The curriculum moves on by success in clean matches or by time-out, and says which."""

from league.players import PayoffCell
from learner.curriculum import Curriculum
from learner.settings import CurriculumSettings, StageSettings

SETTINGS = CurriculumSettings(
    stages=(
        StageSettings(
            name="first",
            mix="constant",
            until_opponent="constant",
            until_win_rate=0.9,
            min_matches=100,
            max_steps=1000,
        ),
        StageSettings(name="last", mix="league"),
    )
)


def counts(wins, draws, losses):
    return lambda opponent: PayoffCell(row="main@5", column=opponent, wins=wins, draws=draws, losses=losses)


def test_enough_wins_end_a_stage():
    curriculum = Curriculum(SETTINGS)
    change = curriculum.advance(500, counts(90, 0, 10))
    assert change is not None
    assert change.begins.name == "last"
    assert "main@5 won 90 of 100 clean matches against constant" in change.reason
    assert (curriculum.stage.mix, curriculum.stage_start) == ("league", 500)


def test_a_draw_is_not_a_win():
    assert Curriculum(SETTINGS).advance(500, counts(89, 11, 0)) is None


def test_few_matches_are_no_evidence():
    assert Curriculum(SETTINGS).advance(500, counts(99, 0, 0)) is None


def test_no_matches_yet():
    assert Curriculum(SETTINGS).advance(500, lambda _: None) is None


def test_time_out_counts_from_the_stage_start_and_says_so():
    curriculum = Curriculum(SETTINGS, stage_start=300)
    assert curriculum.advance(1299, counts(0, 0, 100)) is None
    change = curriculum.advance(1300, counts(0, 0, 100))
    assert change is not None
    assert "did not reach 90% wins against constant in 1,000 steps" in change.reason


def test_last_stage_lasts_whatever_its_rule():
    only = CurriculumSettings(stages=SETTINGS.stages[:1])
    assert Curriculum(only).advance(10**9, counts(1000, 0, 0)) is None
