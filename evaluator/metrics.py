"""The evaluator's own Prometheus metrics: its calls, and how far its gauntlets are."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from evaluator.worker import Evaluator
from league.service.calls import Call
from league.service.prometheus import CallMetrics


class EvaluatorMetrics(Collector):
    """Counts calls; what the worker does is read when it is asked for."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._registry = CollectorRegistry()
        self._calls = CallMetrics(self._registry)

    def called(self, call: Call) -> None:
        """As an observer of the door."""
        self._calls(call)

    def collect(self) -> Iterator[Metric]:
        yield from self._registry.collect()
        standing = self._evaluator.standing
        for name, what, value in (
            ("snapshots_waiting", "Snapshots whose gauntlet has not begun.", standing.waiting),
            (
                "matches_done",
                "Matches of the present gauntlet that are reported.",
                standing.matches_done,
            ),
            (
                "matches_total",
                "Matches that the present gauntlet has, 0 while idle.",
                standing.matches_total,
            ),
            ("matches_per_second", "Speed in the present gauntlet.", standing.matches_per_second),
        ):
            yield GaugeMetricFamily(f"kumite_evaluator_{name}", what, value=float(value))
        yield CounterMetricFamily(
            "kumite_evaluator_gauntlets",
            "Gauntlets finished in this run folder, over all starts.",
            value=float(self._evaluator.queue.gauntlets_done),
        )
