"""The league's own Prometheus metrics: counters that calls move, and a look at the log when they
are read.
"""

from __future__ import annotations

import time
from collections import Counter as Counts
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from league import __version__
from league.errors import LeagueError
from league.players import Verdict
from league.service.calls import Call
from league.service.health import Health
from league.service.prometheus import SECONDS, CallMetrics
from matchmaker.api.storage import file_bytes, free_bytes
from matchmaker.state.league import League


class LeagueMetrics(Collector):
    """Counts from `called`, `told`, `expired` and the store's commits; the rest is read when
    asked for.
    """

    def __init__(self, league: League, db: Path, health: Health) -> None:
        self._league, self._db, self._health = league, db, health
        self._started_at = time.time()
        self._registry = CollectorRegistry()
        self._calls = CallMetrics(self._registry)
        self._results = Counter(
            "kumite_results",
            "Reported results, by verdict (accepted, duplicate, refused) and why they were refused.",
            ["verdict", "reason"],
            registry=self._registry,
        )
        self._expired = Counter(
            "kumite_leases_expired", "Leases that ended without progress.", registry=self._registry
        )
        self._commits = Histogram(
            "kumite_commit_seconds",
            "Time that a commit took until it was on disk.",
            buckets=SECONDS,
            registry=self._registry,
        )
        league.store.on_commit = self._commits.observe
        league.on_verdicts = self.told

    def called(self, call: Call) -> None:
        """As an observer of the door."""
        self._calls(call)

    def told(self, verdicts: Sequence[Verdict]) -> None:
        """Verdicts on results that were told, once each however often a call is repeated."""
        for (verdict, reason), count in Counts(map(_labels, verdicts)).items():
            self._results.labels(verdict, reason).inc(count)

    def expired(self, leases: int) -> None:
        self._expired.inc(leases)

    def collect(self) -> Iterator[Metric]:
        yield from self._registry.collect()
        yield _gauge(
            "kumite_health",
            "1 while the service is SERVING, else 0.",
            float(not self._health.reason),
        )
        yield _gauge("kumite_start_time_seconds", "Unix time of its start.", self._started_at)
        yield _by(
            "kumite_version_info", "The version that serves.", ["version"], [([__version__], 1.0)]
        )
        yield from self._of_disk()
        try:
            yield from self._of_league()
        except LeagueError:
            # memory is behind the log, or the store is closing: the rest is told all the same
            return

    def _of_disk(self) -> Iterator[Metric]:
        wal = self._db.with_name(self._db.name + "-wal")
        sizes = [(["log"], float(file_bytes(self._db))), (["wal"], float(file_bytes(wal)))]
        yield _by("kumite_store_bytes", "Size of the league's files.", ["file"], sizes)
        yield _gauge(
            "kumite_disk_free_bytes",
            "Space left on the disk of the log.",
            float(free_bytes(self._db) or 0),
        )

    def _of_league(self) -> Iterator[Metric]:
        league, view = self._league, self._league.view
        with league.store.read() as reader:
            ((leases,),) = reader.select(
                "SELECT count(*) FROM assignments WHERE lease_state = 'open'"
            )
            workers = reader.newest_incarnations()
            beats = [reader.beat(row.number) for row in workers]
        now, limit = league.clock.now(), league.settings.lease_seconds
        lively = sum(beat is not None and now - beat.at < limit for beat in beats)
        with view.checked().lock:
            players = Counts(
                (player.kind.value, player.state.value) for player in view.players.values()
            )
            result, event, ordinal = view.log_position, view.event_position, view.ordinal
        yield _gauge("kumite_leases_open", "Matches that are handed out and not ended.", leases)
        yield _gauge("kumite_workers", "Workers that beat within the last lease time.", lively)
        yield _gauge("kumite_log_position", "Of the newest result.", result)
        yield _gauge("kumite_event_position", "Of the newest event.", event)
        yield _gauge("kumite_assignments", "Matches assigned since the league began.", ordinal)
        yield _by(
            "kumite_players",
            "Players, by kind and state.",
            ["kind", "state"],
            [(list(key), float(count)) for key, count in sorted(players.items())],
        )


def _labels(verdict: Verdict) -> tuple[str, str]:
    if verdict.accepted:
        return "duplicate" if verdict.duplicate else "accepted", ""
    return "refused", verdict.refusal.value


def _gauge(name: str, what: str, value: float) -> Metric:
    return GaugeMetricFamily(name, what, value=value)


def _by(
    name: str, what: str, labels: list[str], values: Iterable[tuple[list[str], float]]
) -> Metric:
    family = GaugeMetricFamily(name, what, labels=labels)
    for key, value in values:
        family.add_metric(key, value)
    return family
