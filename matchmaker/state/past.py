"""The league at one place of its log after another, so that what was drawn there can be drawn
again.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from league.players import Event
from matchmaker.sampling.draw import DrawTable, draw_table
from matchmaker.settings import MatchmakerSettings
from matchmaker.state.analysis import EVENT, NO_ANALYSIS, analysis_of
from matchmaker.state.books import MARK_KINDS, Books, marks_of
from matchmaker.state.exploiters import EVENTS as EXPLOITER_EVENTS
from matchmaker.state.exploiters import ExploiterState
from matchmaker.state.history import LOSSES, PLAYER_EVENTS, Moment, PastPlayers, results_at, until
from matchmaker.store.base import Reader
from matchmaker.store.rows import DrawRow, ResultRow

DRAWN = "a.mix != '' AND a.replaces = ''"
"""SQL: that an assignment was drawn from a mix, and not carried over a restart."""


class Past:
    """Players, books, near-copies and exploiters as the log had them up to a result and an event.

    It only moves on.
    """

    def __init__(self, reader: Reader) -> None:
        self.analysis = NO_ANALYSIS
        self.exploiters = ExploiterState()
        self._reader = reader
        self._people = PastPlayers(reader)
        self._of_people = _Waiting(reader.events_of(*PLAYER_EVENTS))
        self._of_exploiters = _Waiting(reader.events_of(*EXPLOITER_EVENTS))
        self._of_clusters = _Waiting(reader.events_of(EVENT))
        self._marks = marks_of(reader.events_of(*MARK_KINDS))
        self._losses = [row[0] for row in reader.select(LOSSES)]
        self._event_position = 0
        self._begin(0)

    def _begin(self, event_position: int) -> None:
        """The books from the first result on, with those counted that had not been taken back by
        then.
        """
        self.books, self._marked, self._ahead = Books(), 0, list[ResultRow]()
        self._rows = results_at(self._reader, Moment(sys.maxsize, event_position, math.inf))

    def move_to(self, row: DrawRow) -> None:
        """To where a draw was found, which is not before the last one."""
        event_position = row.event_position
        if any(self._event_position < loss <= event_position for loss in self._losses):
            self._begin(event_position)
        marks = [
            mark for mark in self._marks if self._marked < mark.event_position <= event_position
        ]
        self.books.follow(until(self._rows, row.log_position, self._ahead), marks)
        for event in self._of_people.until(event_position):
            self._people.take(event)
        for event in self._of_exploiters.until(event_position):
            self.exploiters.take(event)
        for event in self._of_clusters.until(event_position):
            self.analysis = analysis_of(event)
        self._marked = self._event_position = event_position

    def draw_table(self, settings: MatchmakerSettings, drawn: Mapping[str, Any]) -> DrawTable:
        """What the learner of a draw, by its mix of then, is given under other settings or the
        same.

        Args:
            drawn: the draw as the log keeps it (`DrawTable.body_json`, decoded).
        """
        return draw_table(
            settings,
            self._people.players[drawn["player"]],
            drawn["mix"],
            self._people.players,
            self.books.tables,
            self.analysis,
            self.exploiters,
        )


class _Waiting:
    """Events in the order of the log, each given out once."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._events = deque(events)

    def until(self, position: int) -> Iterator[Event]:
        while self._events and self._events[0].position <= position:
            yield self._events.popleft()


def evenly(places: Sequence[int], most: int) -> list[int]:
    """At most `most` of them, evenly spread, the first one among them."""
    step = max(1.0, len(places) / most)
    return [places[int(place * step)] for place in range(min(most, len(places)))]
