"""Behaviour numbers of a match's seats, as the file keeps them: doubles, in the order of names kept
once.

Results of a game all have the same names, which in a text would be most of it. A blob is the
numbers of both seats' lists of names in ``stat_names`` (uint32, 0: none), then their values
(float64), seat 0's first.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Mapping

REMEMBERED = 1000
"""Names, in the orders they came in, that are known without asking the file; a game has one or a
few.
"""


class StatNames:
    """The lists of names by number, and back, of one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known: dict[tuple[str, ...], tuple[int, tuple[str, ...]]] = {}

    def forget(self) -> None:
        """What was added may have been rolled back."""
        self._known.clear()

    def _kept(self, stats: Mapping[str, float]) -> tuple[int, tuple[str, ...]]:
        """Number of the list of its names, which is added where it is new, and the names in its
        order.
        """
        names = tuple(stats)
        known = self._known.get(names)
        if known is None:
            if len(self._known) >= REMEMBERED:
                self.forget()
            ordered = tuple(sorted(names))
            known = self._known[names] = self._number(ordered), ordered
        return known

    def _number(self, names: tuple[str, ...]) -> int:
        if not names:
            return 0
        text = json.dumps(names, separators=(",", ":"))
        self._connection.execute(
            "INSERT OR IGNORE INTO stat_names (names_json) VALUES (?)", (text,)
        )
        query = "SELECT number FROM stat_names WHERE names_json = ?"
        return int(self._connection.execute(query, (text,)).fetchone()[0])

    def names(self, number: int) -> list[str]:
        if not number:
            return []
        query = "SELECT names_json FROM stat_names WHERE number = ?"
        return list(json.loads(self._connection.execute(query, (number,)).fetchone()[0]))

    def packed(self, first: Mapping[str, float], second: Mapping[str, float]) -> bytes:
        """Both seats' numbers; b"" where there are none."""
        if not first and not second:
            return b""
        (number0, names0), (number1, names1) = self._kept(first), self._kept(second)
        values = [*map(first.__getitem__, names0), *map(second.__getitem__, names1)]
        return struct.pack(f"<II{len(values)}d", number0, number1, *values)

    def unpacked(self, blob: bytes) -> tuple[dict[str, float], dict[str, float]]:
        """What `packed` was given."""
        if not blob:
            return {}, {}
        number0, number1, *values = struct.unpack(f"<II{len(blob) // 8 - 1}d", blob)
        names0, names1 = self.names(number0), self.names(number1)
        middle = len(names0)
        return (
            dict(zip(names0, values[:middle], strict=True)),
            dict(zip(names1, values[middle:], strict=True)),
        )
