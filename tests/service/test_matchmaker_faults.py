"""Faults are reported and lose nothing: a full disk, a broken log, memory that could not
follow it.
"""

import sqlite3

import pytest
from small_league import learner_wins, played, small_league

from league.errors import (
    Unavailable,
    VersionMismatch,
)
from league.players import Book
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings
from matchmaker.tools.fsck import full_scan


def test_another_games_league_is_refused(tmp_path):
    with small_league(tmp_path):
        pass
    with pytest.raises(VersionMismatch, match="plays 'brawl'"):
        MatchmakerServer(tmp_path / "league.db", settings=MatchmakerSettings(game="chess"))


def test_broken_logs_are_found(tmp_path, caplog):
    with small_league(tmp_path, whole=False) as league:
        league.play(league.open(), 10)
        assert league.server.sweep() == 0
        assert caplog.text == ""
        with league.server.store.write() as tx:
            tx._db.execute("UPDATE assignments SET lease_state = 'open' WHERE ordinal = 2")
            tx._db.execute(
                "UPDATE assignments SET category = 'constant', seed = 1 WHERE ordinal = 3"
            )
        with league.server.store.read() as reader:
            findings = "\n".join(full_scan(reader))
            assert "closed as reported exactly when there is a result, but not" in findings
            assert "what its seed draws" in findings


def test_the_running_service_notices_a_broken_log(tmp_path, caplog):
    with small_league(tmp_path, whole=False) as league:
        league.play(league.open(), 10, outcome=learner_wins)
        with league.server.store.write() as tx:
            tx._db.execute("UPDATE assignments SET closed_at = NULL WHERE ordinal = 2")
        league.server.sweep()
        assert "log is broken" in caplog.text


def test_memory_that_could_not_follow_a_commit_is_built_anew_at_once(league, monkeypatch):
    """The caller, whose results are on disk, hears nothing of it."""
    incarnation = league.open()
    league.play(incarnation, 10)
    fold, view = league.server.league.view.add_results, league.server.league.view

    def breaks(rows):
        fold(rows[:1])
        raise RuntimeError("out of memory")

    monkeypatch.setattr(view, "add_results", breaks)
    _, verdicts, position = league.play(incarnation, 5)
    assert all(verdict.accepted for verdict in verdicts)
    assert position == 15
    assert league.client.status().log_position == 15
    assert sum(rating.games for rating in league.client.ratings(Book.TRAIN)) == 2 * 15


def test_nobody_is_told_what_memory_holds_while_it_is_behind(league, monkeypatch):
    incarnation = league.open()
    matches = league.client.acquire_matches(incarnation, 5, "league")
    view, results = league.server.league.view, [played(match) for match in matches]

    def broken(*_):
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(view, "add_results", broken)
        patch.setattr(view, "load", broken)
        with pytest.raises(Unavailable, match="disk"):
            league.client.report_results(incarnation, results, request_id="r1")
        for ask in (
            league.client.ratings,
            league.client.payoff,
            league.client.players,
            league.client.status,
            lambda: league.client.match(matches[0].match_id),
        ):
            with pytest.raises(Unavailable, match="rebuilt"):
                ask()
        with pytest.raises(Unavailable, match="ask again"):
            league.client.heartbeat(incarnation, 1)
    league.server.sweep()
    assert sum(rating.games for rating in league.client.ratings(Book.TRAIN)) == 2 * 5
    verdicts, position = league.client.report_results(incarnation, results, request_id="r1")
    assert all(verdict.accepted and not verdict.duplicate for verdict in verdicts)
    assert position == 5
