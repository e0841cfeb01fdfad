"""Everything that watches a matchmaker, put together from its settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from league.errors import LeagueError
from league.players import Vitals
from league.service.calls import Call, Observer
from league.service.health import Health
from league.service.logs import CallLog
from league.service.settings import OperationsSettings
from matchmaker.api.audit import Audit
from matchmaker.api.storage import StorageHealth, file_bytes, free_bytes
from matchmaker.state.league import League

if TYPE_CHECKING:
    from league.service.prometheus import MetricsPort
    from matchmaker.api.metrics import LeagueMetrics

MOST_NAMES = 4096


class Lookout:
    """Observers and audit for the door; health and metrics for the server. Closing twice is
    fine.
    """

    def __init__(
        self, league: League, db: Path, settings: OperationsSettings, *, read_only: bool = False
    ) -> None:
        self.league, self.db, self.settings, self._read_only = league, db, settings, read_only
        self.started_at = league.clock.now()
        self.audit = Audit(league)
        self.health: Health | None = None
        league.vitals = self.vitals
        self._storage: StorageHealth | None = None
        self._metrics: LeagueMetrics | None = None
        self._port: MetricsPort | None = None
        self._workers: dict[int, str] = {}
        log = CallLog(settings.log_calls, settings.slow_call_seconds, self._sender)
        self.observers: list[Observer] = [log, self._notice]

    def open(self, health: Health) -> None:
        """Begins to watch; raises `Refused` when the metrics port is taken."""
        self.health = health
        least = self.settings.least_free_megabytes * 1e6
        self._storage = StorageHealth(self.league.store, self.db, least, health)
        if self.settings.matchmaker_metrics_port:
            self._serve_metrics(health)
        if not self._read_only:
            self.look()

    def _serve_metrics(self, health: Health) -> None:
        from league.service.prometheus import MetricsPort
        from matchmaker.api.metrics import LeagueMetrics

        settings = self.settings
        self._metrics = LeagueMetrics(self.league, self.db, health)
        self._port = MetricsPort(
            settings.metrics_host, settings.matchmaker_metrics_port, self._metrics
        )

    def vitals(self) -> Vitals:
        """How the service is just now."""
        view, wal = self.league.view, self.db.with_name(f"{self.db.name}-wal")
        free = free_bytes(self.db)
        return Vitals(
            trouble=self.health.reason if self.health is not None else "",
            now=self.league.clock.now(),
            started_at=self.started_at,
            store_bytes=file_bytes(self.db) + file_bytes(wal),
            disk_free_bytes=-1 if free is None else free,
            event_position=view.event_position,
            assignments=view.ordinal,
        )

    def look(self) -> None:
        """At the disk, now."""
        if self._storage is not None:
            self._storage.look()

    def failed(self, error: LeagueError) -> None:
        """Something that no caller hears of went wrong."""
        if self._storage is not None:
            self._storage.failed(error)

    def expired(self, leases: int) -> None:
        if self._metrics is not None:
            self._metrics.expired(leases)

    def close(self) -> None:
        if self._port is not None:
            self._port.close()

    def _notice(self, call: Call) -> None:
        if call.error is not None:
            self.failed(call.error)
        if self._metrics is not None:
            self._metrics.called(call)

    def _sender(self, call: Call) -> Mapping[str, Any]:
        """Which worker a request comes from, as far as it says so."""
        number = getattr(call.request, "incarnation", 0)
        worker = str(getattr(call.request, "worker", ""))[:80] or self._worker(number)
        return {key: value for key, value in (("worker", worker), ("incarnation", number)) if value}

    def _worker(self, number: int) -> str:
        if number and number not in self._workers:
            try:
                with self.league.store.read() as reader:
                    row = reader.incarnation(number)
            except LeagueError:  # the store closes while the last calls are told
                row = None
            if row is None:
                return ""
            if len(self._workers) >= MOST_NAMES:
                self._workers.clear()
            self._workers[number] = row.worker
        return self._workers.get(number, "")
