"""The evaluator's Prometheus metrics: its calls, and the progress of its gauntlets."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from evaluator.runner import Evaluator
from league.service.prometheus import CallMetrics

GAUGES = {
    "snapshots_waiting": ("waiting", "Snapshots whose gauntlet has not begun."),
    "matches_done": ("matches_done", "Matches of the present gauntlet that are reported."),
    "matches_total": ("matches_total", "Matches that the present gauntlet has, 0 while idle."),
    "matches_per_second": ("matches_per_second", "Speed in the present gauntlet."),
}
"""Fields of the evaluator's progress by metric."""


class EvaluatorMetrics(Collector):
    """Counts calls (`called` observes them); the evaluator's progress is read on each scrape."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._registry = CollectorRegistry()
        self.called = CallMetrics(self._registry)

    def collect(self) -> Iterator[Metric]:
        yield from self._registry.collect()
        progress = self._evaluator.progress
        for name, (field, what) in GAUGES.items():
            value = float(getattr(progress, field))
            yield GaugeMetricFamily(f"kumite_evaluator_{name}", what, value=value)
        yield CounterMetricFamily(
            "kumite_evaluator_gauntlets",
            "Gauntlets finished in this run folder, over all starts.",
            value=float(self._evaluator.queue.gauntlets_done),
        )
