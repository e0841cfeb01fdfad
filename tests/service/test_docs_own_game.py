"""docs/your-own-game.md: every file is written and every block run, in a new folder."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from game_run import SNAPSHOT, make_game_run
from game_servers import started

from league.cli.main import main
from league.games import registry
from league.games.registry import game_names, make_batched

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "your-own-game.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"(?:<!-- ([^>]*?) -->\n)?```(\w+)\n(.*?)```(?:\n```text\n(.*?)```)?", re.DOTALL)


@dataclass(frozen=True)
class Block:
    mark: str
    kind: str
    code: str
    wanted: str


BLOCKS = [Block(*(part or "" for part in found)) for found in BLOCK.findall(TEXT)]
FILES = {
    block.mark.removeprefix("file: "): block.code
    for block in BLOCKS
    if block.mark.startswith("file: ")
}
SCRIPTS = [block for block in BLOCKS if block.mark == "run" and block.kind == "python"]
LINES = [line for block in BLOCKS if block.kind == "sh" for line in block.code.splitlines()]
TRAININGS = [line for line in LINES if line.startswith("bin/start-league")][1:4]
"""The first names no environment. Those after them want a slow simulator, and other machines."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the page's files, from where everything is started."""
    for name, code in FILES.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    registry._made_spec.cache_clear()
    for name in FILES:
        sys.modules.pop(name.removesuffix(".py"), None)


def run(*words: str, **environment: str) -> str:
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, f"{words}: {done.stderr}{done.stdout}"
    return done.stdout


def test_every_block_is_of_a_kind_that_is_run_here() -> None:
    assert len(BLOCKS) == TEXT.count("```") // 2 - sum(bool(block.wanted) for block in BLOCKS)
    kinds = {f"{block.mark.partition(':')[0]} {block.kind}" for block in BLOCKS}
    assert kinds == {"file python", "run python", "run console", " sh", "entry point toml"}
    known = (
        "bin/start-league ",
        "bin/league certs ",
        "bin/league tokens make ",
        "KUMITE_TOKEN_FILE=worker.token bin/league serve-game ",
        "PYTHONPATH=tests/contract:. .venv/bin/python -m pytest ",
    )
    assert all(line.startswith(known) for line in LINES)
    assert (len(FILES), len(SCRIPTS), len(LINES)) == (4, 2, 10)


@pytest.mark.parametrize("script", SCRIPTS, ids=["pettingzoo", "register"])
def test_scripts_print_what_is_written(script: Block, folder: Path) -> None:
    assert script.wanted
    assert script.wanted in run(sys.executable, "-W", "ignore", "-c", script.code)


def consoles() -> list[tuple[str, list[str]]]:
    """Commands with the lines that they print."""
    found: list[tuple[str, list[str]]] = []
    for block in BLOCKS:
        if block.kind == "console":
            for line in block.code.splitlines():
                if line.startswith("$ "):
                    found.append((line[2:], []))
                elif line != "...":
                    found[-1][1].append(line)
    return found


def test_commands_print_what_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command, lines in consoles():
        program, *words = shlex.split(command)
        assert program == "bin/league"
        assert main(words) == 0, capsys.readouterr().err
        printed = capsys.readouterr().out.splitlines()
        assert lines
        assert [line for line in lines if line not in printed] == []


def test_the_game_of_arrays_keeps_the_contract(folder: Path) -> None:
    command = next(line for line in LINES if "pytest" in line)
    paths, _, _, _, name = command.split()
    assert paths == "PYTHONPATH=tests/contract:."
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", name)
    printed = run(sys.executable, *words, PYTHONPATH=f"{ROOT / 'tests' / 'contract'}:.")
    assert re.search(r"\b1[0-9] passed", printed)


@pytest.mark.long
def test_a_demo_takes_the_options_of_its_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["game.name=pettingzoo:sticks", "game.options.sticks=17", "game.options.workers=1"]
    digest = make_game_run(Path("runs/board-1"), options)
    seated = [SNAPSHOT, "random", "--seed", "1", "--game", "pettingzoo:sticks"]
    for where in ([], ["--run-dir", "runs/board-1"]):
        assert main(["demo", *seated, *where]) == 0, capsys.readouterr().err
        assert re.search(f"{SNAPSHOT} .*random.* 1", capsys.readouterr().out)
    file = f"runs/board-1/blobs/{digest}.safetensors"
    assert main(["demo", file, "random", "--game", "pettingzoo:sticks"]) == 2
    said = capsys.readouterr().err
    assert re.search(r"\b23\b.*\b3\b.*pettingzoo:sticks.*\b27\b.*\b3\b.*--run-dir", said)


@contextmanager
def installed(folder: Path, toml: str) -> Iterator[None]:
    """A package with the page's entry points is installed in `folder`."""
    points = tomllib.loads(toml)["project"]["entry-points"]
    lines = []
    for group, named in points.items():
        lines += [f"[{group}]", *(f"{name} = {factory}" for name, factory in named.items())]
    info = folder / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(lines))
    yield


def test_an_entry_point_names_a_game_in_every_process(folder: Path) -> None:
    toml = next(block.code for block in BLOCKS if block.kind == "toml")
    with installed(folder, toml):
        assert {"rope", "sticks"} <= set(game_names())
        assert make_batched("rope", 2).spec.action_names == ("pull", "brace")
        found = (
            "from league.games.registry import game_spec; print(game_spec('sticks').action_names)"
        )
        assert "three" in run(sys.executable, "-c", found)


HOSTS = ("127.0.0.2", "127.0.0.3")


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_league_trains_on_game_workers_of_other_machines(folder: Path) -> None:
    """The commands of the page. A folder stands for the machines cpu-1.lan and cpu-2.lan."""
    lines = [line for line in LINES if "runs/slow" in line or "cpu-1" in line or "serve-" in line]
    text = "\n".join(lines).replace("my_simulator", "quick_sticks")
    certs, tokens, serve, train = text.splitlines()
    for number, host in enumerate(HOSTS, 1):
        certs = certs.replace(f"cpu-{number}.lan", host)
    for command in (certs, tokens):
        run(sys.executable, "-m", "league", *shlex.split(command)[1:])
    other = folder / "other"
    (other / "certs").mkdir(parents=True)
    for name in ("ca.pem", "server.pem", "server.key"):
        shutil.copy(folder / "certs" / name, other / "certs")
    shutil.copy(folder / "runs" / "slow" / "tokens" / "worker.token", other)
    shutil.copy(folder / "quick_sticks.py", other)
    variable, _, *words = shlex.split(serve)
    with ExitStack() as workers:
        for number, host in enumerate(HOSTS, 1):
            own = [word.replace("0.0.0.0", host).replace("50060", "PORT") for word in words]
            command = ["env", "-C", str(other), variable, sys.executable, "-m", "league", *own]
            _, port = workers.enter_context(started(command))
            train = train.replace(f"cpu-{number}.lan:50060", f"{host}:{port}")
        quick = "--headless --cpu --steps 2000 --set learner.snapshot_interval=1000"
        words = [*shlex.split(train)[1:], *quick.split()]
        printed = run(sys.executable, "-m", "league.cluster.main", *words)
    assert "Leaderboard" in printed
    with closing(sqlite3.connect(folder / "runs" / "slow" / "league.db")) as log:
        ((played, failed),) = log.execute("SELECT count(*), sum(failed) FROM results").fetchall()
    assert played > 100
    assert failed == 0
    learner = (folder / "runs" / "slow" / "logs" / "learner-main.log").read_text()
    assert "game worker" not in learner, "each worker was there from the start"


@pytest.mark.slow
@pytest.mark.parametrize("command", TRAININGS)
def test_trainings_train(command: str, folder: Path) -> None:
    """Each command with fewer steps, at the speed of a test."""
    words = shlex.split(command)[1:-2]
    quick = ["--headless", "--cpu", "--steps", "6000", "--run-dir", str(folder / "run")]
    quick += ["--set", "learner.snapshot_interval=2000", "--set", "evaluator.milestone_matches=8"]
    printed = run(sys.executable, "-m", "league.cluster.main", *words, *quick)
    assert "Leaderboard" in printed
    assert "random" in printed
