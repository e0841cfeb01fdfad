"""Leases and incarnations: kept alive by progress, fenced, abandoned, carried on."""

import re
import sqlite3
import time
from dataclasses import replace

import pytest
from small_league import played, report, small_league, snapshot

from league.errors import Fenced, InvalidInput, NotFound
from league.players import Book, Pairing, Refusal
from league.rpc.client import NODE, MatchmakerClient
from league.runs.folder import Request, open_run
from league.status import SILENT_SECONDS, STALLED
from matchmaker import limits
from matchmaker.main import MatchmakerServer
from matchmaker.store import invariants


def test_a_heartbeat_tells_the_worker_s_machine(league, monkeypatch):
    monkeypatch.setenv(NODE, "gpu-1")
    league.client.heartbeat(league.open(), 1)
    (worker,) = league.client.status().workers
    assert worker.node == "gpu-1"
    monkeypatch.setenv(NODE, "x" * 10_000)
    with pytest.raises(InvalidInput):
        league.client.heartbeat(league.open(), 1)


def test_a_worker_that_the_supervisor_waits_for_has_no_node(tmp_path):
    with (
        open_run(Request(preset="smoke", run_dir=tmp_path / "run")) as folder,
        MatchmakerServer(folder.database) as server,
        MatchmakerClient(server.address) as client,
    ):
        metrics = {"rate/frames_per_second": 9.0, STALLED: 32.0}
        first = client.open_incarnation("evaluator-0")
        client.heartbeat(first, 1, activity="plays", metrics=metrics)
        now = time.time()
        folder.tell_waiting(dict.fromkeys(("evaluator-0", "evaluator-1"), ("waits", now)))
        old, new = client.status().workers
        assert (old.incarnation, old.activity, old.node) == (first.number, "waits", "")
        assert old.metrics["rate/frames_per_second"] == 0.0
        assert (new.worker, new.activity, new.node) == ("evaluator-1", "waits", "")
        client.heartbeat(first, 2, activity="plays")
        assert client.status().workers[0].activity == "plays", "it was heard after that"
        assert client.status().workers[0].node
        client.open_incarnation("evaluator-0")
        assert not client.status().workers[0].node, "it may have moved"


@pytest.mark.parametrize("text", ['{"a": 5}', '{"a": ["waits", "x"]}', "[", "[1]"])
def test_a_damaged_list_of_waiting_workers_counts_as_none(tmp_path, text):
    (tmp_path / "waiting.json").write_text(text)
    with (
        MatchmakerServer(tmp_path / "league.db") as server,
        MatchmakerClient(server.address) as client,
    ):
        assert client.status().workers == ()


def test_the_log_tells_a_restart_from_a_first_start(league):
    for _ in range(2):
        league.open()
    with league.server.store.read() as reader:
        events = [event for event in reader.events(0, 500) if event.kind == "incarnation_opened"]
    assert [" again" in event.text for event in events] == [False, True]


def test_leases_live_on_only_while_progress_rises(league):
    incarnation = league.open()
    league.client.acquire_matches(incarnation, 3, "league")
    seconds = limits.LEASE_SECONDS
    league.client.heartbeat(incarnation, 10)
    for progress in (20, 30):
        league.clock.advance(0.7 * seconds)
        fenced, deadline, *_ = league.client.heartbeat(incarnation, progress)
        assert (fenced, deadline) == (False, league.clock.now() + seconds)
        assert league.server.sweep() == 0
    league.clock.advance(0.7 * seconds)
    _, stuck, *_ = league.client.heartbeat(incarnation, 30)
    assert stuck == deadline
    league.clock.advance(0.4 * seconds)
    assert league.server.sweep() == 3
    status = league.client.status()
    assert status.open_leases == 0
    with league.server.store.read() as reader:
        assert reader.events(0, 500)[-1].kind == "leases_expired"


def test_progress_that_falls_extends_nothing(league):
    incarnation = league.open()
    league.client.acquire_matches(incarnation, 1, "league")
    league.client.heartbeat(incarnation, 100)
    _, deadline, *_ = league.client.heartbeat(incarnation, 100)
    league.clock.advance(5.0)
    assert league.client.heartbeat(incarnation, 50)[1] == deadline
    assert league.client.heartbeat(incarnation, 60)[1] == deadline
    assert league.client.heartbeat(incarnation, 101)[1] == deadline + 5.0


def test_a_late_result_is_taken_once(league):
    incarnation = league.open()
    (match,) = league.client.acquire_matches(incarnation, 1, "league")
    league.clock.advance(10_000.0)
    assert league.server.sweep() == 1
    assert league.client.match(match.match_id).lease_state == "expired"
    (late,) = report(league, incarnation, played(match))
    (again,) = report(league, incarnation, played(match))
    assert (late.accepted, late.duplicate) == (True, False)
    assert (again.accepted, again.duplicate) == (True, True)
    with league.server.store.read() as reader:
        assert next(reader.results()).late


def test_released_matches_are_closed_to_results(league):
    incarnation = league.open()
    first, second, third = league.client.acquire_matches(incarnation, 3, "league")
    assert league.client.release_matches(incarnation, [first.match_id] * 2, "stopping") == 1
    assert league.client.release_matches(incarnation, [first.match_id]) == 0
    (refused,) = report(league, incarnation, played(first))
    assert "handed back" in refused.reason
    assert refused.refusal is Refusal.RELEASED
    with pytest.raises(NotFound):
        league.client.release_matches(incarnation, ["0" * 32])
    report(league, incarnation, played(second))
    assert league.client.release_matches(incarnation) == 1
    assert league.client.match(third.match_id).lease_state == "released"


def test_a_new_incarnation_fences_the_old_one(league):
    old = league.open()
    kept, reported = league.client.acquire_matches(old, 2, "league")
    report(league, old, played(reported))
    new = league.open(checkpoint=1)
    assert league.client.match(kept.match_id).lease_state == "abandoned"
    refused, duplicate = report(league, old, played(kept), played(reported))
    assert f" {new} " in refused.reason
    assert refused.refusal is Refusal.FENCED
    assert duplicate.duplicate
    assert league.client.heartbeat(old, 5)[0] is True
    with pytest.raises(Fenced, match="fenced"):
        league.client.acquire_matches(old, 1, "league")
    with pytest.raises(Fenced):
        league.client.release_matches(old)
    with pytest.raises(Fenced, match=f" {old} of learner-main "):
        league.client.register_players([snapshot(3000)], old)
    assert "main@3000" not in [player.name for player in league.client.players()]
    league.client.register_players([snapshot(3000)], new)
    league.client.register_players([snapshot(4000)])  # an operator, who has no incarnation
    evaluator = league.client.open_incarnation("evaluator-0").number
    assert league.client.heartbeat(evaluator, 1)[0] is False
    assert league.client.heartbeat(new, 1)[0] is False


def test_carried_matches_are_leased_anew(league):
    old = league.open()
    going, finished = league.client.acquire_matches(old, 2, "league")
    report(league, old, played(finished))
    opened = league.client.open_incarnation(
        "learner-main", "main", 0, 0, [finished.match_id, going.match_id]
    )
    assert [match.replaces for match in opened.carried] == [finished.match_id, going.match_id]
    for carried, original in zip(opened.carried, (finished, going), strict=True):
        for field in ("seats", "seed", "category", "book", "learner_seat"):
            assert getattr(carried, field) == getattr(original, field)
        assert carried.match_id != original.match_id
        assert carried.lease_token != original.lease_token
    assert report(league, opened.number, *map(played, opened.carried))[1].accepted
    (refused,) = report(league, old, played(going))
    assert not refused.accepted
    shares = league.client.status()
    assert shares.open_leases == 0


@pytest.mark.parametrize("case", ["twice", "unknown", "foreign", "finished"])
def test_what_can_not_be_carried_is_refused_and_nothing_happens(league, case):
    learner = league.open()
    (match,) = league.client.acquire_matches(learner, 1, "league")
    (done,) = league.play(learner, 1)[0]
    evaluator = league.client.open_incarnation("evaluator-0").number
    pairing = Pairing(player="main@2000", opponent="based", pairs=1, book=Book.EVAL, seed=1)
    foreign = league.client.acquire_pairings(evaluator, [pairing])[0]
    ids = {
        "twice": [match.match_id] * 2,
        "unknown": ["0" * 32],
        "foreign": [foreign.match_id],
        "finished": [done.match_id],
    }[case]
    with pytest.raises((InvalidInput, NotFound)):
        league.open(checkpoint=1, carried=ids)
    assert league.client.heartbeat(learner, 1)[0] is False
    assert report(league, learner, played(match))[0].accepted


def test_a_colleagues_match_can_not_be_carried(league):
    evaluator = league.client.open_incarnation("evaluator-0").number
    pairing = Pairing(player="main@2000", opponent="based", pairs=1, book=Book.EVAL, seed=1)
    match = league.client.acquire_pairings(evaluator, [pairing])[0]
    with pytest.raises(InvalidInput, match="evaluator-0"):
        league.client.open_incarnation("evaluator-1", carried_matches=[match.match_id])
    again = league.client.open_incarnation("evaluator-0", carried_matches=[match.match_id])
    assert again.carried[0].seats == match.seats


def test_a_stage_change_is_an_event(league):
    incarnation = league.open()
    for mix in ("constant", "constant", "league"):
        league.client.heartbeat(incarnation, 1, 100, mix)
    with league.server.store.read() as reader:
        stages = [e.text for e in reader.events(0, 500) if e.kind == "stage"]
    assert len(stages) == 2
    assert "'league'" in stages[1]


def test_metrics_that_are_no_numbers_are_left_out(league):
    incarnation = league.open()
    league.client.heartbeat(
        incarnation, 1, metrics={"a/b": 1.0, "a/nan": float("nan"), "a/inf": float("inf")}
    )
    assert league.client.status().workers[0].metrics == {"a/b": 1.0}


def test_who_is_remembered_is_forgotten_when_one_is_opened_or_fails_to_be(league):
    old = league.open()
    league.client.heartbeat(old, 1)
    with pytest.raises(NotFound, match="nothing"):
        league.client.open_incarnation("learner-main", "main", 0, 0, ["nothing"])
    assert league.client.heartbeat(old, 2)[0] is False
    other = league.client.open_incarnation("evaluator-0").number
    assert league.client.heartbeat(other, 1)[0] is False
    new = league.open()
    assert league.client.heartbeat(old, 3)[0] is True
    assert league.client.heartbeat(new, 3)[0] is False
    with pytest.raises(Fenced):
        league.client.acquire_matches(old, 1, "league")


def test_a_match_that_counts_beside_the_one_that_carries_it_on_is_found(tmp_path):
    with small_league(tmp_path, whole=False) as league:
        first = league.open()
        once, twice = league.client.acquire_matches(first, 2, "league")
        report(league, first, played(once), played(twice))
        with sqlite3.connect(tmp_path / "league.db") as log:
            log.execute(
                "UPDATE assignments SET replaces = ? WHERE match_id = ?",
                (once.match_id, twice.match_id),
            )
        with league.server.store.read() as reader:
            found = [f for f in invariants.broken(reader) if "do not both count" in f]
    assert len(found) == 1
    assert twice.match_id in found[0]


def test_a_match_that_its_worker_has_forgotten_is_not_leased_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "LEASE_SECONDS", 100.0)
    monkeypatch.setattr(limits, "LEASE_LIMIT_SECONDS", 1000.0)
    with small_league(tmp_path) as league:
        learner = league.open()
        (forgotten,) = league.client.acquire_matches(learner, 1, "league")
        for beat in range(1, 25):
            league.clock.advance(50.0)
            league.client.heartbeat(learner, beat)
            (other,) = league.client.acquire_matches(learner, 1, "league")
            report(league, learner, played(other))
            expired = league.server.sweep()
            assert expired == (beat == 20), f"{50 * beat} s"
        with league.server.store.read() as reader:
            assert reader.assignment(forgotten.match_id).lease_state == "expired"
        (verdict,) = report(league, learner, played(forgotten))
        assert verdict.accepted, "late, and taken all the same"


def test_a_worker_takes_back_its_own_results_alone(league):
    """Under another name, a slip say, no worker is fenced and nothing is lost."""
    first = league.open()
    league.play(first, 5)
    other = league.client.open_incarnation("learner-typo", "main", 0, 0)
    assert other.lost_results == 0
    league.play(other.number, 3)
    again = league.client.open_incarnation("learner-main", "main", 0, 0)
    assert again.lost_results == 5
    assert league.client.heartbeat(other.number, 1)[0] is False, "it goes on"
    games = sum(cell.games for cell in league.client.payoff(Book.TRAIN) if cell.row == "main")
    assert games == 3


def wanting(until, pairs=10, player="main@1000", opponent="based"):
    return Pairing(
        player=player, opponent=opponent, pairs=pairs, book=Book.EVAL, seed=5, until=until
    )


def lease(league, incarnation, *pairings):
    return league.client.acquire_pairings(incarnation, pairings)


def all_played(matches):
    return [played(match, 0.5) for match in matches]


def test_evaluators_share_a_pair_of_players_and_play_no_seed_twice(league):
    one, two = (league.client.open_incarnation(f"evaluator-{n}").number for n in (0, 1))
    first = lease(league, one, wanting(12, pairs=4))
    swapped = wanting(12, player="based", opponent="main@1000")
    second = lease(league, two, swapped, swapped)
    assert (len(first), len(second)) == (8, 4), "what is leased is nobody else's"
    assert lease(league, one, wanting(12)) == [], "all is leased"
    report(league, one, *all_played(first))
    report(league, two, *all_played(second))
    assert lease(league, two, wanting(12)) == [], "all counts"
    more = lease(league, two, wanting(13), wanting(16, pairs=1))
    assert len(more) == 4, "the thirteenth takes a pair, and sixteen lack a pair then"
    seats = [(match.seed, match.seats[0].name) for match in (*first, *second, *more)]
    assert len({*seats}) == 16
    assert len({seed for seed, _ in seats}) == 8
    assert len(lease(league, one, wanting(0, pairs=3))) == 6, "without an end all are leased"


def test_a_kill_loses_no_match_of_a_shared_pair_and_doubles_none(league):
    number = league.client.open_incarnation("evaluator-0").number
    begun = lease(league, number, wanting(10))
    report(league, number, *all_played([begun[0], begun[1], begun[4]]))
    number = league.client.open_incarnation("evaluator-0").number
    again = lease(league, number, wanting(10))
    assert len(again) == 8, "three count, and the seven that are missing take four pairs"
    assert not {match.seed for match in again} & {match.seed for match in begun}
    failed = [replace(result, failed=True) for result in all_played(again[:2])]
    report(league, number, *failed, *all_played(again[2:]))
    league.server.league.store_fold(1)
    rest = lease(league, number, wanting(10))
    assert len(rest) == 2
    assert not {match.seed for match in rest} & {match.seed for match in (*begun, *again)}
    league.clock.advance(10_000.0)
    league.server.sweep()
    assert len(lease(league, number, wanting(10))) == 2, "an expired lease frees its place"


def test_a_silent_worker_does_nothing_any_more(league):
    incarnation = league.open()
    metrics = {"rate/steps_per_second": 1577.0, "progress/seconds_left": 60.0, "loss/policy": 0.5}
    league.client.heartbeat(incarnation, 1, activity="update", metrics=metrics)
    (worker,) = league.client.status().workers
    assert worker.metrics == metrics
    league.clock.advance(SILENT_SECONDS + 1)
    (worker,) = league.client.status().workers
    assert worker.metrics == {"rate/steps_per_second": 0.0, "loss/policy": 0.5}
    league.client.heartbeat(incarnation, 1, activity="update", metrics=metrics | {STALLED: 95.0})
    assert re.match("update, .* 95 s", league.client.status().workers[0].activity)
    league.client.heartbeat(incarnation, 2, activity="done", metrics=metrics)
    league.clock.advance(SILENT_SECONDS + 1)
    assert league.client.status().workers[0].metrics == metrics
