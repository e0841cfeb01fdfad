"""A restart goes on from what memory held, and it is what the whole log gives; what is torn is
noticed.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from small_league import bot, learner_wins, live, played, small_league, snapshot

from league.clock import ManualClock
from league.players import Book
from matchmaker.acts import assign as assigning
from matchmaker.acts import incarnate as incarnations
from matchmaker.acts import register as registration
from matchmaker.acts import report as reporting
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings
from matchmaker.state import aggregates
from matchmaker.state.books import Books
from matchmaker.state.league import League
from matchmaker.store.reader import SqliteReader
from matchmaker.store.sqlite import SqliteStore
from matchmaker.tools import invariants


class Run:
    """A league's domain without its service: what is kept is kept by hand."""

    def __init__(self, folder: str) -> None:
        self.path, self.clock = Path(folder) / "league.db", ManualClock()
        self.start()
        self.write(registration.register_players, [bot("random"), live(), snapshot(1000)])
        self.number = self.write(
            incarnations.open_incarnation, "learner-main", "main", 0, 0, []
        ).number
        self.step = 1000

    def start(self) -> None:
        self.store = SqliteStore(self.path)
        self.league = League(self.store, MatchmakerSettings(), self.clock)
        self.league.open(seed=3)

    def write(self, operation, *arguments):
        return self.store.submit(lambda tx: operation(self.league, tx, *arguments))

    def plays(self, outcomes: list[float | None]) -> None:
        """None: the match failed."""
        matches = self.write(assigning.acquire_matches, self.number, len(outcomes), "league")
        results = [
            replace(played(match, 0.5 if outcome is None else outcome), failed=outcome is None)
            for match, outcome in zip(matches, outcomes, strict=True)
        ]
        self.write(reporting.report_results, self.number, results)

    def goes_back(self, share: float) -> None:
        position = int(share * self.league.view.log_position)
        opened = self.write(incarnations.open_incarnation, "learner-main", "main", 0, position, [])
        self.number = opened.number

    def saves_a_snapshot(self) -> None:
        self.step += 1000
        self.write(registration.register_players, [snapshot(self.step)])

    def keeps(self) -> None:
        aggregates.keep(self.league, 1)

    def restarts(self) -> None:
        self.store.close()
        self.start()

    def check(self) -> None:
        view = self.league.view
        with self.store.read() as reader:
            assert view.books.state()["tables"] == Books.of(reader).state()["tables"]
            assert view.drawn == {
                tuple(key): count for *key, count in map(tuple, reader.category_counts())
            }
            assert list(aggregates.differing(reader)) == []


OUTCOMES = st.sampled_from([0.0, 0.5, 1.0, None])
STEPS = st.one_of(
    st.tuples(st.just("plays"), st.lists(OUTCOMES, min_size=1, max_size=6)),
    st.tuples(st.just("goes_back"), st.floats(0.0, 1.0)),
    st.tuples(st.sampled_from(["saves_a_snapshot", "keeps", "keeps", "restarts", "restarts"])),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(STEPS, max_size=14))
@example([("plays", [1.0, 0.0, 0.5]), ("keeps",), ("goes_back", 0.4), ("plays", [1.0])])
def test_memory_is_what_the_log_gives_whatever_was_kept_when(steps):
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder)
        for name, *arguments in [*steps, ("restarts",)]:
            getattr(run, name)(*arguments)
            run.check()
        run.store.close()


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A league that was stopped with 30 results, and then went on until it was killed with 40."""
    monkeypatch.setattr(aggregates, "FEWEST", 10)
    with small_league(tmp_path) as league:
        league.play(league.open(), 30)
    with small_league(tmp_path) as league:
        league.play(league.open(checkpoint=30), 10)
        monkeypatch.setattr(aggregates, "FEWEST", 1_000)
    return tmp_path / "league.db"


def change(path, sql, *values):
    with sqlite3.connect(path) as connection:
        connection.execute(sql, values)


def served(path):
    """How many results each start folds, and what its ratings are."""
    folded = []
    results = SqliteReader.results

    def counting(reader, after=0, until=None):
        for row in results(reader, after, until):
            folded.append(row.position)
            yield row

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matchmaker.store.reader.SqliteReader.results", counting)
        server = MatchmakerServer(path, settings=MatchmakerSettings(), clock=ManualClock())
        count = len(folded)
    with server.store.read() as reader:
        same = server.league.view.books.state()["tables"] == Books.of(reader).state()["tables"]
        findings = invariants.full_scan(reader)
    server.stop()
    return count, same, findings


def test_a_start_folds_only_what_came_since(kept):
    assert served(kept) == (10, True, [])


def test_what_is_torn_is_noticed_and_folded_from_the_log(kept, caplog):
    (body,) = sqlite3.connect(kept).execute("SELECT body FROM aggregates").fetchone()
    for place in (0, len(body) // 2, len(body) - 1):
        torn = body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
        change(kept, "UPDATE aggregates SET body = ?", torn)
        count, same, findings = served(kept)
        assert (count, same) == (40, True)
        assert findings == ["what was kept at log position 30 is torn"]
    change(kept, "UPDATE aggregates SET body = ?", body[: len(body) // 2])
    assert served(kept)[:2] == (40, True)
    assert "torn" in caplog.text


def test_fsck_finds_what_the_log_does_not_give(kept):
    connection = sqlite3.connect(kept)
    (body,) = connection.execute("SELECT body FROM aggregates").fetchone()
    connection.close()
    wrong = json.loads(zlib.decompress(body))
    wrong["drawn"][0][-1] += 1
    packed = zlib.compress(json.dumps(wrong).encode())
    store = SqliteStore(kept)
    with store.write() as tx:
        (row,) = tx.aggregates()
        digest = aggregates.digest(tx, row.log_position, row.event_position, packed)
        tx.add_aggregates(replace(row, body=packed, digest=digest))
    with store.read() as reader:
        assert invariants.full_scan(reader) == [
            "what was kept at log position 30 is not what the log gives"
        ]
    store.close()


def test_another_leagues_or_versions_are_passed_over(kept, tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    with small_league(tmp_path / "other") as league:
        league.play(league.open(), 35, outcome=lambda match: 0.5)
    other = tmp_path / "other" / "league.db"
    with sqlite3.connect(other) as connection:
        connection.execute(f"ATTACH '{kept}' AS there")
        connection.execute("INSERT INTO main.aggregates SELECT * FROM there.aggregates")
    assert served(other)[:2] == (35, True)
    monkeypatch.setattr(aggregates, "version", lambda: "another")
    assert served(kept) == (40, True, [])


def test_it_is_kept_when_enough_came_since(tmp_path, monkeypatch):
    monkeypatch.setattr(aggregates, "EVERY", 20)
    monkeypatch.setattr(aggregates, "KEPT", 2)
    with small_league(tmp_path) as league:
        number, at = league.open(), []
        for _ in range(8):
            league.play(number, 10)
            league.server.sweep()
            with league.server.store.read() as reader:
                at.append([row.log_position for row in reader.aggregates()])
    assert at == [[], [20], [20], [40, 20], [40, 20], [60, 40], [60, 40], [80, 60]]


def test_a_learner_that_goes_back_takes_the_newest_that_it_did_not_leave(tmp_path):
    with small_league(tmp_path) as league:
        number = league.open()
        for _ in range(3):
            league.play(number, 10, outcome=learner_wins)
            aggregates.keep(league.server.league, 1)
        league.open(checkpoint=25)
        with league.server.store.read() as reader:
            assert [row.log_position for row in reader.aggregates()] == [20, 10]
        assert sum(rating.games for rating in league.client.ratings(Book.TRAIN)) == 2 * 25
