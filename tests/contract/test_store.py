"""The store: transactions, replies by request id, shared commits, and what it does with files."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import threading
from contextlib import closing, contextmanager, suppress
from dataclasses import replace

import pytest
from waiting import PATIENCE, wait_for

from league.errors import (
    AlreadyExists,
    DataCorrupt,
    InvalidInput,
    Refused,
    StorageFull,
    VersionMismatch,
)
from league.players import Book, MatchResult, Player, PlayerKind, PlayerState, SeatResult
from matchmaker.store.copies import backup
from matchmaker.store.rows import AssignmentRow, BeatRow, DrawRow, FoldRow, IncarnationRow
from matchmaker.store.schema import migrations
from matchmaker.store.sqlite import Memory, SqliteStore, once


def player(name):
    return Player(name=name, game="brawl", kind=PlayerKind.BOT, created_at=1.0)


def incarnation(worker="learner-main", **changes):
    row = IncarnationRow(
        number=0,
        worker=worker,
        player="main",
        checkpoint_step=0,
        checkpoint_log_position=0,
        opened_at=1.0,
        event_position=1,
        fenced_by=None,
    )
    return row._replace(**changes)


def assignment(ordinal, **changes):
    row = AssignmentRow(
        ordinal=ordinal,
        match_id=f"m{ordinal}",
        lease_token=f"t{ordinal}",
        incarnation=1,
        lease_state="open",
        lease_deadline=100.0,
        lease_limit=600.0,
        assigned_at=1.0,
        seat0="main",
        seat1="based",
        learner_seat=0,
        book=Book.TRAIN,
        seed=(1 << 63) - 1,
        category="based",
        mix="league",
        replaces="",
        draw=None,
        draw_seed=5,
        probability=0.1,
    )
    return row._replace(**changes)


def accepted(ordinal):
    seats = SeatResult(player="main", step_end=3, stats={"falls": 2.0}), SeatResult(player="based")
    result = MatchResult(match_id="", lease_token="", outcome=1.0, frames=9, seats=seats)
    return result, assignment(ordinal)


def add(tx, *texts):
    """Adds events; returns the position of the last one."""
    return [tx.add_event(1.0, "test", text, "{}").position for text in texts][-1]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "league.db"


@pytest.fixture
def store(path):
    store = SqliteStore(path)
    yield store
    store.close()


@pytest.fixture
def filled(store):
    with store.write() as tx:
        tx.add_player(player("main"))
        tx.add_player(player("based"))
        assert tx.add_incarnation(incarnation()) == 1
        tx.add_assignments([assignment(1), assignment(2), assignment(3)])
    return store


def texts(store):
    with store.read() as reader:
        return [event.text for event in reader.events(0, 1000)]


def test_rows_are_read_as_they_were_written(filled):
    beat = BeatRow(
        incarnation=1, at=1.0, progress=2, step=3, mix="m", activity="a", metrics_json="{}"
    )
    weights = [[f"main@{number}", (number / 7.0) ** 0.5] for number in range(200)]
    draw = DrawRow(
        number=0,
        policy_hash="h",
        log_position=1,
        event_position=2,
        stream=7,
        body_json=json.dumps(weights),
    )
    with filled.write() as tx:
        tx.set_beat(beat)
        tx.set_beat(beat._replace(progress=9))
        assert tx.add_policy("h", "{}", 1.0)
        assert not tx.add_policy("h", "{}", 2.0)
        number = tx.add_draw(draw)
        tx.update_player(replace(player("based"), state=PlayerState.RETIRED, milestone=True))
        for position in (1, 2, 3):
            fold = FoldRow(
                log_position=position, event_position=4, version=1, at=5.0, body=b"\0fold"
            )
            tx.add_fold(fold, keep=2)
    with filled.read() as reader:
        retired = replace(player("based"), state=PlayerState.RETIRED, milestone=True)
        assert reader.players() == [player("main"), retired]
        assert reader.assignment("m2") == assignment(2)
        assert reader.assignment("m9") is None
        assert reader.matches_with_prefix("m", 2) == [assignment(1), assignment(2)]
        assert reader.incarnation(1) == incarnation(number=1)
        assert reader.beat(1) == beat._replace(progress=9)
        assert reader.draw(number) == draw._replace(number=number)
        assert reader.category_counts() == {("main", "league", "based"): 3}
        assert reader.positions() == (0, 0, 3)
        assert [row.log_position for row in reader.folds()] == [3, 2]
        assert reader.folds()[0] == fold


def test_an_exception_undoes_the_whole_transaction(filled):
    ran = []

    def fail():
        with filled.write() as tx:
            tx.add_player(player("lost"))
            add(tx, "lost")
            tx.after_commit(lambda: ran.append("rolled back"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with filled.write() as tx:
        tx.after_commit(lambda: ran.append("committed"))
        assert ran == []
    assert ran == ["committed"]
    with filled.read() as reader:
        assert [p.name for p in reader.players()] == ["main", "based"]
    assert texts(filled) == []


def test_results_are_numbered_in_commit_order_with_an_event_each(filled):
    with filled.write() as tx:
        add(tx, "before")
        for ordinal in (2, 1):
            tx.add_results([accepted(ordinal)], 5.0)
    with filled.read() as reader:
        rows = list(reader.results())
        assert [(row.position, row.ordinal, row.event_position) for row in rows] == [
            (1, 2, 2),
            (2, 1, 3),
        ]
        assert (rows[0].seat0, rows[0].seat1, rows[0].book) == ("main", "based", Book.TRAIN)
        assert rows[0].stats == [{"falls": 2.0}, {}]
        assert [row.position for row in reader.results(after=1)] == [2]
        assert reader.result(1) == rows[1]
        assert [e.kind for e in reader.events(1, 9)] == ["result", "result"]


def test_a_missing_result_is_damage(filled):
    with filled.write() as tx:
        tx.add_results([accepted(ordinal) for ordinal in (1, 2, 3)], 5.0)
        triggers = tx.select("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in triggers:
            tx.select(f"DROP TRIGGER {name}")
        tx.select("DELETE FROM results WHERE position = 2")
    with filled.read() as reader, pytest.raises(DataCorrupt, match="result 2 "):
        list(reader.results())


def test_lost_results_stay_and_are_marked_once(filled):
    with filled.write() as tx:
        tx.add_results([accepted(ordinal) for ordinal in (1, 2, 3)], 5.0)
        second = tx.add_incarnation(incarnation())
        assert tx.lose_results("main", 1, second) == 2
        assert tx.lose_results("main", 0, second) == 1
    with filled.read() as reader:
        assert [row.lost_by for row in reader.results()] == [second] * 3
        assert not any(row.rated for row in reader.results())


def test_leases_close_extend_and_start_again(filled):
    def deadlines():
        with filled.read() as reader:
            return {row.ordinal: row.lease_deadline for row in reader.open_assignments(1)}

    with filled.write() as tx:
        tx.close_leases([2], "released", 7.0, "why")
        tx.extend_leases(1, 500.0)
        tx.extend_leases(1, 50.0)
    assert deadlines() == {1: 500.0, 3: 500.0}
    with filled.read() as reader:
        assert reader.open_leases(1) == (2, 500.0)
        assert reader.open_counts() == {1: 2}
        assert reader.open_assignments(until=499.0) == []
        assert [row.ordinal for row in reader.open_assignments(until=500.0)] == [1, 3]
        closed = reader.assignment("m2")
        assert (closed.lease_state, closed.closed_at, closed.close_reason) == (
            "released",
            7.0,
            "why",
        )
        assert closed.lease_deadline == 100.0
    filled.submit(lambda tx: tx.extend_leases(1, 700.0))
    assert deadlines() == {1: 600.0, 3: 600.0}, "the limit"
    filled.submit(lambda tx: tx.renew_leases(50.0, 60.0))
    assert deadlines() == {1: 50.0, 3: 50.0}


def test_fencing_marks_only_the_workers_own(filled):
    with filled.write() as tx:
        other = tx.add_incarnation(incarnation("evaluator-0"))
        newer = tx.add_incarnation(incarnation())
        assert tx.fence("learner-main", newer) == [1]
    with filled.read() as reader:
        assert reader.incarnation(1).fenced_by == newer
        assert reader.incarnation(other).fenced_by is None
        assert [row.number for row in reader.newest_incarnations()] == [other, newer]


def test_readers_and_a_writer_work_at_the_same_time(filled):
    counts = []

    def read():
        for _ in range(40):
            counts.append(len(texts(filled)))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        filled.submit(lambda tx: add(tx, "a", "b"))
    for thread in threads:
        thread.join()
    assert len(counts) == 160
    assert all(count % 2 == 0 for count in counts)


def test_a_request_takes_effect_once(store):
    def effect(tx):
        return str(add(tx, "once")).encode()

    first = store.submit(once("r1", "Method", "f", 1.0, effect))
    assert store.submit(once("r1", "Method", "f", 2.0, effect)) == first
    assert store.submit(once("r2", "Method", "f", 2.0, effect)) != first
    assert texts(store) == ["once", "once"]
    for method, fingerprint in (("Other", "f"), ("Method", "g")):
        with pytest.raises(InvalidInput, match="r1"):
            store.submit(once("r1", method, fingerprint, 1.0, effect))
    with store.write() as tx:
        assert tx.forget_requests(1.5) == 1
    assert store.submit(once("r1", "Method", "f", 9.0, lambda tx: b"again")) == b"again"


class Follower:
    """What a league's memory does: it follows commits, and is locked while it is ahead of them."""

    def __init__(self, store):
        self.store, self.seen, self.commits, self.rebuilt = store, [], 0, 0
        self.lock = threading.RLock()
        store.memory = Memory(self.lock, self.rebuild, self.committed)

    def rebuild(self):
        self.rebuilt += 1
        self.seen = texts(self.store)

    def committed(self):
        self.commits += 1

    def adds(self, text, error=None):
        """An effect that returns what memory held before it."""

        def effect(tx):
            seen = list(self.seen)
            add(tx, text)
            tx.after_commit(lambda: self.seen.append(text))
            if error is not None:
                raise error
            return seen

        return effect


@pytest.fixture
def memory(store):
    return Follower(store)


@contextmanager
def together(store, effects):
    """Submits all effects while a commit waits; yields their outcomes, filled at the block's end.

    One that is no function is the arguments of `once`.
    """
    outcomes = [None] * len(effects)
    begun, go = threading.Event(), threading.Event()

    def first(tx):
        begun.set()
        assert go.wait(PATIENCE)

    def call(number, effect):
        try:
            outcomes[number] = store.submit(effect if callable(effect) else once(*effect))
        except Exception as error:
            outcomes[number] = error

    def lead():
        with suppress(StorageFull):
            store.submit(first)

    threads = [threading.Thread(target=lead)]
    threads[0].start()
    assert begun.wait()
    for number, effect in enumerate(effects):
        threads.append(threading.Thread(target=call, args=(number, effect)))
        threads[-1].start()
        # so that they are queued in this order; the writer takes none before `go`
        wait_for(lambda queued=number + 1: store._queue.qsize() == queued)
    try:
        yield outcomes
    finally:
        go.set()
        for thread in threads:
            thread.join(PATIENCE)


def test_requests_that_wait_share_a_commit_in_order(store, memory):
    names = [f"request {number}" for number in range(6)]
    with together(store, [memory.adds(name) for name in names]) as outcomes:
        pass
    assert texts(store) == memory.seen == names
    assert memory.commits == 2
    assert outcomes == [names[:number] for number in range(6)]


def test_one_that_fails_fails_alone(store, memory):
    effects = [memory.adds("a"), memory.adds("bad", ZeroDivisionError()), memory.adds("c")]
    with together(store, effects) as outcomes:
        pass
    assert texts(store) == memory.seen == ["a", "c"]
    assert isinstance(outcomes[1], ZeroDivisionError)
    assert (outcomes[0], outcomes[2], memory.rebuilt) == ([], ["a"], 0)


def test_a_request_and_its_repetition_share_a_commit(store, memory):
    tries = []

    def once(tx):
        tries.append(add(tx, "once"))
        if len(tries) == 1:
            raise ZeroDivisionError
        return b"done"

    calls = [("r", "Method", "f", 1.0, once)] * 3 + [("r", "Method", "other", 1.0, once)]
    with together(store, [*calls, memory.adds("d")]) as outcomes:
        pass
    assert isinstance(outcomes[0], ZeroDivisionError)
    assert outcomes[1:3] == [b"done", b"done"]
    assert isinstance(outcomes[3], InvalidInput)
    assert (texts(store), len(tries)) == (["once", "d"], 2)


def test_memory_that_can_not_follow_is_rebuilt_before_the_next_request(store, memory):
    def breaks(tx):
        add(tx, "b")
        tx.after_commit(lambda: 1 / 0)

    with together(store, [memory.adds("a"), breaks, memory.adds("c")]) as outcomes:
        pass
    assert texts(store) == memory.seen == ["a", "b", "c"]
    assert (outcomes[2], memory.rebuilt) == (["a", "b"], 1)


def test_readers_never_see_memory_ahead_of_the_disk(store, memory):
    seen = []

    def look():
        with memory.lock:
            seen.append(list(memory.seen))
        seen.append(texts(store))

    reader = threading.Thread(target=look)

    def second(tx):
        reader.start()
        reader.join(0.1)
        return memory.adds("b")(tx)

    with together(store, [memory.adds("a"), second]):
        pass
    reader.join()
    assert set(seen[0]) <= set(seen[1])


def let_commits_fail(monkeypatch):
    def fail(store, db):
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr(SqliteStore, "_commit", fail)


def test_a_commit_that_fails_leaves_nothing_of_its_requests(store, memory, monkeypatch):
    with together(store, [memory.adds("a"), memory.adds("b")]) as outcomes:
        let_commits_fail(monkeypatch)
    monkeypatch.undo()
    assert [type(outcome) for outcome in outcomes] == [StorageFull] * 2
    assert texts(store) == memory.seen == []
    assert store.submit(memory.adds("d")) == []
    assert texts(store) == memory.seen == ["d"]


def test_closing_twice_is_fine_and_calls_are_refused_then(store):
    store.close()
    store.close()
    with pytest.raises(Refused), store.read():
        pass
    with pytest.raises(Refused):
        store.submit(lambda tx: None)


def test_every_commit_is_synced_to_a_write_ahead_log(store):
    with store.write() as tx:
        assert tx.select("PRAGMA journal_mode") == [("wal",)]
        assert tx.select("PRAGMA synchronous") == [(2,)]


@pytest.mark.parametrize("statement", ["UPDATE results SET outcome = 0.0", "DELETE FROM results"])
def test_the_log_is_append_only(filled, path, statement):
    filled.submit(lambda tx: tx.add_results([accepted(1)], 5.0))
    filled.close()
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        sqlite3.connect(path).execute(statement)


def test_a_second_writer_is_refused(store, path):
    with pytest.raises(Refused, match=str(path)):
        SqliteStore(path)
    store.close()
    SqliteStore(path).close()


def test_a_second_writer_by_another_name_is_refused(tmp_path, store, path):
    file, folder = tmp_path / "other.db", tmp_path / "elsewhere"
    file.symlink_to(path)
    folder.symlink_to(tmp_path)
    for name in (file, folder / path.name):
        with pytest.raises(Refused, match=str(name)):
            SqliteStore(name)
    store.close()
    for name in (file, folder / path.name):
        SqliteStore(name).close()


@pytest.mark.parametrize("linked", ["league.db", "league.db-wal"])
def test_a_file_with_several_names_is_refused_until_it_has_its_own_content(
    tmp_path, filled, path, linked
):
    """As a backup with hard links makes it: two writers would overwrite each other."""
    folder = tmp_path / "linked"
    folder.mkdir()
    for file in tmp_path.glob("league.db*"):
        copy = folder / file.name
        os.link(file, copy) if file.name == linked else shutil.copy(file, copy)
    before = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    with pytest.raises(Refused, match=str(folder / linked)) as refused:
        SqliteStore(folder / path.name)
    assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir()} == before
    subprocess.run(str(refused.value).split("`")[1], shell=True, check=True)
    filled.close()
    for one in (path, folder / path.name):
        with closing(SqliteStore(one)) as own, own.read() as reader:
            assert len(reader.players()) == 2


def test_a_write_that_a_quota_refuses_is_told_as_a_full_disk(store):
    """By a limit on files: SQLite reports both otherwise than a disk without space."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, limits[1]))
    try:
        with pytest.raises(StorageFull):
            store.submit(lambda tx: add(tx, "x" * (1 << 20)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    store.submit(lambda tx: add(tx, "after"))
    assert texts(store) == ["after"]


def test_only_its_owner_reads_a_log_and_its_copies(tmp_path):
    """It holds lease tokens."""
    path, before = tmp_path / "run" / "league.db", os.umask(0)
    try:
        with closing(SqliteStore(path)) as store:
            store.submit(lambda tx: add(tx, "text"))
            backup(path, tmp_path / "copy.db")
            files = [*path.parent.iterdir(), tmp_path / "copy.db"]
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in files}
    finally:
        os.umask(before)
    assert modes.keys() >= {"league.db", "league.db-wal", "league.db-shm", "copy.db"}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_reading_during_and_after_the_writer(filled, path):
    for _ in range(2):
        reading = SqliteStore(path, read_only=True)
        with reading.read() as reader:
            assert len(reader.players()) == 2
        with pytest.raises(Refused), reading.write():
            pass
        reading.close()
        filled.close()


@pytest.mark.parametrize("read_only", [False, True])
def test_files_that_are_no_league_of_this_version_are_refused(tmp_path, store, path, read_only):
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) "
            "VALUES ('kumite-matchmaker', 'm999_future', '')"
        )
    with pytest.raises(VersionMismatch, match="m999_future"):
        SqliteStore(path, read_only=read_only)
    noise = tmp_path / "noise.db"
    noise.write_text("no database, but long enough to look at" * 20)
    songs = tmp_path / "songs.db"
    with sqlite3.connect(songs) as connection:
        connection.execute("CREATE TABLE songs (title)")
    for other in (noise, songs):
        before = other.read_bytes()
        with pytest.raises(DataCorrupt, match=str(other)):
            SqliteStore(other, read_only=read_only)
        assert not other.with_name(f"{other.name}.lock").exists()
        assert other.read_bytes() == before


def test_an_older_file_is_migrated(filled, path, monkeypatch):
    monkeypatch.setattr(migrations, "_migrations", list(migrations._migrations))
    filled.close()

    @migrations()
    def m002_second(db):
        db.table("players").add_column("motto", str, not_null_default="")

    with pytest.raises(VersionMismatch, match="m002_second"):
        SqliteStore(path, read_only=True)
    store = SqliteStore(path)
    with store.read() as reader:
        assert reader.select("SELECT name, motto FROM players") == [("main", ""), ("based", "")]
        assert reader.players() == [player("main"), player("based")]
    store.close()


def test_a_backup_of_a_log_that_is_written_is_whole(filled, path, tmp_path):
    filled.submit(lambda tx: tx.add_results([accepted(1)], 5.0))
    copy = tmp_path / "copy.db"
    assert backup(path, copy) == 1
    assert sorted(file.name for file in tmp_path.iterdir() if "copy" in file.name) == ["copy.db"]
    store = SqliteStore(copy, read_only=True)
    with store.read() as reader:
        assert [row.match_id for row in reader.results()] == ["m1"]
    store.close()
    with pytest.raises(AlreadyExists, match=str(copy)):
        backup(path, copy)
    with pytest.raises(InvalidInput):
        backup(path, tmp_path / "nowhere" / "copy.db")
