"""The one way into a service: who calls, may they, not too often, is it a message at all; then the
servicer.

One interceptor does all of it, and keeps each method's handler, so a call costs little more than
without. Whatever goes wrong leaves as one sentence with a gRPC code (`league.rpc.status`), never as
a traceback.
"""

from __future__ import annotations

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
from league.service.rates import Rates

MOST_REFLECTIONS = 4
"""Streams that ask for descriptions at a time: each holds a thread for as long as its client
likes.
"""
DRAIN_RETRY_SECONDS = 0.5
_log = logging.getLogger(__name__)


class Door(grpc.ServerInterceptor):
    """What a service's server has as its only interceptor.

    Args:
        name: of the service, for sentences: "the matchmaker". book: the tokens; None lets everybody
        in as an operator. rates: of calls by peer. observers: hear of every call when it is over.
        audit: hears of every call that only operators may make, before it takes effect; what it
        raises
            keeps the call from taking place.
        mutual_tls: whether callers have certificates, whose names they then go by where there are
        no tokens.
    """

    def __init__(
        self,
        name: str,
        book: TokenBook | None,
        rates: Rates,
        observers: Sequence[Observer] = (),
        audit: Callable[[Call], None] | None = None,
        *,
        mutual_tls: bool = False,
    ) -> None:
        self._name, self._book, self._rates, self._mutual_tls = name, book, rates, mutual_tls
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
        if least_role(path) is AccessRole.NOBODY:
            return handler  # health, whose streams hold no thread as long as nobody wraps them
        serializer = handler.response_serializer
        if handler.request_streaming:
            return grpc.stream_stream_rpc_method_handler(
                self._asking(path, handler.stream_stream), handler.request_deserializer, serializer
            )
        parse = handler.request_deserializer
        if handler.response_streaming:
            behaviour = self._streaming(path, parse, handler.unary_stream)
            return grpc.unary_stream_rpc_method_handler(behaviour, None, serializer)
        behaviour = self._unary(path, parse, handler.unary_unary)
        return grpc.unary_unary_rpc_method_handler(behaviour, None, serializer)

    def _unary(
        self, path: str, parse: Callable[[bytes], Any], behaviour: Callable[..., Any]
    ) -> Any:
        method = path.rpartition("/")[2]
        is_audited = self._audit is not None and least_role(path) is AccessRole.OPERATOR

        def answer(raw: bytes, context: grpc.ServicerContext) -> Any:
            began = time.perf_counter()
            call = Call(method, context.peer())
            try:
                self._admit(path, call, context)
                call.request = _parsed(parse, raw, method)
                if is_audited:
                    self._audit(call)  # type: ignore[misc]
                call.reply = behaviour(call.request, context)
            except Exception as error:
                call.error = _told(error)
            call.seconds = time.perf_counter() - began
            self._tell(call)
            if call.error is not None:
                abort(context, call.error)
            return call.reply

        return answer

    def _streaming(
        self, path: str, parse: Callable[[bytes], Any], behaviour: Callable[..., Any]
    ) -> Any:
        method = path.rpartition("/")[2]

        def messages(raw: bytes, context: grpc.ServicerContext, call: Call) -> Iterator[Any]:
            self._admit(path, call, context)
            call.request = _parsed(parse, raw, method)
            yield from behaviour(call.request, context)

        def answer(raw: bytes, context: grpc.ServicerContext) -> Iterator[Any]:
            call = Call(method, context.peer())
            yield from self._followed(call, context, lambda: messages(raw, context, call))

        return answer

    def _asking(self, path: str, behaviour: Callable[..., Any]) -> Any:
        """Reflection: the client asks as long as it likes, within one call."""
        method = path.rpartition("/")[2]

        def messages(
            requests: Iterator[Any], context: grpc.ServicerContext, call: Call
        ) -> Iterator[Any]:
            self._admit(path, call, context)
            if not self._reflections.acquire(blocking=False):
                raise Busy(
                    f"{MOST_REFLECTIONS} clients ask for descriptions already: come back in a second"
                )
            try:
                yield from behaviour(requests, context)
            finally:
                self._reflections.release()

        def answer(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
            call = Call(method, context.peer())
            yield from self._followed(call, context, lambda: messages(requests, context, call))

        return answer

    def _followed(
        self, call: Call, context: grpc.ServicerContext, messages: Callable[[], Iterator[Any]]
    ) -> Iterator[Any]:
        began = time.perf_counter()
        try:
            yield from messages()
        except Exception as error:
            call.error = _told(error)
        finally:  # also when the client has gone
            call.seconds = time.perf_counter() - began
            self._tell(call)
        if call.error is not None:
            abort(context, call.error)

    def _admit(self, path: str, call: Call, context: grpc.ServicerContext) -> None:
        """Sets who calls; raises what keeps the call out."""
        if self.is_closing:
            raise Closing(
                f"{self._name} is stopping: ask again when it is back", DRAIN_RETRY_SECONDS
            )
        self._rates.take(call.peer)
        if self._book is None:
            name = _certified(context) if self._mutual_tls else ""
            call.caller = Caller(name, AccessRole.OPERATOR, call.peer)
            return
        plain = _shown(context)
        token = self._book.find(plain) if plain else None
        if token is None:
            raise Unauthenticated(_no_token(self._name, plain))
        call.caller = Caller(token.name, token.access, call.peer)
        check_role(path, token.access, f"the token {token.name!r}")

    def _tell(self, call: Call) -> None:
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


def _no_token(name: str, plain: str) -> str:
    if plain:
        return f"{name} does not know this token (it may have been revoked): ask an operator for another"
    return (
        f"{name} wants a token with every call: set KUMITE_TOKEN, or KUMITE_TOKEN_FILE to a file that holds "
        f"it (gRPC metadata «{HEADER}: Bearer TOKEN»)"
    )


def _certified(context: grpc.ServicerContext) -> str:
    """The name in a client's certificate, "" without mutual TLS."""
    names: Any = context.auth_context().get("x509_common_name", ())
    return b"".join(names).decode("utf-8", "replace")[:64]


def _parsed(parse: Callable[[bytes], Any], raw: bytes, method: str) -> Any:
    try:
        return parse(raw)
    except Exception:  # protobuf's DecodeError, and what its implementations raise beside it
        raise InvalidInput(
            f"the {len(raw)} bytes are no request of {method}: send the message that reflection describes"
        ) from None


def _told(error: Exception) -> LeagueError:
    if isinstance(error, LeagueError):
        return error
    _log.error("a request failed in a way nobody planned", exc_info=error)
    return LeagueError(
        f"the service failed inside ({type(error).__name__}): its log has the details"
    )
