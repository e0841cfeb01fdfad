"""The wheel, installed in an environment of its own, trains and answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str, cwd: Path, **environment: str) -> str:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        command, cwd=cwd, env=own | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def kumite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of an environment with the wheel, and with this one's other packages."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "source"  # setuptools leaves files in it
    run("git", "clone", "-q", str(ROOT), str(copy), cwd=folder)
    for name in ("pyproject.toml", "league", "learner", "matchmaker", "evaluator"):
        run("cp", "-r", str(ROOT / name), str(copy), cwd=folder)
    pip = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation")
    run(*pip, "--wheel-dir", str(folder), str(copy), cwd=folder)
    (wheel,) = folder.glob("kumite-*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", "env", cwd=folder)
    python = folder / "env" / "bin" / "python"
    (packages,) = (folder / "env" / "lib").glob("python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = (sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps")
    run(*pip, str(wheel), cwd=folder)
    where = "import league; print(league.__file__)"
    assert str(packages) in run(str(python), "-c", where, cwd=folder)
    return folder / "env" / "bin" / "kumite"


@pytest.mark.long
def test_the_installed_package_trains_and_answers(kumite: Path, tmp_path: Path) -> None:
    flags = ["--preset", "board", "--steps", "4096", "--headless", "--cpu", "--ranks", "1"]
    flags += ["--run-dir", "run", "--set", "game.name=kuhn"]
    flags += ["--set", "evaluator.milestone_matches=20"]
    told = run(str(kumite), "start", *flags, cwd=tmp_path)
    assert "4,096 steps" in told
    for name in ("leaderboard.md", "leaderboard.csv", "leaderboard.html"):
        assert "main@4096" in (tmp_path / "run" / name).read_text()
    assert (tmp_path / "run" / "training_curves.png").read_bytes().startswith(b"\x89PNG")
    report = json.loads((tmp_path / "run" / "report" / "report.json").read_text())
    for words in report["newest"]["headline"].values():
        assert words in told
    rated = run(str(kumite), "league", "ratings", "--run-dir", "run", cwd=tmp_path)
    assert "main@" in rated
    assert "--replays" in run(str(kumite), "learner", "clone", "--help", cwd=tmp_path)


@pytest.mark.long
def test_the_wheel_has_the_figures_of_the_moves(kumite: Path, tmp_path: Path) -> None:
    code = "from league.games.brawl.moves import all_moves; print(len(all_moves()))"
    assert run(str(kumite.with_name("python")), "-c", code, cwd=tmp_path) == "33\n"


def test_a_wrong_word_gets_the_programs(kumite: Path, tmp_path: Path) -> None:
    done = subprocess.run([kumite, "strat"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "strat" in done.stderr
    assert "kumite start" in done.stderr
    assert "kumite league" in run(str(kumite), "--help", cwd=tmp_path)
