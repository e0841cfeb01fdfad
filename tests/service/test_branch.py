"""``bin/league branch``: a run continues from another run's checkpoint with other settings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli_league import served
from learner_process import learners
from small_league import small_league
from waiting import wait_for

from league.cli.main import main
from league.players import PlayerKind
from league.rpc.client import MatchmakerClient
from league.runs.finding import FORMAT, live_address
from league.runs.folder import write_config
from league.settings.base import resolve
from matchmaker.tools.fsck import fsck

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    path = tmp_path / "laptop-1"
    shutil.copytree(finished, path)
    return path


def content(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and "db-" not in path.name)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_branch_has_the_run_s_league_and_other_settings(run: Path, capsys: Capture) -> None:
    before, new = content(run), run.parent / "slower"
    changed = ["--set", "learner.learning_rate=1e-5", "--set", "matchmaker.mixes.league.based=9"]
    assert main(["branch", str(run), str(new), *changed]) == 0
    assert f"--run-dir {new}" in capsys.readouterr().out
    assert content(run) == before
    old, sections = (resolve(file=one / "config.toml", environment={}) for one in (run, new))
    assert sections["learner"] == old["learner"] | {"learning_rate": 1e-5}
    assert sections["matchmaker"]["mixes"]["league"]["based"] == 9.0
    made = json.loads((new / "run.json").read_text())
    assert made["branch_of"] | {"results": 0} == {
        "run": str(run), "results": 0, "settings": changed[1::2]
    }  # fmt: skip
    assert made["branch_of"]["results"] > 0
    assert fsck(new / "league.db")[0] == []
    with served(run), served(new, read_only=False):
        first, second = (MatchmakerClient(live_address(one) or "") for one in (run, new))
        with first, second:
            assert first.ratings() == second.ratings()
            assert first.players() == second.players()
            for player in second.players(kinds=[PlayerKind.SNAPSHOT]):
                assert (new / "blobs" / f"{player.digest}.safetensors").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["there"], "there is there already"),
        (["new", "--set", "agent.size=base"], "keeps the game and the agent"),
        (["new", "--set", "game.name=kuhn"], "keeps the game and the agent"),
        (["new", "--set", "learner.learning_rat=1"], "learning_rate"),
    ],
)
def test_a_branch_that_can_not_be_leaves_nothing(
    run: Path,
    words: list[str],
    sentence: str,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(run.parent)
    Path("there").mkdir()
    assert main(["branch", run.name, *words]) in (1, 2)
    error = capsys.readouterr().err
    assert sentence in error
    assert len(error.splitlines()) == 1
    assert not Path("new").exists()
    assert list(Path("there").iterdir()) == []


@pytest.mark.timeout(400)  # processes on a machine that may be busy
def test_a_learner_of_a_branch_goes_on_while_the_first_one_does(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    write_config(first / "config.toml", resolve("smoke", environment={}))
    (first / "run.json").write_text(json.dumps({"format": FORMAT}))
    mixes = {"league": {"random": 1.0}}
    flags = ["--steps", "100000", "--set", "curriculum.stages=[{name='all', mix='league'}]"]
    with (
        small_league(first, snapshots=(), mixes=mixes) as league,
        learners(first, checkpoint_seconds=0.1) as begin,
    ):
        begin(league.server.address, *flags)
        wait_for(lambda: len(list(first.glob("learner-main/checkpoints/step_*.pt"))) > 1)
        assert main(["branch", str(first), str(second), "--set", "learner.seed=5"]) == 0
        step = league.client.status().workers[0].step
        wait_for(lambda: league.client.status().workers[0].step > step)
    kept = max(int(one.stem[5:]) for one in second.glob("learner-main/checkpoints/step_*.pt"))
    with (
        small_league(second, snapshots=(), mixes=mixes) as league,
        learners(second) as begin,
    ):
        begun = league.client.status().workers[0].incarnation
        begin(league.server.address, *flags)
        wait_for(lambda: league.client.status().workers[0].incarnation > begun)
        with league.server.store.read() as reader:
            assert list(reader.incarnations())[-1].checkpoint_step == kept > 0
        wait_for(lambda: league.client.status().workers[0].step > kept)
