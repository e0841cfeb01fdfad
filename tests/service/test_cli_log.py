"""Commands on a run's log: recomputed, checked, copied, shown at an earlier time."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cli_league import rows, served

from league.cli.main import main
from league.errors import StorageFull
from league.players import Book
from league.rpc.client import MatchmakerClient, Payoffs
from league.runs import finding
from matchmaker.api.server import MatchmakerServer
from matchmaker.store.copies import backup
from matchmaker.store.sqlite import SqliteStore
from matchmaker.tools.fsck import fsck
from matchmaker.tools.recompute import differing_from_shown

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    path = tmp_path / "laptop-1"
    shutil.copytree(finished, path)
    return path


def test_recompute_says_whether_the_running_numbers_are_the_same(
    run: Path, capsys: Capture
) -> None:
    assert main(["recompute", str(run)]) == 0
    said = capsys.readouterr().out
    assert re.search(
        r"^eval: 6 players, 90 rated results, 0 anchors; expects 0.1 draws", said, re.MULTILINE
    )
    with served(run, read_only=False):
        address = finding.live_address(run)
        assert address
        with MatchmakerClient(address) as client:
            client.pin_rating("based", 27.0, "anna")
            assert client.open_incarnation("learner-main", "main", 0, 5).lost_results > 0
        assert main(["recompute", str(run)]) == 0
        assert address in capsys.readouterr().out


def test_a_number_that_is_not_the_logs_is_told(run: Path, capsys: Capture) -> None:
    with MatchmakerServer(db=run / "league.db") as server:
        server.league.view.tables[Book.EVAL].pin("based", 27.0)  # and nothing in the log
        store = SqliteStore(run / "league.db", read_only=True)
        found = differing_from_shown(store, server.address)
        store.close()
    (finding,) = found
    assert "eval" in finding
    assert server.address in finding


@pytest.mark.parametrize("book", list(Book))
def test_a_payoff_that_is_not_the_logs_is_told(run: Path, capsys: Capture, book: Book) -> None:
    """Its ratings, wins, draws and losses are right: a match stands against another opponent."""
    with served(run):
        address = finding.live_address(run)
        assert address
        with MatchmakerServer(db=run / "league.db", read_only=True) as server:
            met = server.league.view.tables[book].payoff.row(
                "main" if book is Book.TRAIN else "main@2000"
            )
            won, other = sorted(met.values(), key=lambda counts: -counts.wins)[:2]
            won.wins, other.wins = won.wins - 1, other.wins + 1
            (run / "league.db.lock").write_text(server.address)
            told = f"the {book.value} payoffs shown at {server.address} are not those of the log"
            assert main(["recompute", str(run)]) == 1
            assert told in capsys.readouterr().out
            assert main(["fsck", str(run)]) == 1
            assert capsys.readouterr().out.splitlines()[0] == told


def test_shown_numbers_are_held_against_the_log_of_their_moment(run: Path) -> None:
    """Between the question and the look into the log, the matchmaker loses results."""
    with served(run, read_only=False):
        address = finding.live_address(run)
        assert address
        store = SqliteStore(run / "league.db", read_only=True)
        plain, read = store.read, []

        def meanwhile():  # type: ignore[no-untyped-def]
            if not read:
                read.append(True)
                with MatchmakerClient(address) as client:
                    assert client.open_incarnation("learner-main", "main", 0, 5).lost_results > 0
                    client.pin_rating("based", 27.0, "anna")
            return plain()

        store.read = meanwhile  # type: ignore[method-assign]
        assert differing_from_shown(store, address) == []
        store.close()


def test_results_lost_between_two_answers_are_no_finding(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ratings were asked for before a restart took results back, and payoffs after it."""
    plain, asked = MatchmakerClient.payoffs, []

    def payoffs(client: MatchmakerClient, book: Book, **more: bool) -> Payoffs:
        if not asked:
            assert client.open_incarnation("learner-main", "main", 0, 5).lost_results > 0
        asked.append(book)
        return plain(client, book, **more)

    monkeypatch.setattr(MatchmakerClient, "payoffs", payoffs)
    with served(run, read_only=False):
        address = finding.live_address(run)
        assert address
        store = SqliteStore(run / "league.db", read_only=True)
        assert differing_from_shown(store, address) == []
        store.close()
    assert {*asked} == {*Book}


@pytest.mark.parametrize("command", ["fsck", "recompute"])
def test_a_run_is_named_as_in_other_commands_too(run: Path, command: str) -> None:
    assert main([command, "--run-dir", str(run)]) == 0


def test_fsck_as_a_command(run: Path, capsys: Capture) -> None:
    assert main(["fsck", str(run)]) == 0
    assert "league.db: whole; " in capsys.readouterr().out
    with sqlite3.connect(run / "league.db") as connection:
        connection.execute("UPDATE assignments SET closed_at = NULL WHERE ordinal = 2")
        ((match_id,),) = connection.execute("SELECT match_id FROM assignments WHERE ordinal = 2")
    assert main(["fsck", str(run)]) == 1
    assert match_id in capsys.readouterr().out


def test_a_copy_is_made_while_the_matchmaker_writes_and_opens_by_itself(
    run: Path, capsys: Capture
) -> None:
    copy = run.parent / "copy.db"
    with served(run, read_only=False):
        address = finding.live_address(run)
        assert address
        with MatchmakerClient(address) as client:
            client.pin_rating("based", 27.0, "anna")
            assert main(["backup", str(run), str(copy)]) == 0
            assert {str(copy), str(run)} <= set(capsys.readouterr().out.split())
            board = client.leaderboard()
            client.unpin_rating("based", "anna")
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",), (
            "one file, no more"
        )
    assert [path.name for path in run.parent.iterdir() if path.name.startswith((".", "copy"))] == [
        "copy.db"
    ]
    assert fsck(copy)[0] == []
    moved = run.parent / "elsewhere"
    moved.mkdir()
    copy.rename(moved / "league.db")
    with served(moved), MatchmakerClient(finding.live_address(moved) or "") as client:
        assert client.leaderboard() == board


def test_a_copy_without_room_leaves_nothing(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr("matchmaker.store.sqlite.SqliteStore.vacuum_into", full)
    with pytest.raises(StorageFull):
        backup(run / "league.db", run.parent / "copy.db")
    assert not list(run.parent.glob("*copy*"))


@pytest.mark.long
def test_the_past_by_command(run: Path, capsys: Capture) -> None:
    """The clean matches came last, so before them their book is empty."""
    assert main(["ratings", "--at", "39", "--run-dir", str(run)]) == 0
    assert rows(capsys.readouterr().out) == []
    assert main(["ratings", "--at", "39", "--book", "train", "--run-dir", str(run)]) == 0
    assert rows(capsys.readouterr().out)
    with served(run):
        assert main(["payoff", "--at", "45", "--run-dir", str(run)]) == 0
        assert sum(int(row["games"]) for row in rows(capsys.readouterr().out)) == 2 * 6
        out = run.parent / "then.json"
        words = ("--at", "45", "--out", str(out), "--run-dir", str(run))
        assert main(["leaderboard", "export", *words]) == 0
        board = json.loads(out.read_text())
        players = [row for row in board["standings"] if row["kind"] != "mixture"]
        assert (board["log_position"], len(players)) == (45, 2)
