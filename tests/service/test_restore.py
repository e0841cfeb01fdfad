"""A run continues with a restored backup of its log: the command, and what a learner does."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cli_league import served
from learner_process import matchmaker, snapshots
from small_league import small_league

from league.cli.main import main
from league.rpc.client import MatchmakerClient
from league.runs.finding import FORMAT, live_address
from league.runs.folder import locked
from learner import main as learner
from learner.train import session
from learner.train.checkpoint import CheckpointFolder
from learner.train.join import fits_log
from matchmaker.tools.fsck import fsck

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    path = tmp_path / "laptop-1"
    shutil.copytree(finished, path)
    return path


def results(log: Path) -> int:
    with closing(sqlite3.connect(log)) as connection:
        return int(connection.execute("SELECT count(*) FROM results").fetchone()[0])


def test_a_restored_log_takes_the_place_of_the_newer_one_which_is_kept(
    run: Path, capsys: Capture
) -> None:
    copy, before = run.parent / "copy.db", results(run / "league.db")
    assert main(["backup", str(run), str(copy)]) == 0
    with served(run, read_only=False) as folder:
        with MatchmakerClient(live_address(folder) or "") as client:
            client.pin_rating("based", 27.0, "anna")
        assert main(["restore", str(run), str(copy)]) == 1, "a matchmaker has the log open"
    with closing(locked(run)):
        assert main(["restore", str(run), str(copy)]) == 1, "a supervisor has the folder"
    assert list(run.glob("replaced-*")) == []
    next((run / "blobs").iterdir()).unlink()
    capsys.readouterr()
    assert main(["restore", str(run), str(copy)]) == 0
    said = capsys.readouterr().out
    (kept,) = run.glob("replaced-*/league.db")
    assert f"result {before}" in said
    assert str(kept) in said
    assert "1 players " in said
    assert fsck(run / "league.db")[0] == fsck(kept)[0] == []
    with served(kept.parent), served(run) as folder:
        for where, anchors in ((kept.parent, {"based": 27.0}), (run, {})):
            with MatchmakerClient(live_address(where) or "") as client:
                assert client.anchors() == anchors


def test_what_is_no_copy_of_a_log_is_refused_and_nothing_changes(
    run: Path, capsys: Capture
) -> None:
    before = (run / "league.db").read_bytes()
    damaged = run.parent / "damaged.db"
    content = bytearray(before)
    content[4096 * 3 : 4096 * 4] = os.urandom(4096)
    damaged.write_bytes(content)
    other = run.parent / "other.db"
    other.write_text("no database")
    assert main(["restore", str(run), str(damaged)]) == 4
    assert main(["restore", str(run), str(other)]) == 4
    with closing(sqlite3.connect(shutil.copy(run / "league.db", other))) as db, db:
        db.execute("UPDATE players SET step = 7")
    assert main(["restore", str(run), str(other)]) == 4
    assert main(["restore", str(run), str(run.parent / "nowhere.db")]) == 2
    assert (run / "league.db").read_bytes() == before
    assert not list(run.glob("replaced-*"))


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run; its checkpoints come after every rollout."""
    monkeypatch.setattr(learner, "stop_flag", lambda: lambda: False)  # the signals are pytest's
    monkeypatch.setattr(session, "CHECKPOINT_SECONDS", 0.001)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text(json.dumps({"format": FORMAT}))
    return tmp_path / "run"


def train(run: Path, steps: int) -> list[str]:
    """Trains to a step; returns the names of the run's snapshots."""
    with matchmaker(run) as server, MatchmakerClient(server.address) as client:
        words = ["--matchmaker", server.address, "--run-dir", str(run), "--cpu"]
        assert learner.main([*words, "--preset", "smoke", "--steps", str(steps)]) == 0
        assert client.status().open_leases == 0
        (worker,) = client.status().workers
        assert (worker.activity, worker.step) == ("done", steps)
        return [player.name for player in snapshots(client)]


def restored(run: Path, copy: Path) -> None:
    assert main(["restore", str(run), str(copy)]) == 0
    assert fsck(run / "league.db")[0] == []


def begun_at(run: Path) -> int:
    """The step that the newest life of the learner began at."""
    newest = "SELECT checkpoint_step FROM incarnations ORDER BY number DESC LIMIT 1"
    with closing(sqlite3.connect(run / "league.db")) as connection:
        return int(connection.execute(newest).fetchone()[0])


def updates(run: Path) -> int:
    """Updates of the optimizer whose moments the newest checkpoint has."""
    saved = CheckpointFolder(run / "learner-main" / "checkpoints").read_newest()
    assert saved is not None
    return int(saved["algorithm"]["updates"])


def back_up(run: Path, name: str) -> Path:
    copy = run.parent / name
    assert main(["backup", str(run), str(copy)]) == 0
    return copy


def restore(run: Path, copy: Path) -> None:
    assert main(["restore", str(run), str(copy)]) == 0


def test_a_checkpoint_without_matches_fits_a_log_that_is_as_long(tmp_path: Path) -> None:
    saved = {"environment": {"matches": []}, "ready": []}
    with small_league(tmp_path) as league:
        league.play(league.open(), 2)
        fits = [fits_log(league.client, saved | {"log_position": place}) for place in (2, 3)]
    assert fits == [True, False]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_learner_continues_with_a_restored_log(trained: Path) -> None:
    """From the newest snapshot of the log, then from a checkpoint that fits it, then from 0."""
    with matchmaker(trained):
        pass
    empty = back_up(trained, "empty.db")
    assert train(trained, 1024) == ["main@1024"]
    early = back_up(trained, "early.db")
    assert train(trained, 2048) == ["main@1024", "main@2048"]
    checkpoints, made = trained / "learner-main" / "checkpoints", updates(trained)
    newer = {file.stem for file in checkpoints.glob("*.pt")}

    restore(trained, early)
    assert train(trained, 2048) == ["main@1024", "main@2048"]
    assert (begun_at(trained), updates(trained)) == (1024, made // 2), "from the snapshot"
    assert {file.stem for file in checkpoints.glob("*.unfit")} == newer

    late = back_up(trained, "late.db")
    train(trained, 2304)
    restore(trained, late)
    train(trained, 2304)
    assert (begun_at(trained), updates(trained)) == (2048, made * 5 // 8), "from the checkpoint"

    restore(trained, empty)
    assert train(trained, 256) == ["main@256"]
    assert (begun_at(trained), updates(trained)) == (0, made // 8)
    train(trained, 512)
    assert (begun_at(trained), updates(trained)) == (256, made // 4)
    assert fsck(trained / "league.db")[0] == []


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_learner_in_an_empty_folder_continues_from_its_newest_snapshot(trained: Path) -> None:
    assert train(trained, 1024) == ["main@1024"]
    shutil.rmtree(trained / "learner-main")
    assert train(trained, 2048) == ["main@1024", "main@2048"]
    assert begun_at(trained) == 1024
