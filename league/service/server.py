"""A gRPC server with what the league's services share: auth, health, reflection, TLS, draining."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from league.errors import ConfigError, Refused
from league.security.credentials import read_server
from league.security.settings import SecuritySettings, is_loopback, joined
from league.security.tokens import TokenBook, TokenFile
from league.service import rate_limiter
from league.service.health import Health
from league.service.interceptor import AuthInterceptor, Call, Observer

WAITING_CALLS = 20_000
"""Calls of all peers that may wait for a thread; the service refuses further ones."""
DRAIN_SECONDS = 2.0
"""Longest wait, at a stop, for the calls that run; a call takes a tenth of a second at most."""
_log = logging.getLogger(__name__)


class GrpcServer:
    """Make it, add the servicer to `server`, `listen`, `start`, and `stop` (twice is fine).

    Args:
        name: for messages: "the matchmaker".
        service: full name of the service, as health and reflection know it.
        threads: that answer calls.
        most_bytes: of one request.
        run_dir: where the run's tokens are; made there when the settings want tokens and the run
            has none.
        observers, audit: see `AuthInterceptor`.
        further: full names of further services of the same server.

    Raises:
        LeagueError: the tokens can't be used.
    """

    def __init__(
        self,
        name: str,
        service: str,
        *,
        threads: int,
        most_bytes: int,
        security: SecuritySettings,
        run_dir: Path,
        observers: Sequence[Observer] = (),
        audit: Callable[[Call], None] | None = None,
        further: Sequence[str] = (),
    ) -> None:
        self._security = security
        self.health = Health([service, *further])
        self._interceptor = AuthInterceptor(
            name,
            _book(security, run_dir),
            rate_limiter.RateLimiter(rate_limiter.CALLS_PER_SECOND, rate_limiter.CALLS_AT_ONCE),
            observers,
            audit,
        )
        self.server = grpc.server(
            ThreadPoolExecutor(threads, thread_name_prefix=name.rpartition(" ")[2]),
            interceptors=[self._interceptor],
            maximum_concurrent_rpcs=WAITING_CALLS,
            options=[
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", most_bytes),
                ("grpc.max_send_message_length", -1),
            ],
        )
        health_pb2_grpc.add_HealthServicer_to_server(self.health.servicer, self.server)
        names = (service, *further, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self.server)
        self._stopped = False

    def listen(self, port: int) -> int:
        """Binds the port (0 takes any free one) and returns it.

        Raises:
            ConfigError: the address is open to other machines and nothing limits who may call, or
                the certificates can't be used.
            Refused: the port is taken.
        """
        security, host = self._security, self._security.checked_host()
        folder, address = security.tls_folder, joined(host, port)
        if folder is not None:
            credentials = read_server(folder, mutual=security.mutual_tls)
        try:
            _try_port(host, port)
            if folder is None:
                bound = self.server.add_insecure_port(address)
            else:
                bound = self.server.add_secure_port(address, credentials)
        except OSError:
            raise Refused(
                f"{address} can't be listened on (the port is taken or the host is not this "
                "machine's): choose another --port, 0 takes a free one"
            ) from None
        except RuntimeError:  # the port was free a moment ago, so this is about TLS
            raise ConfigError(
                f"{address} can't be listened on with the certificates in {folder}: each key "
                "must belong to its certificate (bin/league certs makes a set)"
            ) from None
        if folder is None and not is_loopback(host):
            _log.warning("tokens travel unencrypted to other machines: set security.tls")
        return bound

    def start(self) -> None:
        """Begins to answer calls."""
        self.server.start()

    def drain(self) -> None:
        """Turns health to NOT_SERVING and refuses new calls; those that run continue."""
        self.health.close()
        self._interceptor.is_closing = True

    def stop(self, seconds: float = DRAIN_SECONDS) -> None:
        """Drains, waits up to `seconds` for the calls that run, and closes. Twice is fine."""
        if self._stopped:
            return
        self._stopped = True
        self.drain()
        self.server.stop(seconds).wait()


def _book(security: SecuritySettings, run_dir: Path) -> TokenBook | None:
    if not security.tokens:
        return None
    file = TokenFile(run_dir)
    if file.ensure():
        _log.info("tokens for read, worker and operator were made: %s/*.token", file.folder)
    return TokenBook(file)


def _try_port(host: str, port: int) -> None:
    """Raises OSError when it can't be bound; gRPC would write its own line to the log."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    socket.create_server((host.strip("[]"), port), family=family).close()
