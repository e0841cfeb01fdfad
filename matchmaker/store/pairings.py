"""Reads the matches of named players: a worker, such as the evaluator, named both players.

In all other matches the matchmaker draws the opponent from a mix. Matches of gates also have named
players, but the functions of this module leave them out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from league.players import Book
from matchmaker.store.rows import GATE
from matchmaker.store.transaction import Reader

Pairings = Counter[tuple[str, str, str]]
"""Number of matches by `pairing_key`."""
_BY_NAME = f"mix = '' AND category != '{GATE}'"
_OPEN = f"assignments INDEXED BY open_leases WHERE lease_state = 'open' AND {_BY_NAME}"


def pairing_key(book: Book, first: str, second: str) -> tuple[str, str, str]:
    """Returns the key for a book and two players. The players' seats make no difference."""
    return (book.value, first, second) if first < second else (book.value, second, first)


def leased(reader: Reader, after: int = 0, until: int | None = None) -> Pairings:
    """Counts all matches that were ever leased, with ordinals above `after` and up to `until`. A
    match that was leased again after its worker's restart counts once.
    """
    rows = "assignments WHERE ordinal > :after AND ordinal <= ifnull(:until, ordinal)"
    return _counted(reader, f"{rows} AND replaces = '' AND {_BY_NAME}", after=after, until=until)


def leased_now(reader: Reader) -> Pairings:
    """Counts the matches with open leases."""
    return _counted(reader, _OPEN)


def _counted(reader: Reader, rows: str, **values: Any) -> Pairings:
    columns = "book, min(seat0, seat1), max(seat0, seat1), count(*)"
    counts = reader.select(f"SELECT {columns} FROM {rows} GROUP BY 1, 2, 3", **values)
    return Pairings({(book, first, second): count for book, first, second, count in counts})


class PairedResult(NamedTuple):
    """Describes the result of a match of named players. Matches of named players are played in
    pairs with a common seed.
    """

    ordinal: int
    event_position: int
    incarnation: int
    book: str
    seat0: str
    seat1: str
    seed: int
    outcome: float
    failed: int

    def is_second_of(self, first: PairedResult) -> bool:
        """Returns whether this match and `first` share a seed and were leased together."""
        return self.ordinal == first.ordinal + 1 and self[2:4] + self[6:7] == (
            first.incarnation,
            first.book,
            first.seed,
        )


def settled(reader: Reader) -> int:
    """Returns the ordinal up to which no match of named players has an open lease."""
    oldest = reader.select(f"SELECT min(ordinal) FROM {_OPEN}")[0][0]
    return reader.positions()[2] if oldest is None else int(oldest) - 1


def first_counted(reader: Reader, incarnations: Collection[int]) -> tuple[int, int]:
    """Finds the results of clean matches (both players frozen) that these incarnations (starts of
    workers) reported. Returns the log position of the first result, and the number of results.

    Failed matches and matches of gates are left out. Without results both values are 0.
    """
    first, count = reader.select(
        "SELECT min(r.position), count(*) FROM results r JOIN assignments a USING (ordinal) "
        "WHERE r.incarnation IN (SELECT value FROM json_each(:numbers)) AND a.book != 'train' "
        f"AND a.category != '{GATE}' AND NOT r.failed",
        numbers=json.dumps([*incarnations]),
    )[0]
    return first or 0, count


def results(reader: Reader, after: int, until: int) -> Iterator[PairedResult]:
    """Yields results of matches with ordinals above `after` and up to `until`, in order of
    assignment.
    """
    columns = ", ".join(PairedResult._fields).replace("incarnation", "r.incarnation")
    rows = reader.select(
        f"SELECT {columns} FROM assignments a JOIN results r USING (ordinal) "
        f"WHERE ordinal > :after AND ordinal <= :until AND {_BY_NAME} ORDER BY ordinal",
        after=after,
        until=until,
    )
    return map(PairedResult._make, rows)
