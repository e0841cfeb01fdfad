"""Malformed messages for a service, as many as one likes, and what each may be answered.

Three kinds: values of every type in every field (hypothesis strategies made from the message
descriptors, with words of good messages among them, so that some get far), valid messages with
bytes changed, and random bytes. All go over the wire through a generic channel.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as from_seed
from hypothesis import strategies as st

CALL_SECONDS = 20.0
STREAM_SECONDS = 0.02
"""A stream that is not refused at once is left again."""
REFUSALS = {
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "FAILED_PRECONDITION",
    "ALREADY_EXISTS",
    "ABORTED",
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
}
TRACES = ("Traceback", 'File "', ".py", "Error:")
"""What no caller is ever to read."""
PLAUSIBLE = st.integers(0, 5)
SCALARS = {
    F.CPPTYPE_INT32: PLAUSIBLE | st.integers(-(2**31), 2**31 - 1),
    F.CPPTYPE_INT64: PLAUSIBLE | st.integers(-(2**63), 2**63 - 1),
    F.CPPTYPE_UINT32: st.integers(0, 2**32 - 1),
    F.CPPTYPE_UINT64: st.integers(0, 2**64 - 1),
    F.CPPTYPE_DOUBLE: st.floats(),
    F.CPPTYPE_FLOAT: st.floats(width=32),
    F.CPPTYPE_BOOL: st.booleans(),
    F.CPPTYPE_ENUM: PLAUSIBLE | st.integers(-(2**31), 2**31 - 1),
    F.CPPTYPE_STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
}
Method = Any
"""A method's descriptor."""


class Finding(AssertionError):
    """A message that was answered as none may be."""


@dataclass
class Tally:
    """What came of the messages, by the code of the answer; `obeyed` by method, reading ones
    left out.
    """

    codes: Counter[str] = field(default_factory=Counter)
    obeyed: Counter[str] = field(default_factory=Counter)

    @property
    def messages(self) -> int:
        return sum(self.codes.values())


class Fuzzer:
    """Sends messages to the methods of the services behind an address.

    Args:
        services: their descriptors; no method of one has the name of another's. good: for every
        method a request that would be obeyed; its `request_id` is made anew for each message.
        state: a hash of what the service holds; it must not change but by a message that was
        obeyed. mark: a part of it that is quickly read, and looked at after every message that was
        refused. logged: methods that leave a trace, as they should, when they are refused.
    """

    def __init__(
        self,
        channel: grpc.Channel,
        services: Sequence[Any],
        good: Mapping[str, Any],
        state: Callable[[], str],
        mark: Callable[[], object],
        seed: int = 0,
        logged: Sequence[str] = (),
    ) -> None:
        self.methods: list[Method] = [method for service in services for method in service.methods]
        self.tally = Tally()
        self._state, self._random = state, random.Random(seed)
        self._mark, self._logged = mark, frozenset(logged)
        self._calls = {method.name: self._call(channel, method) for method in self.methods}
        self.renew(good)

    def _call(self, channel: grpc.Channel, method: Method) -> Callable[..., Any]:
        kind = channel.unary_stream if method.server_streaming else channel.unary_unary
        return kind(f"/{method.containing_service.full_name}/{method.name}", None, None)

    def renew(self, good: Mapping[str, Any]) -> None:
        """Goes on from other requests, made for what the service holds now: a worker of the old
        ones may have been fenced, and from then on all that it asks for is refused at once.
        """
        self._good, self._seen = good, self._mark()
        self._words = st.sampled_from(sorted(words_of(good.values())))

    def typed(self, count: int) -> None:
        """Messages that parse: every field has any value of its type."""
        cases = st.sampled_from(self.methods).flatmap(
            lambda method: st.tuples(
                st.just(method), messages_of(GetMessageClass(method.input_type), self._words)
            )
        )

        @from_seed(self._random.getrandbits(64))
        @settings(
            max_examples=count,
            phases=[Phase.generate],
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(cases)
        def send(case: tuple[Method, Message]) -> None:
            self.send(case[0], case[1].SerializeToString())

        self._unchanged(send)

    def changed(self, count: int) -> None:
        """Valid messages with some bytes changed, left out, doubled, cut off."""

        def send() -> None:
            for _ in range(count):
                method = self._random.choice(self.methods)
                self.send(method, mutated(self._fresh(method), self._random))

        self._unchanged(send)

    def bytes(self, count: int) -> None:
        """Random bytes, most of which are no message at all."""

        def send() -> None:
            for _ in range(count):
                method = self._random.choice(self.methods)
                self.send(
                    method, self._random.randbytes(self._random.choice((0, 1, 3, 10, 100, 3000)))
                )

        self._unchanged(send)

    def _fresh(self, method: Method) -> bytes:
        request = self._good[method.name]
        if "request_id" in request.DESCRIPTOR.fields_by_name:
            request.request_id = f"fuzz-{self._random.getrandbits(64):x}"
        return request.SerializeToString()

    def _unchanged(self, work: Callable[[], object]) -> None:
        """Runs `work`; what it sent may have changed something only if some of it was obeyed."""
        before, obeyed = self._state(), self.tally.obeyed.total()
        work()
        if self.tally.obeyed.total() == obeyed and self._state() != before:
            raise Finding("the state changed although every message was refused")

    def send(self, method: Method, raw: bytes) -> str:
        """Sends one message and judges the answer; returns its code, or raises `Finding`."""
        code, details = self._answer(method, raw)
        self.tally.codes[code] += 1
        if code != "OK" and (code not in REFUSALS or any(trace in details for trace in TRACES)):
            raise Finding(
                f"{method.name}({raw[:200]!r}…, {len(raw)} bytes) was answered {code}: {details[:500]}"
            )
        if code != "OK" and not 0 < len(details) <= 1000:
            raise Finding(f"{method.name}: {code} comes with {len(details)} characters")
        before, self._seen = self._seen, self._mark()
        if code != "OK" and before != self._seen and method.name not in self._logged:
            raise Finding(
                f"{method.name}({raw[:200]!r}…) was refused ({details[:200]}), and changed {before}"
            )
        return code

    def _answer(self, method: Method, raw: bytes) -> tuple[str, str]:
        call = self._calls[method.name]
        try:
            if method.server_streaming:
                return self._first(call(raw, timeout=STREAM_SECONDS))
            reply = call(raw, timeout=CALL_SECONDS)
        except grpc.RpcError as error:
            return error.code().name, error.details() or ""
        if self._has_effect(method, reply):
            self.tally.obeyed[method.name] += 1
        return "OK", ""

    def _first(self, stream: Any) -> tuple[str, str]:
        try:
            next(stream)
        except grpc.RpcError as error:
            waits = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            return ("OK", "") if waits else (error.code().name, error.details() or "")
        except StopIteration:
            pass
        finally:
            stream.cancel()
        return "OK", ""

    def _has_effect(self, method: Method, reply: bytes) -> bool:
        """Whether a call that was answered OK may have changed something: not one that only
        asks, nor a report all of whose results were refused.
        """
        if method.name.startswith(("Get", "List")):
            return False
        if method.name == "ReportResults":
            message: Any = GetMessageClass(method.output_type).FromString(reply)
            return any(verdict.accepted for verdict in message.verdicts)
        return True


def messages_of(cls: type[Message], words: st.SearchStrategy[str]) -> st.SearchStrategy[Message]:
    """Messages of a type with any values in any of their fields, texts of `words` among them."""
    fields = {one.name: _values(one, words) for one in cls.DESCRIPTOR.fields}
    return st.fixed_dictionaries({}, optional=fields).map(lambda values: cls(**values))


def _values(one: Any, words: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    if one.message_type is not None and one.message_type.GetOptions().map_entry:
        key, value = (SCALARS[part.cpp_type] for part in one.message_type.fields)
        return st.dictionaries(key, value, max_size=4)
    if one.message_type is not None:
        single: st.SearchStrategy[Any] = messages_of(GetMessageClass(one.message_type), words)
    elif one.name == "request_id":
        single = st.uuids().map(lambda value: value.hex)
    elif one.cpp_type == F.CPPTYPE_STRING:
        single = words | SCALARS[one.cpp_type]
    else:
        single = SCALARS[one.cpp_type]
    return st.lists(single, max_size=4) if one.is_repeated else single


def words_of(messages: Iterable[Message]) -> set[str]:
    """All texts inside messages."""
    found = {""}
    for message in messages:
        for one, value in message.ListFields():
            if one.message_type is not None and one.message_type.GetOptions().map_entry:
                continue
            values = value if one.is_repeated else [value]
            if one.message_type is not None:
                found |= words_of(values)
            elif one.cpp_type == F.CPPTYPE_STRING:
                found |= set(values)
    return found


def mutated(raw: bytes, chance: random.Random) -> bytes:
    """`raw` after one to four changes of its bytes."""
    data = bytearray(raw)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(data) + 1)
        end = min(len(data), place + chance.choice((1, 1, 2, 4, 16)))
        change = chance.randrange(6)
        if change == 0:
            data[place:end] = chance.randbytes(end - place)
        elif change == 1 and place < len(data):
            data[place] ^= 1 << chance.randrange(8)
        elif change == 2:
            del data[place:end]
        elif change == 3:
            data[place:place] = data[place:end] * chance.choice((1, 2, 200))
        elif change == 4:
            del data[place:]
        else:
            data[place:place] = chance.randbytes(chance.choice((1, 2, 8)))
    return bytes(data)
