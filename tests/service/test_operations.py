"""How a service is watched, over real sockets: metrics, health of the disk, draining, log lines,
status.
"""

from __future__ import annotations

import http.client
import io
import json
import logging
import re
import socket
import threading
import time
from pathlib import Path

import grpc
import pytest
from evaluating import running
from grpc_health.v1 import health_pb2, health_pb2_grpc
from ports import free_port
from prometheus_client.parser import text_string_to_metric_families
from small_league import SmallLeague, played, report, small_league
from test_cli_terminal import on_terminal, plain
from test_matchmaker_process import matchmaker, ready_port, register
from test_matchmaker_results import bad_results
from waiting import PATIENCE

from league.cli.main import main
from league.errors import Closing, LeagueError, Refused, StorageFull, StorageReadOnly
from league.rpc.client import MatchmakerClient
from league.service.interceptor import Call
from league.service.logs import configure
from league.service.settings import OperationsSettings
from league.v1 import matchmaker_pb2 as m
from matchmaker.api.server import SERVICE_NAME

SERVING, NOT_SERVING = (
    health_pb2.HealthCheckResponse.SERVING,
    health_pb2.HealthCheckResponse.NOT_SERVING,
)


def metrics_at(port: int) -> dict[tuple[str, ...], float]:
    """Samples by name and label values."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return {
        (sample.name, *(sample.labels[label] for label in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def health_of(address: str, service: str = "") -> int:
    with grpc.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        return int(stub.Check(health_pb2.HealthCheckRequest(service=service)).status)


def test_metrics_count_what_happened(tmp_path: Path) -> None:
    port = free_port()
    with small_league(tmp_path, operations=OperationsSettings(metrics_port=port)) as league:
        incarnation = league.open()
        first, second, third, *_ = league.client.acquire_matches(incarnation, 5, "league")
        report(league, incarnation, played(first), *bad_results(second).values())
        report(league, incarnation, played(first))
        for _ in range(2):
            league.client.report_results(incarnation, [played(third)], request_id="once")
        with pytest.raises(LeagueError):
            league.client.acquire_matches(incarnation, -1, "league")
        league.client.heartbeat(incarnation, 1)
        league.clock.advance(10_000)
        league.server.sweep()
        seen = metrics_at(port)
    assert seen["kumite_results_total", "", "accepted"] == 2
    assert seen["kumite_results_total", "", "duplicate"] == 1
    refused = {
        key[1]: value
        for key, value in seen.items()
        if key[0] == "kumite_results_total" and key[2] == "refused"
    }
    assert sum(refused.values()) == len(bad_results(second))
    assert refused["lease_token"] == refused["unknown_match"] == refused["wrong_digest"] == 1
    assert refused["malformed"] == sum(refused.values()) - 4, "and a wrong player"
    assert seen["kumite_calls_total", "OK", "ReportResults"] == 4
    assert seen["kumite_calls_total", "INVALID_ARGUMENT", "AcquireMatches"] == 1
    assert seen["kumite_call_seconds_count", "AcquireMatches"] == 2
    assert seen["kumite_leases_expired_total",] == 3
    assert seen["kumite_leases_open",] == 0
    assert seen["kumite_log_position",] == 2
    assert seen["kumite_assignments",] == 5
    assert seen["kumite_players", "bot", "active"] == 3
    assert seen["kumite_workers",] == 0
    assert seen["kumite_commit_seconds_count",] >= 8
    assert seen["kumite_health",] == 1
    assert seen["kumite_store_bytes",] > 50_000
    assert seen["kumite_disk_free_bytes",] > 0


def test_a_metrics_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(Refused, match=str(port)),
            small_league(tmp_path, operations=OperationsSettings(metrics_port=port)),
        ):
            pass
    with small_league(tmp_path):  # nothing of the first one is left
        pass


def test_the_evaluators_metrics_and_health(tmp_path: Path) -> None:
    port = free_port()
    operations = OperationsSettings(metrics_port=port - 1)
    with (
        small_league(tmp_path) as league,
        running(league.client, tmp_path, operations=operations) as run,
    ):
        run.status()
        assert (
            health_of(run.address)
            == health_of(run.address, "league.v1.EvaluatorService")
            == SERVING
        )
        seen = metrics_at(port)
    assert seen["kumite_calls_total", "OK", "GetEvaluatorStatus"] == 1
    assert seen["kumite_evaluator_snapshots_total",] == 0
    assert ("kumite_evaluator_matches_per_second",) in seen


def disk_trouble(league: SmallLeague, pragma: str) -> None:
    league.server.store._db.execute(f"PRAGMA {pragma}")


@pytest.mark.parametrize(
    ("broken", "healed", "error", "says"),
    [
        ("max_page_count = 1", "max_page_count = 1000000", StorageFull, "no space left"),
        ("query_only = ON", "query_only = OFF", StorageReadOnly, "takes no writes"),
    ],
)
def test_health_follows_the_disk(
    tmp_path: Path, broken: str, healed: str, error: type[LeagueError], says: str
) -> None:
    with small_league(tmp_path) as league:
        address, incarnation = league.server.address, league.open()
        matches = league.client.acquire_matches(incarnation, 300, "league")
        results = [played(match) for match in matches]
        disk_trouble(league, broken)
        with pytest.raises(error, match=says):
            league.client.report_results(incarnation, results, request_id="r1")
        assert health_of(address) == health_of(address, SERVICE_NAME) == NOT_SERVING
        league.server.monitor.check_disk()
        assert health_of(address) == NOT_SERVING
        status = league.client.status()
        assert says in status.vitals.trouble
        assert status.log_position == 0
        disk_trouble(league, healed)
        league.server.monitor.check_disk()
        assert health_of(address) == SERVING
        verdicts, position = league.client.report_results(incarnation, results, request_id="r1")
        assert position == 300
        assert all(verdict.accepted and not verdict.duplicate for verdict in verdicts)


def test_health_turns_before_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matchmaker.api.monitor.LEAST_FREE_BYTES", 1e15)
    with small_league(tmp_path) as league:
        assert health_of(league.server.address) == NOT_SERVING
        assert "less than 1e+09" in league.client.status().vitals.trouble
        league.play(league.open(), 3)  # it continues as long as it can


def test_draining_lets_calls_end_and_sends_others_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_end = threading.Event(), threading.Event()
    with small_league(tmp_path) as league:
        frame, vitals = league.server._frame, league.server.league.vitals

        def slow() -> object:
            began.set()
            assert may_end.wait(PATIENCE)
            return vitals()

        monkeypatch.setattr(league.server.league, "vitals", slow)
        found: list[object] = []
        thread = threading.Thread(target=lambda: found.append(league.client.status().game))
        thread.start()
        assert began.wait()
        frame.drain()
        assert health_of(league.server.address) == NOT_SERVING
        with (
            MatchmakerClient(league.server.address, wait_seconds=0.2) as late,
            pytest.raises(Closing),
        ):
            late.players()
        stopper = threading.Thread(target=league.server.stop)
        stopper.start()
        time.sleep(0.1)
        assert stopper.is_alive()  # it waits for the call
        may_end.set()
        thread.join()
        stopper.join()
        assert found == ["brawl"]
        league.check = lambda: None  # type: ignore[method-assign]  # the file is closed


def test_a_client_waits_for_a_matchmaker_that_is_started_again(tmp_path: Path) -> None:
    """By SIGTERM, the real process: an open lease lives on, and its result counts."""
    db, port = tmp_path / "league.db", free_port()
    with matchmaker(db, port=port) as process:
        ready_port(process)
        with MatchmakerClient(f"127.0.0.1:{port}", wait_seconds=60) as client:
            register(client)
            incarnation = client.open_incarnation("learner-main", "main").number
            (match,) = client.acquire_matches(incarnation, 1, "league")
            process.terminate()
            assert process.wait() == 0
            answers: list[object] = []
            thread = threading.Thread(
                target=lambda: answers.append(client.report_results(incarnation, [played(match)]))
            )
            thread.start()
            with matchmaker(db, port=port) as again:
                ready_port(again)
                thread.join()
                ((verdicts, position),) = answers  # type: ignore[misc]
                assert verdicts[0].accepted
                assert position == 1


def test_log_lines_for_programs(tmp_path: Path) -> None:
    """The real process writes one JSON object a line, with every call in it."""
    config = tmp_path / "config.toml"
    config.write_text('[operations]\nlog_format = "json"\nlog_calls = true\n')
    with matchmaker(tmp_path / "league.db", "--config", str(config)) as process:
        with MatchmakerClient(f"127.0.0.1:{ready_port(process)}") as client:
            register(client)
            incarnation = client.open_incarnation("learner-main", "main").number
            client.acquire_matches(incarnation, 2, "league")
            with pytest.raises(LeagueError):
                client.acquire_matches(99, 2, "league")
        process.terminate()
        assert process.wait() == 0
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
    calls = [line for line in lines if line["logger"] == "calls"]
    assert [(call["method"], call["code"]) for call in calls] == [
        ("RegisterPlayers", "OK"),
        ("OpenIncarnation", "OK"),
        ("AcquireMatches", "OK"),
        ("AcquireMatches", "NOT_FOUND"),
    ]
    good, bad = calls[2:]
    assert good["worker"] == "learner-main"
    assert good["incarnation"] == 1
    assert good["peer"].startswith("ipv4:127.0.0.1:")
    assert len(good["request_id"]) == 32
    assert 0 < good["seconds"] < 5
    assert "no incarnation 99" in bad["error"]
    assert {"time", "level", "message"} <= good.keys()


@pytest.fixture
def logged():
    """What is written to the log, and how; the test's own logging comes back."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    stream = io.StringIO()
    yield stream
    root.handlers[:] = before
    root.setLevel(level)


def test_people_are_told_of_slow_calls_and_faults_alone(
    tmp_path: Path, logged: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure("human", logged)
    with small_league(tmp_path) as league:
        league.play(league.open(), 3)
        monkeypatch.setattr("league.service.logs.SLOW_SECONDS", 0.05)
        assert "GetStatus" not in logged.getvalue()
        vitals = league.server.league.vitals
        monkeypatch.setattr(league.server.league, "vitals", lambda: time.sleep(0.06) or vitals())
        for _ in range(3):
            league.client.status()
        monkeypatch.setattr(league.server.league, "vitals", lambda: 1 / 0)
        with pytest.raises(LeagueError, match=r"failed inside .ZeroDivisionError."):
            league.client.status()
        monkeypatch.setattr(league.server.league, "vitals", vitals)
    text = logged.getvalue()
    assert "WARNING GetStatus from ipv4:127.0.0.1:" in text
    assert (slow := re.search(r"OK in ([\d.]+) ms", text)) is not None
    assert float(slow[1]) >= 60
    assert text.count("OK in") == 1  # a crowd of slow calls would make a busy service slower
    assert "UNKNOWN in" in text
    # the log has the traceback, the caller has none
    assert "ZeroDivisionError" in text


def test_the_last_call_before_a_stop_is_logged_though_the_store_is_closed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with small_league(tmp_path) as league:
        monitor, incarnation = league.server.monitor, league.open()
    call = Call(
        "Heartbeat", "ipv4:127.0.0.1:1", request=m.HeartbeatRequest(incarnation=incarnation)
    )
    call.error = LeagueError("it broke")
    monitor.observers[0](call)
    assert "it broke" in caplog.text


def test_the_log_looks_an_incarnations_worker_up_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with small_league(tmp_path) as league:
        log, incarnation = league.server.monitor.observers[0], league.open()
        request = m.HeartbeatRequest(incarnation=incarnation)
        call = Call("Heartbeat", "ipv4:127.0.0.1:1", request=request, error=LeagueError("late"))
        log(call)
    caplog.clear()
    log(call)  # the store is closed now
    assert caplog.records[-1].__dict__["worker"] == "learner-main"


def test_status_is_one_look_at_a_league(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with small_league(tmp_path, clock=None) as league:
        incarnation = league.open()
        league.play(incarnation, 40)
        league.client.heartbeat(
            incarnation, 1, 500, "league", "rollout", {"rate/steps_per_second": 1234.5}
        )
        to = ("--address", league.server.address)
        assert main(["status", *to, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["health"] == "SERVING"
        assert told["log_position"] == 40
        assert told["workers"][0]["worker"] == "learner-main"
        assert sum(part["configured"] for part in told["shares"]) == pytest.approx(1)
        assert {epoch["book"] for epoch in told["epochs"]} == {"train", "eval", "greedy"}
        assert told["vitals"]["assignments"] == 40
        code, text = on_terminal("status", *to, columns=80)
        assert code == 0
        assert "rollout (league)" in plain(text)
        assert "70.0%" in plain(text)
        disk_trouble(league, "query_only = ON")
        with pytest.raises(StorageReadOnly):
            league.client.heartbeat(incarnation, 2)
        assert main(["status", *to]) == 5
        assert "health\tNOT_SERVING: " in capsys.readouterr().out
        disk_trouble(league, "query_only = OFF")


def test_status_names_a_worker_whose_heartbeats_have_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with small_league(tmp_path) as league:
        incarnation = league.open()

        def silent(activity: str, seconds: float) -> list[tuple[str, str]]:
            league.client.heartbeat(incarnation, 1, 500, "league", activity)
            league.clock.advance(seconds)
            assert main(["status", "--address", league.server.address]) == 0
            said = capsys.readouterr().out
            return re.findall(r"^silent\t(\S+), .* (\d+ s):", said, re.MULTILINE)

        assert silent("update", 29) == []
        assert silent("update", 31) == [("learner-main", "31 s")]
        assert silent("update", 5) == []
        assert silent("done", 3600) == []
