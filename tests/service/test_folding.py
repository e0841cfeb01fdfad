"""A restart continues from the newest stored fold, and memory is what the whole log gives."""

from __future__ import annotations

import json
import sys
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ratings_league import at_step
from small_league import bot, learner_wins, live, played, report, small_league, snapshot
from waiting import wait_for

from league.clock import ManualClock
from league.errors import LeagueError
from league.players import Book, Pairing
from matchmaker import limits
from matchmaker.acts import assign as assigning
from matchmaker.acts import incarnate as incarnations
from matchmaker.acts import players as registration
from matchmaker.acts import report as reporting
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings
from matchmaker.state import folding
from matchmaker.state.books import Books
from matchmaker.state.league import League
from matchmaker.store.pairings import leased
from matchmaker.store.sqlite import SqliteStore
from matchmaker.store.transaction import Reader
from matchmaker.tools.fsck import fsck


def counted(books: Books) -> dict[str, object]:
    """Everything but the positions up to which the log was folded."""
    return {key: value for key, value in books.state().items() if not key.endswith("_position")}


class Run:
    """A league's domain without its service: folds are stored by hand."""

    def __init__(self, folder: str) -> None:
        self.path, self.clock = Path(folder) / "league.db", ManualClock()
        self.start()
        self.write(registration.register_players, [bot("random"), live(), snapshot(1000)])
        self.goes_back(0.0)
        self.step = 1000

    def start(self) -> None:
        self.store = SqliteStore(self.path)
        self.league = League(self.store, MatchmakerSettings(), self.clock)
        self.league.open(seed=3)

    def write(self, operation, *arguments):
        return self.store.submit(lambda tx: operation(self.league, tx, *arguments))

    def plays(self, outcomes: list[float | None], payoff: float = 0.0) -> None:
        """None: the match failed. Each later one is of more learner steps; 0: no payoffs."""
        matches = self.write(assigning.acquire_matches, self.number, len(outcomes), "league")
        results = [
            at_step(
                replace(played(match, 0.5 if outcome is None else outcome), failed=outcome is None),
                self.step + 333 * place,
            )
            for place, (match, outcome) in enumerate(zip(matches, outcomes, strict=True))
        ]
        if payoff:
            results = [
                replace(
                    one,
                    seats=tuple(
                        replace(s, stats={"payoff": paid})
                        for s, paid in zip(one.seats, (payoff, -payoff), strict=True)
                    ),
                )
                for one in results
            ]
        self.write(reporting.report_results, self.number, results)

    def evaluates(self, amounts: list[float]) -> None:
        """Pairs of clean matches with these numbers, one of a kind that only some matches have."""
        number, *_ = self.write(incarnations.open_incarnation, "evaluator-0", "", 0, 0, [])
        pairing = Pairing(
            player="main@1000", opponent="random", pairs=len(amounts), book=Book.EVAL, seed=1
        )
        matches = self.write(assigning.acquire_pairings, number, [pairing])
        results = []
        for place, match in enumerate(matches):
            stats = {"damage": amounts[place // 2]} | ({"falls": 0.1} if place % 3 else {})
            result = played(match, 1.0)
            seats = tuple(replace(seat, stats=stats) for seat in result.seats)
            results.append(replace(result, seats=seats))
        self.write(reporting.report_results, number, results)

    def goes_back(self, share: float) -> None:
        position = int(share * self.league.view.log_position)
        self.number, *_ = self.write(
            incarnations.open_incarnation, "learner-main", "main", 0, position, []
        )

    def saves_a_snapshot(self) -> None:
        self.step += 1000
        self.write(registration.register_players, [snapshot(self.step)])

    def keeps(self) -> None:
        self.league.store_fold(1)

    def restarts(self) -> None:
        self.store.close()
        self.start()

    def check(self) -> None:
        view = self.league.view
        with self.store.read() as reader:
            assert counted(view.books) == counted(Books.of(reader))
            assert view.drawn == reader.category_counts()
            assert view.paired == leased(reader)
            assert list(folding.differing(reader)) == []


OUTCOMES = st.sampled_from([0.0, 0.5, 1.0, None])
STEPS = st.one_of(
    st.tuples(st.just("plays"), st.lists(OUTCOMES, min_size=1, max_size=6)),
    st.tuples(st.just("plays"), st.lists(OUTCOMES, min_size=1, max_size=6), st.floats(-1e3, 1e3)),
    st.tuples(st.just("evaluates"), st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=4)),
    st.tuples(st.just("goes_back"), st.floats(0.0, 1.0)),
    st.tuples(st.sampled_from(["saves_a_snapshot", "keeps", "keeps", "restarts", "restarts"])),
)


@settings(max_examples=12, deadline=None)
@given(st.lists(STEPS, max_size=14))
@example([("plays", [1.0, 0.0, 0.5]), ("keeps",), ("goes_back", 0.4), ("plays", [1.0])])
@example([("evaluates", [0.1, 0.7]), ("keeps",), ("restarts",), ("evaluates", [0.2, 1e-9])])
def test_memory_is_what_the_log_gives_whatever_was_kept_when(steps):
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder)
        for name, *arguments in [*steps, ("restarts",)]:
            getattr(run, name)(*arguments)
            run.check()
        run.store.close()


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A league with a fold of 30 results, that was killed with 40."""
    monkeypatch.setattr(folding, "FEWEST", 10)
    with small_league(tmp_path) as league:
        league.play(league.open(), 30)
    with small_league(tmp_path) as league:
        league.play(league.open(checkpoint=30), 10)
        monkeypatch.setattr(folding, "FEWEST", 1_000)
    return tmp_path / "league.db"


def folded_by_a_start(path):
    """How many results a start folds; its ratings are those of the log."""
    folded = []
    results = Reader.results

    def counting(reader, after=0, until=1 << 62):
        for row in results(reader, after, until):
            folded.append(row.position)
            yield row

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reader, "results", counting)
        server = MatchmakerServer(path, settings=MatchmakerSettings(), clock=ManualClock())
        count = len(folded)
    with server.store.read() as reader:
        assert counted(server.league.view.books) == counted(Books.of(reader))
    server.stop()
    return count


def test_a_start_folds_only_what_came_since_a_fold_of_its_version(stored, monkeypatch):
    assert folded_by_a_start(stored) == 10
    monkeypatch.setattr(folding, "VERSION", folding.VERSION + 1)
    assert folded_by_a_start(stored) == 40


def test_fsck_finds_a_fold_that_the_log_does_not_give(stored):
    store = SqliteStore(stored)
    with store.write() as tx:
        (row,) = tx.folds()
        wrong = json.loads(zlib.decompress(row.body))
        wrong["drawn"][0][-1] += 1
        tx.add_fold(row._replace(body=zlib.compress(json.dumps(wrong).encode())), keep=8)
    store.close()
    (finding,) = fsck(stored)[0]
    assert "log position 30" in finding


def test_a_fold_with_an_anchor_is_what_the_log_gives(tmp_path):
    with small_league(tmp_path) as league:
        league.play(league.open(), 5)
        league.client.pin_rating("random", 12.0, "anna")
        league.server.league.store_fold(1)
    assert fsck(tmp_path / "league.db")[0] == []


def test_folds_are_stored_when_enough_came_since(tmp_path, monkeypatch):
    monkeypatch.setattr(folding, "EVERY", 20)
    monkeypatch.setattr(folding, "KEPT", 2)
    with small_league(tmp_path) as league:
        number, at = league.open(), []
        for _ in range(8):
            league.play(number, 10)
            league.server.store_fold()
            with league.server.store.read() as reader:
                at.append([row.log_position for row in reader.folds()])
    assert at == [[], [20], [20], [40, 20], [40, 20], [60, 40], [60, 40], [80, 60]]


def test_a_learner_that_returns_to_a_checkpoint_drops_the_folds_after_it(tmp_path):
    with small_league(tmp_path) as league:
        number = league.open()
        for _ in range(3):
            league.play(number, 10, outcome=learner_wins)
            league.server.league.store_fold(1)
        league.open(checkpoint=25)
        with league.server.store.read() as reader:
            assert [row.log_position for row in reader.folds()] == [20, 10]
        assert sum(rating.games for rating in league.client.ratings(Book.TRAIN)) == 2 * 25


def stored_positions(server):
    with server.store.read() as reader:
        return [row.log_position for row in reader.folds()]


@pytest.fixture
def slow_python(tmp_path, monkeypatch):
    """Holds back what modules that run as a program print, which is `made`, until the file `go` is
    there.
    """
    script = tmp_path / "python"
    script.write_text(
        f'#!/bin/sh\n[ "$1" = -m ] || exec {sys.executable} "$@"\ncd {tmp_path}\n'
        f'{sys.executable} "$@" > output && touch made\n'
        "while [ ! -e go ]; do sleep 0.02; done\ncat output\n"
    )
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    monkeypatch.setattr(folding, "EVERY", 10)
    return tmp_path


@contextmanager
def storing(server):
    """A fold is made meanwhile."""
    with ThreadPoolExecutor(1) as executor:
        done = executor.submit(server.store_fold)
        yield
        done.result()


@pytest.mark.parametrize("meanwhile", ["more results", "a restart", "a quarantine"])
def test_the_league_goes_on_while_a_fold_is_made(tmp_path, slow_python, meanwhile):
    with small_league(tmp_path) as league:
        number = league.open()
        league.play(number, 15)
        evaluates(league, 3)
        with storing(league.server):
            wait_for((slow_python / "made").exists)
            if meanwhile == "a restart":
                number = league.open(checkpoint=5)
            elif meanwhile == "a quarantine":
                assert league.client.quarantine_worker("evaluator-0", "an old build", "anna") == 6
            league.play(number, 3)
            (slow_python / "go").touch()
        assert stored_positions(league.server) == ([21] if meanwhile == "more results" else [])
    assert fsck(tmp_path / "league.db")[0] == []


def evaluates(league, pairs):
    """Two clean matches for each pair."""
    number = league.client.open_incarnation("evaluator-0").number
    pairing = Pairing(player="main@1000", opponent="random", pairs=pairs, book=Book.EVAL, seed=1)
    matches = league.client.acquire_pairings(number, [pairing])
    report(league, number, *[played(match) for match in matches])


def test_a_stop_does_not_wait_for_a_fold(tmp_path, slow_python):
    with small_league(tmp_path) as league:
        league.play(league.open(), 20)
    server = MatchmakerServer(
        tmp_path / "league.db", settings=MatchmakerSettings(), clock=ManualClock()
    )
    with storing(server):
        wait_for((slow_python / "made").exists)
        server.stop()
    assert not (slow_python / "go").exists()


def test_a_matchmaker_stores_folds_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(folding, "EVERY", 10)
    monkeypatch.setattr(limits, "SWEEP_SECONDS", 0.1)
    with small_league(tmp_path) as league:
        league.play(league.open(), 12)
    with MatchmakerServer(tmp_path / "league.db", settings=MatchmakerSettings()) as server:
        wait_for(lambda: stored_positions(server))
        assert stored_positions(server) == [12]


def test_memory_writes_a_fold_when_the_last_one_is_far_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(folding, "EVERY", 10)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with small_league(tmp_path) as league:
        league.play(league.open(), 40)
        league.server.store_fold()
        assert stored_positions(league.server) == [40]


def test_a_fold_that_fails_is_tried_again_when_as_many_results_came_again(tmp_path, monkeypatch):
    monkeypatch.setattr(folding, "EVERY", 10)
    with small_league(tmp_path) as league:
        number = league.open()
        league.play(number, 12)
        for broken in ("/bin/false", "/nowhere/python"):
            with monkeypatch.context() as patch:
                patch.setattr(sys, "executable", broken)
                with pytest.raises(LeagueError):
                    league.server.store_fold()
            league.server.store_fold()
            assert stored_positions(league.server) == []
            league.play(number, 10)
        league.server.store_fold()
        assert stored_positions(league.server) == [32]


def test_who_is_released_as_repaired_counts_in_memory_as_in_the_log(tmp_path):
    with small_league(tmp_path) as league:
        number = league.client.open_incarnation("evaluator-0").number
        league.client.quarantine_worker("evaluator-0", "an old build", "anna")
        league.client.release_worker("evaluator-0", "anna", repaired=True)
        pairing = Pairing(player="main@1000", opponent="random", pairs=3, book=Book.EVAL, seed=1)
        matches = league.client.acquire_pairings(number, [pairing])
        report(league, number, *[played(match) for match in matches])
        league.server.league.store_fold(1)
    assert fsck(tmp_path / "league.db")[0] == []
