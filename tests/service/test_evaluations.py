"""The queue of evaluations over gRPC: asked for, watched, cancelled, and there after a restart."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from small_league import BOTS, SmallLeague, played, report, small_league, snapshot
from staged import events

from evaluator.clean.service import EvaluatorServer
from league.errors import (
    Forbidden,
    InvalidInput,
    LeagueError,
    NotFound,
    Refused,
    Unauthenticated,
)
from league.evaluations import (
    MAX_PAIRS,
    Evaluation,
    EvaluationState,
    Report,
    targets,
    text_of,
)
from league.players import Assignment, Book, Pairing
from league.rpc.client import MatchmakerClient
from league.security.credentials import Credentials
from league.security.roles import AccessRole
from league.security.settings import SecuritySettings
from league.security.tokens import TokenFile
from league.service.settings import OperationsSettings
from league.v1 import evaluator_pb2 as e
from league.v1.evaluator_pb2_grpc import EvaluatorServiceStub
from matchmaker.acts import evaluate
from matchmaker.api.server import MatchmakerServer

OPEN, DONE, CANCELLED = EvaluationState


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matchmaker.api.service.REPORT_SECONDS", 0.01)


def pairings(evaluation: Evaluation, pairs: int = 1000) -> list[Pairing]:
    """What an evaluator leases for an evaluation, at most `pairs` pairs of each."""
    return [
        Pairing(
            player=one.player,
            opponent=one.opponent,
            pairs=min(pairs, one.until // 2),
            book=one.book,
            seed=0,
            until=one.until,
        )
        for one in targets(evaluation)
    ]


def wins(assignment: Assignment) -> float:
    return float(assignment.seats[0].name.startswith("main"))


def beats_random_alone(assignment: Assignment) -> float:
    is_random = "random" in {player.name for player in assignment.seats}
    return wins(assignment) if is_random else 1.0 - wins(assignment)


def play(
    league: SmallLeague,
    evaluation: Evaluation,
    pairs: int = 1000,
    worker: str = "evaluator-0",
    outcome: Callable[[Assignment], float] = wins,
) -> int:
    """Plays matches of an evaluation, as an evaluator that was just started; returns how many."""
    number = league.client.open_incarnation(worker).number
    found = league.client.acquire_pairings(number, pairings(evaluation, pairs))
    if found:
        league.client.report_results(number, [played(one, outcome(one)) for one in found])
    return len(found)


def ask(
    league: SmallLeague, *opponents: str, matches: int = 8, book: Book = Book.EVAL
) -> Evaluation:
    return league.client.request_evaluation("main@1000", opponents, matches, "bob", book)


def state(league: SmallLeague, evaluation: Evaluation) -> EvaluationState:
    return league.client.report(evaluation.number).evaluation.state


def test_an_evaluation_is_done_when_the_log_has_its_matches(league: SmallLeague) -> None:
    client = league.client
    asked = ask(league, "based", "random")
    assert client.evaluations(open_only=True) == [asked]
    assert (asked.player, asked.opponents, asked.matches) == ("main@1000", ("based", "random"), 8)
    assert (asked.book, asked.by, asked.state, asked.reason) == (Book.EVAL, "bob", OPEN, "")
    assert asked.at == league.clock.now()
    assert play(league, asked, pairs=3) == 12
    (listed,) = client.reports()
    assert (listed.evaluation, listed.matches_done, listed.matches_total) == (asked, 12, 16)
    assert listed.scores == ()
    assert play(league, asked) == 4
    report = client.report(asked.number)
    assert (report.evaluation.state, report.matches_done) == (DONE, 16)
    assert client.evaluations(open_only=True) == []
    assert client.evaluations() == [report.evaluation]
    score = report.scores[0]
    assert (score.opponent, score.matches, score.wins) == ("based", 8, 8)
    assert (score.win_rate.value, score.means) == (1.0, {"falls": 1.0})
    assert play(league, asked) == 0, "all of it is there"


def test_an_evaluation_stays_open_until_its_last_match(league: SmallLeague) -> None:
    asked = ask(league, "based", matches=4)
    number = league.client.open_incarnation("evaluator-0").number
    *first, last = league.client.acquire_pairings(number, pairings(asked))
    report(league, number, *map(played, first))
    assert state(league, asked) is OPEN
    broken = replace(played(last), failed=True, frames=0)
    report(league, number, broken)
    assert state(league, asked) is OPEN, "a match that failed does not count"
    assert play(league, asked) == 2, "a pair more in the place of the match that failed"
    assert state(league, asked) is DONE
    assert league.client.report(asked.number).scores[0].matches == 5


def test_matches_that_the_log_has_already_are_not_played_again(league: SmallLeague) -> None:
    play(league, ask(league, "based"))
    shorter = ask(league, "based", matches=6)
    report = league.client.report(shorter.number)
    assert (shorter.state, report.matches_done, report.scores[0].matches) == (DONE, 6, 8)
    longer = ask(league, "based", matches=20)
    assert league.client.report(longer.number).matches_done == 8
    assert play(league, longer) == 12


def test_a_clean_book_and_training_are_apart(league: SmallLeague) -> None:
    play(league, ask(league, "based"))
    league.play(league.open(), 40)
    greedy = ask(league, "based", book=Book.GREEDY)
    assert (greedy.book, greedy.state) == (Book.GREEDY, OPEN)
    assert play(league, greedy) == 8
    assert state(league, greedy) is DONE
    assert league.client.report(greedy.number).scores[0].matches == 8


def test_a_live_player_stands_for_its_newest_snapshot_at_the_time(league: SmallLeague) -> None:
    both = league.client.request_evaluation("main=3,main@2000=1", ["based"], 8, "bob")
    one = league.client.request_evaluation("main@1000", ["main", "based=1,main=3"], 8, "bob")
    mixed = league.client.request_evaluation("main=2,main@2000=1,main@1000=1", ["based"], 8, "b")
    league.client.register_players([snapshot(3000)])
    assert league.client.evaluations() == [both, one, mixed]
    assert both.player == "main@2000"
    assert mixed.player == "main@2000=0.75,main@1000=0.25"
    assert one.opponents == ("main@2000", "based=0.25,main@2000=0.75")


def test_a_mixture_is_played_by_weight(league: SmallLeague) -> None:
    asked = league.client.request_evaluation(
        "main@1000=1,main@2000=1", ["based=3,random=1"], 16, "bob"
    )
    assert asked.player == "main@1000=0.5,main@2000=0.5"
    counts = {(one.player, one.opponent): one.until for one in targets(asked)}
    assert counts == {
        ("main@1000", "based"): 6,
        ("main@1000", "random"): 2,
        ("main@2000", "based"): 6,
        ("main@2000", "random"): 2,
    }
    assert play(league, asked, outcome=beats_random_alone) == 16
    (score,) = league.client.report(asked.number).scores
    assert (score.opponent, score.matches, score.wins) == ("based=0.75,random=0.25", 16, 4)
    assert score.win_rate.value == pytest.approx(0.25)
    assert state(league, asked) is DONE


def test_bots_can_be_evaluated(league: SmallLeague) -> None:
    asked = league.client.request_evaluation("based", ["random"], 4, "bob")
    assert play(league, asked) == 4
    assert state(league, asked) is DONE


def test_evaluators_share_an_evaluation_and_a_dead_one_loses_nothing(league: SmallLeague) -> None:
    asked = ask(league, "based", matches=20)
    dead = league.client.open_incarnation("evaluator-1").number
    assert len(league.client.acquire_pairings(dead, pairings(asked, pairs=4))) == 8
    assert play(league, asked, worker="evaluator-2") == 12, "the rest"
    assert state(league, asked) is OPEN
    league.client.open_incarnation("evaluator-1")  # again, which gives its leases back
    assert play(league, asked, worker="evaluator-2") == 8
    assert state(league, asked) is DONE
    (cell,) = league.client.payoff(rows=["main@1000"], columns=["based"])
    assert cell.games == 20


def test_results_that_leave_the_book_open_an_evaluation_again(league: SmallLeague) -> None:
    asked = ask(league, "based")
    play(league, asked, worker="evaluator-7")
    assert state(league, asked) is DONE
    league.client.quarantine_worker("evaluator-7", "an old build", "bob")
    assert state(league, asked) is OPEN
    assert play(league, asked) == 8
    assert state(league, asked) is DONE


def test_the_same_request_again_is_one_evaluation(league: SmallLeague) -> None:
    first, again = (
        league.client.request_evaluation("main", ["based"], 4, "bob", request_id="once")
        for _ in range(2)
    )
    assert first == again
    assert len(events(league, "evaluation_requested")) == 1
    with pytest.raises(InvalidInput, match="used before"):
        league.client.request_evaluation("main", ["random"], 4, "bob", request_id="once")


def test_an_opponent_that_is_named_twice_is_met_once(league: SmallLeague) -> None:
    assert ask(league, "main@2000", "main@2000", "main").opponents == ("main@2000",)


# --- watched


def test_a_watched_evaluation_is_reported_as_it_changes_until_it_is_done(
    league: SmallLeague,
) -> None:
    asked = ask(league, "based")
    other = ask(league, "random")
    stream = league.client.watch_reports(asked.number)
    assert next(stream).matches_done == 0
    play(league, other, pairs=1)  # no news of this one
    play(league, asked, pairs=1)
    assert next(stream).matches_done == 2
    play(league, asked)
    (last,) = stream
    assert (last.evaluation.state, last.matches_done) == (DONE, 8)
    assert last == league.client.report(asked.number)
    assert list(league.client.watch_reports(asked.number)) == [last]


def test_all_are_watched_those_to_come_too(league: SmallLeague) -> None:
    done, first = ask(league, "based"), ask(league, "random")
    play(league, done)
    stream = league.client.watch_reports()
    assert next(stream).evaluation == first
    second = ask(league, "constant")
    assert next(stream).evaluation == second
    ended = league.client.cancel_evaluation(first.number, "not needed", "bob")
    assert next(stream).evaluation == ended


def test_a_stream_of_reports_ends_with_the_service(tmp_path: Path) -> None:
    with small_league(tmp_path, whole=False) as league:
        asked = ask(league, "based")
        with grpc.insecure_channel(league.server.address) as channel:
            stream = EvaluatorServiceStub(channel).WatchReports(e.WatchReportsRequest(number=0))
            assert next(stream).evaluation.number == asked.number
            league.server.stop()
            assert list(stream) == [], "it is not broken off"


# --- cancelled


def test_a_cancelled_evaluation_stays_as_it_was(league: SmallLeague) -> None:
    asked = ask(league, "based")
    play(league, asked, pairs=1)
    ended = league.client.cancel_evaluation(asked.number, "main@1000: damaged", "evaluator-0")
    assert (ended.state, ended.reason) == (CANCELLED, "evaluator-0: main@1000: damaged")
    assert league.client.evaluations(open_only=True) == []
    assert league.client.cancel_evaluation(asked.number, "again", "bob") == ended
    assert len(events(league, "evaluation_cancelled")) == 1
    assert league.client.report(asked.number).scores[0].matches == 2
    play(league, asked)
    assert state(league, asked) is CANCELLED


def test_a_done_evaluation_can_not_be_cancelled(league: SmallLeague) -> None:
    asked = ask(league, "based")
    play(league, asked)
    assert league.client.cancel_evaluation(asked.number, "too late", "bob").state is DONE
    assert events(league, "evaluation_cancelled") == []


def test_a_quarantine_ends_the_open_evaluations_of_its_player(league: SmallLeague) -> None:
    mixed, other = ask(league, "based=1,random=1"), ask(league, "constant")
    league.client.quarantine("random", "plays another game", "bob")
    ended = league.client.report(mixed.number).evaluation
    assert ended.state is CANCELLED
    assert re.search(r"^bob: random\b", ended.reason)
    assert state(league, other) is OPEN
    with pytest.raises(Refused, match="random"):
        ask(league, "random")


# --- kept


def test_a_restart_of_the_matchmaker_keeps_the_queue(tmp_path: Path) -> None:
    with small_league(tmp_path) as league:
        open_, done, ended = ask(league, "based"), ask(league, "random"), ask(league, "constant")
        play(league, done)
        play(league, open_, pairs=1)
        league.client.cancel_evaluation(ended.number, "not needed", "bob")
        before = league.client.reports()
    with small_league(tmp_path, snapshots=()) as league:
        assert league.client.reports() == before
        assert league.client.evaluations(open_only=True) == [open_]
        assert play(league, open_) == 6
        assert ask(league, "based", matches=10).number > ended.number


def test_new_rules_of_the_game_end_all_evaluations(tmp_path: Path) -> None:
    with small_league(tmp_path, game_version="1") as league:
        asked = ask(league, "based")
        done = ask(league, "random")
        play(league, done)
    for new in (True, False):
        with small_league(tmp_path, snapshots=(), game_version="2", new_epoch=new) as league:
            found = league.client.evaluations()
            assert [one.number for one in found] == [asked.number, done.number]
            assert {one.state for one in found} == {CANCELLED}


def test_a_read_only_league_shows_its_evaluations(tmp_path: Path) -> None:
    with small_league(tmp_path) as league:
        asked = ask(league, "based")
    with (
        MatchmakerServer(tmp_path / "league.db", read_only=True) as server,
        MatchmakerClient(server.address) as client,
    ):
        assert client.evaluations() == [asked]
        assert [one.evaluation for one in client.watch_reports()] == [asked]
        assert [one.evaluation for one in client.watch_reports(asked.number)] == [asked]
        with pytest.raises(Refused):
            client.request_evaluation("main", ["based"], 4, "bob")


# --- refused


@pytest.mark.parametrize(
    ("changes", "error", "value"),
    [
        ({"player": "nobody"}, NotFound, "nobody"),
        ({"player": ""}, InvalidInput, "mixture"),
        ({"player": "main@1000=0"}, InvalidInput, "mixture"),
        ({"opponents": []}, InvalidInput, "opponents = 0"),
        ({"opponents": ["based", "nobody=1,random=1"]}, NotFound, "nobody"),
        ({"opponents": ["main@1000"]}, InvalidInput, "main@1000"),
        ({"opponents": ["based=1,main@1000=1"]}, InvalidInput, "main@1000"),
        ({"opponents": ["human"]}, NotFound, "human"),
        ({"opponents": ["based"] * 257}, InvalidInput, "257"),
        ({"matches": 0}, InvalidInput, "matches = 0"),
        ({"matches": -2}, InvalidInput, "matches = -2"),
        ({"matches": 7}, InvalidInput, "matches = 7"),
        ({"matches": 100_002}, InvalidInput, "100002"),
        ({"book": Book.TRAIN}, InvalidInput, "eval or greedy"),
        ({"by": " "}, InvalidInput, "by is empty"),
        ({"player": "x" * 50_001}, InvalidInput, "50001"),
    ],
)
def test_what_can_not_be_played_is_refused(
    league: SmallLeague, changes: dict[str, object], error: type[LeagueError], value: str
) -> None:
    asked = {"player": "main@1000", "opponents": ["based"], "matches": 4, "by": "bob"}
    with pytest.raises(error, match=value):
        league.client.request_evaluation(**asked | changes)  # type: ignore[arg-type]
    assert events(league, "evaluation_requested") == []


def test_too_many_pairs_of_players_are_refused(
    league: SmallLeague, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate, "MAX_PAIRS", 2)
    ask(league, "based", "random=1,based=1")
    with pytest.raises(InvalidInput, match="= 3"):
        ask(league, "based", "random=1,constant=1")


def test_a_mixture_of_as_many_snapshots_as_can_be_paired_is_played(tmp_path: Path) -> None:
    steps = range(1_001_000, 1_001_000 + MAX_PAIRS // len(BOTS))
    with small_league(tmp_path, snapshots=steps) as league:
        mixture = {f"main@{step}": 1.0 for step in steps}
        asked = league.client.request_evaluation(text_of(mixture), BOTS, 400, "bob")
        assert len(targets(asked)) == len(steps) * len(BOTS)


def test_a_learner_without_a_snapshot_is_refused(tmp_path: Path) -> None:
    with (
        small_league(tmp_path, snapshots=()) as league,
        pytest.raises(NotFound, match="main"),
    ):
        league.client.request_evaluation("main", ["based"], 4, "bob")


def test_only_so_many_may_be_open(league: SmallLeague, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "MAX_OPEN", 2)
    first, _ = ask(league, "based"), ask(league, "random")
    with pytest.raises(Refused, match=r"\b2\b"):
        ask(league, "constant")
    play(league, first)
    assert ask(league, "constant").state is OPEN


def test_there_is_no_evaluation_of_another_number(league: SmallLeague) -> None:
    for call in (
        lambda: league.client.report(99),
        lambda: next(league.client.watch_reports(99)),
        lambda: league.client.cancel_evaluation(99, "so", "bob"),
    ):
        with pytest.raises(NotFound, match="99"):
            call()
    asked = ask(league, "based")
    for reason, by in (("", "bob"), ("so", "")):
        with pytest.raises(InvalidInput, match="give both"):
            league.client.cancel_evaluation(asked.number, reason, by)
    assert state(league, asked) is OPEN


def test_the_matchmaker_is_no_evaluator(league: SmallLeague) -> None:
    with (
        grpc.insecure_channel(league.server.address) as channel,
        pytest.raises(grpc.RpcError, match=r"evaluator\.json"),
    ):
        EvaluatorServiceStub(channel).GetEvaluatorStatus(e.GetEvaluatorStatusRequest())


# --- who may, and at which service


@pytest.fixture
def passing_on(league: SmallLeague, tmp_path: Path) -> Iterator[MatchmakerClient]:
    """A client of an evaluator, for the calls of the queue."""
    with (
        EvaluatorServer(None, league.client, run_dir=tmp_path) as server,  # type: ignore[arg-type]
        MatchmakerClient(server.address, wait_seconds=5) as client,
    ):
        yield client


def test_an_evaluator_passes_the_calls_of_the_queue_on(
    league: SmallLeague, passing_on: MatchmakerClient
) -> None:
    asked = passing_on.request_evaluation("main", ["based"], 8, "bob")
    assert passing_on.evaluations() == league.client.evaluations() == [asked]
    stream: Iterator[Report] = passing_on.watch_reports(asked.number)
    assert next(stream) == passing_on.report(asked.number) == league.client.report(asked.number)
    play(league, asked, pairs=1)
    assert next(stream).matches_done == 2
    ended = passing_on.cancel_evaluation(asked.number, "not needed", "bob")
    assert [one.evaluation for one in stream] == [ended]


def test_an_evaluator_passes_calls_on_by_one_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each one takes a handshake, for which a busy machine needs seconds."""
    with (
        small_league(tmp_path, operations=OperationsSettings(log_calls=True)) as league,
        EvaluatorServer(None, league.client, run_dir=tmp_path) as server,  # type: ignore[arg-type]
        MatchmakerClient(server.address, wait_seconds=5) as client,
        caplog.at_level(logging.INFO),
    ):
        for _ in range(3):
            assert client.evaluations() == []
        calls = [one for one in caplog.records if getattr(one, "method", "") == "ListReports"]
        peers = {one.peer for one in calls}  # type: ignore[attr-defined]
    assert (len(calls), len(peers)) == (3, 1)


def test_the_matchmakers_refusals_come_through_an_evaluator_as_they_are(
    passing_on: MatchmakerClient,
) -> None:
    with pytest.raises(NotFound, match="99"):
        passing_on.report(99)
    with pytest.raises(NotFound, match="99"):
        next(passing_on.watch_reports(99))
    with pytest.raises(InvalidInput, match="matches = 7"):
        passing_on.request_evaluation("main", ["based"], 7, "bob")


@pytest.mark.parametrize("service", ["matchmaker", "evaluator"])
def test_a_caller_has_the_rights_of_its_token_at_either_service(
    tmp_path: Path, service: str
) -> None:
    """An evaluator shows the matchmaker the token of its caller, never its own."""
    file = TokenFile(tmp_path)
    file.make()
    tokens = [file.add(role, f"{role.word}-1") if role else "" for role in AccessRole]
    with (
        small_league(tmp_path, security=SecuritySettings(tokens=True)) as league,
        EvaluatorServer(None, league.client, run_dir=tmp_path) as server,  # type: ignore[arg-type]
    ):
        asked = ask(league, "based")
        address = league.server.address if service == "matchmaker" else server.address

        none, reader, worker, operator = (
            MatchmakerClient(address, wait_seconds=5, credentials=Credentials(token=token))
            for token in tokens
        )
        with none, reader, worker, operator:
            with pytest.raises(Unauthenticated):
                none.evaluations()
            assert reader.evaluations() == [asked]
            assert next(reader.watch_reports(asked.number)).evaluation == asked
            with pytest.raises(Forbidden, match="CancelEvaluation needs worker"):
                reader.cancel_evaluation(asked.number, "so", "bob")
            with pytest.raises(Forbidden, match="RequestEvaluation needs operator"):
                worker.request_evaluation("main", ["based"], 4, "bob")
            more = operator.request_evaluation("main", ["based"], 4, "bob")
            ended = worker.cancel_evaluation(more.number, "damaged", "evaluator-0")
            assert (ended.state, ended.reason) == (CANCELLED, "evaluator-0: damaged")
        audit = [event.text for event in events(league, "operator_action")]
        assert "operator-1 (operator) calls RequestEvaluation" in audit[-1]


def test_the_example_of_the_page_runs(
    league: SmallLeague, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "evaluator.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    play(
        league, league.client.request_evaluation("main", ["based", "random=3,constant=1"], 200, "a")
    )
    exec(compile(example.replace("127.0.0.1:50051", league.server.address), "docs", "exec"), {})
    assert capsys.readouterr().out.splitlines() == [
        "400 of 400 matches",
        "based: 100% won (98% to 100%)",
        "random=0.75,constant=0.25: 100% won (98% to 100%)",
    ]
