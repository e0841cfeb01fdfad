"""A connection to a matchmaker: calls that find none are sent again, with back-off, until one answers."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc

from league.errors import InvalidInput, Unavailable
from league.status import error_of, raised_by_service
from league.v1.matchmaker_pb2_grpc import MatchmakerServiceStub

CALL_SECONDS = 20.0
"""How long one attempt may take before it is sent again."""
CONNECTED_SECONDS = 5.0  # a stream that lasted longer had reached the service

CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", 256 << 20),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # Two clients of one process must not share a connection that one of them closes.
    ("grpc.use_local_subchannel_pool", 1),
    # A loopback address never goes through a proxy that the environment names.
    ("grpc.enable_http_proxy", 0),
]
_TRY_AGAIN = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,  # by a service that stopped in the middle of the call
)
M = TypeVar("M")


class Connection:
    """Opening one never fails: the first call waits for the service.

    Args:
        address: ``HOST:PORT``.
        wait_seconds: how long a call goes on trying while nobody answers; then `Unavailable`.
        on_wait: told once in a while, in a sentence, what is being waited for.
    """

    def __init__(
        self, address: str, *, wait_seconds: float = 60, on_wait: Callable[[str], None] | None = None
    ) -> None:
        host, colon, port = address.rpartition(":")
        if not colon or not host or not port.isdigit():
            raise InvalidInput(f"{address!r} is no address: write HOST:PORT, for example 127.0.0.1:50051")
        self.address = address
        self._wait_seconds = wait_seconds
        self._on_wait = on_wait
        self._channel = grpc.insecure_channel(address, options=CHANNEL_OPTIONS)
        self._stub = MatchmakerServiceStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; twice is fine."""
        self._channel.close()

    def _call(self, method: str, request: Any) -> Any:
        failing_since, pause = None, 0.05
        while True:
            try:
                return getattr(self._stub, method)(request, timeout=CALL_SECONDS)
            except grpc.RpcError as failure:
                failing_since = self._wait(failure, failing_since, pause)
                pause = min(1.0, pause * 2)
            except ValueError as error:  # gRPC's word for a channel that was closed
                raise Unavailable(f"the connection to {self.address} was closed: {error}") from None

    def _follow(self, opened: Callable[[], Iterator[M]]) -> Iterator[M]:
        """The messages of a stream, which is opened anew whenever it breaks, until it ends."""
        failing_since = None
        while True:
            since = time.monotonic()
            try:
                for message in opened():
                    failing_since = None
                    yield message
                return
            except grpc.RpcError as failure:
                if time.monotonic() - since > CONNECTED_SECONDS:  # this is another outage
                    failing_since = None
                failing_since = self._wait(failure, failing_since, 0.5)
            except ValueError as error:
                raise Unavailable(f"the connection to {self.address} was closed: {error}") from None

    def _wait(self, failure: grpc.RpcError, failing_since: float | None, pause: float) -> float:
        """Sleeps before another try, or raises when there is to be none. Returns since when it fails."""
        now = time.monotonic()
        since = now if failing_since is None else failing_since
        if failure.code() not in _TRY_AGAIN or raised_by_service(failure):
            raise error_of(failure) from None
        if now - since >= self._wait_seconds:
            raise Unavailable(
                f"no matchmaker answers at {self.address} (waited {now - since:.0f} s): "
                f"start one there, or check the address"
            ) from None
        if self._on_wait is not None:
            self._on_wait(f"waiting for the matchmaker at {self.address} ({now - since:.0f} s)")
        time.sleep(pause * random.uniform(0.5, 1.0))
        return since
