"""Anchors by command: pinning one, and bringing another run's snapshots in as such."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_league import rows, served
from evaluator_league import register_bots_and_live, register_snapshot

from evaluator.queue import Queue
from evaluator.settings import EvaluatorSettings
from league.cli.main import main
from league.errors import InvalidName
from league.ids import SnapshotName, checked_player_name
from league.players import Book, Player, PlayerKind
from league.rpc.client import MatchmakerClient
from league.runs import finding
from league.runs.blobs import BlobFolder
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def first(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with snapshots that have clean matches."""
    path = tmp_path_factory.mktemp("runs") / "First Run"
    shutil.copytree(finished, path)
    return path


@pytest.fixture
def second(tmp_path: Path) -> Iterator[Path]:
    """A running league without a match."""
    path = tmp_path / "second"
    path.mkdir()
    with (
        MatchmakerServer(db=path / "league.db") as server,
        MatchmakerClient(server.address) as client,
    ):
        register_bots_and_live(client)
        register_snapshot(client, path, 3000)
    with served(path, read_only=False):
        yield path


def league_of(run_dir: Path) -> MatchmakerClient:
    address = finding.live_address(run_dir)
    assert address
    return MatchmakerClient(address)


def snapshots(players: set[Player]) -> set[str]:
    return {player.name for player in players if player.kind is PlayerKind.SNAPSHOT}


def said(capsys: Capture, *words: str, status: int = 0) -> tuple[str, str]:
    assert main(list(words)) == status
    return capsys.readouterr()


def test_an_anchor_is_pinned_shown_and_let_go(first: Path, tmp_path: Path, capsys: Capture) -> None:
    run = tmp_path / "run"
    shutil.copytree(first, run)
    where = ("--run-dir", str(run))
    with served(run, read_only=False):
        _, told = said(capsys, "pin", "based", "--mu", "27", *where)
        assert "based stays at 27.00 points from log position" in told
        out, _ = said(capsys, "pin", *where)
        assert rows(out) == [{"player": "based", "mu": "27.00"}]
        out, _ = said(capsys, "ratings", "--fit", *where)
        by_name = {row["player"]: row for row in rows(out)}
        based = by_name["based"]
        assert (based["mu"], based["sigma"], based["anchor"]) == ("27.00", "0.00", "pinned")
        assert (based["fit"], based["low"], based["high"]) == ("27.00", "27.00", "27.00")
        assert by_name["random"]["anchor"] == ""
        for kind, wanted in (
            ("md", "| based (anchor) |"),
            ("html", "based</td>"),
            ("csv", ",True,"),
        ):
            out, _ = said(capsys, "leaderboard", "export", "--format", kind, *where)
            assert wanted in out
        assert out.count(",True,") == 1
        _, told = said(capsys, "pin", "based", "--unpin", *where)
        assert "based is rated by its results from log position" in told
        out, _ = said(capsys, "pin", *where)
        assert rows(out) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("based",), "--mu POINTS or --unpin"),
        (("--mu", "3"), "--mu POINTS or --unpin"),
        (("based", "--mu", "3", "--unpin"), "--mu POINTS or --unpin"),
        (("based", "--mu", "3"), "is not running"),
    ],
)
def test_a_pin_that_can_not_be_is_one_sentence(
    first: Path, capsys: Capture, words: tuple[str, ...], says: str
) -> None:
    assert main(["pin", *words, "--run-dir", str(first)]) != 0
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1


def test_snapshots_of_another_run_come_in_as_anchors(
    first: Path, second: Path, capsys: Capture
) -> None:
    out, told = said(capsys, "import", str(first), "--run-dir", str(second))
    best, other = rows(out)
    assert (best["player"], best["from"]) == ("first-run:main@2000", "main@2000")
    assert other["player"] == "first-run:main@1000"
    assert "gauntlets only" in told
    with league_of(second) as client:
        assert {name: f"{mu:.2f}" for name, mu in client.anchors().items()} == {
            row["player"]: row["mu"] for row in (best, other)
        }
        players = {player.name: player for player in client.players()}
        anchor = players["first-run:main@2000"]
        assert (anchor.kind, anchor.held_out, anchor.parent) == (PlayerKind.SNAPSHOT, True, "")
        for folder in (first, second):
            assert BlobFolder(folder / "blobs").get(anchor.digest)
        learner = client.open_incarnation("learner-main", "main").number
        drawn = {match.opponent for match in client.acquire_matches(learner, 60, "league")}
    assert snapshots(drawn) == {"main@3000"}, "nobody asked to train against them"
    # a running league can be imported from too, and repeating it changes nothing
    with served(first):
        again, _ = said(capsys, "import", str(first), "--run-dir", str(second))
    assert again == out


def test_imported_snapshots_are_drawn_where_it_is_asked_for(
    first: Path, second: Path, capsys: Capture
) -> None:
    words = ("--players", "main@2*", "--prefix", "old", "--sample")
    out, told = said(capsys, "import", str(first), "--run-dir", str(second), *words)
    assert [row["player"] for row in rows(out)] == ["old:main@2000"]
    assert "is an anchor in" in told
    assert "learners and gauntlets" in told
    with league_of(second) as client:
        learner = client.open_incarnation("learner-main", "main").number
        drawn = {match.opponent for match in client.acquire_matches(learner, 60, "league")}
    assert snapshots(drawn) == {"main@3000", "old:main@2000"}


def test_gauntlets_meet_the_imported_ones_which_have_none_of_their_own(
    first: Path, second: Path, capsys: Capture
) -> None:
    said(capsys, "import", str(first), "--run-dir", str(second))
    queue = Queue(EvaluatorSettings(), ["based"])
    with league_of(second) as client:
        players, ratings = client.players(), client.ratings()
    assert [player.name for player in queue.waiting(players)] == ["main@3000"]
    new = next(player for player in players if player.name == "main@3000")
    met = {
        entry.opponent for entry in queue.plan(new, players, ratings, {}) if entry.book is Book.EVAL
    }
    assert met == {"based", "first-run:main@1000", "first-run:main@2000"}
    assert queue.request("first-run:main@1000", players) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--players", "main@9*"), "has no rated snapshot 'main@9*'"),
        (("--prefix", "No Name"), "'No Name' can't name a run here"),
        (("--address", "127.0.0.1:1"), "weights go into the run's own folder"),
    ],
)
def test_an_import_that_can_not_be_is_one_sentence_and_changes_nothing(
    first: Path, second: Path, capsys: Capture, words: tuple[str, ...], says: str
) -> None:
    where = () if "--address" in words else ("--run-dir", str(second))
    assert main(["import", str(first), *words, *where]) != 0
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1
    with league_of(second) as client:
        assert client.anchors() == {}
        assert [p.name for p in client.players([PlayerKind.SNAPSHOT])] == ["main@3000"]


def test_another_games_snapshots_are_refused(first: Path, tmp_path: Path, capsys: Capture) -> None:
    other = tmp_path / "cards"
    other.mkdir()
    db = other / "league.db"
    with MatchmakerServer(db=db, settings=MatchmakerSettings(game="kuhn")) as server:
        announced = {"address": server.address, "pid": os.getpid()}
        (other / "matchmaker.json").write_text(json.dumps(announced))
        _, told = said(capsys, "import", str(first), "--run-dir", str(other), status=4)
        assert "plays 'brawl' and" in told
        assert "plays 'kuhn'" in told
        with MatchmakerClient(server.address) as client:
            assert client.players() == []
    assert not (other / "blobs").exists()


def test_a_run_is_not_imported_into_itself_nor_into_one_that_rests(
    first: Path, tmp_path: Path, capsys: Capture
) -> None:
    _, told = said(capsys, "import", str(first), "--run-dir", str(first), status=2)
    assert "is the run itself" in told
    resting = tmp_path / "resting"
    shutil.copytree(first, resting)
    _, told = said(capsys, "import", str(first), "--run-dir", str(resting), status=1)
    assert "is not running" in told


def test_names_of_imported_snapshots_keep_to_their_run() -> None:
    name = SnapshotName.parse("main@50").imported("first")
    assert str(name) == checked_player_name("first:main@50") == "first:main@50"
    assert (name.run, name.lineage, name.step) == ("first", "first:main", 50)
    assert SnapshotName.parse("first:main@50") == name == name.imported("second")
    assert SnapshotName.parse("main@50").run == ""
    for wrong in ("a:b:c@5", ":main@5", "first:@5", "first:main"):
        with pytest.raises(InvalidName):
            checked_player_name(wrong)
