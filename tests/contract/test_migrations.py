"""A file of an older version is brought to this one: nothing of it is lost, and a copy is kept
as it was.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from league.clock import ManualClock
from league.errors import StorageFull, VersionMismatch
from league.players import Book, MatchResult, SeatResult
from league.rpc.client import MatchmakerClient
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings
from matchmaker.store.schema import known_migrations
from matchmaker.store.sqlite import SqliteStore
from matchmaker.tools import invariants

FILES = sorted(Path(__file__).parent.glob("m[0-9][0-9][0-9].sql"))
"""One for each older version, with the same rows."""
STATS = {"main": {"falls": 2.0, "damage": 0.1}, "main@1000": {"damage": 1e-300}}


def made(path, file):
    connection = sqlite3.connect(path)
    connection.executescript(file.read_text())
    connection.close()
    return path


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def old(tmp_path, request):
    return made(tmp_path / "league.db", request.param)


def test_there_is_a_file_of_every_older_version():
    assert [file.stem for file in FILES] == [
        name.partition("_")[0] for name in known_migrations()[:-1]
    ]


def schema(path):
    """Every table, index and trigger with its text, but for the library's own."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        found = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")
        return {row for row in found if row[2] != "_sqlite_migrations"}
    finally:
        connection.close()


def test_an_older_file_gets_what_a_new_one_has(old):
    SqliteStore(old).close()
    SqliteStore(new := old.with_name("new.db")).close()
    assert schema(old) == schema(new)


def contents(path):
    """Every row of every table, as text."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


def migrations_of(path):
    """Migrations that a file has been through."""
    (count,) = sqlite3.connect(path).execute("SELECT count(*) FROM _sqlite_migrations").fetchone()
    return count


def test_the_copy_beside_it_is_the_file_as_it_was(old):
    before = contents(old)
    pending = known_migrations()[migrations_of(old)]
    SqliteStore(old).close()
    copy = old.with_name(f"league.db.before-{pending}")
    assert {copy.name} == {path.name for path in old.parent.glob("*before*")}
    assert contents(copy) == before
    assert contents(old) != before


def test_results_keep_every_number(old):
    store = SqliteStore(old)
    with store.read() as reader:
        first, second = reader.results()
        assert (first.step0, first.end_step0, first.step1, first.end_step1) == (10, 20, 1000, 1000)
        assert (second.step0, second.end_step0, second.step1, second.end_step1) == (0, 0, 11, 21)
        assert reader.stats(first) == (STATS["main"], STATS["main@1000"])
        assert reader.stats(second) == ({}, {})
    store.close()
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        sqlite3.connect(old).execute("UPDATE results SET step0 = 1")


def test_a_served_league_goes_on_where_it_was(old):
    settings = MatchmakerSettings()
    with (
        MatchmakerServer(old, settings=settings, clock=ManualClock(5.0)) as server,
        MatchmakerClient(server.address, wait_seconds=5) as client,
    ):
        seats = (SeatResult(player="main", stats={"falls": 1.0}), SeatResult(player="based"))
        result = MatchResult(match_id="m3", lease_token="t3", outcome=0.0, frames=9, seats=seats)
        (verdict,), position = client.report_results(1, [result])
        assert (verdict.accepted, position) == (True, 3)
        assert client.match("m1").result.seats[0].stats == STATS["main"]
        assert client.match("m3").result == replace(result, lease_token="")
        told = _events(client, 3)
        assert [event.position for event in told] == list(range(1, len(told) + 1))
        assert [event.text for event in told if event.kind == "result"] == [
            "main beats main@1000",
            "based draws with main",
            "main loses to based",
        ]
        assert {r.player.name: r.games for r in client.ratings(Book.TRAIN)}["main"] == 3
        with server.store.read() as reader:
            assert invariants.full_scan(reader) == []


def test_progress_extends_the_leases_of_an_old_file(old):
    settings, clock = MatchmakerSettings(), ManualClock(5.0)
    with (
        MatchmakerServer(old, settings=settings, clock=clock) as server,
        MatchmakerClient(server.address, wait_seconds=5) as client,
    ):
        client.heartbeat(1, 1)
        clock.advance(settings.lease_seconds - 1.0)
        client.heartbeat(1, 2)
        clock.advance(settings.lease_seconds - 1.0)
        assert server.sweep() == 0
        assert client.match("m3").lease_state == "open"
        clock.advance(2.0)
        assert server.sweep() == 1
        assert client.match("m3").lease_state == "expired"


def _events(client, results):
    """From the first one to that of the last of so many results."""
    found = []
    for event in client.watch():
        found.append(event)
        if [one.kind for one in found].count("result") == results:
            return found
    raise AssertionError("the stream ended")


def test_it_is_not_read_before_it_was_migrated(old):
    before = contents(old)
    with pytest.raises(VersionMismatch, match="older version"):
        SqliteStore(old, read_only=True)
    assert contents(old) == before
    assert list(old.parent.iterdir()) == [old]


def test_what_can_not_be_copied_is_not_touched(old, monkeypatch):
    before = contents(old)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("matchmaker.store.opening.os.fsync", full)
        with pytest.raises(StorageFull, match="no space left"):
            SqliteStore(old)
    assert contents(old) == before
    assert not list(old.parent.glob("*before*"))
    SqliteStore(old).close()


def test_a_migration_that_breaks_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    old = made(tmp_path / "league.db", FILES[0])
    before = contents(old)
    with monkeypatch.context() as patch:
        patch.setattr("matchmaker.store.schema._packed", lambda *_: 1 / 0)
        with pytest.raises(Exception, match="user-defined function raised"):
            SqliteStore(old)
    assert contents(old) == before
    SqliteStore(old).close()
    assert len(known_migrations()) > 1


def test_a_new_league_has_nothing_to_copy(tmp_path):
    SqliteStore(tmp_path / "league.db").close()
    SqliteStore(tmp_path / "league.db").close()
    assert not list(tmp_path.glob("*before*"))
