"""Serves health checks for orchestrators (grpc.health.v1), and logs why a service is unhealthy."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

from grpc_health.v1 import health_pb2 as h
from grpc_health.v1.health_pb2_grpc import HealthServicer

from league.errors import NotFound

LOOK_SECONDS = 0.2
"""Interval at which a `Watch` stream checks for a change."""
_log = logging.getLogger(__name__)


class Health(HealthServicer):
    """Reports SERVING from the start. `set` changes the state and logs each change once.

    `reason` says why the service is not serving. It is "" while it serves.
    """

    def __init__(self, services: Sequence[str]) -> None:
        self._names = ("", *services)
        self._lock = threading.Lock()
        self._is_closed = False
        self.reason = ""

    def set(self, reason: str) -> None:
        """Stops serving because of `reason`, or serves again if it is ""."""
        with self._lock:
            before = self.reason
            if not self._is_closed:
                self.reason = reason
            if bool(before) == bool(self.reason):
                return
        if reason:
            _log.error("health is NOT_SERVING: %s", reason)
        else:
            _log.info("health is SERVING again")

    def close(self) -> None:
        """Reports NOT_SERVING from now on, because the service stops."""
        with self._lock:
            self._is_closed = True
            self.reason = self.reason or "it is stopping"

    def Check(self, request: h.HealthCheckRequest, context: Any) -> h.HealthCheckResponse:
        if request.service not in self._names:
            raise NotFound(
                f"there is no service {request.service[:200]!r} here: leave the name empty"
            )
        return self._reply(request.service)

    def List(self, request: h.HealthListRequest, context: Any) -> h.HealthListResponse:
        return h.HealthListResponse(statuses={name: self._reply(name) for name in self._names})

    async def Watch(
        self, request: h.HealthCheckRequest, context: Any
    ) -> AsyncIterator[h.HealthCheckResponse]:
        shown = None
        while True:
            reply = self._reply(request.service)
            if reply != shown:
                yield reply
            shown = reply
            await asyncio.sleep(LOOK_SECONDS)

    def _reply(self, service: str) -> h.HealthCheckResponse:
        if service not in self._names:
            return h.HealthCheckResponse(status=h.HealthCheckResponse.SERVICE_UNKNOWN)
        if self.reason:
            return h.HealthCheckResponse(status=h.HealthCheckResponse.NOT_SERVING)
        return h.HealthCheckResponse(status=h.HealthCheckResponse.SERVING)
