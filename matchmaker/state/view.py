"""The league in memory: players, ratings, payoffs and shares, as the committed log gives them.

Loaded from the log at the start and updated after each commit. Nothing here is a source of truth.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence
from typing import Any

from league.errors import Unavailable
from league.players import Book, Event, Player
from league.stages import CurriculumStatus, Place, Stage, StageRequest
from league.stats.ratings import RatingTable
from matchmaker.state.analysis import EVENT, NO_ANALYSIS, Analysis, newest_analysis
from matchmaker.state.books import Books
from matchmaker.state.exploiters import EVENTS as EXPLOITER_EVENTS
from matchmaker.state.exploiters import ExploiterState
from matchmaker.state.folding import Drawn, Fold
from matchmaker.store.rows import AssignmentRow, ResultRow
from matchmaker.store.transaction import Reader


class LeagueView:
    """Callers hold `lock` while they read; only the store's commits change it.

    Attributes:
        fold: the books, the counts of draws and what they are folded from.
        curricula: what each player's learner reported last about its stages.
        requests: the newest stage request for each player, obeyed or not.
        analysis: near-copies, which share weight, and the snapshots that retire last.
        draws: by learner and mix the event position at which a draw table was computed, its number
            in the log, and the table.
        log_position: of the newest result.
        event_position: of the newest event.
        durable_position: of the newest event that watchers can read.
        ordinal: of the newest assignment.
        stale: whether memory lacks a commit, after an effect failed.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition()
        self.players: dict[str, Player] = {}
        self.fold = Fold()
        self.curricula: dict[str, CurriculumStatus] = {}
        self.requests: dict[str, StageRequest] = {}
        self.analysis = NO_ANALYSIS
        self.exploiters = ExploiterState()
        self.draws: dict[tuple[str, str], tuple[int, int, Any]] = {}
        self.log_position = 0
        self.event_position = 0
        self.durable_position = 0
        self.ordinal = 0
        self.stale = False

    @property
    def tables(self) -> dict[Book, RatingTable]:
        """Ratings and payoffs of each book."""
        return self.fold.books.tables

    @property
    def books(self) -> Books:
        return self.fold.books

    @property
    def drawn(self) -> Drawn:
        """Matches drawn so far by (player, mix, category)."""
        return self.fold.drawn

    def checked(self) -> LeagueView:
        """Itself for a reader; raises `Unavailable` while it is stale."""
        if self.stale:
            raise Unavailable("the matchmaker's memory is being rebuilt from its log: ask again")
        return self

    def load(self, reader: Reader) -> None:
        """Loads everything from the log."""
        fold = Fold.current(reader)
        with self.lock:
            self.players = {player.name: player for player in reader.players()}
            self.fold = fold
            self.log_position, self.event_position, self.ordinal = reader.positions()
            self.durable_position = self.event_position
            self.curricula, self.requests = stages_of(reader.events_of("stage", "stage_asked"))
            self.analysis = newest_analysis(reader.events_of(EVENT))
            self.exploiters = ExploiterState(reader.events_of(*EXPLOITER_EVENTS))
            self.draws.clear()
            self.stale = False

    def load_fold(self, reader: Reader) -> None:
        """Loads ratings, payoffs and shares from the log again."""
        fold = Fold.current(reader)
        with self.lock:
            self.fold = fold

    def set_players(self, players: Iterable[Player]) -> None:
        with self.lock:
            self.players.update({player.name: player for player in players})

    def set_curriculum(self, status: CurriculumStatus) -> None:
        with self.lock:
            self.curricula[status.player] = status

    def set_request(self, player: str, request: StageRequest) -> None:
        with self.lock:
            self.requests[player] = request

    def set_analysis(self, analysis: Analysis) -> None:
        with self.lock:
            self.analysis = analysis

    def add_assignments(self, player: str, rows: Sequence[AssignmentRow]) -> None:
        with self.lock:
            for row in rows:
                if row.mix and not row.replaces:
                    self.fold.drawn[player, row.mix, row.category] += 1
            if rows:
                self.ordinal = self.fold.ordinal = rows[-1].ordinal

    def add_results(self, rows: Sequence[ResultRow]) -> None:
        with self.lock:
            self.fold.books.add_results(rows)
            self.log_position = self.fold.books.log_position
            self.event_position = max(self.event_position, rows[-1].event_position)

    def add_rating_event(self, event: Event) -> None:
        with self.lock:
            self.fold.books.apply(event)

    def add_exploiter_event(self, event: Event) -> None:
        """Takes in a generation, a gate or a patch."""
        with self.lock:
            self.exploiters.take(event)

    def set_event_position(self, position: int) -> None:
        with self.lock:
            self.event_position = max(self.event_position, position)

    def wake(self) -> None:
        """Wakes the watchers after a commit."""
        with self.changed:
            self.durable_position = self.event_position
            self.changed.notify_all()


def stages_of(
    events: Iterable[Event],
) -> tuple[dict[str, CurriculumStatus], dict[str, StageRequest]]:
    """What each learner reported last about its curriculum, and the newest request for it."""
    curricula: dict[str, CurriculumStatus] = {}
    requests: dict[str, StageRequest] = {}
    for event in events:
        data = json.loads(event.data_json)
        player = data["player"]
        if event.kind == "stage_asked":
            requests[player] = StageRequest(
                number=event.position, stage=data["stage"], by=data["by"], at=event.at
            )
        elif "stages" in data:  # a learner without a curriculum reports only its mix
            stages = tuple(Stage(**stage) for stage in data["stages"])
            curricula[player] = CurriculumStatus(
                player=player, stages=stages, place=Place(**data["place"])
            )
    return curricula, requests
