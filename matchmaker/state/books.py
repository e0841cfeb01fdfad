"""The books: ratings and payoffs, folded from the log's results and from what else the log says of
ratings.

Results alone do not make a rating. Who learns, whom a snapshot inherits from, which players are
pinned and what was measured when stand in the log as events, each with the position of the newest
result it came after (`log_position`). Folding both in that order gives the same bits however often
it is done, whether in one go, result by result, or from a checkpoint on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from league.errors import InvalidName
from league.ids import ReferenceName, SnapshotName
from league.players import Book, Event, PlayerKind
from league.stats.ratings import Drift, Link, RatingTable
from league.stats.ratings.epochs import Epoch
from matchmaker.store.base import Reader
from matchmaker.store.rows import ResultRow

MARK_KINDS = ("player_registered", "rating_epoch", "rating_pinned", "rating_unpinned")
"""Kinds of events that ratings depend on."""
_BATCH = 8192
_Game = tuple[str, str, float, int, int]
"""A `RatedGame` as a plain tuple, which is four times as quick to make."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """An event that ratings depend on: it holds for the results behind `log_position`."""

    log_position: int
    event_position: int
    kind: str
    data: Mapping[str, Any]


def marks_of(events: Iterable[Event]) -> list[Mark]:
    """Those among `events`, which are in the order of the log.

    Logs of older versions don't tell behind which result a player came in: it is placed with the
    mark before.
    """
    marks: list[Mark] = []
    position = 0
    for event in events:
        if event.kind in MARK_KINDS:
            data = json.loads(event.data_json)
            position = max(position, data.get("log_position", data.get("after_position", 0)))
            marks.append(
                Mark(
                    log_position=position, event_position=event.position, kind=event.kind, data=data
                )
            )
    return marks


class Books:
    """The tables of all books, up to result `log_position` and event `event_position` of the log.

    A restart that marks results as lost is no mark: the books are built anew then, for what was
    folded can't be taken out again.
    """

    def __init__(self) -> None:
        self.tables = {book: RatingTable(Drift()) for book in Book}
        self.log_position = 0
        self.event_position = 0

    @classmethod
    def of_log(cls, results: Iterable[ResultRow], marks: Sequence[Mark]) -> Books:
        """Everything anew: what `recompute` means. `marks` as `marks_of` orders them."""
        books = cls()
        books.follow(results, marks)
        return books

    @classmethod
    def of(cls, reader: Reader) -> Books:
        """Those of the whole log."""
        books = cls.of_log(reader.results(), marks_of(reader.events_of(*MARK_KINDS)))
        books.log_position, books.event_position, _ = reader.positions()
        return books

    def follow(self, results: Iterable[ResultRow], marks: Sequence[Mark]) -> None:
        """Takes in what the log holds behind what was taken in before, marks and results by
        position.
        """
        waiting = iter(marks)
        mark, batch = next(waiting, None), list[ResultRow]()
        for row in results:
            while mark is not None and mark.log_position < row.position:
                self.add_results(batch)
                batch = []
                self.apply(mark)
                mark = next(waiting, None)
            batch.append(row)
            if len(batch) == _BATCH:
                self.add_results(batch)
                batch = []
        self.add_results(batch)
        while mark is not None:
            self.apply(mark)
            mark = next(waiting, None)

    def add_results(self, rows: Sequence[ResultRow]) -> None:
        """Folds results that follow in the log; those that were folded before are passed over."""
        for book, part in _by_book(rows, self.log_position):
            self.tables[book].fold_all(part)
        if rows:
            self.log_position = max(self.log_position, rows[-1].position)

    def apply(self, mark: Mark) -> None:
        """Takes in an event; again is fine."""
        if mark.event_position <= self.event_position:
            return
        self.event_position = mark.event_position
        for book in _books_of(mark):
            _APPLY[mark.kind](self.tables[book], mark, book)

    def state(self) -> dict[str, Any]:
        """All of it as JSON keeps it, to the last bit; `restored` takes it back."""
        return {
            "log_position": self.log_position,
            "event_position": self.event_position,
            "tables": {book.value: table.state() for book, table in self.tables.items()},
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Books:
        """The books that `state` was taken of; `follow` brings them up to the log's end."""
        books = cls()
        books.tables = {
            Book(name): RatingTable.restored(table) for name, table in state["tables"].items()
        }
        books.log_position, books.event_position = state["log_position"], state["event_position"]
        return books


def _books_of(mark: Mark) -> Iterable[Book]:
    """One that names no book is for all of them."""
    return [Book(mark.data["book"])] if "book" in mark.data else Book


def _by_book(rows: Iterable[ResultRow], after: int) -> Iterator[tuple[Book, list[_Game]]]:
    """What each book's table takes in of `rows` behind position `after`, in order."""
    parts: dict[Book, list[_Game]] = {}
    current, part = None, list[_Game]()
    for row in rows:
        if row.failed or row.lost_by is not None or row.position <= after:
            continue
        if row.book is not current:  # an enum's hash is slow, so it is not asked for every row
            current = row.book
            part = parts.setdefault(current, [])
        part.append((row.seat0, row.seat1, row.outcome, row.step0, row.step1))
    yield from parts.items()


def _register(table: RatingTable, mark: Mark, book: Book) -> None:
    """A frozen copy begins as its learner stands, or in a book without the learner as its parent
    does.

    Not in the greedy book: its likelier keys make another player of nearly the same copy, whose
    results are told better from nothing than from its parent's.
    """
    name, kind = mark.data["player"], PlayerKind(mark.data["kind"])
    if kind is PlayerKind.LIVE:
        table.learns(name)
    elif kind in _PARSED and "log_position" in mark.data and book is not Book.GREEDY:
        learner = _learner(name, kind)
        table.inherit(
            name, learner if table.has(learner) else mark.data["parent"], mark.data["step"]
        )


_PARSED: dict[PlayerKind, Callable[[str], SnapshotName | ReferenceName]] = {
    PlayerKind.SNAPSHOT: SnapshotName.parse,
    PlayerKind.REFERENCE: ReferenceName.parse,
}


def _learner(name: str, kind: PlayerKind) -> str:
    """The lineage in a frozen copy's name, "" where it tells none: what is in the log must not
    fail here.
    """
    try:
        return _PARSED[kind](name).lineage
    except InvalidName:
        return ""


def _begin_epoch(table: RatingTable, mark: Mark, _: Book) -> None:
    data = mark.data
    if "drift" in data:
        table.drift = Drift(data["drift"])
    link = Link(data["sharpness"], data["logistic_share"]) if "sharpness" in data else None
    table.begin_epoch(mark.log_position, data["draw_probability"], link)


def epoch_data(epoch: Epoch) -> dict[str, float]:
    """What the log keeps of one that was measured, beside its book and place."""
    return {
        "games": epoch.games,
        "draw_probability": epoch.draw_probability,
        "sharpness": epoch.link.sharpness,
        "logistic_share": epoch.link.logistic_share,
    }


def _pin(table: RatingTable, mark: Mark, _: Book) -> None:
    table.pin(mark.data["player"], mark.data["mu"])


def _unpin(table: RatingTable, mark: Mark, _: Book) -> None:
    table.unpin(mark.data["player"])


_APPLY = {
    "player_registered": _register,
    "rating_epoch": _begin_epoch,
    "rating_pinned": _pin,
    "rating_unpinned": _unpin,
}
