"""Stores folds of the log, so that the matchmaker starts quickly.

A fold is the state that results from applying the log's results and events in order. When the
matchmaker starts, it loads the newest stored fold and applies only the rest of the log. `fsck`
compares each stored fold with the log.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from matchmaker.state.books import RATING_EVENTS, Books
from matchmaker.state.quarantine import EVENTS as QUARANTINES
from matchmaker.state.quarantine import Quarantines
from matchmaker.store.pairings import Pairings, leased
from matchmaker.store.rows import FoldRow
from matchmaker.store.transaction import Reader

VERSION = 10
"""Version of the stored folds. Raise it when folding changes, because folds of other versions are
ignored.
"""
EVERY = 30_000
"""Number of new results after which a fold is due. Folding this many results takes about three
seconds.
"""
FEWEST = 1_000
"""A stopping matchmaker stores a fold if there are at least this many new results."""
KEPT = 8
"""Number of folds to keep. When a learner returns to a checkpoint, later folds are dropped, and the
next start uses an older fold.
"""
Drawn = Counter[tuple[str, str, str]]


@dataclass
class Fold:
    """Holds the state that results from folding the log.

    Attributes:
        books: ratings and payoffs.
        drawn: number of drawn matches for each (player, mix, category of the mix).
        paired: number of leased matches for each pair of players whom a worker has paired by name.
        ordinal: ordinal (number) of the newest assigned match that `drawn` and `paired` count.
        settled: ordinal up to which assigned matches no longer change and have been checked.
    """

    books: Books = field(default_factory=Books)
    drawn: Drawn = field(default_factory=Counter)
    paired: Pairings = field(default_factory=Counter)
    ordinal: int = 0
    settled: int = 0

    @classmethod
    def current(cls, reader: Reader) -> Fold:
        """Computes the fold of the whole log, starting from the newest stored fold."""
        usable = (row for row in reader.folds() if row.version == VERSION)
        row = next(usable, None)
        fold = cls() if row is None else cls.stored(row)
        fold.books.without = Quarantines(reader.events_of(*QUARANTINES)).without
        fold.books.follow(reader)
        fold.drawn.update(reader.category_counts(fold.ordinal))
        fold.paired.update(leased(reader, fold.ordinal))
        fold.ordinal = reader.positions()[2]
        return fold

    @classmethod
    def stored(cls, row: FoldRow) -> Fold:
        """Restores a fold from its row."""
        body = json.loads(zlib.decompress(row.body))
        drawn, paired = (
            Counter({tuple(key): count for *key, count in body[name]})
            for name in ("drawn", "paired")
        )
        books = Books.restored(body["books"])
        return cls(books, drawn, paired, body["ordinal"], body["settled"])

    def row(self, at: float) -> FoldRow:
        """Returns the database row that stores the fold. `at` is the time in Unix seconds."""
        body = {
            "books": self.books.state(),
            "drawn": [[*key, count] for key, count in sorted(self.drawn.items())],
            "paired": [[*key, count] for key, count in sorted(self.paired.items())],
            "ordinal": self.ordinal,
            "settled": self.settled,
        }
        packed = zlib.compress(json.dumps(body, separators=(",", ":")).encode(), 1)
        return FoldRow(
            log_position=self.books.log_position,
            event_position=self.books.event_position,
            version=VERSION,
            at=at,
            body=packed,
        )


def differing(reader: Reader) -> Iterator[str]:
    """Yields a sentence for each stored fold that differs from the log in any bit."""
    without = Quarantines(reader.events_of(*QUARANTINES)).without
    books, drawn, paired, ordinal = Books(without), Drawn(), Pairings(), 0
    events = reader.events_of(*RATING_EVENTS)
    for row in reversed(reader.folds()):
        if row.version != VERSION:
            continue
        since, until = books.event_position, row.event_position
        between = [event for event in events if since < event.position <= until]
        books.fold(reader.results(books.log_position, row.log_position), between)
        books.event_position = until
        stored = Fold.stored(row)
        drawn.update(reader.category_counts(ordinal, stored.ordinal))
        paired.update(leased(reader, ordinal, stored.ordinal))
        ordinal = stored.ordinal
        is_same = books.state() == stored.books.state()
        if not is_same or (drawn, paired) != (stored.drawn, stored.paired):
            yield f"the fold stored at log position {row.log_position} is not what the log gives"
