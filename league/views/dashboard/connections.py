"""Closes idle connections of browsers, sooner if many connections are open."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import cache

from uvicorn.protocols.http.h11_impl import H11Protocol

from league.service.server import most_connections

REQUEST_SECONDS = 20.0
"""Longest time for a request to arrive. uvicorn's own limit only applies until the first byte of a
request.
"""
BACKLOG = 64
"""Largest number of connections that wait to be accepted, and that the server accepts at a time."""
_most = cache(most_connections)


class BrowserConnection(H11Protocol):
    """Handles a connection of a browser or a proxy, until it becomes a websocket."""

    def connection_made(self, transport: asyncio.Transport) -> None:
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
        """Whether no complete request of this connection waits for its response."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def _close_idle(self) -> None:
        if self not in self.connections:  # it was closed, or became a websocket
            return
        left = self._since + REQUEST_SECONDS - self.loop.time()
        if self._is_idle and left <= 0:
            self.transport.abort()
        else:
            self.loop.call_later(left if left > 0 else REQUEST_SECONDS, self._close_idle)

    def _make_room(self) -> None:
        """Closes the longest idle connection of the peer that has the most idle connections."""
        all_idle = [peer for peer in self.connections
                    if isinstance(peer, BrowserConnection) and peer._is_idle]  # fmt: skip
        [(crowd, _)] = Counter(connection._peer for connection in all_idle).most_common(1)
        crowded = [connection for connection in all_idle if connection._peer == crowd]
        min(crowded, key=lambda connection: connection._since).transport.abort()
