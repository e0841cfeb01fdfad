"""Malformed messages: each is refused in a sentence, and changes nothing.

Two kinds: values of every type in every field (hypothesis strategies made from the message
descriptors, with words of good messages among them, so that some get far), and valid messages with
bytes changed. Both go over the wire through a generic channel.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from evaluating import running
from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from small_league import small_league
from spoilt_requests import SERVICES, STATUS, evaluations_requests, is_map, lasting_requests
from test_bounds import hash_of_log
from waiting import wait_for

from league.v1 import evaluator_pb2 as e

STREAM_SECONDS = 0.02
"""A stream that is not refused at once is left again."""
REFUSALS = (
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "FAILED_PRECONDITION",
    "ALREADY_EXISTS",
    "ABORTED",
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
)
TRACES = ("Traceback", 'File "', ".py", "Error:")
"""No caller may read these."""
SMALL = st.integers(0, 5)
SCALARS = {
    F.CPPTYPE_INT32: SMALL | st.integers(-(2**31), 2**31 - 1),
    F.CPPTYPE_INT64: SMALL | st.integers(-(2**63), 2**63 - 1),
    F.CPPTYPE_UINT32: st.integers(0, 2**32 - 1),
    F.CPPTYPE_UINT64: st.integers(0, 2**64 - 1),
    F.CPPTYPE_DOUBLE: st.floats(),
    F.CPPTYPE_FLOAT: st.floats(width=32),
    F.CPPTYPE_BOOL: st.booleans(),
    F.CPPTYPE_ENUM: SMALL | st.integers(-(2**31), 2**31 - 1),
    F.CPPTYPE_STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
}


def messages_of(cls: type[Message], words: st.SearchStrategy[str]) -> st.SearchStrategy[Message]:
    """Messages of a type with any values in any of their fields, texts of `words` among them."""
    fields = {one.name: values_of(one, words) for one in cls.DESCRIPTOR.fields}
    return st.fixed_dictionaries({}, optional=fields).map(lambda values: cls(**values))


def values_of(one: Any, words: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    if is_map(one):
        key, value = (SCALARS[part.cpp_type] for part in one.message_type.fields)
        return st.dictionaries(key, value, max_size=4)
    if one.message_type is not None:
        single: st.SearchStrategy[Any] = messages_of(GetMessageClass(one.message_type), words)
    elif one.name == "request_id":
        single = st.uuids().map(lambda value: value.hex)
    else:
        single = st.binary() if one.type == F.TYPE_BYTES else SCALARS[one.cpp_type]
        single = words | single if one.type == F.TYPE_STRING else single
    return st.lists(single, max_size=4) if one.is_repeated else single


def words_of(messages: Iterable[Message]) -> set[str]:
    """All texts inside messages."""
    found = {""}
    for message in messages:
        for one, value in message.ListFields():
            values = value if one.is_repeated else [value]
            if one.message_type is not None and not is_map(one):
                found |= words_of(values)
            elif one.type == F.TYPE_STRING:
                found |= set(values)
    return found


def mutated(raw: bytes, chance: random.Random) -> bytes:
    """`raw` after one to four changes: bytes replaced, flipped, left out, repeated, cut off."""
    data = bytearray(raw)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(data) + 1)
        end = min(len(data), place + chance.choice((1, 1, 2, 4, 16)))
        data[place:end] = chance.choice(
            (
                chance.randbytes(end - place),
                bytes(byte ^ 1 << chance.randrange(8) for byte in data[place:end]),
                b"",
                data[place:end] * chance.choice((2, 200)),
                chance.randbytes(chance.choice((1, 8, 3000))),
            )
        )
    return bytes(data)


def fuzz(
    channel: grpc.Channel,
    services: Sequence[Any],
    good: Mapping[str, Any],
    state: Callable[[], object],
    count: int,
) -> Counter[str]:
    """Sends `count` messages of each kind, and returns the answers' codes.

    Args:
        good: for every method a request that would be obeyed.
        state: what the service holds, but for the audit trail.
    """
    methods = [method for service in services for method in service.methods]
    chance, codes = random.Random(1), Counter[str]()
    held = state()

    def send(method: Any, raw: bytes) -> None:
        nonlocal held
        path = f"/{method.containing_service.full_name}/{method.name}"
        try:
            if method.server_streaming:
                stream = channel.unary_stream(path, None, None)(raw, timeout=STREAM_SECONDS)
                next(stream, None)
                stream.cancel()
            else:
                channel.unary_unary(path, None, None)(raw)
            code = "OK"
        except grpc.RpcError as error:
            code, details = error.code().name, error.details() or ""
            if method.server_streaming and code == "DEADLINE_EXCEEDED":
                code = "OK"
            else:
                said = f"{method.name}({raw[:200]!r}) was answered {code}: {details[:500]}"
                assert code in REFUSALS, said
                assert 0 < len(details) <= 1000, said
                assert not any(trace in details for trace in TRACES), said
                assert state() == held, f"{said}, and changed something"
        codes[code] += 1
        if code == "OK":
            held = state()

    words = st.sampled_from(sorted(words_of(good.values())))
    cases = st.sampled_from(methods).flatmap(
        lambda method: st.tuples(
            st.just(method), messages_of(GetMessageClass(method.input_type), words)
        )
    )

    @seed(1)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def send_any(case: tuple[Any, Message]) -> None:
        send(case[0], case[1].SerializeToString())

    send_any()
    for number in range(count):
        method = chance.choice(methods)
        request = good[method.name]
        if "request_id" in request.DESCRIPTOR.fields_by_name:
            request.request_id = f"fuzz-{number}"
        send(method, mutated(request.SerializeToString(), chance))
    return codes


def errors_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Leaves out a single error of gRPC's poller, which all event loops of this process share: it
    woke a loop that another server's end had closed.
    """
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.ERROR
        and not (
            "callback PollerCompletionQueue" in record.getMessage()
            and "RuntimeError('Event loop is closed')" in repr(record.exc_info)
        )
    ]


@pytest.mark.long
def test_malformed_messages_change_nothing_and_break_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with small_league(tmp_path) as league, grpc.insecure_channel(league.server.address) as channel:
        store, good = league.server.store, lasting_requests(league) | STATUS
        with caplog.at_level(logging.ERROR):
            codes = fuzz(channel, SERVICES, good, lambda: hash_of_log(store), 250)
        assert codes["INVALID_ARGUMENT"] > 100
        assert codes["NOT_FOUND"] > 5, "some get as far as to ask for what is not there"
        assert 0 < codes["OK"] < 300, "some are good in spite of all"
        assert league.client.status().game == "brawl"
    assert errors_in(caplog) == []


def test_malformed_messages_do_not_break_the_evaluator(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It gives most of them to the matchmaker; there is no snapshot to evaluate."""
    service = e.DESCRIPTOR.services_by_name["EvaluatorService"]
    with (
        small_league(tmp_path, snapshots=()) as league,
        running(league.client, tmp_path) as run,
        grpc.insecure_channel(run.address) as channel,
        caplog.at_level(logging.ERROR),
    ):
        # its start is in the log, all of it, before it says how many snapshots wait
        wait_for(lambda: any(one.metrics for one in league.client.status().workers))

        def held() -> str:
            with league.server.store.read() as reader:
                changes = reader.events_of("evaluation_requested", "evaluation_cancelled")
            return str(len(changes))

        good = evaluations_requests(league, "based") | STATUS
        codes = fuzz(channel, [service], good, held, 40)
    assert codes["NOT_FOUND"] > 0, "some get as far as the matchmaker"
    assert errors_in(caplog) == []
