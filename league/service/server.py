"""Runs a gRPC server with everything that the league's services share: authentication, health,
reflection, TLS, and draining.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from league.errors import ConfigError, Refused
from league.security.credentials import read_server
from league.security.settings import SecuritySettings, is_loopback, joined
from league.security.tokens import TokenBook, TokenFile
from league.service import rate_limiter
from league.service.health import Health
from league.service.interceptor import Call, Interceptor, Observer

DRAIN_SECONDS = 2.0
"""Longest wait, at a stop, for running calls. A call takes a tenth of a second at most."""
HEALTH_PER_SECOND = 100
"""Health checks that each peer may make per second. They are limited because they need no token."""
STREAMS = 100
"""Largest number of calls that a connection may have open. Its client holds further calls back."""
IDLE_SECONDS = 60
"""How long a connection without calls lives. Its client opens a new connection when needed."""
OWN_FILES = 500
"""Open files that are reserved for purposes other than connections. A process may usually open a
thousand files or more.
"""
MOST_CONNECTIONS = 100_000
OPTIONS = [
    ("grpc.so_reuseport", 0),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_concurrent_streams", STREAMS),
    # Off. Otherwise a call that has just ended still counts against the limit of streams, and gRPC
    # silently drops the next call of the same client.
    ("grpc.http.overload_protection", 0),
    ("grpc.max_connection_idle_ms", IDLE_SECONDS * 1000),
    ("grpc.server_handshake_timeout_ms", 10_000),
    # Pings detect a client whose machine has vanished.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # Limits for all connections together, beyond which gRPC silently drops calls.
    ("grpc.server.max_pending_requests", 20_000),
    ("grpc.server.max_pending_requests_hard_limit", 20_000),
]
_log = logging.getLogger(__name__)


class _Handlers(grpc.GenericRpcHandler):
    """Keeps a server's handlers by the paths of their methods. Generated code adds the handlers."""

    def __init__(self, guarded: Callable[[str, Any], Any]) -> None:
        self._guarded = guarded
        self._by_path: dict[str, Any] = {}

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Does nothing, because generated code also adds the same handlers by method."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        for method, handler in handlers.items():
            path = f"/{service}/{method}"
            self._by_path[path] = self._guarded(path, handler)

    def service(self, handler_call_details: Any) -> Any:
        return self._by_path.get(handler_call_details.method)


class GrpcServer:
    """Serves calls. Create it, `add` servicers, `listen`, `start`, and finally `stop`.

    A thread runs an event loop, which waits for requests. Further threads answer them.

    Args:
        name: name of the service for messages, such as "the matchmaker".
        services: full names of the services, for health and reflection.
        threads: number of threads that answer calls.
        most_bytes: size of the largest allowed request.
        security: settings that say how the service is reached and who may call it.
        run_dir: the run's folder, which has its tokens. Missing tokens are made there if the
            settings demand tokens.
        observers, audit: see `Interceptor`.

    Raises:
        LeagueError: the tokens can't be used.
    """

    def __init__(
        self,
        name: str,
        services: Sequence[str],
        *,
        threads: int,
        most_bytes: int,
        security: SecuritySettings,
        run_dir: Path,
        observers: Sequence[Observer] = (),
        audit: Callable[[Call], None] | None = None,
    ) -> None:
        self._security, self._most_bytes = security, most_bytes
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name.rpartition(" ")[2])
        self._interceptor = Interceptor(
            name,
            _book(security, run_dir),
            rate_limiter.RateLimiter(rate_limiter.CALLS_PER_SECOND, rate_limiter.CALLS_AT_ONCE),
            rate_limiter.RateLimiter(HEALTH_PER_SECOND, HEALTH_PER_SECOND),
            self._threads,
            observers,
            audit,
        )
        self._handlers = _Handlers(self._interceptor.guarded)
        self.health = Health(services)
        self.add(health_pb2_grpc.add_HealthServicer_to_server, self.health)
        names = (*services, health.SERVICE_NAME, reflection.SERVICE_NAME)
        self.add(
            reflection_pb2_grpc.add_ServerReflectionServicer_to_server,
            reflection.aio.ReflectionServicer(names),
        )
        self._server: grpc.aio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="grpc", daemon=True)
        self._stopped = False

    def add(self, add_to_server: Callable[[Any, Any], None], servicer: object) -> None:
        """Registers a servicer, which then answers the calls of its service.

        `add_to_server` is the generated function of the service. `Interceptor.guarded` lists the
        kinds of methods that the servicer may have.
        """
        add_to_server(servicer, self._handlers)

    def listen(self, port: int) -> int:
        """Binds the port (0 takes any free port) and returns it.

        Raises:
            ConfigError: other machines can reach the address and every caller would be accepted, or
                the certificates can't be used.
            Refused: the port is taken.
        """
        security, host = self._security, self._security.checked_host()
        folder, address = security.tls_folder, joined(host, port)
        credentials = None if folder is None else read_server(folder, mutual=security.mutual_tls)
        check_port(host, port)
        try:
            bound = self._loop.run_until_complete(self._bind(address, credentials))
        except RuntimeError:  # the port was free a moment ago, so this is about TLS
            raise ConfigError(
                f"{address} can't be listened on with the certificates in {folder}: each key "
                "must belong to its certificate (bin/league certs makes a set)"
            ) from None
        if folder is None and not is_loopback(host):
            _log.warning("tokens travel unencrypted to other machines: set security.tls")
        return bound

    async def _bind(self, address: str, credentials: grpc.ServerCredentials | None) -> int:
        self._server = grpc.aio.server(
            options=[
                *OPTIONS,
                ("grpc.max_receive_message_length", self._most_bytes),
                ("grpc.max_allowed_incoming_connections", most_connections()),
            ]
        )
        self._server.add_generic_rpc_handlers((self._handlers,))
        if credentials is None:
            return self._server.add_insecure_port(address)
        return self._server.add_secure_port(address, credentials)

    def start(self) -> None:
        """Begins to answer calls."""
        assert self._server is not None, "listen first"
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._server.start(), self._loop).result()

    def drain(self) -> None:
        """Sets health to NOT_SERVING and refuses new calls. Running calls continue."""
        self.health.close()
        self._interceptor.is_closing = True

    def stop(self, seconds: float = DRAIN_SECONDS) -> None:
        """Drains, waits up to `seconds` for running calls, and closes. It may be called twice."""
        if self._stopped:
            return
        self._stopped = True
        self.drain()
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._close(seconds), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        else:
            self._loop.run_until_complete(self._close(None))
        self._loop.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _close(self, seconds: float | None) -> None:
        if self._server is not None:
            await self._server.stop(seconds)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._loop.shutdown_asyncgens()
        await self._loop.shutdown_default_executor()


def _book(security: SecuritySettings, run_dir: Path) -> TokenBook | None:
    if not security.tokens:
        return None
    file = TokenFile(run_dir)
    if file.ensure():
        _log.info("tokens for read, worker and operator were made: %s/*.token", file.folder)
    return TokenBook(file)


def most_connections() -> int:
    """Returns how many connections may be open at a time.

    It raises the process' limit of open files as far as this user may. Some files stay reserved for
    calls, the log and the tokens.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # a system without such a limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(max(files // 2, files - OWN_FILES), MOST_CONNECTIONS)


def check_port(host: str, port: int, other: str = "--port, 0 takes a free one") -> None:
    """Checks that a port can be bound.

    Without this check, gRPC would log its own message when the port is taken.

    Args:
        host, port: the address to bind.
        other: the flag or setting to change, as the message names it.

    Raises:
        Refused: the port can't be bound.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host.strip("[]"), port), family=family).close()
    except OSError:
        raise Refused(
            f"{joined(host, port)} can't be listened on (the port is taken or the host is not "
            f"this machine's): choose another {other}"
        ) from None
