"""Weights travel over gRPC: whole or not at all, within bounds, and never to a chosen path."""

from __future__ import annotations

import os
import time
from concurrent import futures
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from remote_league import PART, digest_of, files, parts, unfinished, weights
from rival_files import predicts, seats
from small_league import SmallLeague, small_league
from test_bounds import hash_of_log
from waiting import wait_for

from league.agent.rival_bundles import pack
from league.errors import DataCorrupt, Forbidden, InvalidInput, NotFound, Refused
from league.rpc import blobs as remote
from league.rpc.blobs import RemoteBlobs
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder, BlobKind
from league.security.credentials import of_run
from league.security.settings import SecuritySettings
from league.service.settings import OperationsSettings
from league.v1 import matchmaker_pb2 as m
from league.v1 import types_pb2 as t
from league.v1.matchmaker_pb2_grpc import (
    MatchmakerServiceServicer,
    add_MatchmakerServiceServicer_to_server,
)
from matchmaker.api.server import MatchmakerServer

CONTENT = weights(3 * PART)
INVALID, EXHAUSTED = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED


def refused(call: Any) -> grpc.RpcError:
    """The error of a call. Its sentence is for people."""

    def answered() -> None:
        reply = call()
        list(reply if hasattr(reply, "__next__") else ())

    with pytest.raises(grpc.RpcError) as caught:
        answered()
    assert 0 < len(caught.value.details()) <= 300
    assert "Traceback" not in caught.value.details()
    return caught.value


def test_weights_arrive_whole_once_and_are_fetched_again(
    league: SmallLeague, tmp_path: Path
) -> None:
    digest = league.client.put_blob(CONTENT)
    assert digest == digest_of(CONTENT)
    path = tmp_path / "blobs" / f"{digest}.safetensors"
    assert path.read_bytes() == CONTENT
    written = path.stat().st_mtime_ns
    assert league.client._stub.PutBlob(iter(parts(CONTENT))).is_new is False
    assert path.stat().st_mtime_ns == written, "what is there never changes"
    assert league.client.get_blob(digest) == CONTENT
    assert files(tmp_path) == [path.name]


SPOILT: dict[str, tuple[list[Any], str]] = {
    "another digest": (parts(CONTENT, digest="0" * 64), "sha256"),
    "a path": (parts(CONTENT, digest="../../" + "0" * 58), "sha256"),
    "large letters": (parts(CONTENT, digest="A" * 64), "sha256"),
    "no digest": (parts(CONTENT, digest=""), "sha256"),
    "too few bytes": (parts(CONTENT, len(CONTENT) + 1), "all of them"),
    "too many bytes": (parts(CONTENT, len(CONTENT) - 1), "arrived after"),
    "no size": (parts(CONTENT, 0), "size"),
    "a size below 0": (parts(CONTENT, -1), "size"),
    "too large": (parts(CONTENT, 2**30 + 1), "size"),
    "a large part": (parts(CONTENT, part=PART + 1), "parts of"),
    "an empty part": ([*parts(CONTENT), m.PutBlobRequest()], "parts of"),
    "nothing": ([], "without a request"),
    "a pickle": (parts(b"\x80\x04\x95" + b"x" * 5000), "weights of snapshots"),
    "a header without an end": (parts(b"\xff" * 5000), "weights of snapshots"),
    "other tensors": (parts(b"\x02\0\0\0\0\0\0\0{}"), "weights of snapshots"),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_a_spoilt_upload_is_refused_in_a_sentence_and_leaves_nothing(
    league: SmallLeague, tmp_path: Path, kind: str
) -> None:
    requests, words = SPOILT[kind]
    before = hash_of_log(league.server.store)
    error = refused(lambda: league.client._stub.PutBlob(iter(requests)))
    assert error.code() is INVALID
    assert words in error.details()
    assert files(tmp_path) == []
    assert hash_of_log(league.server.store) == before
    assert league.client.put_blob(CONTENT), "the next upload is not affected"


def test_a_digest_of_another_kind_or_from_outside_is_not_found(
    league: SmallLeague, tmp_path: Path
) -> None:
    blobs = BlobFolder(tmp_path / "blobs")
    bundle = blobs.of(BlobKind.RIVAL).put(b"a bundle")
    (tmp_path / "blobs" / "notes.txt").write_text("x")
    assert league.client.get_blob(bundle, BlobKind.RIVAL) == b"a bundle"
    with pytest.raises(NotFound, match=bundle):
        league.client.get_blob(bundle)
    for digest in ("", "notes.txt", "../league.db", "/etc/passwd", f"{bundle}\n", f"{bundle}/.."):
        with pytest.raises(InvalidInput, match="sha256"):
            league.client.get_blob(digest)
    for kind in (0, 3, -1):
        asked = m.GetBlobRequest(digest=bundle, kind=kind)  # type: ignore[arg-type]
        assert refused(partial(league.client._stub.GetBlob, asked)).code() is INVALID


def test_a_damaged_file_is_not_sent_and_an_upload_repairs_it(
    league: SmallLeague, tmp_path: Path
) -> None:
    digest = league.client.put_blob(CONTENT)
    path = tmp_path / "blobs" / f"{digest}.safetensors"
    path.write_bytes(CONTENT[:-1] + b"!")
    with pytest.raises(NotFound, match="damaged"):
        league.client.get_blob(digest)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(NotFound, match="damaged"):
        league.client.get_blob(digest)
    assert league.client.status().vitals.trouble == "", "the log is whole"
    path.unlink()
    path.write_bytes(b"")
    league.client.put_blob(CONTENT)
    assert league.client.get_blob(digest) == CONTENT


class Liar(MatchmakerServiceServicer):
    def GetBlob(self, request: Any, context: Any) -> Any:
        yield m.GetBlobResponse(content=b"other weights")

    def GetSettings(self, request: Any, context: Any) -> Any:
        return m.GetSettingsResponse(settings_json="[" * 10_000)


def test_a_client_believes_no_matchmaker(tmp_path: Path) -> None:
    server = grpc.server(futures.ThreadPoolExecutor(1))
    add_MatchmakerServiceServicer_to_server(Liar(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with MatchmakerClient(f"127.0.0.1:{port}", wait_seconds=5) as client:
            with pytest.raises(DataCorrupt, match="other bytes"):
                RemoteBlobs(tmp_path, client).get("0" * 64)
            assert list(tmp_path.iterdir()) == []
            with pytest.raises(DataCorrupt, match="no settings"):
                client.settings()
    finally:
        server.stop(None)


def test_an_upload_that_stops_is_given_up(
    league: SmallLeague, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("league.service.interceptor.ARRIVAL_SECONDS", 0.3)
    with unfinished(*parts(CONTENT)[:2]) as requests:
        error = refused(lambda: league.client._stub.PutBlob(requests))
    assert error.code() is EXHAUSTED
    assert "0.3 s" in error.details()
    assert files(tmp_path) == []


def test_an_upload_that_drips_is_given_up(
    league: SmallLeague, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matchmaker.limits.TRANSFER_SECONDS", 0.3)
    error = refused(lambda: league.client._stub.PutBlob(iter(dripping())))
    assert error.code() is EXHAUSTED
    assert "0.3 s" in error.details()
    assert files(tmp_path) == []


def dripping() -> Any:
    """An upload of a gigabyte, a byte at a time."""
    yield parts(b"x", 2**30)[0]
    while True:
        time.sleep(0.001)
        yield m.PutBlobRequest(content=b"x")


def test_a_client_that_is_gone_leaves_no_file(league: SmallLeague, tmp_path: Path) -> None:
    with unfinished(*parts(CONTENT)[:2]) as requests:
        call = league.client._stub.PutBlob.future(requests)
        wait_for(lambda: files(tmp_path))
        call.cancel()
        wait_for(lambda: files(tmp_path) == [])


def test_parallel_uploads_share_what_their_token_may_upload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matchmaker.limits.UPLOAD_BYTES", 5 * PART // 2)
    one, two, three = (weights(PART, fill) for fill in (b"1", b"2", b"3"))
    with small_league(tmp_path) as league:
        stub = league.client._stub
        with unfinished(*parts(one)[:1]) as requests:
            waits = stub.PutBlob.future(requests)
            wait_for(lambda: files(tmp_path))
            league.client.put_blob(two)
            with pytest.raises(Refused, match="a new token"):
                league.client.put_blob(three)
            waits.cancel()
            wait_for(lambda: len(files(tmp_path)) == 1)
        league.client.put_blob(one)  # what broke off does not count
        league.client.put_blob(two)  # and a repetition costs nothing
        with pytest.raises(Refused, match="a new token"):
            league.client.put_blob(three)
    with small_league(tmp_path) as league, pytest.raises(Refused, match="a new token"):
        league.client.put_blob(three)  # a restart does not forget


def test_uploads_leave_room_on_the_disk(
    league: SmallLeague, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matchmaker.limits.KEPT_FREE_BYTES", 10**18)
    error = refused(lambda: league.client._stub.PutBlob(iter(parts(CONTENT))))
    assert error.code() is EXHAUSTED
    assert "room" in error.details()
    assert league.client.status().vitals.trouble == ""
    assert files(tmp_path) == []


def test_a_client_that_does_not_read_is_left_and_keeps_only_its_own_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("league.service.interceptor.ARRIVAL_SECONDS", 0.3)
    monkeypatch.setattr("league.service.interceptor.OPEN_STREAMS", 1)
    caplog.set_level("INFO")
    with small_league(tmp_path, operations=OperationsSettings(log_calls=True)) as league:
        digest = league.client.put_blob(weights(64 * PART))
        asked = partial(
            league.client._stub.GetBlob,
            m.GetBlobRequest(digest=digest, kind=t.BLOB_KIND_WEIGHTS),
        )
        slow = asked()
        next(slow)
        wait_for(lambda: "not read within 0.3 s" in caplog.text)
        assert "streams of GetBlob are open" in refused(asked).details()
        with pytest.raises(grpc.RpcError, match=r"not read within 0\.3 s") as caught:
            list(slow)
        assert caught.value.code() is EXHAUSTED
        assert league.client.get_blob(digest), "the place is free again"


def test_readers_fetch_and_only_workers_upload(tmp_path: Path) -> None:
    with small_league(tmp_path, security=SecuritySettings(tokens=True)) as league:
        digest = league.client.put_blob(CONTENT)
        for role, may_upload in (("read", False), ("worker", True)):
            shown = of_run(tmp_path, role, environment={})
            with MatchmakerClient(league.server.address, credentials=shown) as client:
                assert client.get_blob(digest) == CONTENT
                if may_upload:
                    client.put_blob(weights(5))
                else:
                    with pytest.raises(Forbidden, match="PutBlob needs worker"):
                        client.put_blob(weights(5))


def test_a_matchmaker_that_only_reads_takes_nothing(tmp_path: Path) -> None:
    with small_league(tmp_path) as league:
        digest = league.client.put_blob(CONTENT)
    with (
        MatchmakerServer(tmp_path / "league.db", read_only=True) as server,
        MatchmakerClient(server.address) as client,
    ):
        assert client.get_blob(digest) == CONTENT
        with pytest.raises(Refused, match="changes nothing"):
            client.put_blob(weights(5))


def test_a_start_removes_files_that_a_killed_matchmaker_left(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    old, new = tmp_path / "blobs" / ".old", tmp_path / "blobs" / ".new"
    for file in (old, new):
        file.write_bytes(b"half")
    os.utime(old, (1, 1))
    with small_league(tmp_path):
        assert files(tmp_path) == [".new"], "a worker may be writing it"


# --- the cache


def test_the_cache_needs_no_league_and_is_bounded(
    league: SmallLeague, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = BlobFolder(tmp_path / "blobs")
    digests = [theirs.put(weights(1000, fill)) for fill in (b"1", b"2", b"3")]
    blobs = RemoteBlobs(tmp_path / "cache", league.client)
    monkeypatch.setattr(remote, "CACHE_BYTES", 2500)
    for age, digest in enumerate(digests[:2]):
        assert blobs.get(digest) == theirs.get(digest)
        os.utime(blobs.path(digest), (age + 1, age + 1))
    theirs.path(digests[0]).unlink()
    assert blobs.has(digests[0])
    assert blobs.get(digests[0]), "from the cache, and used last"
    blobs.get(digests[2])
    kept = {file.stem for file in blobs.root.iterdir()}
    assert kept == {digests[0], digests[2]}
    blobs.path(digests[2]).write_bytes(b"damaged")
    assert blobs.get(digests[2]) == theirs.get(digests[2]), "it is fetched again"


def test_the_cache_knows_the_kinds_of_the_league(league: SmallLeague, tmp_path: Path) -> None:
    theirs = BlobFolder(tmp_path / "blobs")
    bundle, frozen = theirs.of(BlobKind.RIVAL).put(b"a bundle"), theirs.put(CONTENT)
    blobs = RemoteBlobs(tmp_path / "cache", league.client)
    for _ in range(2):
        assert [blobs.has(bundle), blobs.has(frozen), blobs.has("0" * 64)] == [False, True, False]
        rivals = blobs.of(BlobKind.RIVAL)
        assert [rivals.has(bundle), rivals.has(frozen)] == [True, False]
    assert rivals.get(bundle) == b"a bundle"
    mine = weights(77)
    assert theirs.get(blobs.put(mine)) == mine


def test_a_rival_of_the_league_plays_here_only_after_this_user_has_agreed(
    league: SmallLeague, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "a_rival.py").write_text(predicts("open('ran', 'w')"))
    theirs = BlobFolder(tmp_path / "blobs").of(BlobKind.RIVAL)
    digest = theirs.put(pack(tmp_path / "a_rival.py"))
    blobs = RemoteBlobs(tmp_path / "cache", league.client)
    with seats(blobs) as rivals:
        assert rivals.has(digest)
        rivals.seat(0, digest)
        rivals.ask(np.zeros((1, 64), np.float32))
        reason = rivals.answer(np.zeros((1, 10), np.uint8))[0]
    fetched = tmp_path / "cache" / f"{digest}.rival.zip"
    assert str(fetched) in reason
    assert "--trust" in reason
    assert fetched.read_bytes() == theirs.get(digest), "it can be read first"
