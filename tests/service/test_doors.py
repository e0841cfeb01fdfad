"""What strangers do at the doors of the services: unfinished calls, floods, idle connections."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
import raw_http2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from raw_http2 import PING, UNFINISHED, connection, frame, half_open
from remote_league import unfinished
from small_league import small_league
from test_matchmaker_process import ready_port
from waiting import PATIENCE, wait_for

from evaluator.clean.service import EvaluatorServer
from league.errors import Busy, StorageReadOnly
from league.rpc.client import MatchmakerClient
from league.security.credentials import Credentials, of_run
from league.security.settings import SecuritySettings
from league.service import server
from league.v1 import matchmaker_pb2

REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
STATUS = "/league.v1.MatchmakerService/GetStatus"
LIST = reflection_pb2.ServerReflectionRequest(list_services="").SerializeToString()


@dataclass(frozen=True)
class Service:
    """`path` is a call that `noise` is refused by, once a thread has looked at it."""

    address: str
    path: str
    token: str = ""

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        return Credentials(token=self.token).metadata

    def answers(self) -> None:
        """Health and a call that needs a thread are answered."""
        with grpc.insecure_channel(self.address) as channel:
            asked = health_pb2.HealthCheckRequest()
            found = health_pb2_grpc.HealthStub(channel).Check(asked)
            assert found.status == health_pb2.HealthCheckResponse.SERVING
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary(self.path)(b"\xff", metadata=self.metadata)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


@contextmanager
def served(kind: str, folder: Path, *, tokens: bool = False) -> Iterator[Service]:
    security = SecuritySettings(tokens=tokens)
    with small_league(folder, (), security=security if kind == "matchmaker" else None) as league:
        if kind == "matchmaker":
            found = Service(league.server.address, STATUS)
        else:
            server = EvaluatorServer(None, league.client, run_dir=folder, security=security)  # type: ignore[arg-type]
            league.client.players()
        with contextlib.nullcontext() if kind == "matchmaker" else server:
            if kind == "evaluator":
                found = Service(server.address, "/league.v1.EvaluatorService/RequestEvaluation")
            if tokens:
                token = of_run(folder, "operator", environment={}).token
                found = Service(found.address, found.path, token)
            yield found


@pytest.mark.parametrize("body", [b"", UNFINISHED], ids=["headers", "unfinished"])
@pytest.mark.parametrize("tokens", [False, True], ids=["open", "tokens"])
@pytest.mark.parametrize("kind", ["matchmaker", "evaluator"])
def test_calls_whose_request_never_arrives_hold_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, tokens: bool, body: bytes
) -> None:
    monkeypatch.setattr("league.service.interceptor.ARRIVAL_SECONDS", PATIENCE)
    with served(kind, tmp_path, tokens=tokens) as service, ExitStack() as open_calls:
        for token in {"", service.token}:
            calls = half_open(service.address, service.path, 80, token=token, body=body)
            open_calls.enter_context(calls)
        time.sleep(0.3)  # they are at the service
        service.answers()


def test_a_request_that_does_not_arrive_in_time_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("league.service.interceptor.ARRIVAL_SECONDS", 0.3)
    with (
        served("matchmaker", tmp_path) as service,
        grpc.insecure_channel(service.address) as channel,
        unfinished() as requests,
    ):
        call = channel.stream_unary(STATUS).future(requests)
        assert call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert re.search(r"GetStatus.* 0\.3 s", call.details())


def test_open_reflections_hold_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("league.service.interceptor.ARRIVAL_SECONDS", PATIENCE)
    with served("evaluator", tmp_path) as service, ExitStack() as opened:
        sessions = []
        for _ in range(4):
            channel = opened.enter_context(grpc.insecure_channel(service.address))
            requests = opened.enter_context(unfinished(LIST))
            sessions.append(channel.stream_stream(REFLECTION)(requests))
            assert next(sessions[-1])
        service.answers()
        another = opened.enter_context(grpc.insecure_channel(service.address))
        (reply,) = another.stream_stream(REFLECTION)(iter([LIST]))
        assert b"EvaluatorService" in reply


def test_an_idle_reflection_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("league.service.interceptor.ARRIVAL_SECONDS", 0.3)
    with (
        served("evaluator", tmp_path) as service,
        grpc.insecure_channel(service.address) as channel,
        unfinished(LIST) as requests,
    ):
        replies = channel.stream_stream(REFLECTION)(requests)
        assert next(replies)
        with pytest.raises(grpc.RpcError, match=r"arrived within 0.3 s"):
            next(replies)


@contextmanager
def a_process(folder: Path, *, tokens: bool = False, limits: str = "") -> Iterator[tuple[str, int]]:
    """Address and process number of a matchmaker, started by a shell that sets `limits`."""
    environment = {**os.environ, "KUMITE_SECURITY__TOKENS": str(tokens).lower()}
    command = [sys.executable, "-m", "matchmaker", "--db", str(folder / "league.db"), "--port", "0"]
    process = subprocess.Popen(
        ["sh", "-c", f'{limits} exec "$@"', "sh", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    try:
        yield f"127.0.0.1:{ready_port(process)}", process.pid
    finally:
        process.terminate()
        process.wait(PATIENCE)
        assert process.stdout is not None
        process.stdout.close()


def most_mebibytes(pid: int) -> float:
    """The most memory that a process has held."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def test_a_strangers_large_requests_are_not_read(tmp_path: Path) -> None:
    body = b"\0" * (31 << 20)
    with (
        a_process(tmp_path, tokens=True) as (address, pid),
        grpc.insecure_channel(address) as channel,
    ):
        before = most_mebibytes(pid)
        calls = [channel.unary_unary(STATUS).future(body) for _ in range(16)]
        assert {call.code() for call in calls} == {grpc.StatusCode.UNAUTHENTICATED}
        assert most_mebibytes(pid) - before < 4 * 31


def test_refused_requests_leave_the_memory_at_once(tmp_path: Path) -> None:
    body = matchmaker_pb2.GetMatchRequest(match_id="x" * (31 << 20)).SerializeToString()
    with a_process(tmp_path) as (address, pid), grpc.insecure_channel(address) as channel:
        for method in ("GetMatch", "ReportResults"):
            refused = channel.unary_unary(f"/league.v1.MatchmakerService/{method}")
            most = []
            for _ in range(9):
                with pytest.raises(grpc.RpcError, match="INVALID_ARGUMENT"):
                    refused(body)
                most.append(most_mebibytes(pid))
            assert most[-1] - most[0] < 9 * 31  # the allocator keeps some


@pytest.mark.parametrize("method", ["Check", "List", "Watch"])
def test_nonsense_at_health_is_refused_without_a_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    with (
        served("matchmaker", tmp_path) as service,
        grpc.insecure_channel(service.address) as channel,
    ):
        path = f"/grpc.health.v1.Health/{method}"
        with pytest.raises(grpc.RpcError) as caught:
            list(channel.unary_stream(path)(b"\xff"))
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert method in caught.value.details()
    assert caplog.text == ""


def test_health_is_asked_in_three_ways(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    serving = health_pb2.HealthCheckResponse.SERVING
    with (
        small_league(tmp_path, ()) as league,
        grpc.insecure_channel(league.server.address) as channel,
    ):
        stub = health_pb2_grpc.HealthStub(channel)
        listed = stub.List(health_pb2.HealthListRequest()).statuses
        assert {"", "league.v1.MatchmakerService"} <= listed.keys()
        assert {reply.status for reply in listed.values()} == {serving}
        with pytest.raises(grpc.RpcError) as caught:
            stub.Check(health_pb2.HealthCheckRequest(service="nobody"))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        watched = stub.Watch(health_pb2.HealthCheckRequest())
        assert next(watched).status == serving
        assert caplog.text == ""
        league.server.store._db.execute("PRAGMA query_only = ON")
        with pytest.raises(StorageReadOnly):
            league.client.open_incarnation("learner-main", "main")
        assert next(watched).status == health_pb2.HealthCheckResponse.NOT_SERVING
        league.server.store._db.execute("PRAGMA query_only = OFF")


def test_too_many_calls_of_health_are_refused_late(tmp_path: Path) -> None:
    """A hundred a second are answered; the refusals slow a flood down."""
    with (
        served("matchmaker", tmp_path) as service,
        grpc.insecure_channel(service.address) as channel,
    ):
        began, check = time.monotonic(), channel.unary_unary("/grpc.health.v1.Health/Check")
        assert check(b"")  # now the client knows how many it may make at a time
        calls = [check.future(b"") for _ in range(600)]
        codes = Counter(call.code() for call in calls)
        seconds = time.monotonic() - began
        assert codes.keys() == {grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert codes[grpc.StatusCode.OK] <= 100 * (1 + seconds)
        assert seconds > 1.0
        refused = next(call for call in calls if call.code() is not grpc.StatusCode.OK)
        assert "grpc-retry-pushback-ms" in dict(refused.trailing_metadata())


def test_a_stream_that_its_client_leaves_is_no_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with served("matchmaker", tmp_path) as service:
        for path, request in (
            (REFLECTION, LIST),
            ("/grpc.health.v1.Health/Watch", b""),
            ("/league.v1.MatchmakerService/Watch", b""),
        ):
            with grpc.insecure_channel(service.address) as channel, unfinished(request) as requests:
                stream = channel.stream_stream(path)(requests)
                next(stream)
                time.sleep(0.1)  # the service waits for the next request
                stream.cancel()
        service.answers()
    assert caplog.text == ""


@contextmanager
def idle(address: str, count: int) -> Iterator[None]:
    with ExitStack() as opened:
        for _ in range(count):
            with contextlib.suppress(OSError):  # the service may close what is too many
                opened.enter_context(connection(address))
        yield


def asked(address: str, wait_seconds: float = 20.0) -> str:
    with MatchmakerClient(address, wait_seconds=wait_seconds) as client:
        return client.status().game


def test_an_idle_connection_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    soon = [(key, 200 if "idle" in key else value) for key, value in server.OPTIONS]
    monkeypatch.setattr(server, "OPTIONS", soon)
    with served("matchmaker", tmp_path) as service, connection(service.address) as idle:
        while idle.recv(65536):  # until its end
            pass


def test_a_connection_without_calls_is_asked_whether_its_machine_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel closes it when nothing acknowledges the ping."""
    limit = "grpc.keepalive_time_ms"
    soon = [(key, 200 if key == limit else value) for key, value in server.OPTIONS]
    monkeypatch.setattr(server, "OPTIONS", soon)
    with served("matchmaker", tmp_path) as service, connection(service.address) as opened:
        received = b""
        while frame(PING, 0, 0, bytes(8))[:5] not in received:
            received += opened.recv(65536)


def test_idle_connections_shut_nobody_out(tmp_path: Path) -> None:
    """A low limit that the user may raise is raised."""
    with a_process(tmp_path, limits="ulimit -Sn 256;") as (address, _), idle(address, 300):
        assert asked(address, 5.0) == "brawl"


def test_a_client_that_is_connected_is_served_while_others_hold_all_connections(
    tmp_path: Path,
) -> None:
    """The files of the log can still be opened."""
    with (
        a_process(tmp_path, limits="ulimit -n 256;") as (address, _),
        MatchmakerClient(address, wait_seconds=5.0) as early,
    ):
        assert early.status().game == "brawl"
        with idle(address, 300):
            for _ in range(50):
                assert early.status().game == "brawl"
        assert asked(address) == "brawl"


def test_a_client_next_to_a_flood_of_strangers_loses_no_call(tmp_path: Path) -> None:
    """Each call gets an answer, or the time at which to come back."""
    with a_process(tmp_path, tokens=True) as (address, _):
        flood = subprocess.Popen([sys.executable, raw_http2.__file__, address, STATUS])
        try:
            shown = of_run(tmp_path, "read", environment={})
            time.sleep(0.5)
            found: Counter[object] = Counter()
            with grpc.insecure_channel(address) as channel:
                call = channel.unary_unary(STATUS)
                until = time.monotonic() + 2.0
                while time.monotonic() < until:
                    try:
                        call(b"", metadata=shown.metadata)
                        found["answered"] += 1
                    except grpc.RpcError as error:
                        keys = [key for key, _ in error.trailing_metadata() or ()]
                        found[error.code(), "grpc-retry-pushback-ms" in keys] += 1
            found.pop((grpc.StatusCode.RESOURCE_EXHAUSTED, True), None)
            assert set(found) == {"answered"}, found
            assert flood.poll() is None
        finally:
            flood.kill()
            flood.wait()


def test_calls_beyond_those_that_may_wait_are_told_when_to_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("league.service.interceptor.WAITING_CALLS", 3)
    may_end = threading.Event()
    with small_league(tmp_path, ()) as league:
        vitals = league.server.league.vitals

        def slow() -> object:
            assert may_end.wait(PATIENCE)
            return vitals()

        monkeypatch.setattr(league.server.league, "vitals", slow)
        words: list[str] = []
        answers: list[str] = []

        def ask(wait_seconds: float, on_wait: Callable[[str], None] | None = None) -> None:
            address = league.server.address
            with MatchmakerClient(address, wait_seconds=wait_seconds, on_wait=on_wait) as client:
                answers.append(client.status().game)

        threads = [threading.Thread(target=ask, args=[30.0, words.append]) for _ in range(5)]
        for thread in threads:
            thread.start()
        wait_for(lambda: words)
        with pytest.raises(Busy):
            ask(0.01)
        may_end.set()
        for thread in threads:
            thread.join()
        assert answers == ["brawl"] * 5
