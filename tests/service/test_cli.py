"""``bin/league`` itself: its commands and their help, settings files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from league.cli.main import main

Capture = pytest.CaptureFixture[str]


def test_config_write_keeps_what_exists(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "mine.toml"
    words = ["config", "write", "--preset", "laptop", "--set", "learner.steps=123", str(file)]
    assert main(words) == 0
    assert "steps = 123" in file.read_text()
    assert main(["config", "write", str(file)]) == 1
    assert "--force" in capsys.readouterr().err
    assert main(["config", "write", "--force", str(file)]) == 0
    assert "steps = 123\n" not in file.read_text()
    assert main(["config", "write", "-", "--from", str(file)]) == 0
    assert "[learner]" in capsys.readouterr().out


@pytest.mark.parametrize("target", ["echo", "app"])
def test_a_package_adds_a_command(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    (tmp_path / "sample_command.py").write_text(
        "import typer\n"
        "app = typer.Typer()\n"
        "@app.command()\n"
        "def echo(word: str) -> int:\n"
        "    '''Repeats a word, 100 %.'''\n"
        "    print('heard', word)\n"
        "    return 3\n"
    )
    info = tmp_path / "sample_command-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sample-command\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[kumite.commands]\necho = sample_command:{target}\n")
    monkeypatch.delitem(sys.modules, "sample_command", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["echo", "hello"]) == 3
    assert capsys.readouterr().out == "heard hello\n"
    assert main(["echo"]) == 2
    assert main(["ecko"]) == 2
    assert "'ecko'" in capsys.readouterr().err
    for words in (["--help"], ["echo", "--help"]):
        assert main(words) == 0
        assert "Repeats a word, 100 %." in capsys.readouterr().out


def test_help_lists_every_command_and_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from league.cli.main import main\n"
        "main(['--help'])\n"
        "heavy = ('torch', 'numba', 'matplotlib')\n"
        "print([name for name in sys.modules if name.split('.')[0] in heavy], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stderr == "[]\n"
    for name in ("ratings", "doctor", "simulate", "certs"):
        assert name in done.stdout
