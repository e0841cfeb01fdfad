"""Group commit: requests of several threads share one commit, in the order they came.

A sync of the disk takes milliseconds, whatever is in it. The thread whose request finds nobody at
work leads: it commits all that has come until then, its own first, and hands over to the next one
that waits. Few callers never wait for more to come. In a crowd who leads waits a moment for others,
as PostgreSQL does by commit_delay and commit_siblings: a commit costs Python's lock, a dozen times
over, however many share it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from matchmaker.store.base import Transaction

CROWD = 3
"""Requests of one commit behind which the next waits for more: clients that come one by one make
fewer.
"""
PAUSE_SECONDS = 0.002


class Request:
    """What one thread wants done in a transaction, and how it ended."""

    def __init__(self, effect: Callable[[Transaction], Any], request_id: str = "") -> None:
        self.effect, self.request_id = effect, request_id
        self.result: Any = None
        self.error: BaseException | None = None
        self.leads = False
        # Held until it is woken. An Event would be made of three locks, and a thousand clients make
        # a thousand requests a second.
        self._asleep = threading.Lock()
        self._asleep.acquire()

    def wait(self) -> None:
        """Until `wake`, which is called once."""
        self._asleep.acquire()

    def wake(self) -> None:
        self._asleep.release()

    def outcome(self) -> Any:
        """Raises what its effect, or the commit, raised."""
        if self.error is not None:
            raise self.error
        return self.result


class Group:
    """Commits together what several threads want.

    Args:
        commit: runs requests in one transaction, and leaves each with its outcome; it raises
        nothing. pause: lets others come, in a crowd.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Request]], None],
        pause: Callable[[], None] = lambda: time.sleep(PAUSE_SECONDS),
    ) -> None:
        self._commit, self._pause = commit, pause
        self._is_crowded = False
        self._lock = threading.Lock()
        self._waiting: list[Request] = []
        self._is_led = False

    def submit(self, effect: Callable[[Transaction], Any], request_id: str = "") -> Any:
        """What `effect` returns, once it is on disk; `request_id` is the one whose reply it asks
        for.
        """
        request = Request(effect, request_id)
        with self._lock:
            self._waiting.append(request)
            request.leads, self._is_led = not self._is_led, True
        if not request.leads:
            request.wait()
        if request.leads:
            self._lead(request)
        return request.outcome()

    def _lead(self, own: Request) -> None:
        if self._is_crowded:
            self._pause()
        with self._lock:
            group, self._waiting = self._waiting, []
            self._is_crowded = len(group) >= CROWD
        try:
            self._commit(group)
        finally:
            with self._lock:
                following = self._waiting[:1]
                self._is_led = bool(following)
            for request in following:
                request.leads = True
            for request in (*following, *group):
                if request is not own:  # who leads is awake
                    request.wake()
