"""Keeps the league's state in memory, as it follows from the committed log."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from league.errors import Unavailable
from league.players import Book, Event, Player
from league.stages import CurriculumStatus, Place, Stage, StageRequest
from league.stats.ratings import RatingTable
from matchmaker import limits
from matchmaker.state import analysis
from matchmaker.state.books import RATING_EVENTS, Books
from matchmaker.state.evaluations import EVENTS as EVALUATIONS
from matchmaker.state.evaluations import Evaluations
from matchmaker.state.exploiters import EVENTS as EXPLOITER_EVENTS
from matchmaker.state.exploiters import ExploiterState
from matchmaker.state.folding import Drawn, Fold
from matchmaker.state.population import EVENTS as POPULATION
from matchmaker.state.population import PopulationState
from matchmaker.state.quarantine import EVENTS as QUARANTINES
from matchmaker.state.quarantine import Quarantines
from matchmaker.state.steering import EVENTS as STEERING
from matchmaker.state.steering import Steering
from matchmaker.store.pairings import Pairings, pairing_key
from matchmaker.store.rows import GATE, AssignmentRow, IncarnationRow, ResultRow
from matchmaker.store.transaction import Reader

EVENTS = (
    *("stage", "stage_asked", analysis.EVENT),
    *(*EXPLOITER_EVENTS, *QUARANTINES, *EVALUATIONS, *STEERING, *POPULATION),
)
"""Kinds of events that memory keeps, apart from the events that ratings depend on."""


GROWTH = frozenset({"player_registered", "player_retired", "incarnation_opened"})
"""Kinds of events that come all the time in a league with many learners. A draw table that is
expensive to compute is reused after them.
"""


class KnownDraw(NamedTuple):
    """Keeps a table of draw probabilities with its number in the log. `at` is the time in Unix
    seconds at which it was computed, `lasts` the number of seconds for which it may be reused, and
    `event_position` the position of the newest event at that time.
    """

    number: int
    table: Any
    event_position: int
    at: float
    lasts: float


class LeagueView:
    """Holds the state of the league. Only the store's commits change it. Readers must hold `lock`.

    Attributes:
        event_position: log position of the newest event.
        other_position: log position of the newest event other than a result.
        urgent_position: log position of the newest event that makes all draw tables outdated at
            once: neither a result nor one of `GROWTH`.
        durable_position: log position of the newest event that is on disk.
        stale: whether the state in memory lacks a commit.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.watchers: list[Callable[[], object]] = []
        self.stale = False
        self.players: dict[str, Player] = {}
        self.fold = Fold()
        self.draws: dict[tuple[str, str], KnownDraw] = {}
        self.failed_in_a_row: dict[str, int] = {}  # by rival, since the matchmaker started
        self.event_position = self.other_position = self.urgent_position = 0
        self.durable_position = self.ordinal = 0
        self._forget_events()

    def _forget_events(self) -> None:
        self.curricula: dict[str, CurriculumStatus] = {}
        self.requests: dict[str, StageRequest] = {}
        self.analysis = analysis.NO_ANALYSIS
        self.exploiters = ExploiterState()
        self.quarantines = Quarantines()
        self.evaluations = Evaluations()
        self.steering = Steering()
        self.population = PopulationState()
        self.rules_position = 0  # of the event that introduced the present rules of the game

    @property
    def tables(self) -> dict[Book, RatingTable]:
        """Returns ratings and payoffs of each book (kind of match)."""
        return self.fold.books.tables

    @property
    def books(self) -> Books:
        return self.fold.books

    @property
    def log_position(self) -> int:
        """Returns the position of the newest result."""
        return self.fold.books.log_position

    @property
    def drawn(self) -> Drawn:
        """Returns how many matches have been drawn so far, by (player, mix, category)."""
        return self.fold.drawn

    @property
    def paired(self) -> Pairings:
        """Returns how many matches between players paired by name were ever leased, by book (kind
        of match) and players.
        """
        return self.fold.paired

    def is_of_other_rules(self, incarnation: IncarnationRow) -> bool:
        """Returns whether an incarnation was opened before the rules of the game changed."""
        return incarnation.event_position < self.rules_position

    def checked(self) -> LeagueView:
        """Returns the view itself, or raises `Unavailable` if the view lacks a commit."""
        if self.stale:
            raise Unavailable("the matchmaker's memory is being rebuilt from its log: ask again")
        return self

    def load(self, reader: Reader) -> None:
        """Loads the whole state from the log."""
        fold = Fold.current(reader)
        with self.lock:
            self.players = {player.name: player for player in reader.players()}
            self.fold = fold
            self._forget_events()
            for event in reader.events_of(*EVENTS):
                self._take(event)
            _, self.event_position, self.ordinal = reader.positions()
            self.other_position = self.urgent_position = self.event_position
            self.durable_position = self.event_position
            self.draws.clear()
            self.stale = False

    def load_fold(self, reader: Reader) -> None:
        """Loads ratings, payoffs and numbers of drawn matches from the log again."""
        fold = Fold.current(reader)
        with self.lock:
            self.fold = fold

    def recount(self, reader: Reader) -> None:
        """Counts the results of clean matches (both players frozen) again after a worker's
        quarantine began or ended.
        """
        with self.lock:
            self.fold = replace(self.fold, books=self.fold.books.recounted(reader))

    def set_players(self, players: Iterable[Player]) -> None:
        with self.lock:
            self.players.update({player.name: player for player in players})

    def last_draw(self, learner: str, mix: str) -> KnownDraw | None:
        """Returns a learner's newest table of draw probabilities, unless an event other than a
        result has made it outdated.
        """
        last = self.draws.get((learner, mix))
        if last is None:
            return None
        is_slow = last.lasts > limits.DRAW_SECONDS
        changed_at = self.urgent_position if is_slow else self.other_position
        return last if last.event_position >= changed_at else None

    def add_assignments(self, player: str, rows: Sequence[AssignmentRow]) -> None:
        with self.lock:
            for row in rows:
                if row.replaces:
                    continue
                if row.mix:
                    self.fold.drawn[player, row.mix, row.category] += 1
                elif row.category != GATE:
                    self.fold.paired[pairing_key(row.book, row.seat0, row.seat1)] += 1
            self.ordinal = self.fold.ordinal = rows[-1].ordinal

    def add_results(self, rows: Sequence[ResultRow]) -> None:
        with self.lock:
            self.fold.books.add_results(rows)
            self.event_position = max(self.event_position, rows[-1].event_position)

    def add_event(self, event: Event) -> None:
        """Applies an event other than a result to the state."""
        with self.lock:
            if event.kind in RATING_EVENTS:
                self.fold.books.apply(event)
            self._take(event)
            self.event_position = self.other_position = max(self.event_position, event.position)
            if event.kind not in GROWTH:
                self.urgent_position = self.event_position

    def _take(self, event: Event) -> None:
        if event.kind in EVALUATIONS:
            self.evaluations.take(event)
        if event.kind in EXPLOITER_EVENTS:
            self.exploiters.take(event)
        elif event.kind in QUARANTINES:
            self.quarantines.take(event)
            self.fold.books.without = self.quarantines.without
        elif event.kind in POPULATION:
            self.population.take(event)
        elif event.kind in STEERING:
            self.steering.take(event)
        elif event.kind == analysis.EVENT:
            self.analysis = analysis.analysis_of(event)
        elif event.kind == "rules_changed":
            self.analysis, self.rules_position = analysis.NO_ANALYSIS, event.position
        elif event.kind == "stage_asked":
            data = json.loads(event.data_json)
            self.requests[data["player"]] = StageRequest(
                number=event.position, stage=data["stage"], by=data["by"], at=event.at
            )
        elif event.kind == "stage":
            data = json.loads(event.data_json)
            if "stages" in data:  # a learner without a curriculum reports only its mix
                self.curricula[data["player"]] = CurriculumStatus(
                    player=data["player"],
                    stages=tuple(Stage(**stage) for stage in data["stages"]),
                    place=Place(**data["place"]),
                )

    def wake(self) -> None:
        """Wakes the watchers, which stream events and reports, after a commit."""
        self.durable_position = self.event_position
        for watcher in tuple(self.watchers):
            watcher()
