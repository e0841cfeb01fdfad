"""Leases under any order of events: random runs of the domain against a small model."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from small_league import bot, live, played, snapshot

from league.clock import ManualClock
from league.errors import Fenced
from matchmaker import limits
from matchmaker.acts import assign as assigning
from matchmaker.acts import incarnate as incarnations
from matchmaker.acts import players as registration
from matchmaker.acts import report as reporting
from matchmaker.settings import MatchmakerSettings
from matchmaker.state.books import Books
from matchmaker.state.league import League
from matchmaker.store.sqlite import SqliteStore
from matchmaker.tools.fsck import full_scan

WORKERS = {"learner-main": "main", "learner-second": "second"}
TAKEN = ("open", "expired")


class Leases(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = ManualClock()
        self.matches: list = []
        self.owner: dict[str, int] = {}
        self.state: dict[str, str] = {}
        self.outcome: dict[str, float] = {}  # of the first report that was taken
        self.newest: dict[str, int] = {}
        self.progress = 0
        self.start()
        players = [
            bot("constant"),
            bot("random"),
            bot("based"),
            live(),
            live("second"),
            snapshot(1000),
        ]
        self.write(registration.register_players, players)

    def start(self) -> None:
        self.store = SqliteStore(Path(self.folder.name) / "league.db")
        self.league = League(self.store, MatchmakerSettings(), self.clock)
        self.league.open(seed=3)

    def write(self, operation, *arguments):
        with self.store.write() as tx:
            return operation(self.league, tx, *arguments)

    @rule(worker=st.sampled_from(sorted(WORKERS)), data=st.data())
    def opens(self, worker, data):
        mine = [m.match_id for m in self.matches if self.worker_of(m.match_id) == worker]
        going = [match_id for match_id in mine if self.state[match_id] not in ("reported",)]
        carried = (
            data.draw(st.lists(st.sampled_from(going), unique=True, max_size=2)) if going else []
        )
        position = self.league.view.log_position
        number, again, _ = self.write(
            incarnations.open_incarnation, worker, WORKERS[worker], 0, position, carried
        )
        for match_id in mine:
            if self.state[match_id] == "open":
                self.state[match_id] = "abandoned"
        self.newest[worker] = number
        self.keep(number, again)

    def worker_of(self, match_id):
        return self.worker_by_number[self.owner[match_id]]

    @property
    def worker_by_number(self):
        with self.store.read() as reader:
            return {n: reader.incarnation(n).worker for n in set(self.owner.values())}

    def keep(self, number, assignments):
        for match in assignments:
            self.matches.append(match)
            self.owner[match.match_id] = number
            self.state[match.match_id] = "open"

    @precondition(lambda self: self.newest)
    @rule(data=st.data(), count=st.integers(1, 3))
    def acquires(self, data, count):
        number = data.draw(st.sampled_from(sorted(self.newest.values())))
        self.keep(number, self.write(assigning.acquire_matches, number, count, "league"))

    @precondition(lambda self: self.newest)
    @rule(data=st.data())
    def a_fenced_one_is_refused(self, data):
        old = sorted(set(self.owner.values()) - set(self.newest.values()))
        if old:
            with pytest.raises(Fenced):
                self.write(assigning.acquire_matches, data.draw(st.sampled_from(old)), 1, "league")

    @precondition(lambda self: self.matches)
    @rule(data=st.data(), outcome=st.sampled_from([0.0, 0.5, 1.0]))
    def reports(self, data, outcome):
        match = data.draw(st.sampled_from(self.matches))
        number, before = self.owner[match.match_id], self.state[match.match_id]
        (verdict,), _ = self.write(reporting.report_results, number, [played(match, outcome)])
        unfenced = number in self.newest.values()
        assert verdict.duplicate == (before == "reported")
        same = self.outcome.get(match.match_id) == outcome
        assert verdict.accepted == (same if before == "reported" else before in TAKEN and unfenced)
        assert bool(verdict.reason) != verdict.accepted
        if verdict.accepted:
            self.state[match.match_id], self.outcome[match.match_id] = "reported", outcome

    @precondition(lambda self: self.newest)
    @rule(data=st.data())
    def releases(self, data):
        number = data.draw(st.sampled_from(sorted(self.newest.values())))
        held = [m for m, owner in self.owner.items() if owner == number and self.state[m] == "open"]
        assert self.write(assigning.release_matches, number, [], "") == len(held)
        self.state.update(dict.fromkeys(held, "released"))

    @precondition(lambda self: self.newest)
    @rule(data=st.data(), rises=st.booleans())
    def beats(self, data, rises):
        number = data.draw(st.sampled_from(sorted(self.newest.values())))
        self.progress += rises
        fenced, deadline, *_ = self.write(
            incarnations.heartbeat, number, self.progress, 1, "league", "", {}, ""
        )
        assert not fenced
        assert deadline <= self.clock.now() + limits.LEASE_SECONDS

    @rule(seconds=st.sampled_from([100.0, 301.0]))
    def time_passes(self, seconds):
        self.clock.advance(seconds)
        with self.store.read() as reader:
            due = [
                r.match_id
                for r in reader.open_assignments()
                if r.lease_deadline <= self.clock.now()
            ]
        assert self.write(assigning.expire) == len(due)
        self.state.update(dict.fromkeys(due, "expired"))

    @rule()
    def restarts(self):
        self.store.close()
        self.start()

    @invariant()
    def the_log_is_whole_and_agrees_with_the_model(self):
        with self.store.read() as reader:
            assert full_scan(reader) == []
            assert Books.of(reader).state()["tables"] == self.league.view.books.state()["tables"]
            for match_id, state in self.state.items():
                assert reader.assignment(match_id).lease_state == state
            results = list(reader.results())
        assert len(results) == list(self.state.values()).count("reported")
        assert not any(row.lost_by for row in results)

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


TestLeases = Leases.TestCase
TestLeases.settings = settings(max_examples=8, stateful_step_count=20, deadline=None)
