"""The matchmaker's typed client without a socket: every call goes to the servicer in this
process.
"""

from __future__ import annotations

from typing import Any

from league.rpc.client import MatchmakerClient
from matchmaker.api.service import MatchmakerService


class DirectClient(MatchmakerClient):
    """Messages are made and read as over a socket; errors come as they were raised."""

    def __init__(self, service: MatchmakerService) -> None:
        self._service = service

    def close(self) -> None:
        """There is nothing to close."""

    def _call(self, method: str, request: Any) -> Any:
        return getattr(self._service, method)(request, None)
