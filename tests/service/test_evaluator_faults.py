"""What an evaluator does when it is stopped or fenced, and when weights or results are no good."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import pytest
from evaluating import BOTS, running
from evaluator_league import games, register_snapshot
from waiting import wait_for

from evaluator.arena import Arena
from evaluator.reports.table import KEY, Report
from league.errors import Fenced, Refused
from league.players import Book, MatchResult, SeatResult
from league.rpc.client import MatchmakerClient


def test_a_corrupt_snapshot_is_skipped_and_told(
    client: MatchmakerClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    register_snapshot(client, tmp_path, 10)
    broken = register_snapshot(client, tmp_path, 20, parent="main@10")
    register_snapshot(client, tmp_path, 30, parent="main@20")
    blob = tmp_path / "blobs" / f"{broken.digest}.safetensors"
    blob.write_bytes(blob.read_bytes()[:-1] + b"\x99")
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
        assert run.status().gauntlets_done == 2
    assert run.error is None
    assert games(client, Book.EVAL, "main@20") == {}
    met = games(client, Book.EVAL, "main@30").keys()
    assert met == {*BOTS, "main@10"}, "not its broken parent; main@10 met it in its own gauntlet"
    told = [r.getMessage() for r in caplog.records]
    assert any(text.startswith("main@20 is skipped") and "damaged" in text for text in told)
    assert any(text.startswith("main@30 does not meet main@20") for text in told)


def test_a_stop_hands_the_leases_back_and_the_next_start_plays_the_rest(
    client: MatchmakerClient, tmp_path: Path
) -> None:
    register_snapshot(client, tmp_path, 10)
    long = {"matches_per_opponent": 20}
    with running(client, tmp_path, **long) as run:
        wait_for(lambda: run.status().matches_done >= 8)
        run.stop()
        assert not run.status().drained
        assert client.status().open_leases == 0
    assert run.error is None
    before = sum(games(client, Book.EVAL, "main@10").values())
    assert 8 <= before < 20 * len(BOTS)
    with running(client, tmp_path, match_seconds=0.2, **long) as run:
        wait_for(lambda: run.status().drained)
    counts = games(client, Book.EVAL, "main@10")
    assert counts.keys() == set(BOTS)
    assert set(counts.values()) <= {20, 21}, "nothing missing; of half a pair, the other half twice"
    rows = Report(tmp_path / "evaluator" / "evaluation_results.csv").rows()
    keys = [tuple(row[name] for name in KEY) for row in rows]
    assert len(set(keys)) == len(keys) == 2 * len(BOTS)
    assert {r["opponent"]: int(r["matches"]) for r in rows if r["book"] == "eval"} == counts


def test_a_refused_match_is_played_again(
    client: MatchmakerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_snapshot(client, tmp_path, 10)
    misreport(monkeypatch, most=1)
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
    assert run.error is None
    counts = games(client, Book.EVAL, "main@10")
    assert counts.keys() == set(BOTS)
    assert sorted(counts.values())[:-1] == [4] * (len(BOTS) - 1)
    assert max(counts.values()) in (4, 5), "a pair is played again, one of which had counted"


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
        run.thread.join(20)
        assert not run.thread.is_alive()
    assert isinstance(run.error, Refused)
    assert "3 reports" in str(run.error)
    assert games(client, Book.EVAL, "main@10") == {}


def test_a_newer_evaluator_fences_the_older(client: MatchmakerClient, tmp_path: Path) -> None:
    with running(client, tmp_path) as run:
        wait_for(lambda: any(w.worker == "evaluator-0" for w in client.status().workers))
        client.open_incarnation("evaluator-0")
        run.thread.join(5)
        assert not run.thread.is_alive()
    assert isinstance(run.error, Fenced)
