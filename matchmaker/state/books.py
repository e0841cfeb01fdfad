"""Computes ratings and payoffs from the log's results and events, by folding the log.

Folding the log means applying its results and events one after the other, in the order in which
they were logged. The events say which players learn, which players inherit a rating, and which
ratings an operator has fixed (pinned). Ratings and payoffs come out the same to the last bit,
whether the log is folded all at once, result by result, or from a stored fold.

A book holds the ratings and payoffs of one kind of match. There are three books: training matches
(train), clean matches (eval), and clean matches in which both players always take the likeliest
action (greedy). In a clean match, both players are frozen.
"""

from __future__ import annotations

import bisect
import heapq
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from league.errors import InvalidName
from league.ids import ReferenceName, SnapshotName
from league.players import Book, Event, PlayerKind
from league.stats.payoff import PayoffTable
from league.stats.ratings import Drift, Link, RatingTable
from league.stats.ratings.table import Epoch
from matchmaker.state.quarantine import EVENTS as QUARANTINES
from matchmaker.state.quarantine import Quarantines
from matchmaker.store.rows import ResultRow
from matchmaker.store.transaction import Reader

_BATCH = 8192


class Books:
    """Keeps the ratings and payoffs of all books (kinds of match), as they are after a result and
    an event of the log.

    `climb` counts the learners' training matches against opponents whose weights don't change. A
    match counts for the last snapshot that the learner had frozen before the match ended ("main@0"
    before its first snapshot). Counting by the beginning of the match would bias the newest
    snapshot's score, because the snapshot's short matches end first and most short matches are
    wins.

    If a worker's restart marks results as lost, the books are built again. `without` lists
    incarnations (starts of workers) whose clean results don't count, because their worker is in
    quarantine.
    """

    def __init__(self, without: frozenset[int] = frozenset()) -> None:
        self.without = without
        self.tables = {book: RatingTable(Drift()) for book in Book}
        self.climb = PayoffTable()
        self._frozen: dict[str, list[int]] = {}  # steps of each learner's snapshots, in order
        self.log_position = 0
        self.event_position = 0

    @classmethod
    def of(cls, reader: Reader) -> Books:
        """Computes the books from the whole log."""
        books = cls(Quarantines(reader.events_of(*QUARANTINES)).without)
        books.follow(reader)
        return books

    def recounted(self, reader: Reader) -> Books:
        """Returns the books with all clean results (both players frozen) counted again, after a
        worker's quarantine began or ended.

        The train book does not change.
        """
        books = Books(Quarantines(reader.events_of(*QUARANTINES)).without)
        books.fold(reader.clean_results(), reader.events_of(*RATING_EVENTS))
        books.tables[Book.TRAIN] = self.tables[Book.TRAIN]
        books.climb, books._frozen = self.climb, self._frozen
        books.log_position, books.event_position = self.log_position, self.event_position
        return books

    @classmethod
    def at(cls, reader: Reader, event_position: int) -> Books:
        """Computes the books from the log up to an event, including results that were marked as
        lost later.
        """
        opened: dict[int | None, int] = {
            row.number: row.event_position for row in reader.incarnations()
        }
        events = reader.events_of(*RATING_EVENTS)
        results = (
            row if opened.get(row.lost_by, 0) <= event_position else row._replace(lost_by=None)
            for row in takewhile(lambda row: row.event_position <= event_position, reader.results())
        )
        quarantines = [e for e in reader.events_of(*QUARANTINES) if e.position <= event_position]
        books = cls(Quarantines(quarantines).without)
        books.fold(results, [event for event in events if event.position <= event_position])
        books.event_position = event_position
        return books

    def follow(self, reader: Reader) -> None:
        """Applies the rest of the log, which the books don't include yet."""
        events = reader.events_of(*RATING_EVENTS, after=self.event_position)
        self.fold(reader.results(self.log_position), events)
        self.log_position, self.event_position, _ = reader.positions()

    def fold(self, results: Iterable[ResultRow], events: Iterable[Event]) -> None:
        """Applies results and rating events in the order of the log. Both sequences must be in this
        order.
        """

        def place(entry: Any) -> int:
            return entry.event_position if isinstance(entry, ResultRow) else entry.position

        batch: list[ResultRow] = []
        for entry in heapq.merge(results, events, key=place):
            if isinstance(entry, ResultRow):
                batch.append(entry)
                if len(batch) < _BATCH:
                    continue
            self.add_results(batch)
            batch = []
            if isinstance(entry, Event):
                self.apply(entry)
        self.add_results(batch)

    def add_results(self, rows: Sequence[ResultRow]) -> None:
        """Applies consecutive results of the log."""
        for row in rows:
            if row.rated and row.incarnation not in self.without:
                table = self.tables[row.book]
                margin = margin_of(row)
                table.fold(row.seat0, row.seat1, row.outcome, row.step0, row.step1, margin)
                if row.book is Book.TRAIN:
                    self._count_climb(row, margin or 0.0)
                else:
                    table.payoff.measure(row.seat0, row.seat1, row.outcome, row.frames, row.stats)
        if rows:
            self.log_position = rows[-1].position
            self.event_position = max(self.event_position, rows[-1].event_position)

    def _count_climb(self, row: ResultRow, margin: float) -> None:
        for learner, opponent, step, outcome, paid in (
            (row.seat0, row.seat1, row.end_step0, row.outcome, margin / 2.0),
            (row.seat1, row.seat0, row.end_step1, 1.0 - row.outcome, -margin / 2.0),
        ):
            if learner in self._frozen and opponent not in self._frozen:
                steps = self._frozen[learner]
                frozen_before = bisect.bisect(steps, step)
                since = SnapshotName(learner, steps[frozen_before - 1] if frozen_before else 0)
                self.climb.count(str(since), opponent, outcome, paid)

    def apply(self, event: Event) -> None:
        """Applies an event of a kind in `RATING_EVENTS`. An event that names no book applies to all
        books.
        """
        data = json.loads(event.data_json)
        if event.kind == "rules_changed":
            self.climb = PayoffTable()
        elif event.kind == "player_registered":
            kind = PlayerKind(data["kind"])
            if kind is PlayerKind.LIVE:
                self._frozen[data["player"]] = []
            elif kind is PlayerKind.SNAPSHOT:
                learner = _lineage(data["player"], kind)
                if learner in self._frozen:
                    bisect.insort(self._frozen[learner], data["step"])
        for book in [Book(data["book"])] if "book" in data else Book:
            if event.kind == "rules_changed":
                self.tables[book] = self.tables[book].emptied()
            else:
                _APPLY[event.kind](self.tables[book], data, book)
        self.event_position = max(self.event_position, event.position)

    def state(self) -> dict[str, Any]:
        """Returns all values in a form that JSON keeps to the last bit, for `restored`."""
        return {
            "log_position": self.log_position,
            "event_position": self.event_position,
            "tables": {book.value: table.state() for book, table in self.tables.items()},
            "climb": self.climb.state(),
            "frozen": {name: list(steps) for name, steps in self._frozen.items()},
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Books:
        """Returns the books from which `state` was taken."""
        books = cls()
        books.tables = {
            Book(name): RatingTable.restored(table) for name, table in state["tables"].items()
        }
        books.climb, books._frozen = PayoffTable.restored(state["climb"]), state["frozen"]
        books.log_position, books.event_position = state["log_position"], state["event_position"]
        return books


def _register(table: RatingTable, data: Mapping[str, Any], book: Book) -> None:
    """Marks a new learner as learning, or gives a new frozen copy a first rating. This is the
    rating of the copy's learner, or of the copy's parent if the book (kind of match) has no rating
    of the learner.

    In the book greedy, copies inherit nothing. A copy that always takes the likeliest action is a
    different player, and ratings predict its results better without an inherited rating.
    """
    name, kind = data["player"], PlayerKind(data["kind"])
    if kind is PlayerKind.LIVE:
        table.learns(name)
    elif kind in (PlayerKind.SNAPSHOT, PlayerKind.REFERENCE) and book is not Book.GREEDY:
        learner = _lineage(name, kind)
        table.inherit(name, learner if table.has(learner) else data["parent"], data["step"])


def _lineage(name: str, kind: PlayerKind) -> str:
    """Returns the learner's name within a frozen copy's name, or "" if that name is not valid. It
    raises no error, because folding a log must always succeed.
    """
    parts = SnapshotName if kind is PlayerKind.SNAPSHOT else ReferenceName
    try:
        return parts.parse(name).lineage
    except InvalidName:
        return ""


def margin_of(row: ResultRow) -> float | None:
    """Returns how much more seat 0 was paid than seat 1, 0 in a draw, None in a game without
    payoffs.
    """
    if '"payoff"' not in row.stats_json:
        return None
    if row.outcome == 0.5:  # payments may differ by a rounding error
        return 0.0
    first, second = row.stats
    return first.get("payoff", 0.0) - second.get("payoff", 0.0)


def epoch_data(epoch: Epoch) -> dict[str, float]:
    """Returns the fields with which a rating epoch is logged, except its book and position."""
    return {
        "games": epoch.games,
        "draw_probability": epoch.draw_probability,
        "sharpness": epoch.link.sharpness,
        "logistic_share": epoch.link.logistic_share,
    }


def _begin_epoch(table: RatingTable, data: Mapping[str, Any], _: Book) -> None:
    link = Link(data["sharpness"], data["logistic_share"])
    table.begin_epoch(data["log_position"], data["draw_probability"], link)


_APPLY = {
    "player_registered": _register,
    "rating_epoch": _begin_epoch,
    "rating_pinned": lambda table, data, _: table.pin(data["player"], data["mu"]),
    "rating_unpinned": lambda table, data, _: table.unpin(data["player"]),
}
RATING_EVENTS = (*_APPLY, "rules_changed")
"""Kinds of events that ratings depend on."""
