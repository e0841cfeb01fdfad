"""Provides the league's Prometheus metrics: counters of calls, and values read from the log."""

from __future__ import annotations

import time
from collections import Counter as Counts
from collections.abc import Iterator, Sequence
from importlib.metadata import version as version_of

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from league.errors import LeagueError
from league.players import Verdict
from league.service.health import Health
from league.service.prometheus import SECONDS, CallMetrics
from matchmaker import limits
from matchmaker.state.league import League


class LeagueMetrics(Collector):
    """Counts calls, verdicts, expired leases and commits. Other values are read on demand."""

    def __init__(self, league: League, health: Health) -> None:
        self._league, self._health = league, health
        self._started_at = time.time()
        self._registry = CollectorRegistry()
        self.called = CallMetrics(self._registry)
        self._results = Counter(
            "kumite_results",
            "Reported results by verdict (accepted, duplicate, refused) and reason of refusal.",
            ["verdict", "reason"],
            registry=self._registry,
        )
        text = "Leases that ended without progress."
        self.expired = Counter("kumite_leases_expired", text, registry=self._registry).inc
        self._commits = Histogram(
            "kumite_commit_seconds",
            "Time that a commit took until it was on disk.",
            buckets=SECONDS,
            registry=self._registry,
        )
        league.store.on_commit = self._commits.observe
        league.on_verdicts = self.reported

    def reported(self, verdicts: Sequence[Verdict]) -> None:
        """Counts verdicts on results. A worker's repeated call is not counted again."""
        for (verdict, reason), count in Counts(map(_labels, verdicts)).items():
            self._results.labels(verdict, reason).inc(count)

    def collect(self) -> Iterator[Metric]:
        yield from self._registry.collect()
        serves, text = (float(not self._health.reason), "1 while the service is SERVING, else 0.")
        yield GaugeMetricFamily("kumite_health", text, value=serves)
        started, text = self._started_at, "Unix time of its start."
        yield GaugeMetricFamily("kumite_start_time_seconds", text, value=started)
        version = GaugeMetricFamily("kumite_version_info", "The version.", labels=["version"])
        version.add_metric([version_of("kumite")], 1.0)
        yield version
        try:
            yield from self._of_league()
        except LeagueError:
            return  # memory is being rebuilt, or the store is closing

    def _of_league(self) -> Iterator[Metric]:
        league, view, vitals = self._league, self._league.view, self._league.vitals()
        with league.store.read() as reader:
            leases = sum(reader.open_counts().values())
            beats = [reader.beat(row.number) for row in reader.newest_incarnations()]
        now, limit = league.clock.now(), limits.LEASE_SECONDS
        lively = sum(beat is not None and now - beat.at < limit for beat in beats)
        with view.checked().lock:
            out, torn = len(view.quarantines.out), len(view.quarantines.torn)
            players = Counts((player.kind, player.state) for player in view.players.values())
            result, event, ordinal = view.log_position, view.event_position, view.ordinal
        for name, text, value in (
            ("store_bytes", "Size of the league's files.", vitals.store_bytes),
            ("disk_free_bytes", "Space left on the log's disk.", max(0, vitals.disk_free_bytes)),
            ("leases_open", "Matches that are assigned and not ended.", leases),
            ("workers", "Workers that reported within the last lease time.", lively),
            ("workers_quarantined", "Workers that get no matches.", out),
            ("workers_disagreeing", "Workers of which one plays another game.", torn),
            ("log_position", "Position of the newest result.", result),
            ("event_position", "Position of the newest event.", event),
            ("assignments", "Matches assigned since the league began.", ordinal),
        ):
            yield GaugeMetricFamily(f"kumite_{name}", text, value=value)
        family = GaugeMetricFamily("kumite_players", "Players.", labels=["kind", "state"])
        for (kind, state), count in sorted(players.items()):
            family.add_metric([kind, state], count)
        yield family


def _labels(verdict: Verdict) -> tuple[str, str]:
    if verdict.accepted:
        return "duplicate" if verdict.duplicate else "accepted", ""
    return "refused", verdict.refusal.value
