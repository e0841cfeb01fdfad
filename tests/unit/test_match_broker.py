"""The broker between the training loop and the matchmaker: nothing lost, nothing waits for ever."""

import threading
import time

import pytest
from learning import assignments
from waiting import PATIENCE, wait_for

from league.errors import Fenced, LeagueError, Unavailable
from league.players import MatchResult, SeatResult, Verdict
from league.rpc.client import Beat
from league.service import pace
from league.stages import StageRequest
from league.status import STALLED
from learner.rollout import source
from learner.rollout.source import MatchBroker


class Matchmaker:
    """The client's calls, answered from memory: the real service is in
    tests/service/test_learner.py.
    """

    def __init__(self):
        self.left = assignments(100)
        self.released, self.results, self.mixes, self.beats = [], [], [], []
        self.fenced = False
        self.asked = None
        self.error = None
        self.may_report, self.may_acquire = threading.Event(), threading.Event()
        self.may_report.set()
        self.may_acquire.set()

    def acquire_matches(self, incarnation, count, mix):
        if self.error:
            raise self.error
        self.mixes.append(mix)
        assert self.may_acquire.wait(PATIENCE)
        return [self.left.pop(0) for _ in range(count)]

    def release_matches(self, incarnation, match_ids=(), reason=""):
        self.released += list(match_ids)
        return len(match_ids)

    def report_results(self, incarnation, results, request_id=None):
        assert self.may_report.wait(PATIENCE)
        self.results += results
        accepted = [Verdict(match_id=result.match_id, accepted=True) for result in results]
        return accepted, len(self.results)

    def heartbeat(self, incarnation, progress, step, mix, activity, metrics):
        self.beats.append(metrics)
        return Beat(self.fenced, 0.0, self.asked)


@pytest.fixture
def matchmaker():
    return Matchmaker()


@pytest.fixture
def broker(matchmaker):
    made = MatchBroker(matchmaker, 1, "first", ahead=4, beat_seconds=0.02)
    yield made
    made.close()


def result(number):
    seats = (SeatResult(player="main"), SeatResult(player="based"))
    return MatchResult(
        match_id=f"match-{number}", lease_token="t", outcome=1.0, frames=9, seats=seats
    )


def test_matches_come_in_order(broker):
    assert [broker.take().match_id for _ in range(9)] == [f"match-{n}" for n in range(9)]


def test_flush_waits_for_every_result_and_tells_the_position(broker, matchmaker):
    matchmaker.may_report.clear()
    for number in range(5):
        broker.report(result(number))
    threading.Timer(0.3, matchmaker.may_report.set).start()
    assert broker.flush() == 5
    assert [r.match_id for r in matchmaker.results] == [f"match-{n}" for n in range(5)]


def test_a_changed_mix_hands_back_what_was_drawn_ahead(broker, matchmaker):
    first = broker.take()
    while len(broker.ready()) < 4:
        pass
    ahead = [assignment.match_id for assignment in broker.ready()]
    broker.change_mix("second")
    after = broker.take()
    assert after.match_id not in (first.match_id, *ahead)
    assert matchmaker.mixes[-1] == "second"
    broker.close()
    assert set(ahead) <= set(matchmaker.released)


def test_a_match_that_is_not_played_is_handed_back(broker, matchmaker):
    first, second = broker.take(), broker.take()
    broker.hand_back(second)
    wait_for(lambda: matchmaker.released)
    broker.report(result(0))
    broker.flush()
    assert first.match_id == "match-0"
    assert matchmaker.released == [second.match_id]


def test_matches_of_the_old_mix_that_arrive_late_are_handed_back(matchmaker):
    matchmaker.may_acquire.clear()
    broker = MatchBroker(matchmaker, 1, "first", ahead=2)
    while not matchmaker.mixes:
        pass
    broker.change_mix("second")
    matchmaker.may_acquire.set()
    assert broker.take().match_id == "match-2"
    broker.close()
    assert set(matchmaker.released) >= {"match-0", "match-1"}


def test_results_are_gathered_while_enough_matches_are_ready(matchmaker, monkeypatch):
    monkeypatch.setattr(source, "GATHER_SECONDS", 3600.0)
    broker = MatchBroker(matchmaker, 1, "first", ahead=40, beat_seconds=3600.0)
    for number in range(3):
        broker.report(result(number))
    for _ in range(1000):
        assert not matchmaker.results
        time.sleep(0)  # lets the thread run
    assert broker.flush() == 3
    for _ in range(60):  # when half are left, it fetches more
        broker.take()
    broker.close()


def test_a_training_loop_that_hangs_is_told_by_the_heartbeats(matchmaker, broker, monkeypatch):
    monkeypatch.setattr(pace, "LEAST_SECONDS", 0.1)
    for step in range(3):
        broker.beat(step, step, "rollout", {"rate/steps_per_second": 100.0})
    wait_for(lambda: matchmaker.beats[-1].get(STALLED))
    assert matchmaker.beats[-1]["rate/steps_per_second"] == 0.0
    monkeypatch.setattr(pace, "LEAST_SECONDS", 3600.0)  # on a busy machine 0.1 s pass at once
    broker.beat(4, 4, "rollout", {"rate/steps_per_second": 100.0})
    wait_for(lambda: matchmaker.beats[-1] == {"rate/steps_per_second": 100.0})


def test_results_are_sent_before_the_end(matchmaker):
    broker = MatchBroker(matchmaker, 1, "first", ahead=1)
    broker.report(result(0))
    broker.close()
    broker.close()
    assert [r.match_id for r in matchmaker.results] == ["match-0"]


def test_a_fenced_learner_is_told(broker, matchmaker):
    matchmaker.fenced = True
    broker._thread.join()
    with pytest.raises(Fenced):
        broker.report(result(0))


@pytest.mark.parametrize(
    ("error", "words"),
    [(Unavailable("the matchmaker is gone"), "is gone"), (ValueError("odd"), "ValueError")],
)
def test_an_error_of_the_thread_reaches_the_training_loop(matchmaker, error, words):
    matchmaker.error = error
    broker = MatchBroker(matchmaker, 1, "first", ahead=1)
    with pytest.raises(LeagueError, match=words):
        broker.take()
    broker.close()


def test_a_heartbeat_brings_what_an_operator_asked_for(matchmaker, broker):
    assert broker.asked() is None
    matchmaker.asked = StageRequest(number=3, stage="second", by="anna@desk")
    wait_for(lambda: broker.asked() == matchmaker.asked)
