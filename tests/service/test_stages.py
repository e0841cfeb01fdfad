"""An operator moves a learner to another stage: through the matchmaker, once, over crashes of
either.
"""

import re

import pytest
from small_league import live
from staged import STAGES, events
from test_matchmaker_process import matchmaker, ready_port

from league.errors import Fenced, InvalidInput, NotFound, Refused
from league.rpc.client import MatchmakerClient
from league.stages import Place, Stage


def test_a_request_reaches_the_learner_until_it_says_that_it_obeyed(league):
    learner, client = league.open(), league.client
    assert client.enter_stage(learner, 100, STAGES, Place()) is None
    assert client.heartbeat(learner, 1, 120, "constant").asked is None
    asked = client.ask_stage("next", "anna@desk")
    assert (asked.stage, asked.by, asked.at) == ("second", "anna@desk", league.clock.now())
    assert client.ask_stage("second", "bert@desk") == asked, "it is on its way already"
    assert client.heartbeat(learner, 2, 140, "constant").asked == asked
    (status,) = client.curricula()
    assert (status.stages, status.asked, status.step) == (STAGES, asked, 140)
    place = Place(index=1, since_step=150, by_hand=True, obeyed=asked.number)
    assert client.enter_stage(learner, 150, STAGES, place, "asked by anna@desk") is None
    assert client.heartbeat(learner, 3, 160, "league").asked is None
    (status,) = client.curricula()
    assert (status.place, status.asked, status.stage) == (place, None, STAGES[1])
    words = ["main .*'first' .*100", "anna@desk .*main .*'second'", "main .*'second' .*150: asked"]
    told = [event.text for event in events(league, "stage", "stage_asked")]
    assert all(re.match(*pair) for pair in zip(words, told, strict=True))


def test_the_newest_request_counts_and_one_can_be_taken_back(league):
    learner, client = league.open(), league.client
    client.enter_stage(learner, 0, STAGES, Place())
    client.ask_stage("second", "anna")
    client.ask_stage("last", "bert")
    assert client.heartbeat(learner, 1).asked.stage == "last"
    back = client.ask_stage("first", "anna")
    assert client.heartbeat(learner, 1).asked == back
    with pytest.raises(InvalidInput, match="'first'"):
        client.ask_stage("first", "anna")


def test_a_learner_back_at_an_older_checkpoint_is_asked_again(league):
    first, client = league.open(), league.client
    client.enter_stage(first, 0, STAGES, Place())
    asked = client.ask_stage("last", "anna")
    client.enter_stage(
        first, 50, STAGES, Place(index=2, since_step=50, by_hand=True, obeyed=asked.number)
    )
    second = league.open()
    assert client.enter_stage(second, 0, STAGES, Place()) == asked
    assert client.heartbeat(second, 1).asked == asked
    with pytest.raises(Fenced):
        client.enter_stage(first, 60, STAGES, Place())


def test_what_was_told_twice_is_one_event(league):
    learner = league.open()
    for _ in range(2):
        league.client.enter_stage(learner, 0, STAGES, Place())
    assert len(events(league, "stage")) == 1


@pytest.mark.parametrize(
    ("error", "sentence", "ask"),
    [
        (
            NotFound,
            "no learner",
            lambda c, _: c.ask_stage("next", "a"),
        ),
        (InvalidInput, "by is empty", lambda c, _: c.ask_stage("next", " ")),
        (InvalidInput, "by has 81 characters", lambda c, _: c.ask_stage("next", "a" * 81)),
        (
            InvalidInput,
            "a, a",
            lambda c, n: c.enter_stage(n, 0, [stage("a")] * 2, Place()),
        ),
        (InvalidInput, "stages = 0", lambda c, n: c.enter_stage(n, 0, [], Place())),
        (
            InvalidInput,
            "stages = 65",
            lambda c, n: c.enter_stage(n, 0, map(stage, map(str, range(65))), Place()),
        ),
        (InvalidInput, "stage 3", lambda c, n: c.enter_stage(n, 0, STAGES, Place(index=3))),
        (InvalidInput, "obeyed = 900", lambda c, n: c.enter_stage(n, 0, STAGES, Place(obeyed=900))),
        (InvalidInput, r"1\.5", lambda c, n: c.enter_stage(n, 0, [stage("a", 1.5)], Place())),
        (
            InvalidInput,
            " 81",
            lambda c, n: c.enter_stage(n, 0, [stage("a" * 81)], Place()),
        ),
        (InvalidInput, "evaluator-0", lambda c, n: c.enter_stage(n + 1, 0, STAGES, Place())),
    ],
)
def test_what_can_not_be_told_or_asked(league, error, sentence, ask):
    learner = league.open()
    league.client.open_incarnation("evaluator-0")
    with pytest.raises(error, match=sentence):
        ask(league.client, learner)
    assert events(league, "stage", "stage_asked") == []


def stage(name, until_win_rate=1.0):
    return Stage(name=name, mix="league", until_win_rate=until_win_rate)


@pytest.mark.long
def test_a_request_is_there_after_kill_9_of_the_matchmaker(tmp_path):
    db = tmp_path / "league.db"
    with matchmaker(db) as process, MatchmakerClient(f"127.0.0.1:{ready_port(process)}") as client:
        client.register_players([live()])
        learner = client.open_incarnation("learner-main", "main").number
        client.enter_stage(learner, 0, STAGES, Place())
        asked = client.ask_stage("last", "anna@desk")
        process.kill()
        process.wait()
    with matchmaker(db) as process, MatchmakerClient(f"127.0.0.1:{ready_port(process)}") as client:
        assert client.heartbeat(learner, 1).asked == asked
        (status,) = client.curricula()
        assert (status.asked, status.stages) == (asked, STAGES)
    reader = matchmaker(db, "--read-only")
    with reader as process, MatchmakerClient(f"127.0.0.1:{ready_port(process)}") as client:
        assert client.curricula()[0].asked == asked
        with pytest.raises(Refused, match="only reads"):
            client.ask_stage("second", "anna")
