"""Limits the calls of each peer by a token bucket, which fills at a steady rate."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache

from league.errors import Busy
from league.security.settings import is_loopback

CALLS_PER_SECOND = 1000.0
"""Calls that a peer may make on average. A worker with a thousand matches makes some ten calls a
second.
"""
CALLS_AT_ONCE = 2000
"""Calls that a peer may make in a burst before `CALLS_PER_SECOND` limits it."""
MOST_PEERS = 10_000


def peer_host(peer: str) -> str:
    """Returns the address in gRPC's name of a peer: "ipv4:10.0.0.5:4711" -> "10.0.0.5"."""
    kind, _, address = peer.partition(":")
    if kind not in ("ipv4", "ipv6"):
        return peer
    return address.rpartition(":")[0].replace("%5B", "").replace("%5D", "").strip("[]")


@lru_cache(MOST_PEERS)  # parsing an address takes longer than the rest of counting a call
def _key(peer: str) -> str:
    host = peer_host(peer)
    return peer if is_loopback(host) else host


class RateLimiter:
    """Keeps a token bucket for each other machine, and for each connection from this machine.

    Args:
        per_second: calls a second that a peer may make on average.
        burst: calls that a peer may make at once.
    """

    def __init__(
        self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = per_second, float(max(1, burst)), clock
        self._lock = threading.Lock()
        # key -> (calls left, time of the last call). The peer that called last comes last.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        """Returns the number of buckets that it keeps."""
        return len(self._buckets)

    def take(self, peer: str) -> None:
        """Counts a call of a peer. After too many calls it raises `Busy`, which says when to call
        again.
        """
        key, now = _key(peer), self._clock()
        with self._lock:
            left, at = self._buckets.pop(key, (self._burst, now))
            left = min(self._burst, left + max(0.0, now - at) * self._rate)
            self._buckets[key] = (left - (left >= 1.0), now)
            if len(self._buckets) > MOST_PEERS:
                self._buckets.popitem(last=False)
        if left < 1.0:
            wait = (1.0 - left) / self._rate
            raise Busy(
                f"{key} makes more than {self._rate:g} calls a second: come back in {wait:.3g} s, "
                "or ask for more in one call",
                retry_seconds=wait,
            )
