"""The league in memory: players, ratings, payoffs and shares, as the committed log gives them.

Loaded from the log at the start and moved on after each commit; a restart's lost results rebuild
the books. Nothing here is a source of truth.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from league.errors import Unavailable
from league.players import Book, Event, Player
from league.stages import CurriculumStatus, Place, Stage, StageRequest
from league.stats.ratings import RatingTable
from matchmaker.state import aggregates, bygone, history
from matchmaker.state.analysis import EVENT, NO_ANALYSIS, Analysis, newest_analysis
from matchmaker.state.books import Books, Mark
from matchmaker.state.exploiters import EVENTS as EXPLOITER_EVENTS
from matchmaker.state.exploiters import ExploiterState
from matchmaker.state.history import Moment
from matchmaker.store.base import Reader
from matchmaker.store.rows import AssignmentRow, IncarnationRow, ResultRow

if TYPE_CHECKING:  # it works on a league, which has a view
    from matchmaker.sampling.kept_draws import KeptDraw


class LeagueView:
    """Callers hold `lock` while they read; only the store's commits change it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition()
        self.players: dict[str, Player] = {}
        self.books = Books()
        self.drawn: Counter[tuple[str, str, str]] = Counter()  # (player, mix, category) -> matches
        self.curricula: dict[str, CurriculumStatus] = {}  # by player, as its learner told it
        self.asked: dict[str, StageRequest] = {}  # by player, the newest, obeyed or not
        self.leases: dict[str, AssignmentRow] = {}  # open ones by match, as they were handed out
        # that calls came from since one was opened
        self.incarnations: dict[int, IncarnationRow] = {}
        self.open_count: Counter[int] = Counter()  # of them, by incarnation
        self.kept_draws: dict[tuple[str, str], KeptDraw] = {}  # by learner and mix
        self.generation = 0  # rises when something else than a result changes what is drawn
        self.results_of: Counter[str] = Counter()  # by player, since the start, in training
        self.analysis = NO_ANALYSIS  # near-copies, and the snapshots that retire last
        self.exploiters = ExploiterState()
        self.log_position = 0
        self.event_position = 0
        self.told_position = 0  # of the newest event that watchers can read
        self.ordinal = 0
        self.settled = 0  # ordinals up to it need no further look at their invariants
        self.is_behind = False
        self.moment: Moment | None = None  # when the league is shown as it was

    @property
    def tables(self) -> dict[Book, RatingTable]:
        """Ratings and payoffs of each book."""
        return self.books.tables

    def checked(self) -> LeagueView:
        """Itself for a reader; raises `Unavailable` while it is behind the log."""
        if self.is_behind:
            raise Unavailable(
                "the matchmaker's memory is behind its log and is being built anew: ask again"
            )
        return self

    def load(self, reader: Reader) -> None:
        """Everything anew from the log."""
        with self.lock:
            self.players = {player.name: player for player in reader.players()}
            kept = aggregates.current(reader)
            self.drawn, self.settled = kept.drawn, kept.settled
            self._set_books(kept.books)
            self.log_position, self.event_position, self.ordinal = reader.positions()
            self.told_position = self.event_position
            self.incarnations.clear()
            self.leases = {row.match_id: row for row in reader.open_assignments()}
            self.open_count = Counter(row.incarnation for row in self.leases.values())
            self.curricula, self.asked = stages_of(reader.events_of("stage", "stage_asked"))
            self.analysis = newest_analysis(reader.events_of(EVENT))
            self.exploiters = ExploiterState(reader.events_of(*EXPLOITER_EVENTS))
            self.is_behind = False

    def load_books(self, reader: Reader) -> None:
        """Ratings and payoffs anew from the log."""
        books = aggregates.current(reader).books
        with self.lock:
            self._set_books(books)

    def _set_books(self, books: Books) -> None:
        self.books = books
        self.forget_draws()

    def load_moment(self, reader: Reader, moment: Moment) -> None:
        """Players, books, shares, leases and stages as they were."""
        with self.lock:
            self.moment = moment
            self.players = {player.name: player for player in history.players_at(reader, moment)}
            self.drawn = Counter(history.drawn_at(reader, moment))
            self.log_position, self.event_position = moment.log_position, moment.event_position
            self.told_position = moment.event_position
            self.ordinal = history.ordinal_at(reader, moment)
            self.open_count = bygone.open_leases_at(reader, moment)
            begin = aggregates.before(reader, moment.log_position, moment.event_position)
            self.books = history.books_at(reader, moment, begin)
            told = reader.events_of("stage", "stage_asked")
            self.curricula, self.asked = stages_of(
                e for e in told if e.position <= moment.event_position
            )
            found = reader.events_of(EVENT)
            self.analysis = newest_analysis(e for e in found if e.position <= moment.event_position)
            told = reader.events_of(*EXPLOITER_EVENTS)
            self.exploiters = ExploiterState(e for e in told if e.position <= moment.event_position)

    def set_players(self, players: Iterable[Player]) -> None:
        with self.lock:
            self.players.update({player.name: player for player in players})
            self.forget_draws()

    def forget_draws(self) -> None:
        """Whatever is drawn from now on is found anew."""
        self.generation += 1
        self.kept_draws.clear()

    def set_curriculum(self, status: CurriculumStatus) -> None:
        with self.lock:
            self.curricula[status.player] = status

    def set_asked(self, player: str, asked: StageRequest) -> None:
        with self.lock:
            self.asked[player] = asked

    def set_analysis(self, analysis: Analysis) -> None:
        with self.lock:
            self.analysis = analysis
            self.forget_draws()

    def add_assignments(self, player: str, rows: Sequence[AssignmentRow]) -> None:
        with self.lock:
            for row in rows:  # no Counter of them first: it would take longer than all the rest
                self.ordinal = max(self.ordinal, row.ordinal)
                self.leases[row.match_id] = row
                self.open_count[row.incarnation] += 1
                if row.mix and not row.replaces:
                    self.drawn[player, row.mix, row.category] += 1

    def close_leases(self, match_ids: Iterable[str]) -> None:
        with self.lock:
            for match_id in match_ids:
                self._close_lease(match_id)

    def _close_lease(self, match_id: str) -> None:
        row = self.leases.pop(match_id, None)
        if row is not None:
            self.open_count[row.incarnation] -= 1

    def add_results(self, rows: Sequence[ResultRow]) -> None:
        with self.lock:
            for row in rows:
                self._close_lease(row.match_id)
                if row.book is Book.TRAIN:
                    self.results_of[row.seat0] += 1
                    self.results_of[row.seat1] += 1
            self.books.add_results(rows)
            self.log_position = max(self.log_position, self.books.log_position)

    def add_mark(self, mark: Mark) -> None:
        """Something that ratings depend on, in the order of the log beside the results."""
        with self.lock:
            self.books.apply(mark)
            self.forget_draws()

    def add_exploiter_event(self, event: Event) -> None:
        """A generation, a gate or a patch."""
        with self.lock:
            self.exploiters.take(event)
            self.forget_draws()

    def set_event_position(self, position: int) -> None:
        with self.lock:
            self.event_position = max(self.event_position, position)

    def wake(self) -> None:
        """Tells the watchers that what memory holds is on disk."""
        with self.changed:
            self.told_position = self.event_position
            self.changed.notify_all()


def stages_of(
    events: Iterable[Event],
) -> tuple[dict[str, CurriculumStatus], dict[str, StageRequest]]:
    """What the learners told last of their curricula, and what was asked of them last, by
    player.
    """
    told: dict[str, CurriculumStatus] = {}
    asked: dict[str, StageRequest] = {}
    for event in events:
        data = json.loads(event.data_json)
        player = data["player"]
        if event.kind == "stage_asked":
            asked[player] = StageRequest(
                number=event.position, stage=data["stage"], by=data["by"], at=event.at
            )
        elif "stages" in data:  # the event of a learner that tells no more than its mix has none
            stages = tuple(Stage(**stage) for stage in data["stages"])
            told[player] = CurriculumStatus(
                player=player, stages=stages, place=Place(**data["place"])
            )
    return told, asked
