"""Results, leases and incarnations: exactly once, fenced, lost, carried on; ratings follow the log."""

from dataclasses import replace

import pytest
from small_league import learner_wins, played, small_league

from league.clock import ManualClock
from league.errors import Fenced, InvalidInput, NotFound, StorageFull, VersionMismatch
from league.players import Book, Pairing, SeatResult
from league.ratings import NEWCOMER, TAU_LIVE, RatedGame, rate
from league.v1 import matchmaker_pb2 as m
from league.wire import to_result
from matchmaker import invariants
from matchmaker.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings


@pytest.fixture
def league(tmp_path):
    with small_league(tmp_path) as made:
        yield made


def report(league, incarnation, *results):
    verdicts, _ = league.client.report_results(incarnation, results)
    return verdicts


def test_a_result_is_accepted_once(league):
    incarnation = league.open()
    (match,) = league.client.acquire_matches(incarnation, 1, "league")
    result = played(match)
    first, same_batch = report(league, incarnation, result, result)
    (later,) = report(league, incarnation, replace(result, outcome=0.0))
    assert (first.accepted, first.duplicate, first.log_position) == (True, False, 1)
    for again in (same_batch, later):
        assert (again.accepted, again.duplicate, again.log_position) == (True, True, 1)
    kept = league.client.match(match.match_id)
    assert kept.result == result
    assert (kept.lease_state, kept.log_position, kept.lost_branch) == ("reported", 1, False)
    assert kept.worker == "learner-main"


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
        "seat 0 was assigned to": replace(good, seats=(replace(other_seat, player="nobody"), good.seats[1])),
        "with digest": replace(good, seats=tuple(replace(s, digest="f" * 64) for s in good.seats)),
        "step_end": replace(good, seats=(replace(good.seats[0], step_start=9), good.seats[1])),
        "stat 'falls' = nan": replace(
            good, seats=(replace(good.seats[0], stats={"falls": float("nan")}), good.seats[1])
        ),
        "finished_at": replace(good, finished_at=float("inf")),
        "failure has": replace(good, failure="x" * 501),
        "match_id": replace(good, match_id="no id at all\n"),
    }


def test_each_bad_result_is_refused_with_its_reason_and_the_good_one_taken(league):
    incarnation = league.open()
    (match,) = league.client.acquire_matches(incarnation, 1, "league")
    bad = bad_results(match)
    *refused, accepted = report(league, incarnation, *bad.values(), played(match))
    for says, verdict in zip(bad, refused, strict=True):
        assert not verdict.accepted
        assert says in verdict.reason
        assert verdict.log_position == 0
    assert accepted.accepted
    assert league.client.status().log_position == 1


def test_a_result_without_two_seats_is_refused_alone(league):
    incarnation = league.open()
    matches = league.client.acquire_matches(incarnation, 2, "league")
    messages = [to_result(played(match)) for match in matches]
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
    assert f"belongs to incarnation {learner}" in verdict.reason
    assert report(league, learner, played(match))[0].accepted


def test_failed_matches_are_kept_and_never_rated(league):
    incarnation = league.open()
    matches = league.client.acquire_matches(incarnation, 3, "league")
    verdicts = report(
        league, incarnation, *(replace(played(match), failed=True, failure="it broke") for match in matches)
    )
    assert all(verdict.accepted for verdict in verdicts)
    assert league.client.match(matches[0].match_id).result.failure == "it broke"
    assert league.client.ratings(Book.TRAIN) == []
    assert league.client.payoff(Book.TRAIN) == []


def test_a_player_against_itself_is_never_rated(tmp_path):
    with small_league(tmp_path, mixes={"mirror": {"self": 1.0}}) as league:
        _, verdicts, _ = league.play(league.open(), 4, mix="mirror")
        assert all(verdict.accepted for verdict in verdicts)
        assert league.client.ratings(Book.TRAIN) == []


def test_ratings_and_payoffs_follow_the_books(league):
    learner = league.open()
    league.play(learner, 40)
    evaluator = league.client.open_incarnation("evaluator-0").number
    pairing = Pairing(player="main@2000", opponent="based", pairs=5, book=Book.EVAL, seed=1)
    matches = league.client.acquire_pairings(evaluator, [pairing])
    report(
        league,
        evaluator,
        *(played(match, 1.0 if match.seats[0].name == "main@2000" else 0.0) for match in matches),
    )
    board = league.client.ratings()
    assert [(r.player.name, r.wins, r.losses, r.rank) for r in board] == [
        ("main@2000", 10, 0, 1),
        ("based", 0, 10, 2),
    ]
    assert board[0].score == board[0].mu - 3 * board[0].sigma
    train = {r.player.name: r for r in league.client.ratings(Book.TRAIN)}
    assert train["main"].games == 40
    assert league.client.ratings(Book.GREEDY) == []
    (cell,) = league.client.payoff(Book.EVAL, rows=["based"])
    assert (cell.column, cell.wins, cell.losses) == ("main@2000", 0, 10)


def test_the_live_player_drifts_and_the_bot_does_not(tmp_path):
    with small_league(tmp_path, snapshots=(), mixes={"one": {"based": 1.0}}) as league:
        league.play(league.open(), 1, outcome=lambda match: 1.0, mix="one")
        taus = {"main": TAU_LIVE, "based": 0.0}
        seats = [seat.player for seat in league.client.match(_first(league)).result.seats]
        game = RatedGame(*seats, 1.0, taus[seats[0]], taus[seats[1]], 0.1)
        expected = dict(zip(seats, rate(game, NEWCOMER, NEWCOMER), strict=True))
        for rating in league.client.ratings(Book.TRAIN):
            assert (rating.mu, rating.sigma) == (
                expected[rating.player.name].mu,
                expected[rating.player.name].sigma,
            )


def _first(league):
    with league.server.store.read() as reader:
        return next(reader.results()).match_id


def test_ratings_survive_a_restart_to_the_last_bit(tmp_path):
    with small_league(tmp_path) as league:
        league.play(league.open(), 50)
        before = league.client.ratings(Book.TRAIN)
    with small_league(tmp_path) as league:
        assert league.client.ratings(Book.TRAIN) == before
        assert league.client.status().log_position == 50


def test_a_changed_draw_probability_opens_a_logged_epoch(tmp_path):
    with small_league(tmp_path, draw_probability=0.1) as league:
        league.play(league.open(), 20)
        before = league.client.ratings(Book.TRAIN)
    with small_league(tmp_path, draw_probability=0.3) as league:
        assert league.client.ratings(Book.TRAIN) == before
        with league.server.store.read() as reader:
            assert reader.epochs() == [(0, 0.1), (20, 0.3)]
            assert [e.kind for e in reader.events(0, 500)].count("rating_epoch") == 2
        league.play(league.open(checkpoint=20), 20)
        with league.server.store.read() as reader:
            assert invariants.differing_ratings(reader, league.server.league.view.tables) == []


def test_leases_live_on_only_while_progress_rises(league):
    incarnation = league.open()
    league.client.acquire_matches(incarnation, 3, "league")
    seconds = league.server.league.settings.lease_seconds
    league.client.heartbeat(incarnation, 10)
    for progress in (20, 30):
        league.clock.advance(0.7 * seconds)
        fenced, deadline = league.client.heartbeat(incarnation, progress)
        assert (fenced, deadline) == (False, league.clock.now() + seconds)
        assert league.server.sweep() == 0
    league.clock.advance(0.7 * seconds)
    _, stuck = league.client.heartbeat(incarnation, 30)
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
    _, deadline = league.client.heartbeat(incarnation, 100)
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
    assert f"{new} took its place" in refused.reason
    assert duplicate.duplicate
    assert league.client.heartbeat(old, 5)[0] is True
    with pytest.raises(Fenced, match="fenced"):
        league.client.acquire_matches(old, 1, "league")
    with pytest.raises(Fenced):
        league.client.release_matches(old)
    evaluator = league.client.open_incarnation("evaluator-0").number
    assert league.client.heartbeat(evaluator, 1)[0] is False
    assert league.client.heartbeat(new, 1)[0] is False


def test_results_behind_the_checkpoint_are_lost_to_the_ratings(league):
    first = league.open()
    league.play(first, 10)
    at_checkpoint = league.client.ratings(Book.TRAIN), league.client.payoff(Book.TRAIN)
    matches, _, _ = league.play(first, 15)
    evaluator = league.client.open_incarnation("evaluator-0").number
    pairing = Pairing(player="main@2000", opponent="based", pairs=2, book=Book.EVAL, seed=1)
    for worker in (evaluator, first):  # clean matches of frozen players stay, whoever played them
        report(league, worker, *map(played, league.client.acquire_pairings(worker, [pairing])))
    board = league.client.ratings()
    assert league.client.ratings(Book.TRAIN) != at_checkpoint[0]
    opened = league.client.open_incarnation("learner-main", "main", 500, 10)
    assert opened.lost_results == 15
    assert (league.client.ratings(Book.TRAIN), league.client.payoff(Book.TRAIN)) == at_checkpoint
    assert league.client.ratings() == board
    assert league.client.match(matches[0].match_id).lost_branch
    assert league.client.open_incarnation("learner-main", "main", 500, 10).lost_results == 0


def test_carried_matches_are_leased_anew(league):
    old = league.open()
    going, finished = league.client.acquire_matches(old, 2, "league")
    report(league, old, played(finished))
    opened = league.client.open_incarnation("learner-main", "main", 0, 0, [finished.match_id, going.match_id])
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
    with pytest.raises(InvalidInput, match="belongs to evaluator-0"):
        league.client.open_incarnation("evaluator-1", carried_matches=[match.match_id])
    again = league.client.open_incarnation("evaluator-0", carried_matches=[match.match_id])
    assert again.carried[0].seats == match.seats


def test_the_matchmakers_own_absence_costs_no_lease(tmp_path):
    clock = ManualClock()
    with small_league(tmp_path, clock=clock) as league:
        incarnation = league.open()
        (match,) = league.client.acquire_matches(incarnation, 1, "league")
    clock.advance(10_000.0)
    with small_league(tmp_path, clock=clock) as league:
        assert league.server.sweep() == 0
        assert report(league, incarnation, played(match))[0].accepted


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
    with pytest.raises(InvalidInput, match="300 metrics"):
        league.client.heartbeat(incarnation, 1, metrics={f"m/{i}": 1.0 for i in range(300)})


def test_another_games_league_is_refused(tmp_path):
    with small_league(tmp_path):
        pass
    with pytest.raises(VersionMismatch, match="plays 'brawl'"):
        MatchmakerServer(tmp_path / "league.db", settings=MatchmakerSettings(game="chess"))


def test_a_full_disk_is_told_and_nothing_changes(league):
    incarnation = league.open()
    league.play(incarnation, 10)
    before = league.client.ratings(Book.TRAIN)
    writer = league.server.store._writer
    matches = league.client.acquire_matches(incarnation, 200, "league")
    writer.execute(f"PRAGMA max_page_count = {writer.execute('PRAGMA page_count').fetchone()[0]}")
    with pytest.raises(StorageFull, match="no space left"):
        league.client.report_results(incarnation, [played(match) for match in matches])
    assert league.client.ratings(Book.TRAIN) == before
    assert league.client.status().log_position == 10
    writer.execute("PRAGMA max_page_count = 1000000")
    verdicts, position = league.client.report_results(incarnation, [played(match) for match in matches])
    assert all(verdict.accepted for verdict in verdicts)
    assert position == 210


def test_broken_logs_are_found(tmp_path, caplog):
    with small_league(tmp_path, whole=False) as league:
        league.play(league.open(), 10)
        assert league.server.sweep() == 0
        assert caplog.text == ""
        with league.server.store.write() as tx:
            tx._connection.execute("UPDATE assignments SET lease_state = 'open' WHERE ordinal = 2")
            tx._connection.execute("UPDATE assignments SET category = 'constant', seed = 1 WHERE ordinal = 3")
        with league.server.store.read() as reader:
            findings = "\n".join(invariants.full_scan(reader))
            assert "closed as reported exactly when there is a result, but not" in findings
            assert "what its seed draws" in findings
            league.server.league.view.tables[Book.TRAIN].payoff.add("main", "based", 1.0)
            wrong = invariants.differing_ratings(reader, league.server.league.view.tables)
            assert wrong == ["the train book's ratings recomputed from the log are not those shown"]


def test_the_running_service_notices_a_broken_log(tmp_path, caplog):
    with small_league(tmp_path, whole=False) as league:
        league.play(league.open(), 10, outcome=learner_wins)
        with league.server.store.write() as tx:
            tx._connection.execute("UPDATE assignments SET closed_at = NULL WHERE ordinal = 2")
        league.server.sweep()
        assert "log is broken" in caplog.text
