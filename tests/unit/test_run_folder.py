"""A run's folder is made once, resumed unchanged, and never shared by two supervisors."""

from __future__ import annotations

import json
import os
import socket
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from ports import free_port

from league.cli.main import main
from league.cluster.main import main as start_league
from league.errors import ConfigError, Refused, VersionMismatch
from league.runs.folder import Request, _bindable, open_run
from league.settings import base as config


def request(
    run_dir: str | None = "run",
    preset: str | None = None,
    file: str | None = None,
    *assignments: str,
) -> Request:
    return Request(
        preset=preset,
        config=Path(file) if file else None,
        assignments=assignments,
        run_dir=Path(run_dir) if run_dir else None,
    )


def make(*assignments: str, preset: str = "smoke") -> None:
    with open_run(request("run", preset, None, *assignments)):
        pass


def test_new_run_holds_its_resolved_settings() -> None:
    with open_run(request("run", "smoke", None, "learner.steps=123")) as folder:
        assert not folder.resumed
        assert json.loads(Path("run/run.json").read_text())["format"] == 1
        assert config.resolve(file=folder.config, environment={}) == config.resolve(
            "smoke", assignments=["learner.steps=123"]
        )


@pytest.mark.parametrize(
    ("head", "preset", "size"),
    [("", None, "tiny"), ('extends = "full"\n', None, "large"), ("", "full", "large")],
)
def test_a_settings_file_means_the_same_agent_to_every_command(
    head: str, preset: str | None, size: str
) -> None:
    file, text = Path("mine.toml"), f"{head}[learner]\nn_epochs = 3\n"
    file.write_text(text)
    with open_run(request("run", preset, "mine.toml")) as folder:
        started = config.resolve(file=folder.config, environment={})
    assert (started["agent"]["size"], started["learner"]["n_epochs"]) == (size, 3)
    assert config.resolve_run(None, preset, file) == started
    assert config.resolve_run(None, preset, file, default=None) == started
    assert config.resolve_run(Path("run")) == started
    named = ["--preset", preset] if preset else []
    assert main(["config", "write", "--from", "mine.toml", *named, "whole.toml"]) == 0
    assert config.resolve(file=Path("whole.toml"), environment={}) == started
    if preset is None:  # as the own file of a folder that no start has completed yet
        Path("own").mkdir()
        Path("own/config.toml").write_text(text)
        assert config.resolve_run(Path("own")) == started


def test_only_its_owner_enters_a_new_run() -> None:
    before = os.umask(0)
    try:
        with open_run(request("deep/run")) as named, open_run(request(None)) as numbered:
            for folder in (named, numbered):
                assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    finally:
        os.umask(before)


def test_folders_without_a_name_are_numbered_by_preset() -> None:
    Path("runs/laptop-7").mkdir(parents=True)
    with open_run(request(None)) as first, open_run(request(None, "smoke")) as second:
        assert (first.path, first.preset) == (Path("runs/laptop-8"), "laptop")
        assert second.path == Path("runs/smoke-1")


@pytest.mark.parametrize(
    "again",
    [
        request("run"),
        request("run", "smoke"),
        request("run", "smoke", None, "learner.steps=123"),
        request("run", None, "mine.toml", "learner.steps=123"),
    ],
)
def test_same_command_goes_on(again: Request) -> None:
    Path("mine.toml").write_text('extends = "smoke"\n[learner]\nsteps = 5\n')
    make("learner.steps=123")
    before = Path("run/config.toml").read_bytes()
    with open_run(again) as folder:
        assert folder.resumed
        assert folder.preset == "smoke"
    assert Path("run/config.toml").read_bytes() == before


@pytest.mark.parametrize(
    ("again", "words"),
    [
        (request("run", "test"), r"'smoke'.*'test'.*--run-dir"),
        (request("run", None, None, "learner.steps=7"), r"learner\.steps = 123\b.*\b7\b"),
        (request("run", None, "mine.toml"), r"learner\.steps = 123\b.*\b5\b"),
        (request("run", "test", "mine.toml"), r"'smoke'.*--preset.*'test'"),
        (request("run", None, None, "learner.stepz=7"), "'stepz'"),
    ],
)
def test_contradictions_are_refused(again: Request, words: str) -> None:
    Path("mine.toml").write_text('extends = "smoke"\n[learner]\nsteps = 5\n')
    make("learner.steps=123")
    with pytest.raises(ConfigError, match=words):
        open_run(again)


def test_a_run_can_move_to_other_machines() -> None:
    make("learner.steps=123")
    with open_run(request("run", None, None, "cluster.learners=pool=gpu", "security.tokens=true")):
        pass
    with open_run(request()) as folder:
        sections = config.resolve(file=folder.config, environment={})
    assert sections["cluster"]["learners"] == "pool=gpu"
    assert sections["security"]["tokens"] is True
    assert sections["learner"]["steps"] == 123


def test_second_supervisor_is_refused_until_the_first_has_gone() -> None:
    words = str(os.getpid())
    with open_run(request("run", "smoke")), pytest.raises(Refused, match=words):
        open_run(request())
    with open_run(request()) as folder:
        assert folder.resumed


def test_a_second_start_is_refused_before_anything_else_is_looked_at(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Looking for a device loads torch, which takes long next to a league that trains."""
    start, other_steps = ["--run-dir", "run"], ["--set", "learner.steps=5"]
    with open_run(request("run", "smoke")):
        for flags in (["--gpu", "99"], other_steps):
            assert start_league([*start, *flags]) == Refused.exit_code
            assert str(os.getpid()) in capsys.readouterr().err
    assert start_league([*start, *other_steps]) != Refused.exit_code, "it is free again"


def test_another_format_is_refused() -> None:
    make()
    run = json.loads(Path("run/run.json").read_text())
    Path("run/run.json").write_text(json.dumps(run | {"format": 2, "version": "9.9"}))
    with pytest.raises(VersionMismatch, match=r"format 2\b.*9\.9"):
        open_run(request())


def test_folder_of_something_else_is_left_alone() -> None:
    Path("run").mkdir()
    Path("run/thesis.tex").write_text("\\begin{document}")
    with pytest.raises(ConfigError, match=r"'thesis\.tex'.*run\.json"):
        open_run(request())


def test_start_that_broke_off_is_begun_anew() -> None:
    make()
    Path("run/run.json").unlink()
    with open_run(request("run", "smoke")) as folder:
        assert not folder.resumed


OWN = 'extends = "smoke"\n[learner]\nsteps = 5\n[game]\nmatch_seconds = 4\n'


@pytest.fixture
def own() -> Path:
    """A user's settings in a folder that is no run yet."""
    Path("run").mkdir()
    file = Path("run/config.toml")
    file.write_text(OWN)
    return file


@pytest.mark.parametrize("new", [request("run"), request("run", "smoke")])
def test_settings_in_a_new_folder_win_over_the_preset(own: Path, new: Request) -> None:
    Path("more.toml").write_text("[learner]\nsteps = 5\nlearning_rate = 0.125\n")
    flags = ("evaluator.nice=3",)
    with open_run(replace(new, config=Path("more.toml"), assignments=flags)) as folder:
        assert not folder.resumed
        assert folder.preset == "smoke"
        assert config.resolve(file=folder.config, environment={}) == config.resolve(
            "smoke",
            environment={},
            assignments=[
                *("learner.steps=5", "game.match_seconds=4"),
                *("learner.learning_rate=0.125", *flags),
            ],
        )
    with open_run(request("run")) as folder:
        assert folder.resumed


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (request("run", "test"), r"config\.toml.*'smoke'.*--preset.*'test'"),
        (request("run", None, "other.toml"), r"'smoke'.*other\.toml.*'test'"),
        (
            request("run", None, None, "learner.steps=7"),
            r"config\.toml.*learner\.steps = 5\b.*\b7\b",
        ),
        (request("run", None, "mine.toml"), r"config\.toml.*learner\.steps = 5\b.*\b9\b"),
    ],
)
def test_what_contradicts_settings_in_a_new_folder_is_refused(
    own: Path, new: Request, words: str
) -> None:
    Path("mine.toml").write_text("[learner]\nsteps = 9\n")
    Path("other.toml").write_text('extends = "test"\n')
    with pytest.raises(ConfigError, match=words):
        open_run(new)
    assert own.read_text() == OWN
    assert [path.name for path in Path("run").iterdir()] == ["config.toml"]


def test_a_variable_contradicts_settings_in_a_new_folder_too(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUMITE_LEARNER__STEPS", "7")
    with pytest.raises(ConfigError, match=r"learner\.steps = 5\b.*\b7\b"):
        open_run(request("run"))


def test_a_run_that_never_began_gives_the_users_settings_back(own: Path) -> None:
    with open_run(request("run")) as folder:
        assert own.read_text() != OWN, "a run's file has every setting"
        folder.discard()
    assert own.read_text() == OWN


def test_ports_stay_unless_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def bindable(port: int) -> int:  # new ones that nobody else takes meanwhile
        return _bindable(port or free_port())

    monkeypatch.setattr("league.runs.folder._bindable", bindable)
    with open_run(request("run", "smoke")) as folder:
        port = folder.port("matchmaker")
        assert folder.port("evaluator") != port
        assert folder.port("matchmaker") == port
    with open_run(request()) as folder, socket.socket() as intruder:
        assert folder.port("matchmaker") == port
        intruder.bind(("127.0.0.1", port))
        intruder.listen()
        assert folder.port("matchmaker") != port


def test_address_is_announced_and_withdrawn() -> None:
    with open_run(request("run", "smoke")) as folder:
        folder.announce("matchmaker", "127.0.0.1:4711", 99)
        assert json.loads(Path("run/matchmaker.json").read_text()) == {
            "address": "127.0.0.1:4711",
            "pid": 99,
        }
        folder.withdraw("matchmaker")
        folder.withdraw("matchmaker")
        assert not Path("run/matchmaker.json").exists()


def test_a_path_that_cannot_be_a_folder_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "taken" / "lock").mkdir(parents=True)
    for path in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "taken"):
        with pytest.raises(ConfigError, match=f"{path} .*--run-dir"):
            open_run(Request(preset="smoke", config=None, assignments=(), run_dir=path))


def test_runs_that_cannot_be_a_folder_are_refused_in_a_sentence() -> None:
    Path("runs").touch()
    with pytest.raises(ConfigError, match=r"\bruns\b.*--run-dir"):
        open_run(request(None))


@pytest.fixture(scope="module")
def place() -> Path:
    return Path.cwd()


def test_neither_a_test_nor_a_larger_fixture_finds_the_clones_runs(place: Path) -> None:
    clone = Path(__file__).resolve().parents[2]
    for folder in (place, Path.cwd()):
        assert not folder.is_relative_to(clone)
        assert not (folder / "runs").exists()
