"""What an evaluator does when it is stopped or fenced, and when weights or results are no good."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import pytest
from evaluating import BOTS, FIRST, running
from evaluator_league import games, register_snapshot
from waiting import wait_for

from evaluator.clean.arena import Arena
from league.errors import Fenced, Refused
from league.players import Book, MatchResult, SeatResult
from league.rpc.client import MatchmakerClient


def test_a_corrupt_snapshot_is_left_out_and_told(
    client: MatchmakerClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    register_snapshot(client, tmp_path, 10)
    broken = register_snapshot(client, tmp_path, 20, parent="main@10")
    register_snapshot(client, tmp_path, 30, parent="main@20")
    blob = tmp_path / "blobs" / f"{broken.digest}.safetensors"
    blob.write_bytes(blob.read_bytes()[:-1] + b"\x99")
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
        assert run.status().snapshots_done == 2
    assert run.error is None
    assert games(client, Book.EVAL, "main@20") == {}
    assert "main@10" in games(client, Book.EVAL, "main@30"), "its parent's parent is whole"
    told = [r.getMessage() for r in caplog.records if "main@20" in r.getMessage()]
    assert len(told) == 1
    assert "damaged" in told[0]


def test_a_stop_hands_the_leases_back_and_the_next_start_plays_the_rest(
    client: MatchmakerClient, tmp_path: Path
) -> None:
    register_snapshot(client, tmp_path, 10)
    long = {"matches_per_snapshot": 400}  # 200 at once
    with running(client, tmp_path, **long) as run:
        wait_for(lambda: run.status().matches_done >= 8)
        run.stop()
        assert not run.status().drained
        assert client.status().open_leases == 0
    assert run.error is None
    before = sum(games(client, Book.EVAL, "main@10").values())
    assert 8 <= before < 200
    with running(client, tmp_path, match_seconds=0.2, **long) as run:
        wait_for(lambda: run.status().drained)
    counts = games(client, Book.EVAL, "main@10")
    assert counts.keys() == set(BOTS)
    assert 200 <= sum(counts.values()) <= 200 + len(BOTS), "of half a pair, the other half twice"


def test_a_refused_match_is_played_again(
    client: MatchmakerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_snapshot(client, tmp_path, 10)
    misreport(monkeypatch, most=1)
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
    assert run.error is None
    counts = games(client, Book.EVAL, "main@10")
    assert sum(counts.values()) in (FIRST, FIRST + 1), "a pair is played again, if one had counted"


def test_players_whose_matches_break_are_left_out(
    client: MatchmakerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_snapshot(client, tmp_path, 10, milestone=True)
    step = Arena.step

    def breaking(self: Arena) -> list[MatchResult]:
        return [
            replace(result, failed=True, failure="it broke")
            if "based" in {seat.player for seat in result.seats}
            else result
            for result in step(self)
        ]

    monkeypatch.setattr(Arena, "step", breaking)
    with running(client, tmp_path, match_seconds=0.2) as run:
        wait_for(lambda: run.status().drained)
    assert run.error is None
    assert games(client, Book.EVAL, "main@10").keys() == {*BOTS} - {"based"}


def test_a_process_that_died_with_its_matches_leaves_no_players_out(
    client: MatchmakerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_snapshot(client, tmp_path, 10, milestone=True)
    step, steps = Arena.step, itertools.count()

    def dying(self: Arena) -> list[MatchResult]:
        results = step(self)
        if not results or next(steps) >= 5:
            return results
        return [replace(result, failed=True, failure="it was killed") for result in results]

    monkeypatch.setattr(Arena, "step", dying)
    with running(client, tmp_path, match_seconds=0.2) as run:
        wait_for(lambda: run.status().drained)
    assert run.error is None
    assert games(client, Book.EVAL, "main@10").keys() == {*BOTS}


def misreport(monkeypatch: pytest.MonkeyPatch, most: float) -> None:
    """Other weights played than were assigned, in the first `most` matches of a snapshot."""
    honest, wrong = Arena.step, itertools.count()

    def misreported(seat: SeatResult) -> SeatResult:
        return replace(seat, digest="f" * 64) if seat.digest and next(wrong) < most else seat

    def dishonest(self: Arena) -> list[MatchResult]:
        return [
            replace(result, seats=tuple(map(misreported, result.seats))) for result in honest(self)
        ]

    monkeypatch.setattr(Arena, "step", dishonest)


def test_it_stops_with_a_sentence_when_all_its_results_are_refused(
    client: MatchmakerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_snapshot(client, tmp_path, 10)
    misreport(monkeypatch, most=math.inf)
    with running(client, tmp_path) as run:
        run.thread.join()
        assert not run.thread.is_alive()
    assert isinstance(run.error, Refused)
    assert "3 reports" in str(run.error)
    assert games(client, Book.EVAL, "main@10") == {}


def test_a_newer_evaluator_fences_the_older(client: MatchmakerClient, tmp_path: Path) -> None:
    with running(client, tmp_path) as run:
        wait_for(lambda: any(w.worker == "evaluator-0" for w in client.status().workers))
        client.open_incarnation("evaluator-0")
        run.thread.join()
        assert not run.thread.is_alive()
    assert isinstance(run.error, Fenced)
