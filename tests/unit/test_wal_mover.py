"""The write-ahead log is moved into the file beside the writer, also when the writer never
rests.
"""

from __future__ import annotations

import sqlite3
import threading
import time

import pytest

from matchmaker.store import wal
from matchmaker.store.wal import WalMover

ROWS = 200


class File:
    """A database with a writer that leaves its log alone, and a mover."""

    def __init__(self, path) -> None:
        self.path, self.lock, self.held = path, threading.RLock(), 0
        self.writer = self.connect()
        self.writer.execute("PRAGMA journal_mode = WAL")
        self.writer.execute("PRAGMA wal_autocheckpoint = 0")
        self.writer.execute("CREATE TABLE things (thing BLOB)")
        self.mover = WalMover(self.connect, self.counted())

    def connect(self):
        return sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)

    def counted(self):
        file = self

        class Counted:
            def __enter__(self):
                file.held += 1
                return file.lock.__enter__()

            def __exit__(self, *error):
                return file.lock.__exit__(*error)

        return Counted()

    def write(self, rows: int) -> None:
        with self.lock:
            self.writer.execute("BEGIN")
            self.writer.executemany("INSERT INTO things VALUES (?)", [(bytes(2000),)] * rows)
            self.writer.execute("COMMIT")
        self.mover.look(self.writer.total_changes)

    def moved(self) -> int:
        """Bytes that are in the file itself."""
        return self.path.stat().st_size

    def close(self) -> None:
        self.mover.close()
        self.writer.close()


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(wal, "CHANGES", ROWS)
    made = File(tmp_path / "things.db")
    yield made
    made.close()


def wait_until(holds):
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_nothing_is_moved_before_there_is_much(file):
    file.write(ROWS - 1)
    assert not any(thread.name == "wal-mover" for thread in threading.enumerate())
    assert file.moved() < 20_000


def test_much_is_moved_while_the_writer_is_free(file):
    file.write(ROWS)
    wait_until(lambda: file.moved() >= ROWS * 2000)
    assert file.held == 0
    file.write(ROWS)
    wait_until(lambda: file.moved() >= 2 * ROWS * 2000)


def test_a_log_that_grew_long_is_finished_while_the_writer_waits(file, monkeypatch):
    monkeypatch.setattr(wal, "LONG_PAGES", 50)
    file.write(ROWS)
    wait_until(lambda: file.held == 1)
    file.mover.close()
    before = (file.path.parent / "things.db-wal").stat().st_size
    file.write(10)  # the log starts anew: it does not grow
    assert (file.path.parent / "things.db-wal").stat().st_size == before


def test_a_mover_that_fails_says_so_and_goes_on(file, monkeypatch, caplog):
    connect, failures = file.mover._connect, []

    def fails_once():
        if not failures:
            failures.append(1)
            raise sqlite3.OperationalError("disk I/O error")
        return connect()

    file.mover._connect = fails_once
    file.write(ROWS)
    wait_until(lambda: "could not be moved: disk I/O error" in caplog.text)
    file.write(ROWS)
    wait_until(lambda: file.moved() >= ROWS * 2000)


def test_closing_waits_for_a_move_and_twice_is_fine(file, monkeypatch):
    move, began, moved = wal._move, threading.Event(), []

    def slowly(connection):
        began.set()
        time.sleep(0.2)
        moved.append(move(connection))
        return moved[-1]

    monkeypatch.setattr(wal, "_move", slowly)
    file.write(ROWS)
    assert began.wait(20)
    file.mover.close()
    assert len(moved) == 1
    file.mover.close()
    file.write(ROWS)
    assert len(moved) == 1
