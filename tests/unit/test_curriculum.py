"""The curriculum moves on by success, by time-out or by hand, and says which."""

import re

import pytest
from pydantic import ValidationError
from scipy.special import logit

from league.errors import LeagueError
from league.stages import (
    CurriculumStatus,
    Place,
    Stage,
    StageRequest,
    named_stage,
    one_curriculum,
)
from league.stats.climb import WinRate
from learner.settings import CurriculumSettings, StageSettings
from learner.train.curriculum import Curriculum

GOAL = {"mix": "constant", "until_opponent": "constant", "until_win_rate": 0.9, "min_matches": 50}
SETTINGS = CurriculumSettings(
    stages=(
        StageSettings(name="first", **GOAL, max_steps=1000),
        StageSettings(name="second", mix="based"),
        StageSettings(name="last", mix="league"),
    )
)


def rate(share, matches=100):
    """What a learner is found to win against any opponent at any step."""
    return lambda stage, step, after: WinRate(mean=float(logit(share)), sd=0.2, matches=matches)


def none(stage, step, after):
    return None


WON, LOST = rate(0.91), rate(0.1)
REASON = "91 %.*87 to 94 %.*constant.*100"


@pytest.mark.parametrize(
    ("stage", "since", "step", "matches", "expected"),
    [
        (0, 0, 500, WON, REASON),
        (0, 0, 500, rate(0.89), None),
        (0, 0, 500, rate(0.99, matches=10), None),  # too few matches
        (0, 0, 500, none, None),
        (0, 300, 1299, LOST, None),
        (0, 300, 1300, LOST, "90%.*constant.*1,000"),
        (0, 0, 1000, WON, REASON),  # success counts, though its time is over as well
        (1, 0, 10**9, WON, None),  # without goal and time-out only a request ends it
        (2, 0, 10**9, WON, None),  # the last one lasts
    ],
)
def test_what_ends_a_stage_by_itself(stage, since, step, matches, expected):
    curriculum = Curriculum(SETTINGS, "main", Place(index=stage, since_step=since))
    reason = curriculum.advance(step, matches)
    if expected is None:
        assert not reason
        assert curriculum.place == Place(index=stage, since_step=since)
    else:
        assert re.search(expected, reason)
        assert curriculum.place == Place(index=1, since_step=step)


@pytest.mark.parametrize(
    ("begins", "asked", "obeyed", "ends", "begun"),
    [
        (0, "second", 0, 1, 70),  # on
        (0, "last", 0, 2, 70),  # over one
        (2, "first", 0, 0, 70),  # back
        (1, "second", 0, 1, 10),  # where it is: nothing changes
        (1, "gone", 0, 1, 10),  # a stage that new settings lack
        (0, "second", 7, 0, 10),  # obeyed before
        (0, "second", 9, 0, 10),  # older than the one obeyed
    ],
)
def test_a_request_is_obeyed_once(begins, asked, obeyed, ends, begun):
    curriculum = Curriculum(SETTINGS, "main", Place(index=begins, since_step=10, obeyed=obeyed))
    request = StageRequest(number=7, stage=asked, by="anna@desk")
    entered = begun == 70
    why = curriculum.obey(request, 70)
    assert bool(why) is ("anna@desk" in why) is entered
    assert curriculum.place == Place(
        index=ends, since_step=begun, by_hand=entered, obeyed=max(obeyed, 7)
    )
    again = Curriculum(SETTINGS, "main", curriculum.place)
    assert not again.obey(request, 80)
    assert not again.obey(None, 80)
    assert again.place == curriculum.place


def test_a_stage_begun_by_hand_wants_new_evidence():
    """Else one that is gone back to would end at once by the matches that had ended it before."""
    curriculum = Curriculum(SETTINGS, "main", Place(index=1))
    curriculum.obey(StageRequest(number=3, stage="first", by="anna"), 400)
    asked = []

    def found(stage, step, after):
        asked.append((stage.name, stage.min_matches, step, after))

    assert curriculum.advance(500, found) == ""
    assert asked == [("first", 50, 500, 400)]
    assert curriculum.advance(500, WON)
    assert not curriculum.place.by_hand, "the next one has begun by itself"


@pytest.mark.parametrize(
    ("stages", "sentence"),
    [
        ([{"name": "a", "mix": "m"}, {"name": "a", "mix": "n"}], "'a'"),
        ([{"name": "next", "mix": "m"}], "'next'"),
        ([], "stages"),
        ([{"name": "a", "mix": "m", "until_opponent": "based"}], "until_win_rate = 1"),
    ],
)
def test_stages_that_can_not_be(stages, sentence):
    with pytest.raises(ValidationError, match=sentence):
        CurriculumSettings(stages=stages)


def status(index=0, asked=None, done=False, player="main"):
    return CurriculumStatus(
        player=player,
        stages=tuple(Stage(**stage.model_dump()) for stage in SETTINGS.stages),
        place=Place(index=index),
        asked=asked and StageRequest(number=9, stage=asked, by="anna"),
        done=done,
    )


@pytest.mark.parametrize(
    ("index", "asked", "name", "expected"),
    [
        (0, None, "next", "second"),
        (1, None, "next", "last"),
        (1, None, "first", "first"),
        (0, "last", "first", "first"),  # takes the request back
    ],
)
def test_which_stage_a_name_means(index, asked, name, expected):
    assert named_stage(status(index, asked), name).name == expected


@pytest.mark.parametrize(
    ("index", "asked", "name", "named"),
    [
        (0, "first", "first", "main.*'first'"),
        (0, None, "first", "main.*'first'"),
        (2, None, "next", "main.*'last'"),
        (0, None, "secnd", "main.*'secnd'.*'second'"),
        (0, None, "x", "'x'.*first, second, last"),
    ],
)
def test_a_stage_that_can_not_be_begun_is_named(index, asked, name, named):
    with pytest.raises(LeagueError, match=named) as refused:
        named_stage(status(index, asked), name)
    assert "\n" not in str(refused.value)


def test_a_run_of_one_stage_and_a_run_that_is_done():
    one = CurriculumStatus(
        player="main", stages=(Stage(name="league", mix="league"),), place=Place()
    )
    with pytest.raises(LeagueError, match="'league'"):
        named_stage(one, "next")
    with pytest.raises(LeagueError, match="main"):
        named_stage(status(done=True), "next")


@pytest.mark.parametrize(
    ("players", "named", "expected"),
    [(["main"], "", "main"), (["main", "second"], "second", "second")],
)
def test_whose_curriculum_is_meant(players, named, expected):
    assert one_curriculum([status(player=player) for player in players], named).player == expected


@pytest.mark.parametrize(
    ("players", "named", "told"),
    [
        ([], "", None),
        (["main"], "second", "'second'.*main"),
        (["main", "second"], "", "main, second"),
    ],
)
def test_a_name_that_means_no_curriculum_is_refused(players, named, told):
    with pytest.raises(LeagueError, match=told):
        one_curriculum([status(player=player) for player in players], named)
