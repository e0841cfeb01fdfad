"""Checks the calls of a service: the caller's rights, its rate, and the message.

Every call passes these checks in one place. The service reads a request only after the request's
headers have passed the checks. A thread works on a request only after the whole request has
arrived, so a waiting call holds no thread. Every failure leaves as a sentence with a gRPC code
(`league.rpc.status`), never as a traceback.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import grpc

from league.errors import Busy, Closing, InvalidInput, LeagueError, Unauthenticated, plain
from league.rpc.status import abort, code_of
from league.security.credentials import HEADER
from league.security.roles import AccessRole, check_role, least_role
from league.security.tokens import TokenBook
from league.service.rate_limiter import RateLimiter, peer_host

ARRIVAL_SECONDS = 20.0
"""How long a request may take to arrive. The same limit applies to each further request of a
stream, and to the time that a client takes to read the next reply of a stream. The league's clients
wait equally long for a reply.
"""
WAITING_CALLS = 4000
"""Requests of all peers that may wait for a thread or the disk. Further requests are refused."""
OPEN_STREAMS = 100
"""Streams of one method that a machine may hold open."""
HELD_SECONDS = 1.0
"""How long a peer that calls too often waits for the refusal, which slows a flood down."""
CLOSING_RETRY_SECONDS = 0.5
_log = logging.getLogger(__name__)


class Caller(NamedTuple):
    """Names a caller by its token ("" without tokens), its role, and its peer
    ("ipv4:127.0.0.1:40312").
    """

    name: str
    role: AccessRole
    peer: str

    @property
    def who(self) -> str:
        return self.name or "somebody"


CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)
"""The caller of the call that the current thread answers."""


@dataclass(slots=True)
class Call:
    """Describes a call to its observers: metrics, logs, and the audit trail.

    `caller` is None if the call was refused before the caller was known. `seconds` is the time from
    the call to the reply.
    """

    method: str
    peer: str
    caller: Caller | None = None
    request: Any = None
    reply: Any = None
    error: LeagueError | None = None
    seconds: float = 0.0
    is_audited: bool = False

    @property
    def code(self) -> str:
        """Returns the name of the gRPC code that the caller gets."""
        return grpc.StatusCode.OK.name if self.error is None else code_of(self.error).name


Observer = Callable[[Call], None]


class Interceptor:
    """Checks a service's calls.

    Args:
        name: name of the service for messages, such as "the matchmaker".
        book: the valid tokens. None makes every caller an operator.
        limiter: limit for the calls of each peer.
        strangers: limit for calls that need no token.
        threads: threads that answer the calls whose handlers are plain functions.
        observers: functions that are called with every call when it is over.
        audit: function that is called with every call that needs the operator role, before the call
            takes effect. If the function raises an error, the call has no effect. If the call fails
            later, the function is called again, with the call's `error` set.
    """

    def __init__(
        self,
        name: str,
        book: TokenBook | None,
        limiter: RateLimiter,
        strangers: RateLimiter,
        threads: Executor,
        observers: Sequence[Observer] = (),
        audit: Callable[[Call], None] | None = None,
    ) -> None:
        self._name, self._book, self._threads = name, book, threads
        self._limiter, self._strangers = limiter, strangers
        self._observers, self._audit = tuple(observers), audit
        self._waiting = 0
        self._streams: Counter[tuple[str, str]] = Counter()
        self.is_closing = False

    def guarded(self, path: str, handler: Any) -> Any:
        """Wraps a method's handler in the checks.

        Args:
            handler: the handler of generated code. A plain function gets a thread. An asynchronous
                function and the generator of a stream run in the event loop.
        """
        parse, serialize = handler.request_deserializer, handler.response_serializer
        least, method = least_role(path), path.rpartition("/")[2]
        audit = self._audit if least is AccessRole.OPERATOR else None
        is_async = inspect.iscoroutinefunction(handler.unary_unary)
        reported = partial(self._reported, () if least is AccessRole.NONE else self._observers)

        async def unary(_: object, context: Any) -> bytes:
            call, sent, loop = Call(method, context.peer()), b"", asyncio.get_running_loop()

            def answer(raw: bytes) -> bytes:
                with reported(call):
                    call.request = _parsed(parse, raw, method)
                    if audit is not None:
                        audit(call)
                        call.is_audited = True
                    CALLER.set(call.caller)
                    reply = handler.unary_unary(call.request, context)
                    if is_async:
                        reply = asyncio.run_coroutine_threadsafe(reply, loop).result()
                    call.reply = reply
                    return serialize(reply)
                return b""

            async def answer_here(raw: bytes) -> bytes:
                with reported(call):
                    call.request = _parsed(parse, raw, method)
                    CALLER.set(call.caller)
                    call.reply = await handler.unary_unary(call.request, context)
                    return serialize(call.reply)
                return b""

            try:
                await self._admit(path, call, context)
                raw = await _one(context, method)
                if call.caller is None:  # health
                    sent = answer(raw)
                else:
                    with self._place():
                        if is_async and audit is None:
                            sent = await answer_here(raw)
                        else:  # an audit waits for the disk
                            sent = await loop.run_in_executor(self._threads, answer, raw)
            except Exception as error:
                with reported(call):
                    raise error
            if call.error is not None:
                call.request = raw = b""  # gRPC keeps this frame until garbage collection
                await abort(context, call.error)
            return sent

        async def stream(_: object, context: Any) -> None:
            call = Call(method, context.peer())
            with contextlib.ExitStack() as place:  # kept until the client has read the refusal
                with reported(call):
                    await self._admit(path, call, context)
                    place.enter_context(self._streaming(call))
                    if handler.request_streaming:
                        requests = _requests(parse, context, method)
                        replies = handler.stream_stream(requests, context)
                    else:
                        call.request = _parsed(parse, await _one(context, method), method)
                        replies = handler.unary_stream(call.request, context)
                    async with contextlib.aclosing(replies):
                        async for reply in replies:
                            await _written(context, serialize(reply), method)
                if call.error is not None:
                    await abort(context, call.error)

        async def upload(_: object, context: Any) -> bytes:
            call, sent = Call(method, context.peer()), b""
            with reported(call):
                await self._admit(path, call, context)
                with self._streaming(call):
                    CALLER.set(call.caller)
                    # Otherwise garbage collection would close the generator, perhaps only after
                    # the event loop has ended.
                    async with contextlib.aclosing(_requests(parse, context, method)) as requests:
                        sent = serialize(await handler.stream_unary(requests, context))
            if call.error is not None:
                await abort(context, call.error)
            return sent

        # With the other kinds of handlers, gRPC would read the request before it calls the handler.
        if handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(stream)
        return grpc.stream_unary_rpc_method_handler(upload if handler.request_streaming else unary)

    @contextlib.contextmanager
    def _reported(self, observers: Sequence[Observer], call: Call) -> Iterator[None]:
        """Keeps a failure as the call's error, and reports the call to the observers."""
        began = time.perf_counter()
        try:
            yield
        except grpc.aio.BaseError:  # the client has gone, or the server has stopped
            raise asyncio.CancelledError from None
        except LeagueError as error:
            # The traceback's frames refer to the call. So they would keep the request in memory
            # until garbage collection.
            call.error, error.__context__ = error.with_traceback(None), None
        except Exception as error:
            _log.error("a request failed unexpectedly", exc_info=error)
            call.error = LeagueError(
                f"the service failed inside ({type(error).__name__}): its log has the details"
            )
        finally:  # also when the client of a stream has gone
            call.seconds = time.perf_counter() - began
            is_refused = call.is_audited and call.error is not None
            audit = (self._audit,) if self._audit is not None and is_refused else ()
            for observer in (*audit, *observers):
                try:
                    observer(call)
                except Exception:
                    _log.exception("a call was answered and could not be counted or logged")

    @contextlib.contextmanager
    def _place(self) -> Iterator[None]:
        if self._waiting >= WAITING_CALLS:
            raise Busy(f"{WAITING_CALLS} calls wait for their turn: come back in a second")
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    @contextlib.contextmanager
    def _streaming(self, call: Call) -> Iterator[None]:
        key = call.method, peer_host(call.peer)
        if self._streams[key] >= OPEN_STREAMS:
            raise Busy(f"{OPEN_STREAMS} streams of {call.method} are open: come back in a second")
        self._streams[key] += 1
        try:
            yield
        finally:
            self._streams[key] -= 1
            if not self._streams[key]:
                del self._streams[key]

    async def _admit(self, path: str, call: Call, context: Any) -> None:
        """Finds the caller and stores it in the call, or raises the error with which the call is
        refused.
        """
        is_open = least_role(path) is AccessRole.NONE  # health, also while the service stops
        if self.is_closing and not is_open:
            raise Closing(
                f"{self._name} is stopping: ask again when it is back", CLOSING_RETRY_SECONDS
            )
        try:
            (self._strangers if is_open else self._limiter).take(call.peer)
        except Busy:
            await asyncio.sleep(HELD_SECONDS)
            raise
        if is_open:
            return
        if self._book is None:
            call.caller = Caller(_certified(context), AccessRole.OPERATOR, call.peer)
            return
        plain = _shown(context)
        if not plain:
            raise Unauthenticated(
                f"{self._name} wants a token with every call: set KUMITE_TOKEN, or "
                f"KUMITE_TOKEN_FILE to a file that holds it (gRPC metadata «{HEADER}: Bearer "
                "TOKEN»)"
            )
        token = self._book.find(plain)
        if token is None:
            raise Unauthenticated(
                f"{self._name} does not know this token (it may have been revoked): ask an "
                "operator for another"
            )
        call.caller = Caller(token.name, token.access, call.peer)
        check_role(path, token.access, f"the token {token.name!r}")


async def _arrived(context: Any, method: str) -> bytes | None:
    """Returns the next request's bytes, None after the last request."""
    try:
        async with asyncio.timeout(ARRIVAL_SECONDS):
            raw = await context.read()
    except TimeoutError:
        raise Busy(
            f"no request of {method} arrived within {ARRIVAL_SECONDS:g} s: send it again"
        ) from None
    return None if raw is grpc.aio.EOF else raw


async def _written(context: Any, reply: bytes, method: str) -> None:
    """Sends a reply of a stream. Raises `Busy` if the client does not read it."""
    try:
        async with asyncio.timeout(ARRIVAL_SECONDS):
            await context.write(reply)
    except TimeoutError:
        raise Busy(
            f"the replies of {method} were not read within {ARRIVAL_SECONDS:g} s: ask again"
        ) from None


async def _one(context: Any, method: str) -> bytes:
    raw = await _arrived(context, method)
    if raw is None:
        raise InvalidInput(f"the call ended without a request of {method}: send one")
    return raw


async def _requests(
    parse: Callable[[bytes], Any], context: Any, method: str
) -> AsyncGenerator[Any, None]:
    while (raw := await _arrived(context, method)) is not None:
        yield _parsed(parse, raw, method)


def _shown(context: Any) -> str:
    """Returns the token that came with a call, "" without a token."""
    for key, value in context.invocation_metadata() or ():
        if key == HEADER and isinstance(value, str):
            scheme, _, token = value.partition(" ")
            return token.strip() if scheme.lower() == "bearer" else ""
    return ""


def _certified(context: Any) -> str:
    """Returns the name in a client's certificate, "" without a certificate."""
    names: Any = context.auth_context().get("x509_common_name", ())
    return plain(b"".join(names).decode("utf-8", "replace"))[:64]


def _parsed(parse: Callable[[bytes], Any], raw: bytes, method: str) -> Any:
    try:
        return parse(raw)
    except Exception:  # protobuf's DecodeError, or another error of its implementation
        raise InvalidInput(
            f"the {len(raw)} bytes are no request of {method}: send the message that reflection "
            "describes"
        ) from None
