"""A connection to a matchmaker: calls that find none are sent again, with back-off, until one
answers.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc

from league.errors import ConfigError, InvalidInput, Unavailable
from league.rpc.status import error_of, raised_by_service, retry_advice
from league.security.credentials import Credentials, from_environment
from league.v1.exploiters_pb2_grpc import ExploiterServiceStub
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
_CLOSED = " (something there closed the connection: it may want TLS, or a client's certificate)"
M = TypeVar("M")


class Connection:
    """Opening one never fails: the first call waits for the service.

    Args:
        address: ``HOST:PORT``.
        wait_seconds: how long a call goes on trying while nobody answers; then `Unavailable`.
        on_wait: told once in a while, in a sentence, what is being waited for.
        credentials: token and certificates; None takes those that the environment names, if any.
    """

    def __init__(
        self,
        address: str,
        *,
        wait_seconds: float = 60,
        on_wait: Callable[[str], None] | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        host, colon, port = address.rpartition(":")
        if not colon or not host or not port.isdigit():
            raise InvalidInput(
                f"{address!r} is no address: write HOST:PORT, for example 127.0.0.1:50051"
            )
        self.address = address
        self._wait_seconds = wait_seconds
        self._on_wait = on_wait
        own = from_environment() if credentials is None else credentials
        self._metadata = own.metadata
        self._channel = own.channel(address, CHANNEL_OPTIONS)
        self._stub = MatchmakerServiceStub(self._channel)
        self._exploiters = ExploiterServiceStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; twice is fine."""
        self._channel.close()

    def _call(self, method: str, request: Any) -> Any:
        failing_since, pause = None, 0.05
        while True:
            try:
                stub = self._stub if hasattr(self._stub, method) else self._exploiters
                return getattr(stub, method)(request, timeout=CALL_SECONDS, metadata=self._metadata)
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
        """Sleeps before another try, or raises when there is to be none. Returns since when it
        fails.

        A service that says when to come back is obeyed, give or take a little, lest all come at
        once.
        """
        now = time.monotonic()
        since = now if failing_since is None else failing_since
        advice = retry_advice(failure)
        if advice is not None:
            if now - since + advice >= self._wait_seconds:
                raise error_of(failure) from None
            busy = failure.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            self._say((failure.details() or "") if busy else self._waiting(now - since))
            time.sleep(advice * random.uniform(1.0, 1.25))
            return since
        if failure.code() not in _TRY_AGAIN or raised_by_service(failure):
            raise error_of(failure) from None
        self._check_tls(failure.details() or "")
        if now - since >= self._wait_seconds:
            closed = "Socket closed" in (failure.details() or "")
            raise Unavailable(
                f"no matchmaker answers at {self.address} (waited {now - since:.0f} s): "
                f"start one there, or check the address{_CLOSED if closed else ''}"
            ) from None
        self._say(self._waiting(now - since))
        time.sleep(pause * random.uniform(0.5, 1.0))
        return since

    def _waiting(self, seconds: float) -> str:
        return f"waiting for the matchmaker at {self.address} ({seconds:.0f} s)"

    def _check_tls(self, details: str) -> None:
        """Raises `ConfigError` for what another try can't cure."""
        if "CERTIFICATE_VERIFY_FAILED" in details:
            raise ConfigError(
                f"the certificate that {self.address} shows is not good for it (another CA's or host's, or "
                f"out of date): take its ca.pem, and an address that the certificate names"
            ) from None
        if "WRONG_VERSION_NUMBER" in details:
            raise ConfigError(
                f"{self.address} speaks no TLS: leave --tls (KUMITE_TLS) out"
            ) from None

    def _say(self, sentence: str) -> None:
        if self._on_wait is not None:
            self._on_wait(sentence)
