"""Runs the matchmaker as a context manager, for tests and for `python -m matchmaker`."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from league.clock import Clock, ManualClock, SystemClock
from league.errors import DataCorrupt, InvalidInput, LeagueError
from league.runs.finding import waiting_workers
from league.runs.store import Store
from league.security.settings import SecuritySettings, joined, reached_at
from league.service.server import GrpcServer, check_port
from league.service.settings import OperationsSettings
from league.v1 import evaluator_pb2, exploiters_pb2, matchmaker_pb2
from league.v1.evaluator_pb2_grpc import add_EvaluatorServiceServicer_to_server
from league.v1.exploiters_pb2_grpc import add_ExploiterServiceServicer_to_server
from league.v1.matchmaker_pb2_grpc import add_MatchmakerServiceServicer_to_server
from matchmaker import limits
from matchmaker.acts.analyse import analyse, open_due_epochs
from matchmaker.acts.assign import expire
from matchmaker.acts.fold import FoldKeeper
from matchmaker.acts.rules import change_rules
from matchmaker.acts.watch import Watch
from matchmaker.api.mirror import Mirror
from matchmaker.api.monitor import Monitor
from matchmaker.api.service import MatchmakerService
from matchmaker.settings import MatchmakerSettings
from matchmaker.state import folding
from matchmaker.state.league import League
from matchmaker.store import copies, invariants
from matchmaker.store.sqlite import SqliteStore

MAX_REQUEST_BYTES = 32 << 20
CHECKED_AT_START_BYTES = 32 << 20
"""Logs up to this size are checked before they are served. The pages of larger logs are checked
while they are served, because checking 7 GiB takes minutes.
"""
ANALYST_SECONDS = 2.0
"""Seconds for which `stop` waits for an analysis of the league. If the analysis is interrupted,
nothing is lost.
"""
LOOK_EVERY = 200
"""The checks of invariants take at most 1/200 of the time, because calls wait during a check."""
SERVICE_NAME = matchmaker_pb2.DESCRIPTOR.services_by_name["MatchmakerService"].full_name
EXPLOITER_SERVICE_NAME = exploiters_pb2.DESCRIPTOR.services_by_name["ExploiterService"].full_name
EVALUATOR_SERVICE_NAME = evaluator_pb2.DESCRIPTOR.services_by_name["EvaluatorService"].full_name
_log = logging.getLogger(__name__)


class MatchmakerServer:
    """Serves the league at `db` while the context is open.

    Args:
        db: the SQLite file, created if it is missing.
        port: the port, 0 for a free port.
        settings: the matchmaker's settings.
        security: tokens and certificates.
        operations: logs and metrics.
        clock: a clock that the caller moves, for tests. The caller must then also call `sweep`,
            `analyse` and `store_fold`, which otherwise run on their own.
        seed: seed of a new league's draws, random if None.
        read_only: whether the league must not change.
        at: with `read_only`, the moment in the past to serve.
        new_epoch: whether to begin new ratings if the version of the game's rules differs from the
            version in the log.
        sections: the run's settings for workers on other machines.
        store: the league's object store, which must be new or the league's own.
    """

    def __init__(
        self,
        db: Path | str,
        port: int = 0,
        settings: MatchmakerSettings | None = None,
        *,
        security: SecuritySettings | None = None,
        operations: OperationsSettings | None = None,
        clock: Clock | None = None,
        seed: int | None = None,
        read_only: bool = False,
        at: str | None = None,
        new_epoch: bool = False,
        sections: Mapping[str, Any] | None = None,
        store: Store | None = None,
    ) -> None:
        self._security = security or SecuritySettings()
        operations = operations or OperationsSettings()
        if at is not None and not read_only:
            raise InvalidInput("--at serves the past, which can't be changed: add --read-only")
        if at is not None and operations.metrics_port:
            raise InvalidInput(
                "--at serves the past, metrics the present: leave out the metrics port"
            )
        self._host, self.port = self._security.checked_host(), port
        check_port(self._host, port)  # before anything is on disk
        if operations.metrics_port:
            check_port("127.0.0.1", operations.metrics_port, "metrics port")
        with ExitStack() as opened:
            served = Path(db)
            if at is not None:
                folder = opened.enter_context(TemporaryDirectory(prefix="kumite-past-"))
                served = Path(folder) / "league.db"
                clock = ManualClock(copies.copy_as_of(Path(db), served, at))
            self.store = SqliteStore(served, read_only=read_only)
            opened.callback(self.store.close)
            is_small = served.stat().st_size <= CHECKED_AT_START_BYTES
            if is_small:
                self._check_whole()
            self.league = League(
                self.store, settings or MatchmakerSettings(), clock or SystemClock()
            )
            if read_only:
                self.league.open_read_only()
            else:
                self.league.open(secrets.randbits(62) if seed is None else seed, new_epoch)
                self.league.waiting = partial(waiting_workers, Path(db).parent)
                if new_epoch:
                    change_rules(self.league)
                if store is not None:
                    self._claim(store)
            self._opened = opened.pop_all()
        self.service = MatchmakerService(
            self.league, Path(db).parent / "blobs", sections, read_only=read_only, store=store
        )
        self._mirror = None if store is None else Mirror(self.league, Path(db).parent, store)
        self.monitor = Monitor(self.league, Path(db), operations, read_only=read_only)
        self._watch = Watch(self.league)
        self._folds = FoldKeeper(self.league, self.store.path)
        self._frame: GrpcServer | None = None
        self._threads: list[threading.Thread] = []
        if clock is None and not read_only:
            self._threads = [
                threading.Thread(target=self._repeat, args=[work], name=work.__name__, daemon=True)
                for work in (self.sweep, self.analyse, self.store_fold, self.copy_files)
            ]
        if not is_small:
            self._threads.append(threading.Thread(target=self.check_pages, daemon=True))
        self._interrupt: Callable[[], None] = lambda: None
        self._next_look = 0.0
        self._stopped = False

    @property
    def address(self) -> str:
        return joined(self._host, self.port)

    def __enter__(self) -> MatchmakerServer:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Binds the port and serves, or raises a `LeagueError`."""
        try:
            frame = GrpcServer(
                "the matchmaker",
                (SERVICE_NAME, EXPLOITER_SERVICE_NAME, EVALUATOR_SERVICE_NAME),
                threads=limits.CALL_THREADS,
                most_bytes=MAX_REQUEST_BYTES,
                security=self._security,
                run_dir=self.monitor.db.parent,
                observers=self.monitor.observers,
                audit=self.monitor.audit,
            )
            self._frame = frame
            frame.add(add_MatchmakerServiceServicer_to_server, self.service)
            frame.add(add_ExploiterServiceServicer_to_server, self.service)
            frame.add(add_EvaluatorServiceServicer_to_server, self.service)
            self.port = frame.listen(self.port)
            self.store.announce(joined(reached_at(self._host), self.port))
            self.monitor.open(frame.health)
        except BaseException:
            self.stop()
            raise
        frame.start()
        for thread in self._threads:
            thread.start()

    def _claim(self, store: Store) -> None:
        """Takes a store for this league, once, so that later starts don't need the store. The store
        gets the checkpoints that the run already has, so learners can continue on other machines.
        """
        with self.store.read() as reader:
            seed, claimed = reader.meta("seed"), reader.meta("store")
        if claimed != store.address:
            store.claim(f"league {seed}")
            run_dir = Path(self.store.path).parent
            for file in sorted(run_dir.glob("learner-*/**/checkpoints/step_*.pt")):
                store.put_checkpoint(file.parent.relative_to(run_dir).as_posix(), file)
            with self.store.write() as tx:
                tx.set_meta("store", store.address)

    def _check_whole(self) -> None:
        """Checks all pages and rows of the log. A damaged log raises `DataCorrupt`."""
        with self.store.read() as reader:
            for look in (invariants.broken_pages, invariants.damaged_rows):
                for finding in look(reader):
                    raise DataCorrupt(f"{self.store.path} is damaged ({finding}): restore a backup")

    def check_pages(self) -> None:
        """Sets the health to NOT_SERVING for good if pages of the log are broken."""
        with suppress(LeagueError), self.store.read() as reader:
            self._interrupt = reader.interrupt
            findings = list(invariants.broken_pages(reader))
            for finding in findings if not self.service.stopping.is_set() else ():
                self.monitor.found_broken(
                    f"{self.store.path} is damaged ({finding}): stop, and restore a backup"
                )

    def sweep(self) -> int:
        """Expires overdue leases, deletes old stored replies, begins due rating epochs, and checks
        the log's new rows and the disk. Returns the number of expired leases.
        """
        with self.store.read() as reader:
            due = reader.open_assignments(until=self.league.clock.now())
        with self.store.write() as tx:
            expired = expire(self.league, tx) if due else 0
            tx.forget_requests(self.league.clock.now() - limits.REQUEST_MEMORY_SECONDS)
        self.monitor.expired(expired)
        open_due_epochs(self.league)
        began = time.monotonic()
        if began >= self._next_look:
            with self.store.read() as reader:
                for finding in invariants.broken(reader, self.league.view.fold.settled):
                    _log.error("the league's log is broken (run bin/league fsck): %s", finding)
                self.league.view.fold.settled = invariants.settled_below(reader)
            self._next_look = began + LOOK_EVERY * (time.monotonic() - began)
        self.monitor.check_disk()
        return expired

    def analyse(self) -> bool:
        """Compares the evaluators with each other, and computes the league's Nash mixture if that
        is due.

        This may take seconds, so it runs in its own thread.
        """
        self._watch.look()
        return analyse(self.league)

    def store_fold(self) -> None:
        """Stores a fold of the log (the state that results from applying the log in order) if a
        fold is due. Another process usually computes the fold.
        """
        self._folds.store()

    def copy_files(self) -> None:
        """Copies files between the run's folder and the league's object store, if it has one."""
        if self._mirror is not None:
            self._mirror.look()

    def _repeat(self, work: Callable[[], object]) -> None:
        while not self.service.stopping.wait(limits.SWEEP_SECONDS):
            try:
                work()
            except LeagueError as error:
                _log.error("the matchmaker's %s could not be recorded: %s", work.__name__, error)
                self.monitor.failed(error)
            except Exception:
                _log.exception("the matchmaker's %s failed; it is tried again", work.__name__)

    def stop(self) -> None:
        """Refuses new calls, waits for running calls, ends the streams, and closes the file.

        Stopping twice is fine. Open leases stay open.
        """
        if self._stopped:
            return
        self._stopped = True
        if self._frame is not None:
            self._frame.drain()
        self.service.stopping.set()
        self.league.view.wake()
        if self._frame is not None:
            self._frame.stop()
        self.monitor.close()
        self._interrupt()
        self._folds.stop()
        for thread in self._threads:
            if thread.is_alive():
                writes = thread.name in (self.sweep.__name__, self.store_fold.__name__)
                thread.join(None if writes else ANALYST_SECONDS)
        if not self.service.read_only:
            try:
                self.league.store_fold(folding.FEWEST)
            except LeagueError as error:
                _log.warning("the next start takes longer, for the fold was not stored: %s", error)
        self._opened.close()
