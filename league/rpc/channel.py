"""Connects to the matchmaker. A call waits until the matchmaker answers, and repeats its request if
necessary, which is safe.

gRPC reconnects with its own back-off. This module repeats calls itself, because gRPC's retry policy
gives up after five attempts and calls no function in between. A learner must be able to log that it
waits, and to stop while it waits.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar

import grpc

from league.errors import ConfigError, InvalidInput, Unavailable
from league.rpc.status import error_of, raised_by_service, retry_advice
from league.security.credentials import Credentials, of_run
from league.v1.evaluator_pb2_grpc import EvaluatorServiceStub
from league.v1.exploiters_pb2_grpc import ExploiterServiceStub
from league.v1.matchmaker_pb2_grpc import MatchmakerServiceStub

CALL_SECONDS = 20.0
"""How long an attempt may take before the call is sent again."""
CONNECTED_SECONDS = 5.0  # a stream that lasted longer had reached the service
TRANSFER_SECONDS = 620.0
"""How long an attempt to send or to fetch a blob may take. The service gives up a little earlier.
"""
PAUSE_SECONDS = 0.2  # between attempts. An attempt sends nothing while the channel is down.

CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", 256 << 20),
    # min_reconnect_backoff_ms is not set, because it also limits the time of a handshake.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # Two clients of one process must not share a connection that one of them closes.
    ("grpc.use_local_subchannel_pool", 1),
    # Connects directly, even if the environment names a proxy.
    ("grpc.enable_http_proxy", 0),
]
_TRY_AGAIN = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,  # the service stopped during the call
)
_REFUSED_CERTIFICATES = {
    "Hostname Verification Check failed": "is for other hosts: take an address that it names, or "
    "have one made for this address (bin/league certs --host)",
    "certificate has expired": "has expired: have a new one made (bin/league certs)",
    "certificate is not yet valid": "is not valid yet: set the clocks of both machines right",
    "CERTIFICATE_VERIFY_FAILED": "was signed by another CA: take the ca.pem of that league",
}
"""Words in gRPC's messages, with the fault of the certificate that they indicate. The first match
counts.
"""
_CLOSED = " (something there closed the connection: it may want TLS, or a client's certificate)"
M = TypeVar("M")


class Connection:
    """Connects to a service. Opening a connection never fails, because the first call waits for the
    service.

    Args:
        address: ``HOST:PORT``.
        wait_seconds: time in seconds for which a call waits for a service that does not answer.
        on_wait: function that is called with a sentence before each further attempt. It may raise
            an error to end the waiting.
        credentials: token and certificates. None takes them from the environment.
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
        if not colon or not host or "/" in host or not port.isdigit():
            raise InvalidInput(
                f"{address!r} is no address: write HOST:PORT, for example 127.0.0.1:50051"
            )
        self.address = address
        self._wait_seconds = wait_seconds
        self._on_wait = on_wait
        resolved = of_run() if credentials is None else credentials
        self.credentials, self._metadata = resolved, resolved.metadata
        self._channel = resolved.channel(address, CHANNEL_OPTIONS)
        self._stub = MatchmakerServiceStub(self._channel)
        self._exploiters = ExploiterServiceStub(self._channel)
        self._evaluations = EvaluatorServiceStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection. A second call changes nothing."""
        self._channel.close()

    def asynchronous(self) -> grpc.aio.Channel:
        """Opens another channel to the service, for the running event loop and without a token.

        A new channel needs a handshake, which takes seconds on a busy machine. So keep the channel.
        """
        channel: grpc.aio.Channel = self.credentials.channel(
            self.address, CHANNEL_OPTIONS, grpc.aio
        )
        return channel

    def _call(self, method: str, request: Any) -> Any:
        stubs = self._stub, self._exploiters, self._evaluations
        stub = next(stub for stub in stubs if hasattr(stub, method))
        return self._repeated(
            lambda: getattr(stub, method)(request, timeout=CALL_SECONDS, metadata=self._metadata)
        )

    def _repeated(self, attempt: Callable[[], M]) -> M:
        """Makes attempts until one of them reaches the service, and returns its value."""
        began = time.monotonic()
        while True:
            try:
                return attempt()
            except grpc.RpcError as failure:
                self._wait(failure, began)
            except ValueError as error:  # gRPC raises it if the channel was closed
                raise Unavailable(f"the connection to {self.address} was closed: {error}") from None

    def _follow(self, opened: Callable[[], Iterator[M]]) -> Iterator[M]:
        """Yields the messages of a stream until it ends. A broken stream is opened again."""
        failing_since = None
        while True:
            since = time.monotonic()
            try:
                for message in opened():
                    failing_since = None
                    yield message
                return
            except grpc.RpcError as failure:
                if failing_since is None or time.monotonic() - since > CONNECTED_SECONDS:
                    failing_since = time.monotonic()
                self._wait(failure, failing_since)
            except ValueError as error:
                raise Unavailable(f"the connection to {self.address} was closed: {error}") from None

    def _wait(self, failure: grpc.RpcError, since: float) -> None:
        """Sleeps before a call's next attempt. `since` is the time of its first attempt. If no
        further attempt makes sense, the call's error is raised instead.

        A service may say when to call again. Each client adds a random delay, so that they do not
        all call at once.
        """
        waited = time.monotonic() - since
        details = failure.details() or ""
        advice = retry_advice(failure)
        if advice is None and (failure.code() not in _TRY_AGAIN or raised_by_service(failure)):
            raise error_of(failure) from None
        for words, fault in _REFUSED_CERTIFICATES.items():
            if words in details:
                raise ConfigError(f"the certificate that {self.address} shows {fault}") from None
        if "WRONG_VERSION_NUMBER" in details:
            raise ConfigError(
                f"{self.address} speaks no TLS: leave --tls (KUMITE_TLS) out"
            ) from None
        if waited + (advice or 0.0) >= self._wait_seconds:
            if advice is not None:
                raise error_of(failure) from None
            raise Unavailable(
                f"no matchmaker answers at {self.address} (waited {waited:.0f} s): start one "
                f"there, or check the address{_CLOSED if 'Socket closed' in details else ''}"
            ) from None
        if self._on_wait is not None:
            is_busy = failure.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            waiting = f"waiting for the matchmaker at {self.address} ({waited:.0f} s)"
            self._on_wait(details if is_busy else waiting)
        time.sleep((PAUSE_SECONDS if advice is None else advice) * random.uniform(1.0, 1.25))


class Reminders:
    """Passes sentences on to `say`, but at most one a minute. It can be used as `on_wait`, from any
    thread.
    """

    PAUSE_SECONDS = 60.0

    def __init__(
        self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say, self._clock = say, clock
        self._due_at, self._lock = -math.inf, threading.Lock()

    def __call__(self, sentence: str) -> None:
        with self._lock:
            now = self._clock()
            if now < self._due_at:
                return
            self._due_at = now + self.PAUSE_SECONDS
        self._say(sentence)
