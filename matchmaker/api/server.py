"""The matchmaker as a context manager: the same one in tests and behind `python -m matchmaker`."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from pathlib import Path
from types import TracebackType

from league.clock import Clock, SystemClock
from league.errors import InvalidInput, LeagueError
from league.security.settings import SecuritySettings, joined
from league.service.server import GrpcServer
from league.service.settings import OperationsSettings
from league.v1 import exploiters_pb2, matchmaker_pb2
from league.v1.exploiters_pb2_grpc import add_ExploiterServiceServicer_to_server
from league.v1.matchmaker_pb2_grpc import add_MatchmakerServiceServicer_to_server
from matchmaker.acts import lease as leases
from matchmaker.acts import rating_epochs
from matchmaker.acts.analyse import analyse
from matchmaker.api.exploiter_service import ExploiterService
from matchmaker.api.lookout import Lookout
from matchmaker.api.service import MatchmakerService
from matchmaker.settings import MatchmakerSettings
from matchmaker.state import aggregates
from matchmaker.state.league import League
from matchmaker.store.sqlite import SqliteStore
from matchmaker.tools import invariants

MAX_REQUEST_BYTES = 32 << 20
ANALYST_SECONDS = 2.0
"""How long a stop waits for a look at the league's structure, which loses nothing."""
LOOK_EVERY = 30
"""A look at what was written takes at most this part of the time."""
SERVICE_NAME = matchmaker_pb2.DESCRIPTOR.services_by_name["MatchmakerService"].full_name
EXPLOITER_SERVICE_NAME = exploiters_pb2.DESCRIPTOR.services_by_name["ExploiterService"].full_name
_log = logging.getLogger(__name__)


class MatchmakerServer:
    """Serves the league at `db` once entered; leaves the file whole when left, twice is fine.

    Args:
        db: the league's SQLite file, created when missing. port: 0 takes any free one. clock: moved
        by hand in tests; then `sweep` is called by hand too. seed: of a new league's draws; None
        takes a random one. at: shows players, ratings and payoffs as they were (`history.moment_of`
        reads it); needs `read_only`. security, operations: who may ask and how, and how it is
        watched; None takes the defaults.
    """

    def __init__(
        self,
        db: Path | str,
        port: int = 0,
        settings: MatchmakerSettings | None = None,
        *,
        host: str = "",
        security: SecuritySettings | None = None,
        operations: OperationsSettings | None = None,
        clock: Clock | None = None,
        seed: int | None = None,
        read_only: bool = False,
        at: str | None = None,
    ) -> None:
        if at is not None and not read_only:
            raise InvalidInput(
                "--at shows the league as it was, and the past can't be changed: add --read-only"
            )
        self._security = security or SecuritySettings()
        self._operations = operations or OperationsSettings()
        if at is not None and self._operations.matchmaker_metrics_port:
            raise InvalidInput(
                "metrics tell how a league is now, and --at shows it as it was: leave out the metrics port"
            )
        self._wanted = (self._security.checked(host), port)
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
        self.lookout = Lookout(self.league, Path(db), self._operations, read_only=read_only)
        self._frame: GrpcServer | None = None
        self._sweeper = threading.Thread(
            target=self._sweep_forever, name="lease-sweeper", daemon=True
        )
        self._analyst = threading.Thread(target=self._analyse_forever, name="analyst", daemon=True)
        self._stopped = False
        self.port = 0

    @property
    def address(self) -> str:
        return joined(self._wanted[0], self.port)

    def __enter__(self) -> MatchmakerServer:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Binds the port and serves; raises `LeagueError` when it can't."""
        settings = self.league.settings
        try:
            frame = GrpcServer(
                "the matchmaker",
                SERVICE_NAME,
                threads=settings.workers + settings.max_watchers,
                most_bytes=MAX_REQUEST_BYTES,
                security=self._security,
                run_dir=self.lookout.db.parent,
                observers=self.lookout.observers,
                audit=self.lookout.audit,
                beside=(EXPLOITER_SERVICE_NAME,),
            )
            add_MatchmakerServiceServicer_to_server(self.service, frame.server)
            add_ExploiterServiceServicer_to_server(ExploiterService(self.service), frame.server)
            self.port = frame.listen(*self._wanted)
            self.lookout.open(frame.health)
        except BaseException:
            self.stop()
            raise
        self._frame = frame
        frame.start()
        if self._sweeps:
            self._sweeper.start()
            self._analyst.start()

    def sweep(self, look: bool = True) -> int:
        """Expires overdue leases now, does what else is due, and checks what was written since
        the last time unless `look` is False. Returns how many leases expired.
        """
        with self.store.read() as reader:
            due = leases.overdue(self.league, reader)
        with self.store.write() as tx:
            expired = leases.sweep(self.league, tx) if due else 0
            leases.forget_requests(self.league, tx)
        self.lookout.expired(expired)
        rating_epochs.open_due_epochs(self.league)
        if look:
            self._look()
        aggregates.keep(self.league, aggregates.EVERY)
        return expired

    def _look(self) -> None:
        with self.store.read() as reader:
            for finding in invariants.broken(reader, self.league.view.settled):
                _log.error("the league's log is broken (run matchmaker.tools.fsck): %s", finding)
            self.league.view.settled = invariants.settled_below(reader)

    def _sweep_forever(self) -> None:
        next_look = 0.0
        while not self.service.stopping.wait(self.league.settings.sweep_seconds):
            began = time.monotonic()
            try:
                self.sweep(look=began >= next_look)
            except LeagueError as error:
                _log.error("expired leases could not be recorded: %s", error)
                self.lookout.failed(error)
            except Exception:
                _log.exception("the lease sweep broke; the next one is tried all the same")
            # a busy league has much to look at, on cores that have other work
            if began >= next_look:
                next_look = began + LOOK_EVERY * (time.monotonic() - began)
            self.lookout.look()

    def analyse(self) -> bool:
        """Analyses the league if that is due; returns whether it was."""
        return analyse(self.league)

    def _analyse_forever(self) -> None:
        """In a thread of its own: thousands of snapshots take seconds, and leases must not wait
        for them.
        """
        while not self.service.stopping.wait(self.league.settings.sweep_seconds):
            try:
                self.analyse()
            except LeagueError as error:
                _log.error("the analysis of the league could not be recorded: %s", error)
            except Exception:
                _log.exception("the analysis of the league failed; the next one is tried")

    def stop(self) -> None:
        """Turns new calls away, lets running ones finish, ends the streams, closes the file. Twice
        is fine.

        Leases that are open stay so: their time begins anew when the league is served again.
        """
        if self._stopped:
            return
        self._stopped = True
        if self._frame is not None:
            self._frame.drain()
        self.service.stopping.set()
        self.league.view.wake()
        if self._frame is not None:
            self._frame.stop(self._operations.drain_seconds)
        self.lookout.close()
        if self._sweeper.is_alive():
            self._sweeper.join()
        if self._analyst.is_alive():
            self._analyst.join(ANALYST_SECONDS)
        if not self.service.read_only:
            self._keep_aggregates()
        self.store.close()

    def _keep_aggregates(self) -> None:
        try:
            aggregates.keep(self.league, aggregates.FEWEST)
        except LeagueError as error:
            _log.warning(
                "the next start folds more of the log, since what memory holds could not be kept: %s",
                error,
            )
