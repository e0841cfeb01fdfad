"""What memory holds, kept in the file now and then, so that a restart need not fold every result
again.

Nothing here is a source of truth. A row holds the books and the counts of draws up to one result;
it is bound to that result by its digest, and one that is torn, of another log or of another version
is passed over, down to folding the whole log. `fsck` folds the log and compares every row.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import logging
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from matchmaker.state.books import MARK_KINDS, Books, marks_of
from matchmaker.store.base import Reader
from matchmaker.store.rows import AggregateRow

if TYPE_CHECKING:  # a league's view begins from these
    from matchmaker.state.league import League

EVERY = 200_000
"""Results behind the newest row that make another one due: a restart folds them in two seconds."""
FEWEST = 1_000
"""Results that are worth a row when the matchmaker stops."""
KEPT = 8
"""Rows that stay. A learner that goes back to a checkpoint makes those behind it worthless."""
FOLDING = (
    "matchmaker.state.books",
    "league.stats.payoff",
    "league.stats.ratings.belief",
    "league.stats.ratings.epochs",
    "league.stats.ratings.table",
)
"""Modules that make the books of a log."""
Drawn = Counter[tuple[str, str, str]]
_log = logging.getLogger(__name__)


@dataclass
class Aggregates:
    """Up to `books.log_position`: the books; up to assignment `ordinal`: (player, mix, category) ->
    matches.

    Invariants need not be looked at again for assignments up to `settled`.
    """

    books: Books
    drawn: Drawn
    ordinal: int = 0
    settled: int = 0

    def body(self) -> dict[str, Any]:
        return {
            "version": version(),
            "books": self.books.state(),
            "drawn": [[*key, count] for key, count in sorted(self.drawn.items())],
            "ordinal": self.ordinal,
            "settled": self.settled,
        }

    @classmethod
    def of_body(cls, body: dict[str, Any]) -> Aggregates:
        books = Books.restored(body["books"])
        return cls(books, _counter(body["drawn"]), body["ordinal"], body["settled"])

    def follow(self, reader: Reader) -> None:
        """Takes in what the log holds behind it."""
        self.books.follow(
            reader.results(self.books.log_position), marks_of(reader.events_of(*MARK_KINDS))
        )
        self.drawn.update(_counter(reader.category_counts(self.ordinal)))
        self.books.log_position, self.books.event_position, self.ordinal = reader.positions()


def nothing() -> Aggregates:
    """Of an empty log."""
    return Aggregates(Books(), Counter())


def current(reader: Reader) -> Aggregates:
    """Those of the whole log, folded on from the newest row that is whole."""
    found = next((one for row in reader.aggregates() if (one := opened(reader, row))), nothing())
    found.follow(reader)
    return found


def before(reader: Reader, log_position: int, event_position: int) -> Books:
    """The newest books kept that hold nothing behind these positions; empty ones where there are
    none.

    A row that a restart's lost results made worthless is gone, so what is left still counts as it
    did.
    """
    rows = (row for row in reader.aggregates(log_position) if row.event_position <= event_position)
    return next((one.books for row in rows if (one := opened(reader, row))), Books())


def opened(reader: Reader, row: AggregateRow) -> Aggregates | None:
    """What a row holds; None when it is torn or of another version."""
    if not is_whole(reader, row):
        _log.warning(
            "what was kept at log position %s is torn: it is folded from the log", row.log_position
        )
        return None
    body = json.loads(zlib.decompress(row.body))
    return Aggregates.of_body(body) if body["version"] == version() else None


def is_whole(reader: Reader, row: AggregateRow) -> bool:
    return row.digest == digest(reader, row.log_position, row.event_position, row.body)


def digest(reader: Reader, log_position: int, event_position: int, body: bytes) -> str:
    """Of a row's content and the result that it ends with."""
    bound = f"{log_position}:{event_position}:{reader.match_at(log_position)}:"
    return hashlib.sha256(bound.encode() + body).hexdigest()


@cache
def version() -> str:
    """Of the code that folds: other code may make other books of the same log."""
    sources = (inspect.getsource(importlib.import_module(name)) for name in FOLDING)
    return hashlib.sha256("".join(sources).encode()).hexdigest()


def keep(league: League, fewest: int) -> bool:
    """Stores what memory holds if `fewest` results came since the last time; returns whether it
    did.
    """
    view = league.view
    with league.store.read() as reader:
        last = reader.select("SELECT ifnull(max(log_position), 0) FROM aggregates")[0][0]
    with view.lock:
        books, event_position = view.books, view.event_position
        if books.log_position - last < fewest:
            return False
        body = Aggregates(books, view.drawn, view.ordinal, view.settled).body()
    position = body["books"]["log_position"]
    packed = zlib.compress(json.dumps(body, separators=(",", ":")).encode(), 1)
    with league.store.write() as tx:
        if view.books is not books:  # a restart's lost results made other ones meanwhile
            return False
        tx.add_aggregates(
            AggregateRow(
                log_position=position,
                event_position=event_position,
                at=league.clock.now(),
                digest=digest(tx, position, event_position, packed),
                body=packed,
            )
        )
        tx.forget_aggregates(newest=KEPT)
    return True


def differing(reader: Reader) -> Iterator[str]:
    """A sentence for each row that is not what the log gives, to the last bit."""
    books, marks = Books(), marks_of(reader.events_of(*MARK_KINDS))
    for row in sorted(reader.aggregates(), key=lambda row: row.log_position):
        if not is_whole(reader, row):
            yield f"what was kept at log position {row.log_position} is torn"
        kept = opened(reader, row)
        if kept is None:
            continue
        known = [mark for mark in marks if mark.event_position <= kept.books.event_position]
        books.follow(reader.results(books.log_position, row.log_position), known)
        drawn = _counter(reader.category_counts(0, kept.ordinal))
        same = books.state()["tables"] == kept.books.state()["tables"]
        if not same or drawn != kept.drawn:
            yield f"what was kept at log position {row.log_position} is not what the log gives"


def _counter(rows: Iterable[tuple[str, str, str, int]]) -> Drawn:
    return Counter({(player, mix, category): count for player, mix, category, count in rows})
