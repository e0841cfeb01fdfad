"""What an evaluator does when it is stopped or fenced, and when weights or results are no good."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from evaluating import BOTS, running, wait_for
from evaluator_league import games, matchmaker_of, register_snapshot

from evaluator.arena import Arena
from evaluator.journal import OPEN, Entry, Journal
from league.errors import Fenced, Refused
from league.players import Book, Pairing, Player, SeatResult
from league.rpc.client import MatchmakerClient


@pytest.fixture
def client(tmp_path: Path) -> Iterator[MatchmakerClient]:
    with matchmaker_of(tmp_path) as connection:
        yield connection


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
    long = {"matches_per_opponent": 60}
    with running(client, tmp_path, **long) as run:
        wait_for(lambda: run.status().matches_done >= 8)
        run.stop()
        assert not run.status().drained
        assert client.status().open_leases == 0
    assert run.error is None
    before = sum(games(client, Book.EVAL, "main@10").values())
    assert 8 <= before < 60 * len(BOTS)
    with running(client, tmp_path, match_seconds=0.2, **long) as run:
        wait_for(lambda: run.status().drained)
    assert games(client, Book.EVAL, "main@10") == dict.fromkeys(BOTS, 60), (
        "nothing missing, nothing twice"
    )


def test_reports_on_their_way_at_a_kill_are_asked_after(
    client: MatchmakerClient, tmp_path: Path
) -> None:
    register_snapshot(client, tmp_path, 10)
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
    # What a kill amid a report leaves: matches written down as pending. One of these had arrived,
    # two not.
    journal = Journal(tmp_path / "evaluator" / "journal.db")
    matches = journal.matches("main@10", "based", Book.EVAL)
    journal.write(replace(journal.gauntlets()["main@10"], state=OPEN))
    with sqlite3.connect(tmp_path / "evaluator" / "journal.db") as file:
        pending = "UPDATE matches SET accepted = 0 WHERE match_id = ?"
        file.execute(pending, (matches[0].match_id,))
    number = client.open_incarnation("evaluator-0").number
    pairing = Pairing(player="main@10", opponent="clockwork", pairs=2, book=Book.GREEDY, seed=9)
    leases = client.acquire_pairings(number, [pairing])[:2]
    plan = (Entry("based", Book.EVAL, 6), Entry("clockwork", Book.GREEDY, 4))
    journal.write(replace(journal.gauntlets()["main@10"], plan=plan))
    journal.record(
        replace(
            matches[0],
            match_id=lease.match_id,
            opponent="clockwork",
            book=Book.GREEDY,
            pair=1,
            seat=seat,
        )
        for seat, lease in enumerate(leases)
    )
    assert len(journal.pending()) == 3
    journal.close()
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
        assert run.evaluator.journal.pending() == []
    assert games(client, Book.EVAL, "main@10")["based"] == 6
    assert games(client, Book.GREEDY, "main@10")["clockwork"] == 4


def test_it_stops_with_a_sentence_when_all_its_results_are_refused(
    client: MatchmakerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other weights played than were assigned, as a program gone wrong would report it."""
    register_snapshot(client, tmp_path, 10)
    honest = Arena._seat_result

    def dishonest(self: Arena, row: int, seat: int, player: Player) -> SeatResult:
        return replace(honest(self, row, seat, player), digest="f" * 64)

    monkeypatch.setattr(Arena, "_seat_result", dishonest)
    with running(client, tmp_path) as run:
        run.thread.join(20)
        assert not run.thread.is_alive()
        assert run.evaluator.journal.pending() == []
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
