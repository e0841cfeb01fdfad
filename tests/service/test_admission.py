"""`admit = "gate"`: mains' snapshots come to a gate, and are members or stay on record, never
both.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from admission_league import (
    AdmissionLeague,
    admission_league,
    draws_always,
    first_seat_wins,
    loses_always,
    wins_always,
)
from small_league import played, small_league, snapshot

from league.errors import Refused
from league.exploiters import GateState
from league.players import Assignment, Book, PlayerKind, PlayerState, Role
from league.stats.gates import Certificate, Gate, MultinomialTest, Verdict
from matchmaker.acts import gating, judging

HYPOTHESES = MultinomialTest(elo0=0.0, elo1=35.0)


@pytest.fixture
def league(tmp_path: Path) -> Iterator[AdmissionLeague]:
    with admission_league(tmp_path) as running:
        yield running


def test_one_that_beats_the_newest_member_is_admitted_with_a_certificate(
    league: AdmissionLeague,
) -> None:
    assert league.state("main@1000") is PlayerState.ACTIVE, "the first has nobody to beat"
    assert league.register(2000).state is PlayerState.CANDIDATE
    (test,) = league.gate("main@2000").victims
    assert (test.victim, test.state) == ("main@1000", GateState.OPEN)
    assert league.drawn() == {"main@1000"}, "the main trains on meanwhile, and does not meet it"
    gate = league.to_the_end("main@2000", wins_always)
    (test,) = gate.victims
    assert (gate.state, league.state("main@2000")) == (GateState.ACCEPTED, PlayerState.ACTIVE)
    assert gate.generation is None
    pairs = test.pairs[4]
    assert (test.pairs, test.wins, test.losses) == ((0, 0, 0, 0, pairs), 2 * pairs, 0)
    ahead = Gate(test=HYPOTHESES, counts=(0, 0, 0, 0, pairs - 1))
    assert (ahead.verdict, Gate(test=HYPOTHESES, counts=test.pairs).verdict) == (
        Verdict.CONTINUE,
        Verdict.ACCEPT,
    )
    certificate = Certificate.from_json(test.certificate_json)
    assert (certificate.verdict, certificate.gate.test) == (Verdict.ACCEPT, HYPOTHESES)
    assert len(set(certificate.seeds)) == pairs
    assert certificate.subject.opponent == "main@1000"
    assert league.drawn() == {"main@1000", "main@2000"}
    assert league.events("gate_decided") == [
        f"main@2000 is admitted to the league ({2 * pairs}-0-0 against main@1000)"
    ]


def test_one_that_is_too_weak_stays_on_record_and_is_never_drawn(league: AdmissionLeague) -> None:
    league.register(2000)
    gate = league.to_the_end("main@2000", first_seat_wins)
    assert (gate.state, gate.reason) == (GateState.REJECTED, "it is too weak against main@1000")
    assert gate.victims[0].pairs[2] == sum(gate.victims[0].pairs), (
        "the seat decides: every pair is even"
    )
    assert league.state("main@2000") is PlayerState.RETIRED
    assert (
        Certificate.from_json(league.gate("main@2000").victims[0].certificate_json).verdict
        is Verdict.REJECT
    )
    assert league.register(3000, parent="main@2000").state is PlayerState.CANDIDATE, (
        "the main learnt on from it"
    )
    assert league.gate("main@3000").victims[0].victim == "main@1000"
    assert league.to_the_end("main@3000", wins_always).state is GateState.ACCEPTED
    assert league.drawn() == {"main@1000", "main@3000"}


def test_one_whom_the_limit_stops_is_undecided(tmp_path: Path) -> None:
    with admission_league(tmp_path, admission={"limit": 20}) as league:
        league.register(2000)
        scores = itertools.cycle([1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0])
        gate = league.to_the_end("main@2000", lambda match, who: next(scores))
        assert (gate.state, gate.reason) == (
            GateState.UNDECIDED,
            "20 pairs with main@1000 did not decide",
        )
        assert gate.victims[0].matches == 40
        assert league.state("main@2000") is PlayerState.RETIRED


def test_pairs_are_whole_on_a_seed_each_with_the_seats_swapped(league: AdmissionLeague) -> None:
    league.register(2000)
    assert league.lease("main@2000", 1) == []
    matches: list[Assignment] = []
    for count in (7, 2, 5):
        matches += league.lease("main@2000", count)
    assert len(matches) == 12
    for first, second in zip(matches[::2], matches[1::2], strict=True):
        assert (first.seed, first.seats) == (second.seed, second.seats[::-1])
    assert len({match.seed for match in matches}) == 6
    assert {(match.book, match.category) for match in matches} == {(Book.EVAL, "gate")}


def test_pairs_behind_one_that_is_open_wait(league: AdmissionLeague) -> None:
    league.register(2000)
    matches = league.lease("main@2000", 80)
    league.client.report_results(
        league.evaluator, [played(m, wins_always(m, "main@2000")) for m in matches[:0:-1]]
    )
    gate = league.client.decide_gate(league.evaluator, "main@2000")
    assert (gate.state, gate.victims[0].matches) == (GateState.OPEN, 0)
    league.client.report_results(
        league.evaluator, [played(matches[0], loses_always(matches[0], "main@2000"))]
    )
    gate = league.client.decide_gate(league.evaluator, "main@2000")
    assert gate.state is GateState.ACCEPTED
    assert gate.victims[0].pairs[:4] == (0, 0, 1, 0), (
        "the first pair is counted first: a loss and a win"
    )


def test_half_a_pair_is_left_out_and_stays_so(league: AdmissionLeague) -> None:
    league.register(2000)
    client, small = league.client, league.small
    first, *rest = league.lease("main@2000", 6)
    client.report_results(league.evaluator, [played(m, wins_always(m, "main@2000")) for m in rest])
    small.clock.advance(10_000.0)
    assert small.server.sweep() == 1
    assert client.decide_gate(league.evaluator, "main@2000").victims[0].pairs == (0, 0, 0, 0, 2)
    ((late,), _) = client.report_results(
        league.evaluator, [played(first, loses_always(first, "main@2000"))]
    )
    assert late.accepted
    assert client.decide_gate(league.evaluator, "main@2000").victims[0].pairs == (0, 0, 0, 0, 2)
    failed, whole, *_ = league.lease("main@2000", 4)
    results = [replace(played(failed), failed=True, failure="it broke"), played(whole, 0.5)]
    client.report_results(league.evaluator, results)
    assert client.decide_gate(league.evaluator, "main@2000").victims[0].pairs == (0, 0, 0, 0, 2)


def test_forged_and_repeated_results_change_nothing(league: AdmissionLeague) -> None:
    league.register(2000)
    first, second = league.lease("main@2000", 2)
    forged = [
        replace(played(first), lease_token="0" * 32),
        replace(played(first), seats=played(first).seats[::-1]),
        replace(played(first), match_id="f" * 32),
    ]
    verdicts, _ = league.client.report_results(league.evaluator, forged)
    assert [verdict.accepted for verdict in verdicts] == [False] * 3
    results = [played(one, draws_always(one, "main@2000")) for one in (first, second)]
    for _ in range(3):
        league.client.report_results(league.evaluator, results)
    changed = [replace(result, outcome=1.0) for result in results]
    league.client.report_results(league.evaluator, changed)
    (test,) = league.client.decide_gate(league.evaluator, "main@2000").victims
    assert (test.pairs, test.draws) == ((0, 0, 1, 0, 0), 2)


def test_who_waits_must_beat_whoever_is_admitted_before_it(league: AdmissionLeague) -> None:
    league.begun(2000)
    league.register(3000)
    stale = judging.Decision(state=GateState.ACCEPTED, tests=league.gate("main@3000").victims)
    with pytest.raises(Refused, match="the gate of main@3000 can't begin before that of main@2000"):
        league.lease("main@3000")
    league.to_the_end("main@2000", wins_always)
    assert [gate.victims[0].victim for gate in league.client.gates()] == [
        "main@1000",
        "main@2000",
    ]
    inside = league.small.server.league
    kept = inside.store.submit(
        lambda tx: gating.decide(inside, tx, league.evaluator, "main@3000", stale)
    )
    assert kept.state is GateState.OPEN, "a look at the log from before decides nothing"
    league.to_the_end("main@3000", loses_always)
    league.register(4000)
    assert league.gate("main@4000").victims[0].victim == "main@2000"
    assert league.to_the_end("main@4000", wins_always).victims[0].victim == "main@2000"


def test_the_newest_waits_alone(league: AdmissionLeague) -> None:
    """A learner that freezes faster than gates are played is judged by what it is now."""
    league.begun(2000)
    league.register(3000)
    assert league.register(4000).state is PlayerState.CANDIDATE
    assert league.register(500, "rival", parent="").state is PlayerState.ACTIVE
    league.register(900, "rival", parent="rival@500")
    found = {gate.candidate: gate.state for gate in league.client.gates()}
    assert found == {
        "main@2000": GateState.OPEN,
        "main@3000": GateState.UNDECIDED,
        "main@4000": GateState.OPEN,
        "rival@900": GateState.OPEN,
    }
    assert league.events("gate_decided") == [
        "main@3000 is not accepted: main@4000 was frozen before its gate had begun"
    ]
    assert league.state("main@3000") is PlayerState.RETIRED
    assert league.register(3000).state is PlayerState.RETIRED, "again is fine, and no second gate"
    league.to_the_end("main@2000", loses_always)
    assert league.to_the_end("main@4000", wins_always).state is GateState.ACCEPTED
    assert league.drawn() == {"main@1000", "main@4000", "rival@500"}


def test_who_needs_no_gate(league: AdmissionLeague) -> None:
    league.register(2000)
    assert league.register(500, "rival", parent="").state is PlayerState.ACTIVE, (
        "another learner's first"
    )
    assert league.register(900, "rival", parent="rival@500").state is PlayerState.CANDIDATE
    for made in (
        snapshot(1, "clone", parent="", role=Role.CLONE, creator="learner-main"),
        snapshot(1000, "other:main", parent="", creator="learner-main"),
        replace(
            snapshot(1500),
            name="main.reference-1500",
            kind=PlayerKind.REFERENCE,
            creator="learner-main",
        ),
    ):
        ((registered,), _) = league.client.register_players([made])
        assert registered.state is PlayerState.ACTIVE, made.name
    assert [gate.victims[0].victim for gate in league.client.gates()] == ["main@1000", "rival@500"]


def test_by_default_everybody_is_a_member_at_once(tmp_path: Path) -> None:
    with small_league(tmp_path) as small:
        assert {p.state for p in small.client.players()} == {PlayerState.ACTIVE}
        assert small.client.gates() == []


def test_a_snapshot_that_is_registered_again_has_one_gate(league: AdmissionLeague) -> None:
    league.register(2000)
    assert league.register(2000).state is PlayerState.CANDIDATE
    again = league.register(2000, milestone=True, state=PlayerState.CANDIDATE)
    assert (again.state, again.milestone) == (PlayerState.CANDIDATE, True)
    league.to_the_end("main@2000", loses_always)
    assert league.register(2000).state is PlayerState.RETIRED
    assert len(league.events("gate_opened")) == 1


def test_of_several_in_one_call_the_first_is_whom_the_others_must_beat(tmp_path: Path) -> None:
    with admission_league(tmp_path) as league:
        made = [snapshot(step, "rival", parent="", creator="learner-rival") for step in (1, 2, 3)]
        registered, _ = league.client.register_players(made)
        states = [PlayerState.ACTIVE, PlayerState.CANDIDATE, PlayerState.CANDIDATE]
        assert [one.state for one in registered] == states
        assert [gate.victims[0].victim for gate in league.client.gates()] == ["rival@1", "rival@1"]
        made = [snapshot(step, "rival", parent="", creator="learner-rival") for step in (4, 5)]
        league.client.register_players(made)
        told = [
            f"rival@{n} is not accepted: rival@4 was frozen before its gate had begun"
            for n in (2, 3)
        ]
        assert league.events("gate_decided") == told, "each once"


def test_the_oldest_retires_when_a_candidate_is_admitted_not_before(tmp_path: Path) -> None:
    with admission_league(tmp_path, max_saved=2) as league:
        league.register(2000)
        league.to_the_end("main@2000", wins_always)
        league.register(3000)
        assert league.state("main@1000") is PlayerState.ACTIVE
        league.to_the_end("main@3000", wins_always)
        assert league.state("main@1000") is PlayerState.RETIRED
        assert league.drawn() == {"main@2000", "main@3000"}
