"""Browsers' connections: those without a request are closed, sooner where many are open."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import cache

from uvicorn.protocols.http.h11_impl import H11Protocol

from league.service.server import most_connections

REQUEST_SECONDS = 20.0
"""Until a request must have arrived; uvicorn's own limit ends with the first byte of a request."""
BACKLOG = 64
"""Connections that wait until the pages can answer, and that are taken at a time."""
_most = cache(most_connections)


class BrowserConnection(H11Protocol):
    """A connection of a browser or of a proxy, until it becomes a websocket."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._peer = self.client[0] if self.client else ""
        self._since = self.loop.time()
        self.loop.call_later(REQUEST_SECONDS, self._close_idle)
        if len(self.connections) > _most():
            self._make_room()

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        super().on_response_complete()

    @property
    def _is_idle(self) -> bool:
        """Whether no complete request waits for its answer."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def _close_idle(self) -> None:
        if self not in self.connections:  # it is closed, or a websocket
            return
        left = self._since + REQUEST_SECONDS - self.loop.time()
        if self._is_idle and left <= 0:
            self.transport.abort()
        else:
            self.loop.call_later(left if left > 0 else REQUEST_SECONDS, self._close_idle)

    def _make_room(self) -> None:
        """Closes the oldest idle connection of the peer that has most of them."""
        all_idle = [one for one in self.connections
                    if isinstance(one, BrowserConnection) and one._is_idle]  # fmt: skip
        [(crowd, _)] = Counter(one._peer for one in all_idle).most_common(1)
        crowded = [one for one in all_idle if one._peer == crowd]
        min(crowded, key=lambda one: one._since).transport.abort()
