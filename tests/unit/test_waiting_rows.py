"""Rows that wait: at the commit the table is as if each had been inserted when it was added."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmaker.store.waiting import ManyRows, WaitingRows

ONE, TWO = ManyRows("one", ("number", "text")), ManyRows("two", ("number",))
_step = st.sampled_from(("one", "two", "execute"))
# what it does, and whether it is kept
_part = st.tuples(st.lists(_step, max_size=5), st.booleans())


def made() -> tuple[sqlite3.Connection, WaitingRows]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE one (number INTEGER PRIMARY KEY, text TEXT)")
    connection.execute("CREATE TABLE two (number INTEGER PRIMARY KEY)")
    connection.execute("CREATE TABLE log (number INTEGER, seen INTEGER)")
    connection.execute("BEGIN IMMEDIATE")
    return connection, WaitingRows(connection, (ONE, TWO))


def numbers(connection: sqlite3.Connection, table: str) -> list[int]:
    return [
        number for (number,) in connection.execute(f"SELECT number FROM {table} ORDER BY number")
    ]


@given(st.lists(_part, max_size=8))
def test_kept_parts_are_there_and_undone_ones_are_not(parts: list[tuple[list[str], bool]]) -> None:
    connection, waiting = made()
    expected: dict[str, list[int]] = {"one": [], "two": [], "log": []}
    number = 0
    for steps, is_kept in parts:
        waiting.begin_part()
        mine: dict[str, list[int]] = {"one": [], "two": [], "log": []}
        for step in steps:
            number += 1
            if step == "execute":
                waiting.settle()
                connection.execute(
                    "INSERT INTO log VALUES (?, (SELECT count(*) FROM one))", (number,)
                )
                mine["log"].append(number)
                (seen,) = connection.execute(
                    "SELECT seen FROM log WHERE number = ?", (number,)
                ).fetchone()
                assert seen == len(expected["one"]) + len(mine["one"]), (
                    "what waits is seen by what is asked"
                )
            else:
                table, values = (ONE, (number, "x")) if step == "one" else (TWO, (number,))
                waiting.add(table, [values])
                mine[step].append(number)
        if is_kept:
            waiting.keep_part()
            for table_name, found in mine.items():
                expected[table_name] += found
        else:
            waiting.undo_part()
    waiting.settle()
    connection.execute("COMMIT")
    assert {table: numbers(connection, table) for table in expected} == expected


def test_a_part_that_only_adds_makes_no_statement() -> None:
    connection, waiting = made()
    said: list[str] = []
    connection.set_trace_callback(said.append)
    for number in range(40):
        waiting.begin_part()
        waiting.add(ONE, [(number, "x")])
        waiting.keep_part()
    assert said == []
    waiting.settle()
    assert [line.partition(" VALUES")[0] for line in said] == ["INSERT INTO one (number, text)"] * 2


def test_a_row_that_cannot_be_inserted_is_an_error_at_once_and_at_the_commit() -> None:
    connection, waiting = made()
    waiting.begin_part()
    waiting.add(TWO, [(1,), (1,)])
    waiting.keep_part()
    for _ in range(2):
        with pytest.raises(sqlite3.IntegrityError):
            waiting.settle()
    connection.execute("ROLLBACK")
