"""How errors travel over gRPC: one table from class to code, one interceptor, and the way back.

The message goes as the status' details, the class' name as trailing metadata, so a client raises
the same class that the service raised.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import grpc

from league import errors

ERROR_CLASS_KEY = "kumite-error"
MAX_MESSAGE = 1000  # gRPC refuses trailers of over 8 KiB, and the error class travels with them
_log = logging.getLogger(__name__)

CODES: dict[type[errors.LeagueError], grpc.StatusCode] = {
    errors.LeagueError: grpc.StatusCode.UNKNOWN,
    errors.InvalidInput: grpc.StatusCode.INVALID_ARGUMENT,
    errors.InvalidName: grpc.StatusCode.INVALID_ARGUMENT,
    errors.ConfigError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.NotFound: grpc.StatusCode.NOT_FOUND,
    errors.AlreadyExists: grpc.StatusCode.ALREADY_EXISTS,
    errors.Refused: grpc.StatusCode.FAILED_PRECONDITION,
    errors.Fenced: grpc.StatusCode.ABORTED,
    errors.NothingPlayable: grpc.StatusCode.INVALID_ARGUMENT,
    errors.RankGone: grpc.StatusCode.UNAVAILABLE,
    errors.Unavailable: grpc.StatusCode.UNAVAILABLE,
    errors.DataCorrupt: grpc.StatusCode.DATA_LOSS,
    errors.VersionMismatch: grpc.StatusCode.FAILED_PRECONDITION,
    errors.NumericalFault: grpc.StatusCode.INTERNAL,
    errors.DeviceError: grpc.StatusCode.INTERNAL,
    errors.StorageFull: grpc.StatusCode.RESOURCE_EXHAUSTED,
}
_BY_NAME = {cls.__name__: cls for cls in CODES}
_FALLBACK = {
    grpc.StatusCode.INVALID_ARGUMENT: errors.InvalidInput,
    grpc.StatusCode.NOT_FOUND: errors.NotFound,
    grpc.StatusCode.ALREADY_EXISTS: errors.AlreadyExists,
    grpc.StatusCode.FAILED_PRECONDITION: errors.Refused,
    grpc.StatusCode.ABORTED: errors.Fenced,
    grpc.StatusCode.UNAVAILABLE: errors.Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.Unavailable,
    grpc.StatusCode.DATA_LOSS: errors.DataCorrupt,
}


def code_of(error: errors.LeagueError) -> grpc.StatusCode:
    """The gRPC code for `error`: its class' own, else its nearest base's."""
    for cls in type(error).__mro__:
        if cls in CODES:
            return CODES[cls]
    raise TypeError(f"{type(error).__name__} is no LeagueError")


def error_of(failure: grpc.RpcError) -> errors.LeagueError:
    """The error that the service raised, or the nearest class when gRPC itself failed."""
    details = failure.details() or str(failure.code())
    name = _class_name(failure)
    if name in _BY_NAME:
        return _BY_NAME[name](details)
    return _FALLBACK.get(failure.code(), errors.LeagueError)(details)


def raised_by_service(failure: grpc.RpcError) -> bool:
    """Whether the service answered at all (so trying another time is the service's to advise)."""
    return _class_name(failure) != ""


def _class_name(failure: grpc.RpcError) -> str:
    metadata: Any = failure.trailing_metadata() or ()
    return next((value for key, value in metadata if key == ERROR_CLASS_KEY), "")


def _abort(context: grpc.ServicerContext, error: errors.LeagueError) -> NoReturn:
    context.set_trailing_metadata(((ERROR_CLASS_KEY, type(error).__name__),))
    context.abort(code_of(error), str(error)[:MAX_MESSAGE])
    raise AssertionError("context.abort always raises")


def _unexpected(error: Exception) -> errors.LeagueError:
    _log.exception("a request failed in a way nobody planned")
    return errors.LeagueError(f"the service failed inside ({type(error).__name__}): its log has the details")


class ErrorInterceptor(grpc.ServerInterceptor):
    """Turns a `LeagueError` raised in a servicer into its gRPC status; anything else becomes UNKNOWN."""

    def intercept_service(self, continuation: Callable[..., Any], handler_call_details: Any) -> Any:
        handler = continuation(handler_call_details)
        if handler is None or handler.request_streaming:
            return handler
        wrap, make = (
            (_streaming, grpc.unary_stream_rpc_method_handler)
            if handler.response_streaming
            else (_unary, grpc.unary_unary_rpc_method_handler)
        )
        behaviour = handler.unary_stream if handler.response_streaming else handler.unary_unary
        return make(
            wrap(behaviour),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )


def _unary(behaviour: Callable[..., Any]) -> Callable[..., Any]:
    def call(request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return behaviour(request, context)
        except errors.LeagueError as error:
            _abort(context, error)
        except Exception as error:
            if _aborted(context):
                raise
            _abort(context, _unexpected(error))

    return call


def _streaming(behaviour: Callable[..., Any]) -> Callable[..., Any]:
    def call(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        try:
            yield from behaviour(request, context)
        except errors.LeagueError as error:
            _abort(context, error)
        except Exception as error:
            if _aborted(context):
                raise
            _abort(context, _unexpected(error))

    return call


def _aborted(context: grpc.ServicerContext) -> bool:
    """Whether the behaviour itself called `context.abort` (which raises a bare Exception)."""
    return getattr(context, "_state", None) is not None and bool(context._state.aborted)  # type: ignore[attr-defined]
