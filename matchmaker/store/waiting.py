"""Rows that wait within a transaction, to be inserted with those of other requests in one
statement.

Each statement lets go of Python's lock, and may wait long to have it again: with a thousand clients
that is most of what a request costs. So a request that only adds rows (leases, its reply) makes no
statement of its own, nor a savepoint: what was not inserted is undone by forgetting it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Any


class ManyRows:
    """Inserts rows of a table, many with one statement."""

    AT_ONCE = 32

    def __init__(self, table: str, columns: Sequence[str]) -> None:
        self._begin = f"INSERT INTO {table} ({', '.join(columns)}) VALUES "
        self._row = f"({', '.join('?' * len(columns))})"

    def insert(self, connection: sqlite3.Connection, values: Iterable[tuple[Any, ...]]) -> None:
        """`values` in the order of the columns."""
        left = iter(values)
        while part := list(islice(left, self.AT_ONCE)):
            statement = self._begin + ", ".join([self._row] * len(part))
            connection.execute(statement, list(chain.from_iterable(part)))


class WaitingRows:
    """Rows of some tables, and a part of a transaction that a savepoint undoes once something was
    executed.

    `settle` comes before whatever is executed, so nothing in the transaction misses a row that
    waits.
    """

    def __init__(self, connection: sqlite3.Connection, tables: Sequence[ManyRows]) -> None:
        self._connection = connection
        self._rows: dict[ManyRows, list[tuple[Any, ...]]] = {table: [] for table in tables}
        self._kept: dict[ManyRows, int] = {}  # of the parts before
        self._is_part = self._has_savepoint = False

    def add(self, table: ManyRows, values: Iterable[tuple[Any, ...]]) -> None:
        """They are inserted later, at the commit at the latest."""
        self._rows[table].extend(values)

    def settle(self) -> None:
        """Inserts what waits; a part has its savepoint then, behind the rows of the parts
        before.
        """
        if self._is_part and not self._has_savepoint:
            for table, rows in self._rows.items():
                self._insert(table, rows[: self._kept[table]])
            self._connection.execute("SAVEPOINT part")
            self._has_savepoint = True
        for table, rows in self._rows.items():
            self._insert(table, list(rows))

    def _insert(self, table: ManyRows, rows: list[tuple[Any, ...]]) -> None:
        """Inserts the first of those that wait, which wait no more."""
        if rows:
            table.insert(self._connection, rows)
            del self._rows[table][: len(rows)]
            self._kept[table] = max(0, self._kept.get(table, 0) - len(rows))

    def begin_part(self) -> None:
        self._kept = {table: len(rows) for table, rows in self._rows.items()}
        self._is_part, self._has_savepoint = True, False

    def keep_part(self) -> None:
        if self._has_savepoint:
            self._connection.execute("RELEASE part")
        self._is_part = self._has_savepoint = False

    def undo_part(self) -> None:
        """Raises what SQLite does when it can't go back; the transaction is lost then."""
        for table, rows in self._rows.items():
            del rows[self._kept[table] :]
        if self._has_savepoint:
            self._connection.execute("ROLLBACK TO part")
            self._connection.execute("RELEASE part")
        self._is_part = self._has_savepoint = False
