"""A league keeps the version of its game's rules: results of two versions are never mixed."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from exploiter_league import exploiter_league, wins_always
from small_league import played, small_league, snapshot
from test_matchmaker_process import matchmaker

from league.cluster.topology import LearnerOptions, plan
from league.errors import Fenced, VersionMismatch
from league.gates import GateState
from league.players import Book, PlayerState, Rating
from league.rpc.client import MatchmakerClient
from league.runs.folder import Request, open_run
from league.runs.settings import SupervisorSettings
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings
from matchmaker.state.analysis import NO_ANALYSIS

ONE, TWO = MatchmakerSettings(game_version="1"), MatchmakerSettings(game_version="2")


def content(log: Path) -> list[str]:
    with closing(sqlite3.connect(log)) as connection:
        return list(connection.iterdump())


def test_a_start_by_other_rules_is_refused_in_a_sentence_that_names_both(tmp_path: Path) -> None:
    with small_league(tmp_path, game_version="1"):
        pass
    before = content(tmp_path / "league.db")
    with pytest.raises(VersionMismatch) as refused:
        MatchmakerServer(tmp_path / "league.db", settings=TWO)
    for words in ("version 1", "version 2", "--new-epoch"):
        assert words in str(refused.value)
    assert content(tmp_path / "league.db") == before
    for settings in (ONE, MatchmakerSettings()):  # a matchmaker that does not know its game's
        with MatchmakerServer(tmp_path / "league.db", settings=settings):
            pass


def test_a_worker_by_other_rules_is_refused(tmp_path: Path) -> None:
    with small_league(tmp_path, game_version="1") as league:
        league.client.open_incarnation("evaluator-0", game_version="1")
        league.client.open_incarnation("learner-other", "main")
        with pytest.raises(VersionMismatch, match=r"version 2 .* version 1"):
            league.client.open_incarnation("learner-main", "main", game_version="2")


def counted(ratings: Sequence[Rating]) -> dict[str, tuple[float, int]]:
    return {one.player.name: (one.mu, one.games) for one in ratings}


def test_a_new_epoch_begins_with_empty_books_and_without_old_matches(tmp_path: Path) -> None:
    with small_league(tmp_path, game_version="1") as league:
        learner = league.open()
        league.play(learner, 40)
        (held,) = league.client.acquire_matches(learner, 1, "league")
        before = league.client.status().log_position
        rated = counted(league.client.ratings(Book.TRAIN))
        league.client.pin_rating("based", 30.0, "anna")
        found = {"matches": 40, "support": ["main@1000"]}
        with league.server.store.write() as tx:
            league.server.league.log(tx, "analysis", "one has an answer", **found)
    with small_league(tmp_path, snapshots=(), game_version="2", new_epoch=True) as league:
        client = league.client
        assert client.ratings(Book.TRAIN) == client.payoff(Book.TRAIN) == []
        assert client.anchors() == {}
        assert league.server.league.view.analysis == NO_ANALYSIS
        assert client.status().open_leases == 0
        states = {one.name: one.state for one in client.players()}
        assert states["main@1000"] is states["main@2000"] is PlayerState.RETIRED
        assert states["based"] is PlayerState.ACTIVE
        (verdict,), _ = client.report_results(learner, [played(held)])
        assert not verdict.accepted
        with pytest.raises(Fenced):
            client.acquire_matches(learner, 1, "league")
        assert client.heartbeat(learner, 1).fenced
        with pytest.raises(VersionMismatch):
            client.open_incarnation("learner-main", "main", game_version="1")
        again = client.open_incarnation("learner-main", "main", 1, before, game_version="2")
        client.register_players([snapshot(3000)])
        league.play(again.number, 10)
        now = counted(client.ratings(Book.TRAIN))
        assert sum(games for _, games in now.values()) <= 20
    for new_epoch in (False, True):  # as the supervisor does when the matchmaker dies
        with small_league(tmp_path, snapshots=(), game_version="2", new_epoch=new_epoch) as league:
            assert counted(league.client.ratings(Book.TRAIN)) == now
    with (
        MatchmakerServer(tmp_path / "league.db", read_only=True, at=str(before)) as past,
        MatchmakerClient(past.address) as client,
    ):
        assert counted(client.ratings(Book.TRAIN)) == rated


def test_an_open_gate_ends_with_the_rules_that_it_was_played_by(tmp_path: Path) -> None:
    with exploiter_league(tmp_path, game_version="1") as league:
        generation = league.begin()
        name = league.play(league.freeze(generation, 500), wins_always).candidate
    with small_league(tmp_path, snapshots=(), game_version="2", new_epoch=True) as small:
        (gate,) = small.client.gates()
        assert (gate.candidate, gate.state) == (name, GateState.UNDECIDED)


def test_the_program_knows_its_games_version(tmp_path: Path) -> None:
    """The rules of `matrix` have another version with another number of rounds."""
    config, db = tmp_path / "config.toml", tmp_path / "league.db"

    def start(rounds: int, *flags: str) -> tuple[int | None, str]:
        config.write_text(f'[game]\nname = "matrix:rps"\noptions = {{ rounds = {rounds} }}\n')
        with matchmaker(db, "--config", str(config), "--preset", "board", *flags) as process:
            line = process.stdout.readline()
            if line:
                process.terminate()
            return process.wait(), line + process.stderr.read()

    assert start(1)[0] == 0
    code, said = start(2)
    assert code == VersionMismatch.exit_code
    assert said.count("\n") == 1
    assert start(2, "--new-epoch")[0] == 0
    assert start(2)[0] == 0
    assert start(1)[0] == VersionMismatch.exit_code


def test_a_run_passes_the_request_to_its_matchmaker(tmp_path: Path) -> None:
    with open_run(Request(preset="smoke", run_dir=tmp_path / "run")) as folder:
        matchmaker_, *others = plan(
            folder, LearnerOptions(), SupervisorSettings(), new_epoch=True
        ).specs
    assert "--new-epoch" in matchmaker_.command
    assert not any("--new-epoch" in other.command for other in others)
