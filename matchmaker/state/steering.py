"""Collects operators' changes of a running league from the log's events."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping

from league.players import Event
from league.status import MixChange, Pause

EVENTS = ("mix_changed", "mix_reset", "learners_paused", "learners_resumed")
"""Kinds of events that `Steering` reads."""
Mixes = dict[str, dict[str, float]]


def change_of(event: Event) -> MixChange:
    """Reads an operator's change of a mix from its event."""
    data = json.loads(event.data_json)
    return MixChange(
        mix=data["mix"], number=event.position, at=event.at, by=data["by"], weights=data["weights"]
    )


class Steering:
    """Keeps operators' changes of the mixes, and their pause of the learners.

    Attributes:
        number: log position of the newest change of any mix, 0 without a change.
        changes: the newest change of each mix.
        drawn: for each changed mix, how many matches were drawn from it before its newest change,
            by (player, category).
        pause: the present pause, or None.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.number = 0
        self.changes: dict[str, MixChange] = {}
        self.drawn: dict[str, Counter[tuple[str, str]]] = {}
        self.pause: Pause | None = None
        self._weights: Mixes = {}
        self._configured: Mixes = {}
        for event in events:
            self.take(event)

    def take(self, event: Event) -> None:
        """Applies an event of a kind in `EVENTS`."""
        data = json.loads(event.data_json)
        if event.kind == "learners_paused":
            self.pause = Pause(by=data["by"], at=event.at)
        elif event.kind == "learners_resumed":
            self.pause = None
        elif event.kind == "mix_reset":
            self.number = event.position
            for by_mix in (self.changes, self.drawn, self._weights, self._configured):
                by_mix.pop(data["mix"], None)
        else:
            change, rows = change_of(event), data["drawn"]
            self.number, self.changes[change.mix] = event.position, change
            self.drawn[change.mix] = Counter({(name, category): n for name, category, n in rows})
            self._weights.setdefault(change.mix, {}).update(change.weights)
            self._configured[change.mix] = data["configured"]

    def outdated(self, configured: Mapping[str, Mapping[str, float]]) -> list[str]:
        """Returns the mixes that an operator has changed and that the settings have redefined
        since.
        """
        return [name for name, mix in self._configured.items() if mix != configured.get(name)]

    def mixes(self, configured: Mapping[str, Mapping[str, float]]) -> Mixes:
        """Applies all changes to the mixes of the settings. A changed weight of 0 removes the
        category.
        """
        return {
            name: {
                category: weight
                for category, weight in {**mix, **self._weights.get(name, {})}.items()
                if weight or category not in self._weights.get(name, {})
            }
            for name, mix in configured.items()
        }
