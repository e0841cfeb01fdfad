"""Watches a running matchmaker: its disk, the calls that it answers, its figures for the status
page, and operators' actions.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf import json_format

from league.errors import DataCorrupt, LeagueError, StorageFull, StorageReadOnly
from league.service.health import Health
from league.service.interceptor import Call, Observer
from league.service.logs import CallLog
from league.service.settings import OperationsSettings
from league.status import Vitals
from matchmaker.acts import checks
from matchmaker.api.service import fingerprint
from matchmaker.state.league import League
from matchmaker.store.sqlite import once
from matchmaker.store.transaction import Transaction

if TYPE_CHECKING:
    from league.service.prometheus import MetricsPort
    from matchmaker.api.metrics import LeagueMetrics

LONGEST = 200
"""Largest number of characters that the audit trail keeps of each value in a request."""
PROBE_KEY = "storage_probe"
PROBE_BYTES = 64 * 1024
LEAST_FREE_BYTES = 64e6
"""Free bytes on the log's disk below which the health is NOT_SERVING. A run takes minutes to write
this many bytes.
"""


class Monitor:
    """Observes calls, audits operators, and gives the server its health and metrics.

    The health is NOT_SERVING while the disk is nearly full, while the disk refuses writes, and from
    the moment when the log is found to be damaged.
    """

    def __init__(
        self, league: League, db: Path, settings: OperationsSettings, *, read_only: bool = False
    ) -> None:
        self.league, self.db, self._settings, self._read_only = league, db, settings, read_only
        self.started_at = league.clock.now()
        league.vitals = self.vitals
        self._health: Health | None = None
        self._workers: dict[int, str] = {}  # by incarnation, which never changes its worker
        self._broken = ""  # damage of the log
        self._refused = ""  # why the disk refuses writes, "" if it accepts them
        self._metrics: LeagueMetrics | None = None
        self._port: MetricsPort | None = None
        log = CallLog(settings.log_calls, self._sender)
        self.observers: list[Observer] = [log, self._observe]

    def open(self, health: Health) -> None:
        """Starts to watch, and to serve metrics if a port is set. Raises `Refused` if the port is
        taken.
        """
        self._health = health
        if self._settings.metrics_port:
            from league.service.prometheus import MetricsPort
            from matchmaker.api.metrics import LeagueMetrics

            self._metrics = LeagueMetrics(self.league, health)
            self._port = MetricsPort(self._settings.metrics_port, self._metrics)
        self.check_disk()

    def vitals(self) -> Vitals:
        """Returns the service's present health and figures: start time, sizes, free disk space, and
        log positions.
        """
        view, free = self.league.view, _free_bytes(self.db)
        files = (self.db, self.db.with_name(f"{self.db.name}-wal"))
        return Vitals(
            trouble=self._health.reason if self._health is not None else "",
            now=self.league.clock.now(),
            started_at=self.started_at,
            store_bytes=sum(path.stat().st_size for path in files if path.exists()),
            disk_free_bytes=-1 if free is None else free,
            event_position=view.event_position,
            assignments=view.ordinal,
        )

    def check_disk(self) -> None:
        """Tries the disk again if it refused a write, and measures the free space."""
        if self._health is None or (self._read_only and not self._broken):
            return
        if self._refused:
            self._refused = self._probe()
        self._health.set(self._broken or self._refused or self._shortage())

    def _probe(self) -> str:
        """Returns why the log still can't be written, "" if it can."""
        try:
            for content in ("x" * PROBE_BYTES, ""):
                with self.league.store.write() as tx:
                    tx.set_meta(PROBE_KEY, content)
        except LeagueError as error:
            return str(error)
        return ""

    def _shortage(self) -> str:
        free = _free_bytes(self.db)
        if free is None or free >= LEAST_FREE_BYTES:
            return ""
        return (
            f"{free / 1e6:.0f} MB are left on the disk of {self.db}, less than "
            f"{LEAST_FREE_BYTES / 1e6:g}: free some"
        )

    def failed(self, error: LeagueError) -> None:
        """Changes the health if `error` says that a write failed or that the log is damaged. Other
        errors say nothing about the disk and are ignored.
        """
        if self._health is not None and isinstance(error, (StorageFull, StorageReadOnly)):
            self._refused = str(error)
            self._health.set(self._refused)
        if type(error) is DataCorrupt:
            self.found_broken(str(error))

    def found_broken(self, reason: str) -> None:
        """Stops serving because the log is damaged."""
        self._broken = reason
        self.check_disk()

    def expired(self, leases: int) -> None:
        """Counts expired leases."""
        if self._metrics is not None:
            self._metrics.expired(leases)

    def close(self) -> None:
        if self._port is not None:
            self._port.close()

    def audit(self, call: Call) -> None:
        """Records an operator's call before it takes effect, and again if it is refused.

        A repeated call is recorded once.
        """
        request_id = checks.identifier(call.request.request_id, "request_id")
        step = "audit" if call.error is None else "refused"
        recorded = once(
            f"{step} {request_id}",  # callers' ids have no blank
            "Audit",
            fingerprint(call.request),
            self.league.clock.now(),
            lambda tx: self._record(tx, call),
        )
        self.league.store.submit(recorded)

    def _record(self, tx: Transaction, call: Call) -> bytes:
        assert call.caller is not None
        who, role, peer = call.caller.who, call.caller.role.word, call.peer
        request = json_format.MessageToDict(call.request, preserving_proto_field_name=True)
        asked = {
            key: value if isinstance(value, (bool, int, float)) else str(value)[:LONGEST]
            for key, value in request.items()
            if key != "request_id"
        }
        data = {"who": who, "role": role, "peer": peer, "method": call.method, "request": asked}
        if call.error is None:
            words = ", ".join(f"{key} {value!r}" for key, value in asked.items())
            text = f"{who} ({role}) calls {call.method} from {peer}: {words or 'with nothing'}"
            self.league.log(tx, "operator_action", text, **data)
        else:
            text = f"{who} ({role}) is refused {call.method} from {peer}: {call.error}"
            error = str(call.error)[:LONGEST]
            self.league.log(tx, "operator_refused", text, **data, error=error)
        return b""

    def _observe(self, call: Call) -> None:
        if call.error is not None:
            self.failed(call.error)
        if self._metrics is not None:
            self._metrics.called(call)

    def _sender(self, call: Call) -> Mapping[str, Any]:
        """Returns the worker and the incarnation (start of the worker) that a request names, for
        the log of calls.
        """
        number = getattr(call.request, "incarnation", 0)
        worker = str(getattr(call.request, "worker", ""))[:80] or self._workers.get(number, "")
        if number and not worker:
            with suppress(LeagueError), self.league.store.read() as reader:  # it may be closed
                worker = self._workers[number] = self.league.incarnation(reader, number).worker
        return {key: value for key, value in (("worker", worker), ("incarnation", number)) if value}


def _free_bytes(path: Path) -> int | None:
    """Returns the bytes that this user may still write to the disk, None if unknown."""
    try:
        return shutil.disk_usage(path.parent).free
    except OSError:
        return None
