"""Group commit: requests of several threads share one commit, in the order they came.

A sync of the disk takes milliseconds, whatever is in it. The thread whose request finds nobody at work
leads: it commits all that has come until then, its own first, and hands over to the next one that waits.
Nobody waits for more to come.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from matchmaker.store.base import Transaction


class Request:
    """What one thread wants done in a transaction, and how it ended."""

    def __init__(self, effect: Callable[[Transaction], Any], request_id: str = "") -> None:
        self.effect, self.request_id = effect, request_id
        self.result: Any = None
        self.error: BaseException | None = None
        self.leads = False
        # Held until it is woken. An Event would be made of three locks, and a thousand clients make a
        # thousand requests a second.
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
    """`commit` runs requests in one transaction, and leaves each with its outcome; it raises nothing."""

    def __init__(self, commit: Callable[[Sequence[Request]], None]) -> None:
        self._commit = commit
        self._lock = threading.Lock()
        self._waiting: list[Request] = []
        self._is_led = False

    def submit(self, effect: Callable[[Transaction], Any], request_id: str = "") -> Any:
        """What `effect` returns, once it is on disk; `request_id` is the one whose reply it asks for."""
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
        with self._lock:
            group, self._waiting = self._waiting, []
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
