"""Folds operators' changes of a running league."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

from league.players import Event
from league.status import MixChange

EVENTS = ("mix_changed",)
"""Kinds of events that `Steering` reads."""
Mixes = dict[str, dict[str, float]]


def change_of(event: Event) -> MixChange:
    """Returns the change that an event `mix_changed` records."""
    data = json.loads(event.data_json)
    return MixChange(
        mix=data["mix"], number=event.position, at=event.at, by=data["by"], weights=data["weights"]
    )


class Steering:
    """Keeps operators' changes of the mixes.

    Attributes:
        number: position of the newest change in the log, 0 without a change.
        changes: the newest change of each mix.
        drawn: matches that each changed mix had drawn before, by (player, category).
    """

    def __init__(self) -> None:
        self.number = 0
        self.changes: dict[str, MixChange] = {}
        self.drawn: dict[str, Counter[tuple[str, str]]] = {}
        self._weights: Mixes = {}

    def take(self, event: Event) -> None:
        """Folds an event of `EVENTS`."""
        change = change_of(event)
        self.number, self.changes[change.mix] = event.position, change
        self._weights.setdefault(change.mix, {}).update(change.weights)
        rows = json.loads(event.data_json)["drawn"]
        self.drawn[change.mix] = Counter({(name, category): n for name, category, n in rows})

    def mixes(self, configured: Mapping[str, Mapping[str, float]]) -> Mixes:
        """Returns the mixes of the settings with all changes. A weight of 0 removes a category."""
        return {
            name: {
                category: weight
                for category, weight in {**mix, **self._weights.get(name, {})}.items()
                if weight or category not in self._weights.get(name, {})
            }
            for name, mix in configured.items()
        }
