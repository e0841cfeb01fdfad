"""Weights that are kept while they hold, and replies that the log itself keeps."""

from __future__ import annotations

import grpc
import pytest
from small_league import learner_wins, live, played, small_league, snapshot

from league.errors import StorageFull
from league.rpc import convert as wire
from league.v1 import matchmaker_pb2 as m

STEPS = range(1000, 33_000, 1000)
"""With the bots 35 candidates: weights may lag by 4 of the learner's results."""


@pytest.fixture
def league(tmp_path):
    with small_league(tmp_path, STEPS) as made:
        yield made


def drawn_from(league, incarnation, mix="league", count=1):
    """Rows of the log that some new matches are drawn from."""
    ids = [match.match_id for match in league.client.acquire_matches(incarnation, count, mix)]
    with league.server.store.read() as reader:
        return {reader.assignment(match_id).draw for match_id in ids}


def test_calls_draw_from_one_row_until_it_holds_no_more(league):
    incarnation = league.open()
    first = drawn_from(league, incarnation, count=5)
    assert len(first) == 1
    league.play(incarnation, 4)
    assert drawn_from(league, incarnation) == first
    league.play(incarnation, 1)
    second = drawn_from(league, incarnation)
    assert second != first
    assert drawn_from(league, incarnation) == second


def test_who_comes_or_goes_is_seen_at_once(league):
    incarnation = league.open()
    first = drawn_from(league, incarnation)
    league.client.register_players([snapshot(50_000)])
    second = drawn_from(league, incarnation)
    assert second != first
    with league.server.store.read() as reader:
        assert "main@50000" in reader.draw(*second).body_json
        assert "main@50000" not in reader.draw(*first).body_json


def test_other_learners_and_mixes_have_weights_of_their_own(tmp_path):
    mixes = {"league": {"snapshots": 1.0}, "bots": {"based": 1.0}}
    with small_league(tmp_path, STEPS, mixes=mixes) as league:
        league.client.register_players([live("second")])
        other = league.client.open_incarnation("learner-second", "second").number
        incarnation = league.open()
        rows = [
            drawn_from(league, incarnation),
            drawn_from(league, incarnation, "bots"),
            drawn_from(league, other),
        ]
        assert len(set.union(*rows)) == 3
        assert drawn_from(league, incarnation) == rows[0]


def test_what_others_play_counts_too_but_less(tmp_path):
    with small_league(tmp_path, STEPS) as league:
        league.client.register_players([live("second")])
        other = league.client.open_incarnation("learner-second", "second").number
        incarnation = league.open()
        first = drawn_from(league, incarnation)
        league.play(other, 30, outcome=learner_wins)
        assert drawn_from(league, incarnation) == first
        league.play(other, 10, outcome=learner_wins)
        assert drawn_from(league, incarnation) != first


def test_a_call_that_fails_keeps_no_weights(league, monkeypatch):
    incarnation = league.open()

    def full(*_):
        raise StorageFull("no space left")

    with monkeypatch.context() as patch:
        patch.setattr("matchmaker.acts.assign._store", full)
        with pytest.raises(StorageFull):
            league.client.acquire_matches(incarnation, 4, "league")
    assert drawn_from(league, incarnation) == {1}
    with league.server.store.read() as reader:
        assert reader.draw(1).policy_hash == league.server.league.policy_hash


def request(incarnation, request_id):
    return m.AcquireMatchesRequest(
        request_id=request_id, incarnation=incarnation, count=3, mix="league"
    )


def test_a_reply_is_given_again_after_a_restart(tmp_path):
    with small_league(tmp_path) as league:
        incarnation = league.open()
        first = league.client._stub.AcquireMatches(request(incarnation, "r1"))
        league.play(incarnation, 4)
    with small_league(tmp_path) as league:
        again = league.client._stub.AcquireMatches(request(incarnation, "r1"))
        for deadline in {match.lease_deadline for match in again.assignments}:
            assert deadline >= first.assignments[0].lease_deadline
        for match in (*first.assignments, *again.assignments):
            match.ClearField("lease_deadline")
        assert again == first
        assert league.client.status().open_leases == 3
        with pytest.raises(grpc.RpcError, match="r1"):
            league.client._stub.AcquireMatches(request(incarnation + 1, "r1"))


def test_verdicts_are_given_again_after_a_restart(tmp_path):
    with small_league(tmp_path) as league:
        incarnation = league.open()
        league.play(incarnation, 3)
        matches = league.client.acquire_matches(incarnation, 4, "league")
        results = [played(match) for match in matches]
        good = league.client.report_results(incarnation, results[:3], request_id="good")
        mixed = league.client.report_results(incarnation, results[2:], request_id="mixed")
        none = league.client.report_results(incarnation, [], request_id="none")
        assert [verdict.log_position for verdict in good[0]] == [4, 5, 6]
        assert [verdict.duplicate for verdict in mixed[0]] == [True, False]
    with small_league(tmp_path) as league:
        assert league.client.report_results(incarnation, results[:3], request_id="good") == good
        assert league.client.report_results(incarnation, results[2:], request_id="mixed") == mixed
        assert league.client.report_results(incarnation, [], request_id="none") == none


def test_verdicts_are_told_in_brief_only_to_who_asks_for_it(tmp_path):
    with small_league(tmp_path) as league:
        incarnation = league.open()
        matches = league.client.acquire_matches(incarnation, 4, "league")
        sent = [wire.to_result(played(match)) for match in matches]

        def report(request_id, results, brief):
            return league.client._stub.ReportResults(
                m.ReportResultsRequest(
                    request_id=request_id, incarnation=incarnation, results=results, brief=brief
                )
            )

        long, short = report("long", sent[:2], False), report("short", sent[2:], True)
        assert [verdict.log_position for verdict in long.verdicts] == [1, 2]
        assert [verdict.match_id for verdict in long.verdicts] == [
            match.match_id for match in matches[:2]
        ]
        assert (long.first_position, long.log_position) == (0, 2)
        assert not short.verdicts
        assert (short.first_position, short.log_position) == (3, 4)
        assert report("long", sent[:2], False) == long
        assert report("short", sent[2:], True) == short
        again = report("again", sent, True)
        assert all(verdict.duplicate for verdict in again.verdicts)
        assert (len(again.verdicts), again.first_position, again.log_position) == (4, 0, 4)


def test_a_whole_reply_that_an_older_version_kept_is_given_again(league):
    incarnation = league.open()
    first = league.client._stub.AcquireMatches(request(incarnation, "r1"))
    with league.server.store.write() as tx:
        first.assignments[0].category = "as it was kept"
        values = (first.SerializeToString(),)
        tx._connection.execute("UPDATE requests SET reply = ? WHERE request_id = 'r1'", values)
    assert league.client._stub.AcquireMatches(request(incarnation, "r1")) == first
