"""Collects from the log's events which workers are in quarantine, and which workers have results
that contradict each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from league.players import Event

EVENTS = ("worker_quarantined", "worker_released", "workers_disagree")
"""Kinds of events that `Quarantines` reads."""


class Quarantines:
    """Keeps the workers in quarantine, and the workers whose results contradict another worker's
    results.

    Attributes:
        out: for each worker in quarantine, the reason.
        torn: for each worker whose results contradict another worker's, the text of the event that
            says so.
        watched_after: for each released worker, the position of the event that released it. The
            worker's results after this event are compared with other workers' results again.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.out: dict[str, str] = {}
        self.torn: dict[str, str] = {}
        self.watched_after: dict[str, int] = {}
        self._without: dict[str, frozenset[int]] = {}
        for event in events:
            self.take(event)

    @property
    def without(self) -> frozenset[int]:
        """Returns the incarnations (starts of workers) whose clean results (both players frozen)
        don't count.
        """
        return frozenset().union(*self._without.values())

    def take(self, event: Event) -> None:
        """Applies an event of a kind in `EVENTS`."""
        data = json.loads(event.data_json)
        if event.kind == "workers_disagree":
            self.torn |= dict.fromkeys(data["workers"], event.text)
            return
        worker = data["worker"]
        for name in [name for name, text in self.torn.items() if text == self.torn.get(worker)]:
            del self.torn[name]
        if event.kind == "worker_quarantined":
            self.out[worker] = data["reason"]
            before = self._without.get(worker, frozenset())
            self._without[worker] = before.union(data["incarnations"])
        else:
            self.out.pop(worker, None)
            self.watched_after[worker] = event.position
            if not data["repaired"]:
                self._without.pop(worker, None)

    def sentence(self, worker: str) -> str:
        """Returns a sentence that says why a worker in quarantine gets no matches, or "" for other
        workers.
        """
        if worker not in self.out:
            return ""
        return (
            f"{worker} is in quarantine ({self.out[worker]}): it gets no matches, and its results "
            f"don't count, until `bin/league quarantine --worker {worker} --release`"
        )
