"""Serves Prometheus metrics on a separate port: metrics of a service's calls, and of further
collectors that the service adds.

Names begin with ``kumite_`` and end with the unit. This module is loaded only if a port is asked
for.
"""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    start_http_server,
)
from prometheus_client.registry import Collector

from league.errors import Refused
from league.service.interceptor import Call

HOST = "127.0.0.1"
"""Only this machine can reach the metrics, because they have no access control."""
SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Upper bounds of the histograms' buckets."""


class CallMetrics:
    """Observes calls, counts them by method and gRPC code, and measures their time."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Counter(
            "kumite_calls", "Calls, by method and gRPC code.", ["method", "code"], registry=registry
        )
        self._seconds = Histogram(
            "kumite_call_seconds",
            "Time from a call's arrival in a thread to its reply (streams: to their end).",
            ["method"],
            buckets=SECONDS,
            registry=registry,
        )

    def __call__(self, call: Call) -> None:
        self._calls.labels(call.method, call.code).inc()
        self._seconds.labels(call.method).observe(call.seconds)


class MetricsPort:
    """Serves collectors over HTTP until it is closed. Closing it twice is harmless. Raises
    `Refused` if the port is taken.
    """

    def __init__(self, port: int, *collectors: Collector) -> None:
        disable_created_metrics()
        registry = CollectorRegistry()
        for collector in collectors:
            registry.register(collector)
        try:
            self._server, self._thread = start_http_server(port, HOST, registry)
        except OSError as error:
            raise Refused(
                f"metrics can't be served at {HOST}:{port} ({error.strerror}): choose another "
                "metrics port"
            ) from None

    def close(self) -> None:
        """Closes the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
