"""Health as orchestrators ask for it (grpc.health.v1), with the reason in words for people."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from grpc_health.v1 import health, health_pb2

_Status = health_pb2.HealthCheckResponse
_log = logging.getLogger(__name__)


class Health:
    """SERVING from the start; `set` changes it and logs each change once.

    `reason` says why it is not serving, "" while it is.
    """

    def __init__(self, services: Sequence[str]) -> None:
        self._names = ("", *services)
        self.servicer = health.HealthServicer()
        self._lock = threading.Lock()
        self.reason = ""
        for name in self._names:
            self.servicer.set(name, _Status.SERVING)

    def set(self, reason: str) -> None:
        """Stops serving because of `reason`, or serves again when it is ""."""
        with self._lock:
            before, self.reason = self.reason, reason
            if bool(before) == bool(reason):
                return
            for name in self._names:
                self.servicer.set(name, _Status.NOT_SERVING if reason else _Status.SERVING)
        if reason:
            _log.error("health is NOT_SERVING: %s", reason)
        else:
            _log.info("health is SERVING again")

    def close(self) -> None:
        """NOT_SERVING for good: the service stops."""
        with self._lock:
            self.reason = self.reason or "it is stopping"
        self.servicer.enter_graceful_shutdown()
