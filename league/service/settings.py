"""Settings of how the services are watched and stopped."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from league.settings.base import Settings


class OperationsSettings(Settings):
    """How the matchmaker and the evaluator tell what they do, and how they stop."""

    matchmaker_metrics_port: int = Field(default=0, ge=0, le=65535)
    """Port of the matchmaker's Prometheus metrics (http://127.0.0.1:PORT/metrics); 0 for none."""

    evaluator_metrics_port: int = Field(default=0, ge=0, le=65535)
    """Port of the evaluator's Prometheus metrics; 0 for none."""

    metrics_host: str = Field(default="127.0.0.1", min_length=1, max_length=255)
    """Address of both ports. Metrics hold no secrets, but whoever reaches the port reads them."""

    log_format: Literal["human", "json"] = "human"
    """Log lines for people, or one JSON object a line for programs."""

    log_calls: bool = False
    """Whether every call gets a line in the log (method, code, seconds, peer, worker, request
    id).
    """

    slow_call_seconds: float = Field(default=1.0, gt=0.0, le=3600.0)
    """A call that takes longer gets a line in any case (seconds)."""

    least_free_megabytes: float = Field(default=64.0, ge=0.0, le=1e9)
    """Space (MB) on the disk of the league's log below which the matchmaker's health is
    NOT_SERVING.
    """

    drain_seconds: float = Field(default=2.0, ge=0.0, le=3600.0)
    """Longest wait, after SIGTERM, for calls that run to end (seconds)."""
