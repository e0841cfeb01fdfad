"""The matchmaker as a context manager: the same one in tests and behind `python -m matchmaker`."""

from __future__ import annotations

import logging
import secrets
import socket
import threading
import time
from concurrent import futures
from pathlib import Path
from types import TracebackType

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from league.clock import Clock, SystemClock
from league.errors import InvalidInput, LeagueError, Refused
from league.status import ErrorInterceptor
from league.v1 import matchmaker_pb2
from league.v1.matchmaker_pb2_grpc import add_MatchmakerServiceServicer_to_server
from matchmaker import aggregates, invariants, leases, rating_epochs
from matchmaker.league import League
from matchmaker.service import MatchmakerService
from matchmaker.settings import MatchmakerSettings
from matchmaker.store.sqlite import SqliteStore

MAX_REQUEST_BYTES = 32 << 20
STOP_SECONDS = 2.0
LOOK_EVERY = 10
"""A look at what was written takes at most this part of the time."""
SERVICE_NAME = matchmaker_pb2.DESCRIPTOR.services_by_name["MatchmakerService"].full_name
_log = logging.getLogger(__name__)


class MatchmakerServer:
    """Serves the league at `db` once entered; leaves the file whole when left, twice is fine.

    Args:
        db: the league's SQLite file, created when missing.
        port: 0 takes any free one.
        clock: moved by hand in tests; then `sweep` is called by hand too.
        seed: of a new league's draws; None takes a random one.
        at: shows players, ratings and payoffs as they were (`history.moment_of` reads it); needs `read_only`.
    """

    def __init__(
        self,
        db: Path | str,
        port: int = 0,
        settings: MatchmakerSettings | None = None,
        *,
        host: str = "127.0.0.1",
        clock: Clock | None = None,
        seed: int | None = None,
        read_only: bool = False,
        at: str | None = None,
    ) -> None:
        if at is not None and not read_only:
            raise InvalidInput(
                "--at shows the league as it was, and the past can't be changed: add --read-only"
            )
        self._wanted = (host, port)
        self._sweeps = clock is None and not read_only
        self.store = SqliteStore(Path(db), read_only=read_only)
        self.league = League(self.store, settings or MatchmakerSettings(), clock or SystemClock())
        try:
            if read_only:
                self.league.open_read_only(at)
            else:
                self.league.open(secrets.randbits(62) if seed is None else seed)
        except BaseException:
            self.store.close()
            raise
        self.service = MatchmakerService(self.league, read_only=read_only)
        self._server: grpc.Server | None = None
        self._sweeper = threading.Thread(target=self._sweep_forever, name="lease-sweeper", daemon=True)
        self._stopped = False
        self.port = 0

    @property
    def address(self) -> str:
        return f"{self._wanted[0]}:{self.port}"

    def __enter__(self) -> MatchmakerServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Binds the port and serves; raises `Refused` when it is taken."""
        settings = self.league.settings
        server = grpc.server(
            futures.ThreadPoolExecutor(settings.workers + settings.max_watchers, "matchmaker"),
            interceptors=[ErrorInterceptor()],
            options=[
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
                ("grpc.max_send_message_length", -1),
            ],
        )
        add_MatchmakerServiceServicer_to_server(self.service, server)
        self._add_health_and_reflection(server)
        host, port = self._wanted
        try:
            _try_port(host, port)
            self.port = server.add_insecure_port(f"{host}:{port}")
        except (OSError, RuntimeError):
            self.stop()
            raise Refused(
                f"{host}:{port} can't be listened on (the port is taken or the host is not this "
                f"machine's): choose another --port, 0 takes a free one"
            ) from None
        self._server = server
        server.start()
        if self._sweeps:
            self._sweeper.start()

    def _add_health_and_reflection(self, server: grpc.Server) -> None:
        checker = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(checker, server)
        for name in ("", SERVICE_NAME):
            checker.set(name, health_pb2.HealthCheckResponse.SERVING)
        reflection.enable_server_reflection(
            (SERVICE_NAME, health.SERVICE_NAME, reflection.SERVICE_NAME), server
        )

    def sweep(self, look: bool = True) -> int:
        """Expires overdue leases now, does what else is due, and checks what was written since the last time
        unless `look` is False. Returns how many leases expired."""
        with self.store.read() as reader:
            deadline = reader.next_deadline()
        with self.store.write() as tx:
            due = deadline is not None and deadline <= self.league.clock.now()
            expired = leases.sweep(self.league, tx) if due else 0
            leases.forget_requests(self.league, tx)
        rating_epochs.open_due_epochs(self.league)
        if look:
            self._look()
        aggregates.keep(self.league, aggregates.EVERY)
        return expired

    def _look(self) -> None:
        with self.store.read() as reader:
            for finding in invariants.broken(reader, self.league.view.settled):
                _log.error("the league's log is broken (run matchmaker.fsck): %s", finding)
            self.league.view.settled = invariants.settled_below(reader)

    def _sweep_forever(self) -> None:
        next_look = 0.0
        while not self.service.stopping.wait(self.league.settings.sweep_seconds):
            began = time.monotonic()
            try:
                self.sweep(look=began >= next_look)
            except LeagueError as error:
                _log.error("expired leases could not be recorded: %s", error)
            except Exception:
                _log.exception("the lease sweep broke; the next one is tried all the same")
            if began >= next_look:  # a busy league has much to look at, on cores that have other work
                next_look = began + LOOK_EVERY * (time.monotonic() - began)

    def stop(self) -> None:
        """Lets running calls finish, ends the streams, closes the file. Twice is fine."""
        if self._stopped:
            return
        self._stopped = True
        self.service.stopping.set()
        self.league.view.wake()
        if self._server is not None:
            self._server.stop(STOP_SECONDS).wait()
        if self._sweeper.is_alive():
            self._sweeper.join()
        if not self.service.read_only:
            self._keep_aggregates()
        self.store.close()

    def _keep_aggregates(self) -> None:
        try:
            aggregates.keep(self.league, aggregates.FEWEST)
        except LeagueError as error:
            _log.warning(
                "the next start folds more of the log, since what memory holds could not be kept: %s", error
            )


def _try_port(host: str, port: int) -> None:
    """Raises OSError when it can't be bound; gRPC would write a line of its own to the log."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    socket.create_server((host.strip("[]"), port), family=family).close()
