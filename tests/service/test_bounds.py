"""Every field of every request has bounds: what is beyond them is refused in one sentence."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from evaluating import running
from small_league import SmallLeague, small_league
from spoilt_requests import (
    METHODS,
    STATUS,
    evaluations_requests,
    exploiters_requests,
    good_requests,
    spoils,
)

from league.ids import new_id
from league.v1 import matchmaker_pb2 as m
from matchmaker.store.sqlite import SqliteStore as Store

REFUSALS = (
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.ALREADY_EXISTS,
)
AUDIT = {"operator_action", "operator_refused"}
LEFT_OUT = {
    "Heartbeat": tuple(f"metrics: {x}" for x in ("-1e+308", "-inf", "1e+308", "inf", "nan"))
}
"""A mean of nothing is NaN: the beat counts, and that number is left out of it, or bounded."""
LONGEST = 300
"""Characters of a refusal, at the most."""
TOO_LARGE = grpc.StatusCode.RESOURCE_EXHAUSTED
"""gRPC's own word for a message beyond the service's size."""


def hash_of_log(store: Store) -> str:
    """A hash of all that the log holds, but for the audit trail and kept replies."""
    besides = ("requests", "sqlite_sequence")
    with store.read() as reader:
        names = reader.select("SELECT name FROM sqlite_master WHERE type = 'table'")
        found = [name for (name,) in names if name not in besides]
        content = {
            table: [
                tuple(row) for row in reader.select(f"SELECT * FROM {table}") if not AUDIT & {*row}
            ]
            for table in sorted(found)
        }
    return hashlib.sha256(repr(content).encode()).hexdigest()


def positions_of(store: Store) -> tuple[int, int, int]:
    """Newest result, event and assignment."""
    with store.read() as reader:
        return reader.positions()


def stub_of(league: SmallLeague, method: str) -> Callable[..., Any]:
    """The call itself, without the client's own retries and words."""
    client = league.client
    stubs = (client._stub, client._exploiters, client._evaluations)
    return next(getattr(stub, method) for stub in stubs if hasattr(stub, method))


def answer_of(call: Callable[..., Any], method: str, request: object) -> Any:
    """The reply, or the first of a stream."""
    if method in METHODS and METHODS[method].client_streaming:
        return call(iter([request]))
    if method not in METHODS or not METHODS[method].server_streaming:
        return call(request)
    stream = call(request)
    reply = next(stream)
    stream.cancel()
    return reply


def refusal_of(league: SmallLeague, method: str, request: object, stub: object = None) -> str:
    """The sentence that a request is refused with, "" when it is obeyed, by the matchmaker or
    another service's `stub`.
    """
    try:
        call = getattr(stub, method) if stub else stub_of(league, method)
        reply = answer_of(call, method, request)
    except grpc.RpcError as error:
        return error.details() if error.code() in REFUSALS else f"{error.code()}\nis no refusal"
    if isinstance(reply, m.ReportResultsResponse):
        return " ".join(verdict.reason for verdict in reply.verdicts)
    return ""


def fresh(request: object) -> object:
    again = type(request).FromString(request.SerializeToString())
    if "request_id" in again.DESCRIPTOR.fields_by_name:
        again.request_id = new_id()
    return again


@pytest.fixture(scope="module")
def league(tmp_path_factory: pytest.TempPathFactory):
    with small_league(tmp_path_factory.mktemp("league")) as made:
        yield made, good_requests(made)


def test_there_is_a_good_request_for_every_call(league) -> None:
    assert league[1].keys() == METHODS.keys()


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_field_of_the_matchmakers_requests_has_bounds(league, method: str) -> None:
    made, requests = league
    good, before = requests[method], hash_of_log(made.server.store)
    obeyed = []
    for what, spoil in spoils(fresh(good)):
        request = fresh(good)
        spoil(request)
        sentence = refusal_of(made, method, request)
        if not sentence:
            obeyed.append(what)
            continue
        assert len(sentence) <= LONGEST, (what, sentence)
        assert "\n" not in sentence
        assert "Traceback" not in sentence
    assert sorted(obeyed) == sorted(LEFT_OUT.get(method, ()))
    if method not in LEFT_OUT:
        assert hash_of_log(made.server.store) == before, "what is refused changes nothing"


def test_what_changes_nothing_any_more_has_bounds_too(tmp_path: Path) -> None:
    """A generation that has begun, a gate that is decided: a second time is fine, but not with
    anything.
    """
    with small_league(tmp_path) as made:
        requests: Any = exploiters_requests(made)
        requests["BeginGeneration"].number, requests["BeginGeneration"].parent = 1, ""
        assert refusal_of(made, "GiveUpGate", fresh(requests["GiveUpGate"])) == ""
        before = hash_of_log(made.server.store)
        for method in ("BeginGeneration", "AcquireGateMatches"):
            assert refusal_of(made, method, fresh(requests[method])) == ""
            for what, spoil in spoils(fresh(requests[method])):
                request = fresh(requests[method])
                spoil(request)
                assert refusal_of(made, method, request), (method, what)
        assert hash_of_log(made.server.store) == before


def test_the_good_requests_are_good(tmp_path: Path) -> None:
    """Else their spoilt copies would be refused for another reason."""
    for method in METHODS:
        with small_league(tmp_path / method, whole=False) as made:
            assert refusal_of(made, method, fresh(good_requests(made)[method])) == "", method


def test_a_million_of_anything_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """Two megabytes of empty results took the service 4.7 s of its one processor."""
    with small_league(tmp_path) as made:
        request = good_requests(made)["ReportResults"]
        raw = fresh(request).SerializeToString() + b"\x1a\x00" * 1_000_000
        began = time.process_time()  # the service is in this process
        sentence = refusal_of(made, "ReportResults", m.ReportResultsRequest.FromString(raw))
        assert "1000001" in sentence
        assert time.process_time() - began < 2.0


def test_every_field_of_the_evaluators_requests_has_bounds(tmp_path: Path) -> None:
    with small_league(tmp_path) as made, running(made.client, tmp_path) as run:
        requests = evaluations_requests(made) | STATUS
        for method, good in requests.items():
            answer_of(getattr(run.stub, method), method, fresh(good))
            for what, spoil in spoils(fresh(good)):
                request = fresh(good)
                spoil(request)
                with pytest.raises(grpc.RpcError) as caught:
                    answer_of(getattr(run.stub, method), method, request)
                assert caught.value.code() in (*REFUSALS, TOO_LARGE), what
                assert len(caught.value.details()) <= LONGEST
