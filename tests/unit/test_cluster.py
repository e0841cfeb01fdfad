"""How a league is spread over a cluster: its settings, places and commands, without Ray."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from league.cluster.engine import ProcessSpec
from league.cluster.main import main as start_league
from league.cluster.main import parse
from league.cluster.runner import Folders
from league.cluster.settings import ClusterSettings
from league.cluster.topology import DASHBOARD, MATCHMAKER, Address, Spread, plan
from league.errors import ConfigError
from league.runs.folder import Request, open_run
from league.runs.settings import SupervisorSettings
from league.settings.base import resolve

CLUSTER = ("cluster.learners=pool=gpu", "cluster.ranks=2", "cluster.most_evaluators=3")


def specs(tmp_path: Path, gpus: float) -> dict[str, ProcessSpec]:
    sections = resolve("league3", None, CLUSTER, environment={})
    spread = Spread(settings=sections.of(ClusterSettings), reached_at="10.0.0.7", gpus=gpus)
    with open_run(Request(preset="league3", run_dir=tmp_path / "run")) as folder:
        topology = plan(
            folder,
            parse([]).learner,
            sections.of(SupervisorSettings),
            host="0.0.0.0",
            dashboard=Address(),
            spread=spread,
        )
    return {spec.name: spec for spec in topology.specs}


def test_services_stay_next_to_the_supervisor(tmp_path: Path) -> None:
    placed = {name for name, spec in specs(tmp_path, 1.0).items() if spec.place is not None}
    assert placed == {
        *("learner-main", "learner-main-exploiter", "learner-league-exploiter"),
        *("evaluator-1", "evaluator-2"),
    }
    assert {MATCHMAKER, DASHBOARD, "evaluator-0"}.isdisjoint(placed)


def test_a_learner_is_called_with_and_without_the_run_s_folder(tmp_path: Path) -> None:
    spec = specs(tmp_path, 0.5)["learner-main-exploiter"]
    assert spec.place is not None
    here, elsewhere = " ".join(spec.command), " ".join(spec.place.command)
    assert str(tmp_path) in here
    assert str(tmp_path) not in elsewhere
    for command in (here, elsewhere):
        assert "--matchmaker 10.0.0.7:" in command
        assert command.count("--name main-exploiter") == 1
    assert "--role main_exploiter" in elsewhere
    assert (spec.place.ranks, spec.place.gpus) == (1, 0.5)
    assert dict(spec.place.labels) == {"pool": "gpu"}


def test_only_mains_have_ranks_and_only_further_evaluators_are_spares(tmp_path: Path) -> None:
    found = specs(tmp_path, 1.0)
    ranks = {name: spec.place.ranks for name, spec in found.items() if spec.place is not None}
    assert [name for name, count in ranks.items() if count == 2] == ["learner-main"]
    spares = [name for name, spec in found.items() if spec.is_spare]
    assert spares == ["evaluator-1", "evaluator-2"]


@pytest.mark.parametrize("label", ["gpu", "=gpu", "pool=", "pool=a b", "in(a)=b"])
def test_a_malformed_label_is_refused(label: str) -> None:
    with pytest.raises(ConfigError, match="label"):
        resolve(None, None, [f"cluster.learners={label}"], environment={})


@pytest.mark.parametrize("flags", [["--gpu", "0"], ["--cpu", "--ranks", "2"]])
def test_the_cluster_chooses_devices(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start_league(["--engine", "ray", *flags, "--run-dir", str(tmp_path / "run")]) == 2
    assert "cluster.ranks" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_machine_without_ray_is_told_how_to_install_it(tmp_path: Path) -> None:
    code = "import sys; sys.modules['ray'] = None; from league.cluster.main import main; "
    code += "sys.exit(main(['--engine', 'ray', '--run-dir', 'run']))"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert made.returncode == 2
    assert "pip install" in made.stderr
    assert not (tmp_path / "run").exists()


def test_a_run_that_is_interrupted_before_its_start_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:  # Ctrl-C while Ray starts
        raise KeyboardInterrupt

    monkeypatch.setattr("league.cluster.ray.Cluster", interrupted)
    assert start_league(["--engine", "ray", "--run-dir", str(tmp_path / "run")]) == 130
    assert not (tmp_path / "run").exists()


def test_a_league_on_one_machine_does_not_load_ray() -> None:
    code = "import sys, league.cluster.main; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_node_sees_folders_with_the_same_files_only(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text("one")
    folders = Folders.of([file])
    assert folders.are_here()
    file.write_text("another")
    assert not folders.are_here()
    file.unlink()
    assert not folders.are_here()


RUNNER = """
import sys
from pathlib import Path
from league.cluster.engine import ProcessSpec
from league.cluster.runner import Runner
sleeps = (sys.executable, "-c", "import time; time.sleep(600)")
runner = Runner()
spec = ProcessSpec(name="one", command=sleeps, log=Path("one.log"))
runner.start(spec, {}, {"client.key": b"secret"}, "127.0.0.1")
print("started", flush=True)
sys.stdin.read()
"""


def test_a_runner_removes_the_keys_of_killed_runners_only(tmp_path: Path) -> None:
    def keys() -> set[Path]:
        return set(tmp_path.rglob("client.key"))

    started: list[subprocess.Popen[str]] = []

    def start() -> Path:
        before = keys()
        runner = subprocess.Popen(
            [sys.executable, "-c", RUNNER],
            env={**os.environ, "TMPDIR": str(tmp_path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(runner)
        assert runner.stdout is not None
        assert runner.stdout.readline() == "started\n"
        (key,) = keys() - before
        return key

    try:
        living, killed = start(), start()
        started[-1].kill()
        started[-1].wait()
        assert keys() == {living, killed}
        last = start()
        assert keys() == {living, last}
    finally:
        for runner in started:
            runner.kill()
            runner.communicate()
