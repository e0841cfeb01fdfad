"""Results come in: each is accepted exactly once, or refused with a reason."""

from dataclasses import replace

import pytest
from small_league import played, report

from league.players import Refusal, SeatResult
from league.rpc.convert import to_message
from league.v1 import matchmaker_pb2 as m


def test_a_result_is_accepted_once(league):
    incarnation = league.open()
    (match,) = league.client.acquire_matches(incarnation, 1, "league")
    result = played(match)
    first, same_batch = report(league, incarnation, result, result)
    (later,) = report(league, incarnation, replace(result, finished_at=2.0))
    assert (first.accepted, first.duplicate, first.log_position) == (True, False, 1)
    for again in (same_batch, later):
        assert (again.accepted, again.duplicate, again.log_position) == (True, True, 1)
    kept = league.client.match(match.match_id)
    assert kept.result == replace(result, lease_token="")
    assert (kept.lease_state, kept.log_position, kept.lost_branch) == ("reported", 1, False)
    assert kept.worker == "learner-main"


def seat_changed(result, seat, **changes):
    seats = list(result.seats)
    seats[seat] = replace(seats[seat], **changes)
    return replace(result, seats=tuple(seats))


CONTRADICTIONS = {
    "outcome = 1, and now with 0.5": lambda result: replace(result, outcome=0.5),
    "frames = 300, and now with 299": lambda result: replace(result, frames=299),
    "failed = 0, and now with 1": lambda result: replace(result, failed=True),
    "step_start of seat 0 = 1, and now with 0": lambda result: seat_changed(
        result, 0, step_start=0
    ),
    "step_end of seat 0 = 2, and now with 3": lambda result: seat_changed(result, 0, step_end=3),
    "step_start of seat 1 = 1, and now with 2": lambda result: seat_changed(
        result, 1, step_start=2
    ),
    "step_end of seat 1 = 2, and now with 7": lambda result: seat_changed(result, 1, step_end=7),
}


@pytest.mark.parametrize("says", CONTRADICTIONS)
def test_another_report_that_says_something_else_is_told_and_changes_nothing(league, says):
    incarnation = league.open()
    league.play(incarnation, 1)
    (match,) = league.client.acquire_matches(incarnation, 1, "league")
    right = played(match)
    wrong = CONTRADICTIONS[says](right)
    taken, in_one_call = report(league, incarnation, right, wrong)
    (later,) = report(league, incarnation, wrong)
    (again,) = report(league, incarnation, right)
    assert (taken.accepted, again.accepted, again.duplicate) == (True, True, True)
    for verdict in (in_one_call, later):
        assert (verdict.accepted, verdict.duplicate, verdict.log_position) == (False, True, 2)
        assert verdict.refusal is Refusal.CONTRADICTION
        assert says in verdict.reason
    assert league.client.match(match.match_id).result == replace(right, lease_token="")
    assert league.client.status().log_position == 2


def test_a_repeated_call_gets_the_same_reply(league):
    incarnation = league.open()
    matches = league.client.acquire_matches(incarnation, 3, "league")
    results = [played(match) for match in matches]
    first = league.client.report_results(incarnation, results, request_id="report-1")
    assert league.client.report_results(incarnation, results, request_id="report-1") == first
    assert first[1] == league.client.status().log_position == 3


def bad_results(match):
    good = played(match)
    other_seat = SeatResult(player="based")
    return {
        "was never assigned": replace(good, match_id="0" * 32),
        "token": replace(good, lease_token="forged"),
        "outcome = 0.7": replace(good, outcome=0.7),
        "outcome = nan": replace(good, outcome=float("nan")),
        "frames = -1": replace(good, frames=-1),
        "seat 0 was assigned to": replace(
            good, seats=(replace(other_seat, player="nobody"), good.seats[1])
        ),
        "with digest": replace(good, seats=tuple(replace(s, digest="f" * 64) for s in good.seats)),
        "step_end": replace(good, seats=(replace(good.seats[0], step_start=9), good.seats[1])),
        "stat 'falls' = nan": replace(
            good, seats=(replace(good.seats[0], stats={"falls": float("nan")}), good.seats[1])
        ),
        "finished_at": replace(good, finished_at=float("inf")),
        "failure has": replace(good, failure="x" * 501),
        "match_id": replace(good, match_id="no id at all\n"),
    }


KINDS = {
    "was never assigned": Refusal.UNKNOWN_MATCH,
    "token": Refusal.LEASE_TOKEN,
    "seat 0 was assigned to": Refusal.WRONG_PLAYER,
    "with digest": Refusal.WRONG_DIGEST,
}


def test_each_bad_result_is_refused_with_its_reason_and_the_good_one_taken(league):
    incarnation = league.open()
    (match,) = league.client.acquire_matches(incarnation, 1, "league")
    bad = bad_results(match)
    *refused, accepted = report(league, incarnation, *bad.values(), played(match))
    for says, verdict in zip(bad, refused, strict=True):
        assert not verdict.accepted
        assert says in verdict.reason
        assert verdict.refusal is KINDS.get(says, Refusal.MALFORMED)
        assert verdict.log_position == 0
    assert accepted.accepted
    assert league.client.status().log_position == 1


def test_a_result_without_two_seats_is_refused_alone(league):
    incarnation = league.open()
    matches = league.client.acquire_matches(incarnation, 2, "league")
    messages = [to_message(played(match)) for match in matches]
    del messages[0].seats[1]
    reply = league.client._stub.ReportResults(
        m.ReportResultsRequest(request_id="r", incarnation=incarnation, results=messages)
    )
    assert [verdict.accepted for verdict in reply.verdicts] == [False, True]
    assert "1 seats" in reply.verdicts[0].reason


def test_another_workers_lease_is_not_ones_own(league):
    learner = league.open()
    evaluator = league.client.open_incarnation("evaluator-0").number
    (match,) = league.client.acquire_matches(learner, 1, "league")
    (verdict,) = report(league, evaluator, played(match))
    assert f"incarnation {learner}" in verdict.reason
    assert verdict.refusal is Refusal.OTHER_INCARNATION
    assert report(league, learner, played(match))[0].accepted


def test_a_refused_id_comes_back_cut(league):
    incarnation = league.open()
    (match,) = league.client.acquire_matches(incarnation, 1, "league")
    long = replace(played(match), match_id="x" * 1_000_000)
    (verdict,) = report(league, incarnation, long)
    assert (verdict.accepted, verdict.match_id) == (False, "x" * 80)


def test_nobody_is_shown_the_token_of_a_lease(league):
    incarnation = league.open()
    (match,) = league.client.acquire_matches(incarnation, 1, "league")
    assert match.lease_token
    assert league.client.match(match.match_id).assignment.lease_token == ""
    (verdict,) = report(league, incarnation, played(match))
    assert verdict.accepted
