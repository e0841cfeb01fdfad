"""The league at one place of its log after another, for questions about draws of the past."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from league.players import Event, Player
from matchmaker.state.analysis import EVENT, NO_ANALYSIS, analysis_of
from matchmaker.state.books import RATING_EVENTS, Books
from matchmaker.state.exploiters import EVENTS as EXPLOITER_EVENTS
from matchmaker.state.exploiters import ExploiterState
from matchmaker.store.copies import PLAYER_EVENTS, PlayerStates, take_player_event
from matchmaker.store.transaction import Reader


class LogReplay:
    """Players, books, the analysis and exploiters up to an event of the log; it only moves forward.

    Results that a restart took back later don't count.
    """

    def __init__(self, reader: Reader) -> None:
        self.books = Books()
        self.analysis = NO_ANALYSIS
        self.exploiters = ExploiterState()
        self._states: PlayerStates = {}
        self._registered = {player.name: player for player in reader.players()}
        self._reader = reader
        self._player_events = deque(reader.events_of(*PLAYER_EVENTS))
        self._rating_events = deque(reader.events_of(*RATING_EVENTS))
        self._exploiter_events = deque(reader.events_of(*EXPLOITER_EVENTS))
        self._analysis_events = deque(reader.events_of(EVENT))

    @property
    def players(self) -> dict[str, Player]:
        """The players of that place, in order of registration, with their states."""
        return {
            name: replace(self._registered[name], state=state, milestone=is_milestone)
            for name, (state, is_milestone) in self._states.items()
        }

    def move_to(self, log_position: int, event_position: int) -> None:
        """Moves forward to a result and an event."""
        results = self._reader.results(self.books.log_position, log_position)
        self.books.fold(results, list(_until(self._rating_events, event_position)))
        for event in _until(self._player_events, event_position):
            take_player_event(self._states, event)
        for event in _until(self._exploiter_events, event_position):
            self.exploiters.take(event)
        for event in _until(self._analysis_events, event_position):
            self.analysis = analysis_of(event)


def _until(events: deque[Event], position: int) -> Iterator[Event]:
    while events and events[0].position <= position:
        yield events.popleft()
