"""Maps errors to gRPC's codes and back, by a table of classes and their codes.

The status's details have the error's message, and the trailing metadata has the name of its class.
So a client raises the same class as the service.
"""

from __future__ import annotations

from typing import Any, NoReturn
from urllib.parse import quote

import grpc

from league import errors

ERROR_CLASS_KEY = "kumite-error"
RETRY_KEY = "grpc-retry-pushback-ms"  # gRPC's own retries use this name (proposal A6)
LONGEST_ADVICE = 60.0  # seconds
MAX_MESSAGE = 1000
MAX_ENCODED = 4000  # gRPC refuses trailers of over 8 KiB, and sends all but ASCII as %XX

CODES: dict[type[errors.LeagueError], grpc.StatusCode] = {
    errors.LeagueError: grpc.StatusCode.UNKNOWN,
    errors.InvalidInput: grpc.StatusCode.INVALID_ARGUMENT,
    errors.InvalidName: grpc.StatusCode.INVALID_ARGUMENT,
    errors.ConfigError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.NotFound: grpc.StatusCode.NOT_FOUND,
    errors.AlreadyExists: grpc.StatusCode.ALREADY_EXISTS,
    errors.Refused: grpc.StatusCode.FAILED_PRECONDITION,
    errors.Fenced: grpc.StatusCode.ABORTED,
    errors.Quarantined: grpc.StatusCode.FAILED_PRECONDITION,
    errors.NothingPlayable: grpc.StatusCode.INVALID_ARGUMENT,
    errors.RankGone: grpc.StatusCode.UNAVAILABLE,
    errors.Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
    errors.Forbidden: grpc.StatusCode.PERMISSION_DENIED,
    errors.Busy: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.Closing: grpc.StatusCode.UNAVAILABLE,
    errors.Unavailable: grpc.StatusCode.UNAVAILABLE,
    errors.DataCorrupt: grpc.StatusCode.DATA_LOSS,
    errors.VersionMismatch: grpc.StatusCode.FAILED_PRECONDITION,
    errors.NumericalFault: grpc.StatusCode.INTERNAL,
    errors.DeviceError: grpc.StatusCode.INTERNAL,
    errors.StorageFull: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.StorageReadOnly: grpc.StatusCode.RESOURCE_EXHAUSTED,
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
    grpc.StatusCode.UNAUTHENTICATED: errors.Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: errors.Forbidden,
    # gRPC itself sends this code for a message that is too large
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.InvalidInput,
}


def code_of(error: errors.LeagueError) -> grpc.StatusCode:
    """Returns the gRPC code of the error's class. If the class has no code, returns the code of its
    nearest base class.
    """
    for cls in type(error).__mro__:
        if cls in CODES:
            return CODES[cls]
    raise TypeError(f"{type(error).__name__} is no LeagueError")


def error_of(failure: grpc.RpcError) -> errors.LeagueError:
    """Returns the error that the service raised. If gRPC itself failed, returns an error of the
    most similar class.
    """
    details = failure.details() or str(failure.code())
    name = _class_name(failure)
    if name in _BY_NAME:
        return _BY_NAME[name](details)
    return _FALLBACK.get(failure.code(), errors.LeagueError)(details)


def raised_by_service(failure: grpc.RpcError) -> bool:
    """Returns whether the service itself raised the error. Then the service decides whether the
    call is repeated.
    """
    return _class_name(failure) != ""


def retry_advice(failure: grpc.RpcError) -> float | None:
    """Returns the number of seconds after which the service wants the call to be repeated, or None
    if the service has not said.
    """
    for key, value in _trailing(failure):
        if key == RETRY_KEY and value.isdigit():
            return min(int(value) / 1000, LONGEST_ADVICE)
    return None


def _class_name(failure: grpc.RpcError) -> str:
    return next((value for key, value in _trailing(failure) if key == ERROR_CLASS_KEY), "")


def _trailing(failure: grpc.RpcError) -> Any:
    return failure.trailing_metadata() or ()


async def abort(context: grpc.aio.ServicerContext[Any, Any], error: errors.LeagueError) -> NoReturn:
    """Ends a call with an error. The client gets the error's code, message and class, and the time
    after which to try again.
    """
    metadata = [(ERROR_CLASS_KEY, type(error).__name__)]
    if error.retry_seconds:
        metadata.append((RETRY_KEY, str(max(1, round(error.retry_seconds * 1000)))))
    await context.abort(code_of(error), _fitting(str(error)), tuple(metadata))
    raise AssertionError("context.abort always raises")


def _fitting(message: str) -> str:
    message = message[:MAX_MESSAGE]
    while len(quote(message, errors="replace")) > MAX_ENCODED:
        message = message[: len(message) * 3 // 4]
    return message
