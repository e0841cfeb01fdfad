"""The SQLite store keeps the contract of stores, and its own promises about files."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest
from group_contract import GroupContract
from store_contract import StoreContract, assignment, draw_of, event, many_candidates, result

from league.errors import DataCorrupt, NotFound, Refused, StorageFull, VersionMismatch
from matchmaker.store.sqlite import SqliteStore
from matchmaker.store.transaction import SqliteTransaction


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def path(self, tmp_path):
        return tmp_path / "league.db"

    @pytest.fixture
    def store(self, path):
        store = SqliteStore(path)
        yield store
        store.close()

    def test_every_commit_is_synced_to_a_write_ahead_log(self, store):
        with store.write() as tx:
            assert tx.select("PRAGMA journal_mode") == [("wal",)]
            assert tx.select("PRAGMA synchronous") == [(2,)]

    @pytest.mark.parametrize(
        "statement", ["UPDATE results SET outcome = 0.0", "DELETE FROM results"]
    )
    def test_the_log_is_append_only(self, filled, path, statement):
        with filled.write() as tx:
            tx.add_results([(result("m1"), assignment(1), False)], 5.0)
        filled.close()
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            sqlite3.connect(path).execute(statement)

    def test_a_second_writer_is_refused(self, store, path):
        with pytest.raises(Refused, match="another matchmaker"):
            SqliteStore(path)
        store.close()
        SqliteStore(path).close()

    def test_reading_beside_the_writer_and_after_it(self, filled, path):
        for _ in range(2):
            reader_store = SqliteStore(path, read_only=True)
            with reader_store.read() as reader:
                assert len(reader.players()) == 2
            with pytest.raises(Refused, match="only reads"), reader_store.write():
                pass
            reader_store.close()
            filled.close()

    def test_reading_what_is_not_there(self, tmp_path):
        with pytest.raises(NotFound, match="no league"):
            SqliteStore(tmp_path / "none.db", read_only=True)

    def test_a_newer_versions_file_is_refused(self, store, path):
        store.close()
        with sqlite3.connect(path) as connection:
            connection.execute(
                "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) "
                "VALUES ('kumite-matchmaker', 'm999_future', '')"
            )
        for read_only in (False, True):
            with pytest.raises(VersionMismatch, match="m999_future"):
                SqliteStore(path, read_only=read_only)

    def test_an_older_versions_file_is_not_read_without_migration(self, store, path):
        store.close()
        with sqlite3.connect(path) as connection:
            connection.execute("DELETE FROM _sqlite_migrations")
        with pytest.raises(VersionMismatch, match="older version"):
            SqliteStore(path, read_only=True)

    def test_a_file_that_is_no_database_is_refused(self, path):
        path.write_text("hello, this is certainly no database, but long enough to look at" * 20)
        with pytest.raises(DataCorrupt, match="SQLite"):
            SqliteStore(path)

    def test_somebody_elses_database_is_refused(self, path):
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE songs (title)")
        with pytest.raises(DataCorrupt, match="no league's"):
            SqliteStore(path)

    def test_a_full_disk_loses_nothing_that_was_acknowledged(self, filled, path):
        pages = filled._writer.execute("PRAGMA page_count").fetchone()[0]
        filled._writer.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StorageFull, match="no space"):
            filled.once("big", "Method", "f", 1.0, lambda tx: b"x" * 200_000)
        filled._writer.execute("PRAGMA max_page_count = 100000")
        with filled.write() as tx:
            tx.add_events([event("after")])
        with filled.read() as reader:
            assert [e.text for e in reader.events(0, 10)] == ["after"]
            assert reader.select("PRAGMA integrity_check") == [("ok",)]

    def test_draws_take_less_room_than_their_text_and_older_ones_are_read(self, store, path):
        body = many_candidates()
        with store.write() as tx:
            tx.add_policy("h", "{}", 1.0)
            number = tx.add_draw(draw_of(body))
            tx._connection.execute("INSERT INTO draws SELECT 99, 'h', 1, 2, ?, NULL", (body,))
        with store.read() as reader:
            (kept,) = reader.select(
                "SELECT length(body_json) FROM draws WHERE number = :n", n=number
            )[0]
            assert kept < len(body) / 2
            assert reader.draw(99) == replace(draw_of(body), number=99)


class TestSqliteGroup(GroupContract):
    @pytest.fixture
    def store(self, tmp_path, monkeypatch):
        self.monkeypatch = monkeypatch
        store = SqliteStore(tmp_path / "league.db")
        yield store
        store.close()

    def let_commits_fail(self, store, fails):
        def raised(transaction):
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error

        if fails:
            self.monkeypatch.setattr(SqliteTransaction, "commit", raised)
        else:
            self.monkeypatch.undo()

    def test_near_a_full_disk_a_commit_that_fails_moves_no_memory(self, store, memory, monkeypatch):
        monkeypatch.setattr("matchmaker.store.opening.ROOM_BYTES", 1 << 80)
        effects = [self.adds(memory, name) for name in "abc"]
        with self.together(store, effects) as outcomes:
            self.let_commits_fail(store, True)
        self.let_commits_fail(store, False)
        assert [type(outcome) for outcome in outcomes] == [StorageFull] * 3
        assert (memory.rebuilt, memory.seen) == (0, [])
        with self.together(store, effects) as outcomes:
            pass
        assert outcomes == [[], ["a"], ["a", "b"]]
