"""Anchors by command: pinning one, and bringing another run's snapshots in as such."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_league import served
from evaluator_league import register_bots_and_live, register_snapshot

from evaluator.clean.plan import Facts, Plan
from evaluator.settings import EvaluatorSettings
from league.cli.main import main
from league.errors import InvalidName
from league.ids import SnapshotName, checked_player_name
from league.players import PlayerKind
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


def said(capsys: Capture, *words: str, status: int = 0) -> tuple[str, str]:
    assert main(list(words)) == status
    return capsys.readouterr()


@pytest.mark.parametrize(
    ("words", "names", "met"),
    [
        ((), {"first-run:main@1000", "first-run:main@2000"}, set()),
        (
            ("--players", "main@2*", "--prefix", "old", "--sample"),
            {"old:main@2000"},
            {"old:main@2000"},
        ),
    ],
)
def test_learners_meet_imported_snapshots_where_it_is_asked_for(
    first: Path,
    second: Path,
    capsys: Capture,
    words: tuple[str, ...],
    names: set[str],
    met: set[str],
) -> None:
    said(capsys, "import", str(first), "--run-dir", str(second), *words)
    with league_of(second) as client:
        assert client.anchors().keys() == names
        anchors = [player for player in client.players() if player.name in names]
        learner = client.open_incarnation("learner-main", "main").number
        drawn = {match.opponent for match in client.acquire_matches(learner, 60, "league")}
    for folder in (first, second):
        assert all(BlobFolder(folder / "blobs").has(anchor.digest) for anchor in anchors)
    assert {player.name for player in drawn if player.kind is PlayerKind.SNAPSHOT} == {
        "main@3000",
        *met,
    }


def test_snapshots_meet_the_imported_ones_which_play_nothing_of_their_own(
    first: Path, second: Path, capsys: Capture
) -> None:
    said(capsys, "import", str(first), "--run-dir", str(second))
    with league_of(second) as client:
        players = {player.name: player for player in client.players()}
        plan = Plan(Facts(players=players, counts={}), EvaluatorSettings(), ["based"])
    ((new,),) = [kind for kind in plan.batches() if kind]
    assert new.subject == "main@3000"
    met = {entry.opponent for entry in new.entries}
    assert met == {"based", "first-run:main@1000", "first-run:main@2000"}


def test_another_games_snapshots_are_refused(first: Path, tmp_path: Path, capsys: Capture) -> None:
    other = tmp_path / "cards"
    other.mkdir()
    db = other / "league.db"
    with MatchmakerServer(db=db, settings=MatchmakerSettings(game="kuhn")) as server:
        _, told = said(capsys, "import", str(first), "--run-dir", str(other), status=4)
        assert "plays 'brawl' and" in told
        assert "plays 'kuhn'" in told
        with MatchmakerClient(server.address) as client:
            assert client.players() == []
    assert not (other / "blobs").exists()


def test_names_of_imported_snapshots_keep_to_their_run() -> None:
    name = SnapshotName.parse("main@50").imported("first")
    assert str(name) == checked_player_name("first:main@50") == "first:main@50"
    assert (name.run, name.lineage, name.step) == ("first", "first:main", 50)
    assert SnapshotName.parse("first:main@50") == name == name.imported("second")
    assert SnapshotName.parse("main@50").run == ""
    for wrong in ("a:b:c@5", ":main@5", "first:@5", "first:main"):
        with pytest.raises(InvalidName):
            checked_player_name(wrong)
