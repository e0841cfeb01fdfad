"""A run with several learners: its settings, its processes, what terminal and plain lines show
of them.
"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from screens import full

from league.cluster.main import main as start_league
from league.cluster.main import parse
from league.cluster.topology import MATCHMAKER, LearnerOptions, plan
from league.errors import ConfigError
from league.players import Player, PlayerKind, Role, WorkerStatus
from league.runs.folder import Request, open_run
from league.runs.settings import SupervisorSettings
from league.settings.base import build, resolve
from league.views.terminal.display import progress_lines
from league.views.terminal.facts import Screen
from league.views.terminal.panels import view

NAMES = ("learner-main", "learner-main-exploiter", "learner-league-exploiter")


def three() -> Screen:
    """The made-up screen with a main and two exploiters, the second without a heartbeat yet."""
    screen = full()
    assert screen.league.status is not None
    main = screen.league.status.workers[0]
    metrics = {
        "rate/steps_per_second": 2031.0,
        "exploiter/generation": 3.0,
        "exploiter/steps": 41_200.0,
        "exploiter/least_chance": 0.62,
    }
    exploiter = WorkerStatus(
        worker="learner-main-exploiter",
        incarnation=2,
        player="main-exploiter.g3",
        step=201_344,
        mix="victims",
        activity="update",
        last_beat_at=screen.now,
        metrics=metrics,
        open_leases=3,
    )
    status = replace(screen.league.status, workers=(exploiter, main))
    league = replace(screen.league, status=status, leading="learner-main")
    return replace(screen, league=league, learners=NAMES)


def drawn(screen: Screen, width: int = 120) -> str:
    console = Console(width=width, height=44, file=io.StringIO(), color_system=None)
    with console.capture() as capture:
        console.print(view(screen, width, 44), height=44)
    return capture.get()


def test_the_view_shows_all_learners_each_on_a_line() -> None:
    text = drawn(three())
    (line,) = [line for line in text.splitlines() if "main-exploiter" in line and "steps/s" in line]
    for words in (
        "update",
        "201,344 steps",
        "2,031 steps/s",
        "wins 62%, generation 3 for 41,200 steps",
    ):
        assert words in line, (words, line)
    (line,) = [line for line in text.splitlines() if "league-exploiter" in line]
    assert "starting" in line
    assert "652,310 of" in text, "the header is the main's"
    assert three().league.learner.worker == "learner-main", (
        "who leads, though another is listed first"
    )


def test_plain_lines_tell_of_the_other_learners() -> None:
    lines = list(progress_lines(three()))
    assert lines[0].startswith("652,310 of 1,500,000 steps")
    assert lines[1] == (
        "main-exploiter: update · 201,344 steps · 2,031 steps/s · generation 3, "
        "beats its victims 62 %"
    )


def test_each_learner_is_a_process_with_its_name(tmp_path: Path) -> None:
    command = parse(
        [
            "--preset",
            "league3",
            "--run-dir",
            str(tmp_path / "run"),
            "--from",
            "x.pt",
            "--steps",
            "9",
        ]
    )
    with open_run(command.request) as folder:
        settings = build(
            SupervisorSettings, "supervisor", resolve("league3", environment={})["supervisor"]
        )
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
    ("learners", "evaluators", "sentence"),
    [
        ((("a", "main"), ("a", "main_exploiter")), 1, "two learners are called 'a'"),
        ((("a", "main_exploiter"),), 1, "at least one learner must have the role main"),
        ((("a@1", "main"),), 1, "'a@1' can't name a learner"),
        ((("a", "main"), ("b", "league_exploiter")), 0, "set evaluators = 1"),
    ],
)
def test_learners_that_can_not_be(
    learners: tuple[tuple[str, str], ...], evaluators: int, sentence: str
) -> None:
    entries = [{"name": name, "role": role} for name, role in learners]
    with pytest.raises(ConfigError, match=sentence):
        build(SupervisorSettings, "supervisor", {"learners": entries, "evaluators": evaluators})


def test_settings_of_one_learner_are_checked_before_a_folder_is_made(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'extends = "league3"\n[[supervisor.learners]]\nname = "main"\n'
        'set = ["learner.ent_coeff=0.1"]\n'
    )
    with pytest.raises(
        ConfigError, match=r"learner main of \[\[supervisor.learners\]\]: .*ent_coeff"
    ):
        open_run(Request(config=file, run_dir=tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_snapshots_gates_want_an_evaluator(tmp_path: Path) -> None:
    wanted = ("matchmaker.admit=gate", "supervisor.evaluators=0")
    with pytest.raises(
        ConfigError, match=r"are played by the evaluator: set supervisor\.evaluators = 1"
    ):
        open_run(Request(preset="laptop", run_dir=tmp_path / "run", assignments=wanted))
    assert not (tmp_path / "run").exists()


def test_a_new_run_of_which_nothing_came_leaves_no_learners_folder(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with open_run(Request(preset="league3", run_dir=run)) as folder:
        for name in NAMES:
            (run / name / "checkpoints").mkdir(parents=True)
        folder.discard()
    assert not run.exists()


def test_a_new_run_whose_services_can_not_be_asked_leaves_no_folder(tmp_path: Path) -> None:
    wrong = "security.tls=nope"
    run, words = tmp_path / "run", ["--set", wrong, "--headless", "--steps", "1000"]
    assert start_league(["--run-dir", str(run), *words]) == 2
    assert not run.exists()


def test_exploiters_snapshots_are_not_the_newest_of_the_run() -> None:
    """They may have made more steps, and say nothing of how far the main is."""
    screen = full()
    exploiter = replace(
        screen.league.ratings[0],
        player=Player(
            name="main-exploiter.g2@900000",
            game="brawl",
            kind=PlayerKind.SNAPSHOT,
            role=Role.MAIN_EXPLOITER,
            step=900_000,
        ),
    )
    newest = replace(screen.league, ratings=(exploiter, *screen.league.ratings)).newest_rated
    assert newest is not None
    assert newest.name == "main@650000"


def test_a_league_may_wait_for_learners(tmp_path: Path) -> None:
    request = parse(
        ["--no-learners", "--preset", "smoke", "--run-dir", str(tmp_path / "run")]
    ).request
    with open_run(request) as folder:
        settings = resolve(file=folder.config, environment={}).of(SupervisorSettings)
        planned = plan(folder, LearnerOptions(), settings)
    assert planned.learners == ()
    assert [spec.name for spec in planned.specs] == ["matchmaker", "evaluator-0"]
