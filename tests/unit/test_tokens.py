"""Tokens, roles and credentials: what is kept, who may do what, where a client finds its own."""

from __future__ import annotations

import json
import re
import socket
import stat
from pathlib import Path

import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from league.errors import (
    AlreadyExists,
    ConfigError,
    DataCorrupt,
    Forbidden,
    InvalidInput,
    NotFound,
    Refused,
)
from league.security import credentials
from league.security.roles import LEAST, AccessRole, check_role, least_role
from league.security.settings import SecuritySettings, joined, named, reached_at
from league.security.tokens import LOOK_SECONDS, TokenBook, TokenFile
from league.v1 import evaluator_pb2, exploiters_pb2, matchmaker_pb2, player_pb2, workers_pb2


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_every_call_of_every_service_has_its_least_role() -> None:
    ours = (matchmaker_pb2, exploiters_pb2, evaluator_pb2, player_pb2, workers_pb2)
    files = (*ours, health_pb2, reflection_pb2)
    served = {
        f"/{service.full_name}/{method.name}"
        for file in files
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }
    assert served == LEAST.keys(), "list the call in league/security/roles.py"
    assert least_role("/league.v1.MatchmakerService/Forgotten") is AccessRole.OPERATOR


def test_a_role_has_the_rights_of_those_below() -> None:
    read, work = (
        "/league.v1.MatchmakerService/GetRatings",
        "/league.v1.MatchmakerService/ReportResults",
    )
    for role in (AccessRole.READ, AccessRole.WORKER, AccessRole.OPERATOR):
        check_role(read, role, "x")
    check_role(work, AccessRole.OPERATOR, "x")
    with pytest.raises(Forbidden, match=r"\bx\b.*read.*ReportResults.*worker"):
        check_role(work, AccessRole.READ, "x")
    with pytest.raises(InvalidInput, match="'worker'"):
        AccessRole.parse("workers")


def test_only_hashes_are_kept_and_only_for_their_owner(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    plain = file.make()
    other = file.add(AccessRole.READ, "dashboard")
    kept = file.path.read_text()
    for text in (*plain.values(), other):
        assert text not in kept
        assert text.partition("-")[2].partition("-")[2] not in kept
    assert mode(file.folder) == 0o700
    assert {path.name: mode(path) for path in file.folder.iterdir()} == dict.fromkeys(
        ("tokens.json", "read.token", "worker.token", "operator.token"), 0o600
    )
    assert len({*plain.values(), other}) == 4


def test_files_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    book = TokenFile(tmp_path)
    plain = book.make()
    before = book.read()
    for file in (book.path, *book.folder.glob("*.token")):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert book.read() == before
    found = {credentials.read_token(file) for file in book.folder.glob("*.token")}
    assert found == set(plain.values())


def test_a_file_that_others_may_touch_is_refused(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    file.make()
    file.path.chmod(0o640)
    with pytest.raises(Refused, match="640"):
        file.read()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "3",
        '[{"name": "a"}]',
        json.dumps([{"name": "a", "role": "king", "sha256": "0" * 64, "created_at": 1}]),
        json.dumps([{"name": "a", "role": "read", "sha256": "short", "created_at": 1}]),
    ],
)
def test_a_damaged_file_is_told(tmp_path: Path, content: str) -> None:
    file = TokenFile(tmp_path)
    file.make()
    file.path.write_text(content)
    with pytest.raises(DataCorrupt, match=r"tokens\.json"):
        file.read()


def test_names_are_checked_and_given_once(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    with pytest.raises(NotFound, match=r"tokens\.json"):
        file.read()
    file.add(AccessRole.WORKER, "gpu-7")  # also where nothing was
    for name in ("", "a b", "x" * 65, "-rf", "a\n"):
        with pytest.raises(InvalidInput, match=re.escape(repr(name))):
            file.add(AccessRole.READ, name)
    with pytest.raises(AlreadyExists, match="'gpu-7'"):
        file.add(AccessRole.READ, "gpu-7")
    with pytest.raises(AlreadyExists):
        file.make()
    with pytest.raises(NotFound, match="gpu-8"):
        file.revoke("gpu-8")
    assert file.revoke("gpu-7").role == "worker"
    assert file.read() == []
    assert not file.ensure()


def test_the_book_follows_the_file(tmp_path: Path) -> None:
    file, now = TokenFile(tmp_path), [100.0]
    plain = file.make()
    book = TokenBook(file, lambda: now[0])
    found = book.find(plain[AccessRole.WORKER])
    assert found is not None
    assert found.access is AccessRole.WORKER
    assert book.find("") is None
    assert book.find(plain[AccessRole.WORKER][:-1]) is None
    file.revoke("worker")
    added = file.add(AccessRole.READ, "late")
    now[0] += LOOK_SECONDS
    assert book.find(plain[AccessRole.WORKER]) is None
    assert book.find(added) is not None


def test_a_new_token_is_known_at_once(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    file.make()
    book = TokenBook(file, lambda: 100.0)
    found = book.find(file.add(AccessRole.READ, "late"))
    assert found is not None
    assert found.name == "late"


def test_while_the_file_can_not_be_read_nobody_is_let_in(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, now = TokenFile(tmp_path), [0.0]
    plain = file.make()[AccessRole.OPERATOR]
    book = TokenBook(file, lambda: now[0])
    file.path.chmod(0o666)
    now[0] += LOOK_SECONDS
    assert book.find(plain) is None
    assert "mode 666" in caplog.text
    file.path.chmod(0o600)
    now[0] += LOOK_SECONDS
    assert book.find(plain) is not None
    file.path.unlink()
    now[0] += LOOK_SECONDS
    assert book.find(plain) is None
    with pytest.raises(NotFound):
        TokenBook(file)


def test_a_client_finds_its_token_by_flag_environment_and_run(tmp_path: Path) -> None:
    run, own = tmp_path / "run", tmp_path / "own.token"
    own.write_text("of-the-flag\n")
    plain = TokenFile(run).make()
    nothing: dict[str, str] = {}
    assert credentials.of_run(run, "worker", environment=nothing).token == plain[AccessRole.WORKER]
    (run / "tokens" / "worker.token").unlink()
    assert (
        credentials.of_run(run, "worker", environment=nothing).token == plain[AccessRole.OPERATOR]
    )
    given = {"KUMITE_TOKEN": "of-the-variable"}
    assert credentials.of_run(run, "worker", environment=given).token == "of-the-variable"
    assert credentials.of_run(run, "read", environment=given, token_file=own).token == "of-the-flag"
    by_file = credentials.of_run(environment={"KUMITE_TOKEN_FILE": str(own)})
    assert by_file.metadata == (("authorization", "Bearer of-the-flag"),)
    assert credentials.of_run(tmp_path, "read", environment=nothing).metadata == ()
    (run / "config.toml").write_text('[security]\ntls = "/certs"\n')
    assert credentials.of_run(run, "read", environment=nothing).tls == Path("/certs")
    assert credentials.of_run(run, "read", environment={"KUMITE_TLS": "/mine"}).tls == Path("/mine")


@pytest.mark.parametrize("content", [b"", b"two words", b"\xff\xfe", "t\u00f6ken".encode()])
def test_what_is_no_token_is_told_before_a_call(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.token"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"a\.token"):
        credentials.read_token(file)
    with pytest.raises(ConfigError, match=r"none\.token"):
        credentials.read_token(tmp_path / "none.token")


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "[::]", "10.0.0.5", "gpu-7.local", "192.168.0.2"]
)
def test_an_address_open_to_strangers_wants_to_know_who_may_ask(host: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(host)):
        SecuritySettings(host=host).checked_host()
    for settings in (
        SecuritySettings(host=host, tokens=True),
        SecuritySettings(host=host, tls="certs"),  # wants a client's certificate
    ):
        assert settings.checked_host() == host
        assert settings.mutual_tls is not settings.tokens


def test_loopback_is_open_by_default() -> None:
    for host in ("127.0.0.1", "127.9.9.9", "localhost", "::1", "[::1]"):
        assert SecuritySettings(host=host).checked_host() == host
    assert joined(reached_at("::"), 5) == "[::1]:5"
    assert joined(reached_at("0.0.0.0"), 5) == "127.0.0.1:5"
    assert named("0.0.0.0") == named("::") == socket.gethostname()
    assert named("10.0.0.7") == "10.0.0.7"
    assert joined("10.0.0.5", 5) == "10.0.0.5:5"
