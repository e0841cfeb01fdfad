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
from typing import Any

import grpc

from league.errors import Busy, Closing, InvalidInput, LeagueError, Unauthenticated
from league.rpc.status import abort
from league.security.credentials import HEADER
from league.security.roles import AccessRole, check_role, least_role
from league.security.tokens import TokenBook
from league.service.calls import Call, Caller, Observer
from league.service.rate_limiter import RateLimiter

MOST_REFLECTIONS = 4
"""Reflection streams at a time: each holds a thread for as long as its client wants."""
CLOSING_RETRY_SECONDS = 0.5
_log = logging.getLogger(__name__)


class AuthInterceptor(grpc.ServerInterceptor):
    """The only interceptor of a service's server.

    Args:
        name: of the service, for messages: "the matchmaker".
        book: the tokens; None makes every caller an operator.
        limiter: of calls by peer.
        observers: receive every call when it is over.
        audit: receives every call that only operators may make before it takes effect, and prevents
            it by raising.
        mutual_tls: whether callers without tokens are named by their certificate.
    """

    def __init__(
        self,
        name: str,
        book: TokenBook | None,
        limiter: RateLimiter,
        observers: Sequence[Observer] = (),
        audit: Callable[[Call], None] | None = None,
        *,
        mutual_tls: bool = False,
    ) -> None:
        self._name, self._book, self._limiter, self._mutual_tls = name, book, limiter, mutual_tls
        self._observers, self._audit = tuple(observers), audit
        self._reflections = threading.Semaphore(MOST_REFLECTIONS)
        self._handlers: dict[str, Any] = {}
        self.is_closing = False

    def intercept_service(self, continuation: Callable[..., Any], handler_call_details: Any) -> Any:
        path = handler_call_details.method
        handler = self._handlers.get(path)
        if handler is None:
            found = continuation(handler_call_details)
            if found is None:
                return None
            handler = self._handlers[path] = self._guarded(path, found)
        return handler

    def _guarded(self, path: str, handler: Any) -> Any:
        if least_role(path) is AccessRole.NONE:
            return handler  # health, whose streams hold no thread unless they are wrapped
        parse, serializer = handler.request_deserializer, handler.response_serializer
        if handler.request_streaming:  # reflection
            return grpc.stream_stream_rpc_method_handler(
                self._streaming(path, None, handler.stream_stream), parse, serializer
            )
        if handler.response_streaming:
            behaviour = self._streaming(path, parse, handler.unary_stream)
            return grpc.unary_stream_rpc_method_handler(behaviour, None, serializer)
        behaviour = self._unary(path, parse, handler.unary_unary)
        return grpc.unary_unary_rpc_method_handler(behaviour, None, serializer)

    def _unary(
        self, path: str, parse: Callable[[bytes], Any], behaviour: Callable[..., Any]
    ) -> Any:
        method = path.rpartition("/")[2]
        audit = self._audit if least_role(path) is AccessRole.OPERATOR else None

        def answer(raw: bytes, context: grpc.ServicerContext) -> Any:
            began = time.perf_counter()
            call = Call(method, context.peer())
            try:
                self._admit(path, call, context)
                call.request = _parsed(parse, raw, method)
                if audit is not None:
                    audit(call)
                call.reply = behaviour(call.request, context)
            except Exception as error:
                call.error = _as_league_error(error)
            self._observe(call, began)
            if call.error is not None:
                abort(context, call.error)
            return call.reply

        return answer

    def _streaming(
        self, path: str, parse: Callable[[bytes], Any] | None, behaviour: Callable[..., Any]
    ) -> Any:
        """Wraps a stream of replies, to one request or (without `parse`) to a stream of them."""
        method = path.rpartition("/")[2]

        def answer(asked: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            began = time.perf_counter()
            call = Call(method, context.peer())
            try:
                self._admit(path, call, context)
                with self._reflecting() if parse is None else contextlib.nullcontext():
                    call.request = asked if parse is None else _parsed(parse, asked, method)
                    yield from behaviour(call.request, context)
            except Exception as error:
                call.error = _as_league_error(error)
            finally:  # also when the client has gone
                self._observe(call, began)
            if call.error is not None:
                abort(context, call.error)

        return answer

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
            name = _certified(context) if self._mutual_tls else ""
            call.caller = Caller(name, AccessRole.OPERATOR, call.peer)
            return
        plain = _shown(context)
        token = self._book.find(plain) if plain else None
        if token is None and plain:
            raise Unauthenticated(
                f"{self._name} does not know this token (it may have been revoked): ask an "
                "operator for another"
            )
        if token is None:
            raise Unauthenticated(
                f"{self._name} wants a token with every call: set KUMITE_TOKEN, or "
                f"KUMITE_TOKEN_FILE to a file that holds it (gRPC metadata «{HEADER}: Bearer "
                "TOKEN»)"
            )
        call.caller = Caller(token.name, token.access, call.peer)
        check_role(path, token.access, f"the token {token.name!r}")

    def _observe(self, call: Call, began: float) -> None:
        call.seconds = time.perf_counter() - began
        for observer in self._observers:
            try:
                observer(call)
            except Exception:
                _log.exception("a call could not be counted or logged: the caller has its answer")


def _shown(context: grpc.ServicerContext) -> str:
    """The token that came with a call, "" for none."""
    for key, value in context.invocation_metadata() or ():
        if key == HEADER and isinstance(value, str):
            scheme, _, rest = value.partition(" ")
            return rest.strip() if scheme.lower() == "bearer" else ""
    return ""


def _certified(context: grpc.ServicerContext) -> str:
    """The name in a client's certificate, "" without mutual TLS."""
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


def _as_league_error(error: Exception) -> LeagueError:
    if isinstance(error, LeagueError):
        return error
    _log.error("a request failed unexpectedly", exc_info=error)
    return LeagueError(
        f"the service failed inside ({type(error).__name__}): its log has the details"
    )
