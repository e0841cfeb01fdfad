"""The interceptor of a service: is the caller allowed, not too fast, is the request a message.

It does all of it in one place and caches each method's handler, so a call costs little more than
without. Whatever fails leaves as one sentence with a gRPC code (`league.rpc.status`), never as a
traceback.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

import grpc

from league.errors import Busy, Closing, InvalidInput, LeagueError, Unauthenticated
from league.rpc.status import abort, code_of
from league.security.credentials import HEADER
from league.security.roles import AccessRole, check_role, least_role
from league.security.tokens import TokenBook
from league.service.rate_limiter import RateLimiter

MOST_REFLECTIONS = 4
"""Reflection streams at a time: each holds a thread for as long as its client wants."""
CLOSING_RETRY_SECONDS = 0.5
_log = logging.getLogger(__name__)


class Caller(NamedTuple):
    """The token's name ("" without tokens), its role, and the peer ("ipv4:127.0.0.1:40312")."""

    name: str
    role: AccessRole
    peer: str

    @property
    def who(self) -> str:
        return self.name or "somebody"


CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)
"""The caller of the call that the present thread answers."""


@dataclass(slots=True)
class Call:
    """One call as observers see it: metrics, logs, the audit trail.

    `caller` is None for a call that was refused before its caller was known; `seconds` last until
    the reply is made.
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
        """Name of the gRPC code that the caller gets."""
        return grpc.StatusCode.OK.name if self.error is None else code_of(self.error).name


Observer = Callable[[Call], None]


class AuthInterceptor(grpc.ServerInterceptor):
    """The only interceptor of a service's server.

    Args:
        name: of the service, for messages: "the matchmaker".
        book: the tokens; None makes every caller an operator.
        limiter: of calls by peer.
        observers: receive every call when it is over.
        audit: receives every call that only operators may make before it takes effect, and prevents
            it by raising; and once more, with its `error`, when it was refused.
    """

    def __init__(
        self,
        name: str,
        book: TokenBook | None,
        limiter: RateLimiter,
        observers: Sequence[Observer] = (),
        audit: Callable[[Call], None] | None = None,
    ) -> None:
        self._name, self._book, self._limiter = name, book, limiter
        self._observers, self._audit = tuple(observers), audit
        self._reflections = threading.Semaphore(MOST_REFLECTIONS)
        self._handlers: dict[str, Any] = {}
        self.is_closing = False

    def intercept_service(self, continuation: Callable[..., Any], handler_call_details: Any) -> Any:
        path = handler_call_details.method
        if path not in self._handlers:
            found = continuation(handler_call_details)
            if found is None:
                return None
            self._handlers[path] = self._guarded(path, found)
        return self._handlers[path]

    def _guarded(self, path: str, handler: Any) -> Any:
        """Wraps a method's handler, which gets the request's bytes: parsing them may fail."""
        least, method = least_role(path), path.rpartition("/")[2]
        if least is AccessRole.NONE:
            return handler  # health, whose streams hold no thread unless they are wrapped
        parse, serializer = handler.request_deserializer, handler.response_serializer
        audit = self._audit if least is AccessRole.OPERATOR else None

        def unary(raw: bytes, context: grpc.ServicerContext) -> Any:
            with self._call(path, context) as call:
                call.request = _parsed(parse, raw, method)
                if audit is not None:
                    audit(call)
                    call.is_audited = True
                CALLER.set(call.caller)
                call.reply = handler.unary_unary(call.request, context)
            return call.reply

        def stream(raw: bytes, context: grpc.ServicerContext) -> Iterator[Any]:
            with self._call(path, context) as call:
                call.request = _parsed(parse, raw, method)
                yield from handler.unary_stream(call.request, context)

        def reflect(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
            with self._call(path, context), self._reflecting():
                yield from handler.stream_stream(requests, context)

        if handler.request_streaming:
            return grpc.stream_stream_rpc_method_handler(reflect, parse, serializer)
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(stream, None, serializer)
        return grpc.unary_unary_rpc_method_handler(unary, None, serializer)

    @contextlib.contextmanager
    def _call(self, path: str, context: grpc.ServicerContext) -> Iterator[Call]:
        """Admits a call, reports it to the observers when it is over, and answers an error."""
        began = time.perf_counter()
        call = Call(path.rpartition("/")[2], context.peer())
        try:
            self._admit(path, call, context)
            yield call
        except LeagueError as error:
            call.error = error
        except Exception as error:
            _log.error("a request failed unexpectedly", exc_info=error)
            call.error = LeagueError(
                f"the service failed inside ({type(error).__name__}): its log has the details"
            )
        finally:  # also when the client of a stream has gone
            call.seconds = time.perf_counter() - began
            is_refused = call.is_audited and call.error is not None
            audit = (self._audit,) if self._audit is not None and is_refused else ()
            for observer in (*audit, *self._observers):
                try:
                    observer(call)
                except Exception:
                    _log.exception("a call was answered and could not be counted or logged")
        if call.error is not None:
            abort(context, call.error)

    @contextlib.contextmanager
    def _reflecting(self) -> Iterator[None]:
        if not self._reflections.acquire(blocking=False):
            raise Busy(
                f"{MOST_REFLECTIONS} clients ask for descriptions already: come back in a second"
            )
        try:
            yield
        finally:
            self._reflections.release()

    def _admit(self, path: str, call: Call, context: grpc.ServicerContext) -> None:
        """Sets the caller; raises the error that refuses the call."""
        if self.is_closing:
            raise Closing(
                f"{self._name} is stopping: ask again when it is back", CLOSING_RETRY_SECONDS
            )
        self._limiter.take(call.peer)
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


def _shown(context: grpc.ServicerContext) -> str:
    """The token that came with a call, "" for none."""
    for key, value in context.invocation_metadata() or ():
        if key == HEADER and isinstance(value, str):
            scheme, _, rest = value.partition(" ")
            return rest.strip() if scheme.lower() == "bearer" else ""
    return ""


def _certified(context: grpc.ServicerContext) -> str:
    """The name in a client's certificate, "" without one."""
    names: Any = context.auth_context().get("x509_common_name", ())
    return b"".join(names).decode("utf-8", "replace")[:64]


def _parsed(parse: Callable[[bytes], Any], raw: bytes, method: str) -> Any:
    try:
        return parse(raw)
    except Exception:  # protobuf's DecodeError, or another error of its implementation
        raise InvalidInput(
            f"the {len(raw)} bytes are no request of {method}: send the message that reflection "
            "describes"
        ) from None
