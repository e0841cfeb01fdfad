"""A run with several learners: its settings and its processes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evaluator.settings import EvaluatorSettings
from league.cluster.main import main as start_league
from league.cluster.main import parse
from league.cluster.topology import MATCHMAKER, LearnerOptions, plan
from league.errors import ConfigError
from league.runs.folder import Request, open_run
from league.runs.settings import SupervisorSettings
from league.settings.base import lay_over, resolve
from league.settings.presets import preset_names

NAMES = ("learner-main", "learner-main-exploiter", "learner-league-exploiter")


def test_each_learner_is_a_process_with_its_name(tmp_path: Path) -> None:
    words = f"--preset league3 --run-dir {tmp_path}/run --from x.pt --steps 9"
    command = parse(words.split())
    with open_run(command.request) as folder:
        settings = resolve("league3", environment={}).of(SupervisorSettings)
        topology = plan(folder, command.learner, settings)
    assert topology.mains == NAMES[:1]
    assert topology.exploiters == NAMES[1:]
    commands = {spec.name: spec.command for spec in topology.specs}
    assert list(commands) == [MATCHMAKER, *NAMES, "evaluator-0"]
    assert "--name" not in commands[NAMES[0]]
    assert "--from" in commands[NAMES[0]]
    for name in NAMES[1:]:
        words = commands[name]
        assert words[words.index("--name") + 1] == name.removeprefix("learner-")
        assert "--from" not in words, "exploiters begin from weights of their own"
        assert words[words.index("--steps") + 1] == "9"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("", r"http://127\.0\.0\.1:\d+"),
        ("--dashboard localhost:8080", "http://localhost:8080"),
        ("--dashboard 0.0.0.0:8080", r"http://127\.0\.0\.1:8080"),
        ("--dashboard [::1]:8080", r"http://\[::1\]:8080"),
        ("--no-dashboard", ""),
    ],
)
def test_the_dashboard_has_its_place(
    tmp_path: Path, words: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUMITE_NO_DASHBOARD", raising=False)
    command = parse(["--run-dir", f"{tmp_path}/run", *words.split()])
    with open_run(command.request) as folder:
        again = [plan(folder, command.learner, SupervisorSettings(), dashboard=command.dashboard)
                 for _ in range(2)]  # fmt: skip
    assert re.fullmatch(shown, again[0].dashboard)
    assert again[0].dashboard == again[1].dashboard
    assert ("dashboard" in {spec.name for spec in again[0].specs}) is bool(shown)


@pytest.mark.parametrize("wrong", ["localhost:x", ":80", "localhost:70000"])
def test_a_place_that_is_none_is_refused(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUMITE_NO_DASHBOARD", raising=False)
    with pytest.raises(ConfigError, match=re.escape(repr(wrong))):
        parse(["--dashboard", wrong])


@pytest.mark.parametrize(
    ("learners", "evaluators", "sentence"),
    [
        ((("a", "main"), ("a", "main_exploiter")), 1, "'a'"),
        ((("a", "main_exploiter"),), 1, "main"),
        ((("a@1", "main"),), 1, "'a@1'"),
        ((("a", "main"), ("b", "league_exploiter")), 0, "set evaluators = 1"),
    ],
)
def test_learners_that_can_not_be(
    learners: tuple[tuple[str, str], ...], evaluators: int, sentence: str
) -> None:
    entries = [{"name": name, "role": role} for name, role in learners]
    with pytest.raises(ConfigError, match=sentence):
        lay_over({"supervisor": {"learners": entries, "evaluators": evaluators}})


@pytest.mark.parametrize("preset", [name for name in preset_names() if "league3" in name])
def test_gates_do_not_wait_for_a_free_core(preset: str) -> None:
    """Several learners leave none; at 19 the evaluator takes nothing else."""
    assert resolve(preset, environment={}).of(EvaluatorSettings).nice < 19


def test_settings_of_one_learner_are_checked_before_a_folder_is_made(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'extends = "league3"\n[[supervisor.learners]]\nname = "main"\n'
        'set = ["learner.ent_coeff=0.1"]\n'
    )
    with pytest.raises(ConfigError, match=r"main.*supervisor\.learners.*ent_coeff"):
        open_run(Request(config=file, run_dir=tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_snapshots_gates_want_an_evaluator(tmp_path: Path) -> None:
    wanted = ("matchmaker.admit=gate", "supervisor.evaluators=0")
    with pytest.raises(ConfigError, match=r"supervisor\.evaluators = 1"):
        open_run(Request(preset="laptop", run_dir=tmp_path / "run", assignments=wanted))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("change", ["agent.size=base", "game.frame_skip=7"])
def test_mains_that_can_not_copy_each_other_are_refused(tmp_path: Path, change: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'extends = "laptop"\n[[supervisor.learners]]\nname = "main"\n'
        f'[[supervisor.learners]]\nname = "other"\nset = ["{change}"]\n'
    )
    interval = "matchmaker.population_interval=50000"
    with pytest.raises(ConfigError, match=change.partition("=")[0]):
        open_run(Request(config=file, run_dir=tmp_path / "run", assignments=(interval,)))
    assert not (tmp_path / "run").exists()
    with open_run(Request(config=file, run_dir=tmp_path / "run")):
        pass  # without an interval, nobody copies


def test_a_new_run_of_which_nothing_came_leaves_no_learners_folder(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with open_run(Request(preset="league3", run_dir=run)) as folder:
        for name in NAMES:
            (run / name / "checkpoints").mkdir(parents=True)
        folder.discard()
    assert not run.exists()


def test_a_new_run_whose_services_can_not_be_asked_leaves_no_folder(tmp_path: Path) -> None:
    wrong = "security.tls=nope"
    run, words = tmp_path / "run", ["--set", wrong, "--headless", "--cpu", "--steps", "1000"]
    assert start_league(["--run-dir", str(run), *words]) == 2
    assert not run.exists()


def test_a_league_may_wait_for_learners(tmp_path: Path) -> None:
    request = parse(
        ["--no-learners", "--preset", "smoke", "--run-dir", str(tmp_path / "run")]
    ).request
    with open_run(request) as folder:
        settings = resolve(file=folder.config, environment={}).of(SupervisorSettings)
        planned = plan(folder, LearnerOptions(), settings)
    assert planned.learners == ()
    assert [spec.name for spec in planned.specs] == ["matchmaker", "evaluator-0"]
