"""What lies in the folder of the caller, or on its PYTHONPATH, takes the place of no module."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAUNCHERS = ("league", "learner", "matchmaker", "evaluator", "start-league")
SHADOWS = (
    *("random.py", "token.py", "queue.py", "types.py", "learner.py", "league/__init__.py"),
    *("numpy/__init__.py", "sitecustomize.py", "pip.py"),
)
GAME = """
import random, numpy
from league.games.matrix import make_matrix

def make(num_matches, *, max_frames=None):
    return make_matrix(num_matches, argument="rps", max_frames=max_frames)
"""
ENVIRONMENT = """
from pettingzoo.classic import rps_v2
env = rps_v2.env
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose modules leave a mark and break who imports them, with two games."""
    for name in SHADOWS:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        mark = tmp_path / "imported"
        file.write_text(f"open({str(mark)!r}, 'a').write({name!r})\nraise SystemExit(9)\n")
    (tmp_path / "my_game.py").write_text(GAME)
    (tmp_path / "my_env.py").write_text(ENVIRONMENT)
    (tmp_path / "elsewhere").mkdir()
    return tmp_path


def started(folder: Path, path: str, *words: str) -> subprocess.Popen[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("KUMITE_")}
    return subprocess.Popen(
        words,
        cwd=folder,
        env={**own, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_programs_import_their_own_modules(folder: Path) -> None:
    processes = [started(folder, ".", str(ROOT / "bin" / name), "--help") for name in LAUNCHERS]
    for name, process in zip(LAUNCHERS, processes, strict=True):
        said, _ = process.communicate(timeout=170)
        assert process.returncode == 0, (name, said)
    assert not (folder / "imported").exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("cwd", "path", "program", "game"),
    [
        (".", "", "bin/league", "python:my_game:make"),
        ("elsewhere", "..", "bin/league", "pettingzoo:my_env"),
        (".", "", "kumite", "pettingzoo:my_env"),
    ],
)
def test_a_game_of_the_callers_folder_is_played(
    folder: Path, cwd: str, path: str, program: str, game: str
) -> None:
    installed = [str(Path(sys.executable).with_name("kumite")), "league"]
    start = installed if program == "kumite" else [str(ROOT / program)]
    words = [*start, "demo", "random", "random", "--game", game]
    process = started(folder / cwd, path and str(folder), *words)
    said, _ = process.communicate(timeout=170)
    assert process.returncode == 0, said
    assert not (folder / "imported").exists()


POOL = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from league.errors import nearest
from league.games.registry import users_module

users_module("my_game")
with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as other:
    print(other.submit(nearest, "a", ["a"]).result())
"""


def test_other_processes_import_the_projects_own_package(folder: Path) -> None:
    """A new process has the path of its parent, to which the game's folder belongs then."""
    words = [sys.executable, "-P", "-c", POOL]
    process = started(folder, "", *words)
    said, _ = process.communicate(timeout=170)
    assert process.returncode == 0, said
    assert not (folder / "imported").exists()
