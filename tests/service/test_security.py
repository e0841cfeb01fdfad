"""Who may ask, over real sockets: tokens and roles for every call, TLS, rates, the audit trail."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
from cli_league import STAGES
from cryptography.x509 import load_pem_x509_certificate
from grpc_health.v1 import health_pb2, health_pb2_grpc
from small_league import SmallLeague, played, small_league

from evaluator.clean.service import EvaluatorServer
from league.errors import (
    Busy,
    ConfigError,
    Forbidden,
    InvalidInput,
    LeagueError,
    Unauthenticated,
    Unavailable,
)
from league.rpc.client import MatchmakerClient
from league.security import credentials, issuing
from league.security.credentials import Credentials, of_run, read_server
from league.security.issuing import make_folder
from league.security.roles import LEAST, AccessRole
from league.security.settings import SecuritySettings
from league.security.tokens import TokenFile
from league.stages import Place
from league.v1 import evaluator_pb2 as e
from league.v1 import exploiters_pb2 as x
from league.v1 import matchmaker_pb2 as m
from league.v1.matchmaker_pb2_grpc import MatchmakerServiceStub
from matchmaker.api.server import EXPLOITER_SERVICE_NAME, SERVICE_NAME, MatchmakerServer
from matchmaker.main import main

TURNED_AWAY = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
TOKENS = SecuritySettings(tokens=True)
NOISE = b"\xff" * 1000
ELSEWHERE = ("PlayerService", "WorkerService")
"""Services of processes that no league starts."""


@pytest.fixture(autouse=True)
def _look_at_the_tokens_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("league.security.tokens.LOOK_SECONDS", 0.0)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, int], None]:
    """Sets the calls that a peer may make a second, and at once."""

    def limit(per_second: float, at_once: int) -> None:
        monkeypatch.setattr("league.service.rate_limiter.CALLS_PER_SECOND", per_second)
        monkeypatch.setattr("league.service.rate_limiter.CALLS_AT_ONCE", at_once)

    return limit


def code_of(
    channel: grpc.Channel, path: str, token: str, method: str = "unary_unary"
) -> grpc.StatusCode:
    """What a request that no call can read is answered, by any of the ways to send one."""
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    try:
        if path.endswith("/ServerReflectionInfo"):
            for _ in channel.stream_stream(path, bytes, bytes)(
                iter([b"\x3a\x00"]), metadata=metadata
            ):
                pass
        elif path.endswith(("/Watch", "/WatchReports")):
            stream = channel.unary_stream(path, bytes, bytes)(NOISE, metadata=metadata)
            next(stream)
            stream.cancel()
        else:
            channel.unary_unary(path, bytes, bytes)(NOISE, metadata=metadata)
    except grpc.RpcError as error:
        code, sentence = error.code(), error.details()
    else:
        return grpc.StatusCode.OK
    assert code not in TURNED_AWAY or (len(sentence) < 250 and ". " not in sentence)
    return code


def check_every_call(address: str, folder: Path, paths: list[str]) -> None:
    plain = {
        role: (folder / "tokens" / f"{role.word}.token").read_text().strip()
        for role in list(AccessRole)[1:]
    }
    with grpc.insecure_channel(address) as channel:
        for path in paths:
            for role in AccessRole:
                code = code_of(channel, path, plain.get(role, ""))
                if role >= LEAST[path]:
                    assert code not in TURNED_AWAY, (path, role)
                else:
                    assert code is TURNED_AWAY[role is not AccessRole.NONE], (path, role, code)
            if LEAST[path] is not AccessRole.NONE:
                forged = plain[AccessRole.OPERATOR][:-1] + "_"
                assert code_of(channel, path, forged) is grpc.StatusCode.UNAUTHENTICATED, path


def calls_but(*services: str) -> list[str]:
    return [path for path in LEAST if not any(name in path for name in services)]


def test_every_call_of_the_matchmaker_wants_its_role(tmp_path: Path) -> None:
    with small_league(tmp_path, security=TOKENS) as league:
        check_every_call(league.server.address, tmp_path, calls_but(*ELSEWHERE))


def test_every_call_of_the_evaluator_wants_its_role(tmp_path: Path) -> None:
    with (
        small_league(tmp_path) as league,
        EvaluatorServer(None, league.client, run_dir=tmp_path, security=TOKENS) as server,  # type: ignore[arg-type]
    ):
        others = calls_but(SERVICE_NAME, EXPLOITER_SERVICE_NAME, *ELSEWHERE)
        check_every_call(server.address, tmp_path, others)


def test_a_token_is_told_in_a_sentence_and_taken_back_while_it_runs(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    with small_league(tmp_path, security=TOKENS) as league:
        reader = Credentials(token=file.add(AccessRole.READ, "dashboard"))
        with MatchmakerClient(league.server.address, credentials=reader) as client:
            assert client.status().game == "brawl"
            assert next(client.watch()).position == 1
            with pytest.raises(
                Forbidden,
                match=r"'dashboard' .*\bread\b.*OpenIncarnation .*\bworker\b",
            ):
                client.open_incarnation("learner-main", "main")
            file.revoke("dashboard")
            with pytest.raises(Unauthenticated):
                client.status()
            with pytest.raises(Unauthenticated):
                next(client.watch())
        with (
            MatchmakerClient(league.server.address, credentials=Credentials()) as nobody,
            pytest.raises(Unauthenticated, match="set KUMITE_TOKEN, or KUMITE_TOKEN_FILE"),
        ):
            nobody.status()


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    make_folder(folder / "certs", clients=["bob"])
    make_folder(folder / "strangers")
    (folder / "ca").mkdir()
    shutil.copy(folder / "certs" / "ca.pem", folder / "ca")
    return folder


def asked(address: str, credentials: Credentials) -> str:
    with MatchmakerClient(address, wait_seconds=0.3, credentials=credentials) as client:
        return client.status().game


def test_tls_is_spoken_with_those_who_trust_the_ca(tmp_path: Path, certs: Path) -> None:
    security = SecuritySettings(tls=str(certs / "certs"), tokens=True)
    with small_league(tmp_path, security=security) as league:
        address, token = league.server.address, of_run(tmp_path, "read", environment={}).token
        assert asked(address, Credentials(token=token, tls=certs / "ca")) == "brawl"
        with pytest.raises(Unauthenticated):
            asked(address, Credentials(tls=certs / "ca"))
        with pytest.raises(ConfigError, match="CA"):
            asked(address, Credentials(token=token, tls=certs / "strangers"))
        with pytest.raises(Unavailable, match="TLS"):
            asked(address, Credentials(token=token))


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory, certs: Path) -> Path:
    """Folders `expired` and `future`: their server's and client's certificates are so."""
    folder = tmp_path_factory.mktemp("dated")
    for name, valid, early in (("expired", -1, 30), ("future", 30, -1)):
        shutil.copytree(certs / "certs", folder / name)
        for part in ("server", "client"):
            for ending in ("pem", "key"):
                (folder / name / f"{part}.{ending}").unlink()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(issuing, "VALID", timedelta(days=valid))
            patch.setattr(issuing, "EARLY", timedelta(days=early))
            make_folder(folder / name)
    return folder


@pytest.mark.parametrize("name", ["expired", "future"])
def test_a_certificate_that_is_not_valid_now_is_refused_at_the_start(
    tmp_path: Path, certs: Path, dated: Path, name: str
) -> None:
    server = MatchmakerServer(
        tmp_path / "league.db", security=SecuritySettings(tls=str(dated / name))
    )
    with pytest.raises(ConfigError, match=r"server\.pem"):
        server.start()
    with pytest.raises(ConfigError, match=r"client\.pem"):
        asked("127.0.0.1:1", Credentials(tls=dated / name))


@pytest.mark.parametrize(
    ("name", "host", "words"),
    [
        ("certs", "127.0.0.2", "other hosts"),
        ("expired", "127.0.0.1", "has expired"),
        ("future", "127.0.0.1", "not valid yet"),
        ("strangers", "127.0.0.1", "another CA"),
    ],
)
def test_what_is_wrong_with_a_services_certificate_is_named(
    tmp_path: Path,
    certs: Path,
    dated: Path,
    name: str,
    host: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = (dated if name in ("expired", "future") else certs) / name
    security = SecuritySettings(host="0.0.0.0", tls=str(folder))
    server = MatchmakerServer(tmp_path / "league.db", port=0, security=security)
    certificate = load_pem_x509_certificate((folder / "server.pem").read_bytes())
    first = certificate.not_valid_before_utc
    monkeypatch.setattr(credentials, "datetime", SimpleNamespace(now=lambda _: first))
    with server:  # which has run since the certificate was valid
        port = server.address.rpartition(":")[2]
        monkeypatch.undo()
        with (
            MatchmakerClient(
                f"{host}:{port}", wait_seconds=60, credentials=Credentials(tls=certs / "ca")
            ) as client,
            pytest.raises(ConfigError, match=f"{host}.*{words}"),
        ):
            client.status()


def test_a_key_that_others_can_read_is_told(
    tmp_path: Path, certs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = shutil.copytree(certs / "certs", tmp_path / "open")
    read_server(folder, mutual=False)
    assert not caplog.records
    (folder / "server.key").chmod(0o644)
    read_server(folder, mutual=False)
    assert str(folder / "server.key") in caplog.text
    assert "644" in caplog.text


def test_mutual_tls_takes_only_who_has_a_certificate(tmp_path: Path, certs: Path) -> None:
    security = SecuritySettings(tls=str(certs / "certs"))
    with small_league(tmp_path, security=security) as league:
        assert asked(league.server.address, Credentials(tls=certs / "certs" / "bob")) == "brawl"
        with pytest.raises(Unavailable, match="a client's certificate"):
            asked(league.server.address, Credentials(tls=certs / "ca"))
        mixed = tmp_path / "mixed"
        shutil.copytree(certs / "strangers", mixed)
        shutil.copy(certs / "certs" / "ca.pem", mixed)
        with pytest.raises(Unavailable):
            asked(league.server.address, Credentials(tls=mixed))
        learner = league.client.open_incarnation("learner-main", "main").number
        league.client.enter_stage(learner, 1400, STAGES, Place(index=1, since_step=1400))
        with MatchmakerClient(
            league.server.address, credentials=Credentials(tls=certs / "certs" / "bob")
        ) as bob:
            bob.ask_stage("league", "bob@home", "main")
        assert audit_of(league)[0]["who"] == "bob"


def test_a_client_that_speaks_tls_to_who_does_not_is_told_at_once(
    tmp_path: Path, certs: Path
) -> None:
    with (
        small_league(tmp_path) as league,
        MatchmakerClient(
            league.server.address, wait_seconds=60, credentials=Credentials(tls=certs / "certs")
        ) as client,
        pytest.raises(ConfigError, match="TLS"),
    ):
        client.status()


@pytest.mark.parametrize("spoilt", ["server.key", "server.pem"])
def test_certificates_that_do_not_belong_together_are_told(
    tmp_path: Path, certs: Path, spoilt: str
) -> None:
    folder = tmp_path / "spoilt"
    shutil.copytree(certs / "certs", folder)
    shutil.copy(certs / "strangers" / spoilt, folder)
    server = MatchmakerServer(tmp_path / "league.db", security=SecuritySettings(tls=str(folder)))
    with pytest.raises(ConfigError, match=str(folder)):
        server.start()


def test_the_program_is_not_open_to_strangers_by_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUMITE_SECURITY__HOST", "0.0.0.0")
    assert main(["--db", str(tmp_path / "a.db"), "--port", "0"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("matchmaker: 0.0.0.0 ")
    assert said.err.count("\n") == 1
    assert not (tmp_path / "a.db").exists()


def test_all_of_the_network_is_served_when_it_is_said_who_may_ask(tmp_path: Path) -> None:
    with small_league(tmp_path, security=SecuritySettings(host="0.0.0.0", tokens=True)) as league:
        shown = of_run(tmp_path, "read", environment={})
        # what listens on the first alone is not at the second
        for host in ("127.0.0.1", "127.0.0.2"):
            assert asked(f"{host}:{league.server.port}", shown) == "brawl"


def ask(client: MatchmakerClient, times: int) -> None:
    for _ in range(times):
        client.status()


def test_a_client_that_asks_too_often_is_slowed_down_not_failed(
    tmp_path: Path, limits: Callable[[float, int], None]
) -> None:
    words: list[str] = []
    limits(2.0, 8)
    with small_league(tmp_path) as league:
        with MatchmakerClient(league.server.address, on_wait=words.append) as client:
            began = time.monotonic()
            ask(client, 10)
            assert time.monotonic() - began >= 0.9  # two calls beyond the burst, at two a second
        assert " 2 calls a second" in words[0]
        with (
            MatchmakerClient(league.server.address, wait_seconds=0.01) as hasty,
            pytest.raises(Busy),
        ):
            ask(hasty, 60)


def test_one_peer_does_not_take_anothers_calls(
    tmp_path: Path, limits: Callable[[float, int], None]
) -> None:
    limits(0.001, 6)
    with small_league(tmp_path, snapshots=()) as league:
        with (
            MatchmakerClient(league.server.address, wait_seconds=0.01) as greedy,
            pytest.raises(Busy),
        ):
            ask(greedy, 7)
        assert league.client.status().game == "brawl"
        with grpc.insecure_channel(league.server.address) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            for _ in range(20):  # health is not counted, and needs no token
                reply = stub.Check(health_pb2.HealthCheckRequest(service=SERVICE_NAME))
                assert reply.status == health_pb2.HealthCheckResponse.SERVING


def audit_of(league, kind: str = "operator_action") -> list[dict]:
    with league.server.store.read() as reader:
        return [json.loads(event.data_json) for event in reader.events_of(kind)]


def test_what_an_operator_does_is_in_the_log_once(tmp_path: Path) -> None:
    with small_league(tmp_path, security=TOKENS) as league:
        learner = league.open()
        league.client.enter_stage(learner, 1400, STAGES, Place(index=1, since_step=1400))
        name = TokenFile(tmp_path).add(AccessRole.OPERATOR, "alice")
        metadata = Credentials(token=name).metadata
        request = m.AskStageRequest(
            request_id="ask-1", player="main", stage="league", by="alice@home"
        )
        with grpc.insecure_channel(league.server.address) as channel:
            stub = MatchmakerServiceStub(channel)
            first = stub.AskStage(request, metadata=metadata)
            assert stub.AskStage(request, metadata=metadata) == first  # the same call, sent again
            request.request_id, request.stage = "ask-2", "nowhere" + "x" * 1000
            with pytest.raises(grpc.RpcError):
                stub.AskStage(request, metadata=metadata)
            with pytest.raises(grpc.RpcError):
                stub.AskStage(request, metadata=metadata)
            request.request_id = "no id\n"
            with pytest.raises(grpc.RpcError):
                stub.AskStage(request, metadata=metadata)
        done, tried = audit_of(league)  # and nothing of the worker's calls
        assert (done["who"], done["role"], done["method"]) == ("alice", "operator", "AskStage")
        assert done["request"] == {"player": "main", "stage": "league", "by": "alice@home"}
        assert done["peer"].startswith("ipv4:127.0.0.1:")
        assert tried["request"]["stage"].startswith("nowherexxx")
        assert len(tried["request"]["stage"]) == 200
        with league.server.store.read() as reader:
            kinds = [event.kind for event in reader.events(0, 500)]
        assert kinds.index("operator_action") < kinds.index("stage_asked")
        (refused,) = audit_of(league, "operator_refused")
        assert {key: refused[key] for key in tried} == tried
        assert "1007 characters" in refused["error"]
        assert kinds.count("stage_asked") == 1


def test_what_can_not_be_recorded_does_not_take_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_league(tmp_path) as league:
        learner = league.open()
        league.client.enter_stage(learner, 1400, STAGES, Place(index=1, since_step=1400))

        def broken(*_: object) -> bytes:
            raise InvalidInput("the trail is torn")

        monkeypatch.setattr("matchmaker.api.monitor.Monitor._record", broken)
        with pytest.raises(LeagueError):
            league.client.ask_stage("league", "bob", "main")
        assert league.client.curricula()[0].asked is None


def as_token(league: SmallLeague, credentials: Credentials) -> MatchmakerClient:
    return MatchmakerClient(league.server.address, wait_seconds=5, credentials=credentials)


def test_a_worker_is_its_tokens_alone_until_that_is_revoked(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    file.make()
    tokens = {
        name: Credentials(token=file.add(AccessRole.WORKER, name)) for name in ("alice", "bob")
    }
    tokens["carol"] = Credentials(token=file.add(AccessRole.OPERATOR, "carol"))
    with small_league(tmp_path, security=TOKENS) as league:
        with as_token(league, tokens["alice"]) as alice:
            learner = alice.open_incarnation("learner-main", "main").number
            leased = alice.acquire_matches(learner, 4, "league")
            alice.report_results(learner, [played(leased[0])])
        with grpc.insecure_channel(league.server.address) as channel:
            metadata = tokens["bob"].metadata
            for path in calls_but(*ELSEWHERE):
                if LEAST[path] is not AccessRole.WORKER:
                    continue
                name = path.rpartition("/")[2]
                module = next(one for one in (m, x, e) if hasattr(one, f"{name}Request"))
                fields = getattr(module, f"{name}Request").DESCRIPTOR.fields_by_name
                if not {"worker", "incarnation"} & {*fields}:
                    continue  # of no worker
                request = getattr(module, f"{name}Request")(
                    **{key: "by-bob" for key in ("request_id",) if key in fields},
                    **(
                        {"worker": "learner-main"}
                        if "worker" in fields
                        else {"incarnation": learner}
                    ),
                )
                call = channel.unary_unary(path, request.SerializeToString, bytes)
                with pytest.raises(grpc.RpcError) as refused:
                    call(request, metadata=metadata)
                assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED, name
            again = m.ReleaseMatchesRequest(
                request_id="by-alice", incarnation=learner, match_ids=[leased[0].match_id]
            )
            release = MatchmakerServiceStub(channel).ReleaseMatches
            assert release(again, metadata=tokens["alice"].metadata).released == 0
            with pytest.raises(grpc.RpcError, match="PERMISSION_DENIED"):
                release(again, metadata=metadata)  # the stored reply is alice's alone, too
        with league.server.store.read() as reader:
            assert len(reader.open_assignments(learner)) == 3
            assert reader.counts()["lost_results"] == 0
            assert reader.beat(learner) is None
    with (
        small_league(tmp_path, security=TOKENS, snapshots=()) as league,  # started again
        as_token(league, tokens["alice"]) as alice,
        as_token(league, tokens["bob"]) as bob,
        as_token(league, tokens["carol"]) as carol,
    ):
        own = bob.open_incarnation("learner-bob", "main").number
        assert len(bob.acquire_matches(own, 2, "league")) == 2
        with pytest.raises(Forbidden, match=r"learner-main .* 'alice'"):
            bob.open_incarnation("learner-main", "main")
        opened = carol.open_incarnation("learner-main", "main")
        assert carol.release_matches(own) == 2
        assert not alice.heartbeat(opened, 1).fenced
        file.revoke("alice")
        taken = bob.open_incarnation("learner-main", "main").number
        assert len(bob.acquire_matches(taken, 1, "league")) == 1


def test_without_tokens_workers_are_everybodys(tmp_path: Path) -> None:
    with small_league(tmp_path) as league:
        learner = league.open()
        with as_token(league, Credentials()) as other:
            assert not other.heartbeat(learner, 1).fenced
            assert other.open_incarnation("learner-main", "main").number > learner
