"""Defines the `[operations]` section: how the services are watched."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from league.settings.base import Settings


class OperationsSettings(Settings):
    """Metrics and logs of the matchmaker and the evaluator."""

    metrics_port: int = Field(default=0, ge=0, le=65534)
    """Port of the matchmaker's Prometheus metrics (http://127.0.0.1:PORT/metrics). The evaluator's
    metrics have the next port. 0 switches metrics off.
    """

    log_format: Literal["human", "json"] = "human"
    """Log lines for people, or one JSON object a line for programs."""

    log_calls: bool = False
    """Whether every call gets a line in the log: method, code, seconds, peer, worker, request."""
