"""`admit = "gate"`: mains' snapshots become members by a gate, which the log keeps."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from admission_league import (
    AdmissionLeague,
    admission_league,
    first_seat_wins,
    loses_always,
    wins_always,
)
from small_league import live, played, snapshot
from test_matchmaker_process import matchmaker, ready_port

from league.cli.main import main
from league.errors import InvalidInput, Refused
from league.gates import GateState
from league.players import Assignment, Book, Pairing, PlayerKind, PlayerState, Role
from league.rpc.client import MatchmakerClient
from league.stats.gates import Certificate, Gate, MultinomialTest, Verdict
from matchmaker.settings import MatchmakerSettings
from matchmaker.simulate.simulation import Plan, Simulation
from matchmaker.tools.fsck import fsck, wrong_draws, wrong_gates

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
    gate = league.decide("main@2000", wins_always)
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


def test_one_that_is_too_weak_stays_on_record_and_is_never_drawn(league: AdmissionLeague) -> None:
    league.register(2000)
    gate = league.decide("main@2000", first_seat_wins)
    assert gate.state is GateState.REJECTED
    assert "main@1000" in gate.reason
    assert gate.victims[0].pairs[2] == sum(gate.victims[0].pairs), (
        "the seat decides: every pair is even"
    )
    assert league.state("main@2000") is PlayerState.RETIRED
    assert (
        Certificate.from_json(league.gate("main@2000").victims[0].certificate_json).verdict
        is Verdict.REJECT
    )
    assert league.register(3000, parent="main@2000").state is PlayerState.CANDIDATE
    assert league.gate("main@3000").victims[0].victim == "main@1000"
    assert league.decide("main@3000", wins_always).state is GateState.ACCEPTED
    assert league.drawn() == {"main@1000", "main@3000"}


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


def test_matches_of_a_gate_are_rated_in_no_book(league: AdmissionLeague, tmp_path: Path) -> None:
    """It stopped on luck; the gauntlet's number of matches is planned."""
    league.register(2000)
    assert league.decide("main@2000", wins_always).victims[0].wins > 10
    client = league.client
    for book in Book:
        assert (client.ratings(book), client.payoff(book)) == ([], [])
    clean = Pairing(player="main@2000", opponent="main@1000", pairs=3, book=Book.EVAL, seed=1)
    matches = client.acquire_pairings(league.evaluator, [clean])
    client.report_results(league.evaluator, [played(m, first_seat_wins(m, "")) for m in matches])
    cells = {(cell.row, cell.wins, cell.losses) for cell in client.payoff()}
    assert cells == {("main@1000", 3, 3), ("main@2000", 3, 3)}
    assert [rating.games for rating in client.ratings()] == [6, 6]
    assert fsck(tmp_path / "league.db", league.small.server.address)[0] == []


def test_a_waiting_candidate_must_beat_the_one_admitted_before_it(league: AdmissionLeague) -> None:
    league.begun(2000)
    league.register(3000)
    with pytest.raises(Refused, match=r"main@3000.*main@2000"):
        league.lease("main@3000")
    league.decide("main@2000", wins_always)
    assert [gate.victims[0].victim for gate in league.client.gates()] == [
        "main@1000",
        "main@2000",
    ]
    league.decide("main@3000", loses_always)
    league.register(4000)
    assert league.gate("main@4000").victims[0].victim == "main@2000"
    assert league.decide("main@4000", wins_always).victims[0].victim == "main@2000"


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
    assert league.state("main@3000") is PlayerState.RETIRED
    assert league.register(3000).state is PlayerState.RETIRED, "again is fine, and no second gate"
    league.decide("main@2000", loses_always)
    assert league.decide("main@4000", wins_always).state is GateState.ACCEPTED
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


def test_the_oldest_retires_when_a_candidate_is_admitted_not_before(tmp_path: Path) -> None:
    with admission_league(tmp_path, max_saved=2) as league:
        league.register(2000)
        league.decide("main@2000", wins_always)
        league.register(3000)
        assert league.state("main@1000") is PlayerState.ACTIVE
        league.decide("main@3000", wins_always)
        assert league.state("main@1000") is PlayerState.RETIRED
        assert league.drawn() == {"main@2000", "main@3000"}


@pytest.mark.long
def test_a_matchmaker_killed_in_the_middle_of_a_gate_loses_nothing_of_it(tmp_path: Path) -> None:
    db, config = tmp_path / "league.db", tmp_path / "config.toml"
    config.write_text('[matchmaker]\nadmit = "gate"\nmixes = {league = {snapshots = 1.0}}\n')
    with (
        matchmaker(db, "--config", str(config)) as process,
        MatchmakerClient(f"127.0.0.1:{ready_port(process)}") as client,
    ):
        client.register_players([live()])
        for step in (1000, 2000):
            client.register_players([snapshot(step, parent="", creator="learner-main")])
        number = client.open_incarnation("evaluator-0").number
        matches = client.acquire_gate_matches(number, "main@2000", 12)
        wins = [played(match, wins_always(match, "main@2000")) for match in matches]
        client.report_results(number, wins[:5])  # two pairs and a half; the others are in play
        before = client.decide_gate(number, "main@2000")
        process.send_signal(signal.SIGKILL)
        process.wait()
    with (
        matchmaker(db, "--config", str(config)) as process,
        MatchmakerClient(f"127.0.0.1:{ready_port(process)}") as client,
    ):
        (gate,) = client.gates()
        assert gate == before
        assert gate.victims[0].pairs == (0, 0, 0, 0, 2)
        client.report_results(number, wins)
        assert client.decide_gate(number, "main@2000").victims[0].pairs == (0, 0, 0, 0, 6)
        while gate.state is GateState.OPEN:
            matches = client.acquire_gate_matches(number, "main@2000", 8)
            client.report_results(number, [played(m, wins_always(m, "main@2000")) for m in matches])
            gate = client.decide_gate(number, "main@2000")
        assert gate.state is GateState.ACCEPTED
        process.send_signal(signal.SIGTERM)
        process.wait()
    assert fsck(db)[0] == []


def test_a_gate_goes_on_by_its_own_rules_when_the_settings_change(tmp_path: Path) -> None:
    with admission_league(tmp_path) as league:
        league.register(2000)
        league.play(league.gate("main@2000"), wins_always)
    with admission_league(tmp_path, admit="all", admission={"elo0": 0.0, "elo1": 300.0}) as league:
        assert league.register(3000).state is PlayerState.ACTIVE
        gate = league.decide("main@2000", wins_always)
        certificate = Certificate.from_json(gate.victims[0].certificate_json)
        assert certificate.gate.test.values == (0.0, 35.0)


def test_fsck_counts_the_gates_matches_again(tmp_path: Path) -> None:
    with admission_league(tmp_path, whole=False) as league:
        league.begun(2000)
        league.decide("main@2000", wins_always)
        league.register(3000)
        league.register(4000)
        inside = league.small.server.league
        with inside.store.read() as reader:
            assert list(wrong_gates(reader)) == []
        league.begun(5000)
        # as if main@2000's matches had been those of main@5000
        event = next(e for e in decisions(league) if e["candidate"] == "main@2000")
        with inside.store.write() as tx:
            inside.log(tx, "gate_decided", "", **(event | {"candidate": "main@5000"}))
            let_in = replace(inside.view.players["main@5000"], state=PlayerState.ACTIVE)
            tx.update_player(let_in)
            tx.after_commit(lambda: inside.view.set_players([let_in]))
        with inside.store.read() as reader:
            (found,) = wrong_gates(reader)
        assert "main@5000" in found
        assert "certificate" in found
        league.register(6000)
        let_in = replace(inside.view.players["main@6000"], state=PlayerState.ACTIVE)
        with inside.store.write() as tx:
            tx.update_player(let_in)
            tx.after_commit(lambda: inside.view.set_players([let_in]))
        assert "main@6000" in league.drawn()
        with inside.store.read() as reader:
            found = [*wrong_gates(reader), *wrong_draws(reader)]
    assert "main@6000 is active" in found[1]
    assert "drawn" in found[-1]


def decisions(league: AdmissionLeague) -> list[dict[str, object]]:
    with league.small.server.store.read() as reader:
        return [json.loads(event.data_json) for event in reader.events_of("gate_decided")]


def test_status_shows_open_gates(
    league: AdmissionLeague, capsys: pytest.CaptureFixture[str]
) -> None:
    league.register(2000)
    league.play(league.gate("main@2000"), wins_always, 4)
    assert main(["status", "--json", "--address", league.small.server.address]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["gates"] == ["main@2000 against main@1000, 4-0-0 so far"]
    assert main(["status", "--address", league.small.server.address]) == 0
    assert f"gate\t{told['gates'][0]}\n" in capsys.readouterr().out


def test_the_simulator_which_plays_no_gates_says_so() -> None:
    with pytest.raises(InvalidInput, match="gates"):
        Simulation(Path(), MatchmakerSettings(admit="gate"), Plan())
