"""``bin/league`` itself: its commands and their help, settings files, errors in one sentence."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from league.cli.main import main
from league.cli.summaries import summary_of

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["rating"], 2, "there is no command 'rating': did you mean 'ratings'?"),
        (["ratings", "--book", "best"], 2, "invalid choice: 'best'"),
        (["ratings", "--address", "nowhere"], 2, "'nowhere' is no address: write HOST:PORT"),
        (["ratings", "--run-dir", "absent"], 1, "there is no run folder absent"),
        (["ratings", "--run-dir", "."], 1, "is no run folder"),
        (["ratings"], 1, "there is no run under runs/"),
        (["config", "write", "--preset", "labtop", "x.toml"], 2, "did you mean 'laptop'?"),
        (["demo", "based", "bosed"], 1, "there is no run under runs/"),
        (["demo", "based", "gone.safetensors"], 1, "there is no weights file"),
        (["demo", "based", "random", "--speed", "0"], 2, "a speed above 0"),
    ],
)
def test_errors_are_one_sentence_and_an_exit_code(
    words: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == code
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.startswith("league: ")
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_config_write_keeps_what_exists(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "mine.toml"
    assert (
        main(["config", "write", "--preset", "laptop", "--set", "learner.steps=123", str(file)])
        == 0
    )
    assert "steps = 123" in file.read_text()
    assert main(["config", "write", str(file)]) == 1
    assert "add --force" in capsys.readouterr().err
    assert main(["config", "write", "--force", str(file)]) == 0
    assert "steps = 123\n" not in file.read_text()
    assert main(["config", "write", "-", "--from", str(file)]) == 0
    assert "[learner]" in capsys.readouterr().out


def test_a_package_adds_a_command(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sample_command.py").write_text(
        "def add_arguments(parser):\n    parser.add_argument('word')\n"
        "def run(args):\n    print('heard', args.word)\n    return 3\n"
    )
    info = tmp_path / "sample_command-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sample-command\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[kumite.commands]\necho = sample_command\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["echo", "hello"]) == 3
    assert capsys.readouterr().out == "heard hello\n"
    assert main(["echo"]) == 2
    assert main(["ecko"]) == 2
    assert "did you mean 'echo'?" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "of the package sample_command" in capsys.readouterr().out
    code = (tmp_path / "sample_command.py").read_text()
    (tmp_path / "sample_command.py").write_text(f"SUMMARY = 'repeats a word, 100 %'\n{code}")
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "repeats a word, 100 %" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["echo", "--help"])
    assert "Repeats a word, 100 %." in capsys.readouterr().out


SOURCES = {
    "summed": '"""A doc."""\nimport absent\nSUMMARY = "sums up."\n',
    "told": '"""Tells a thing. And more.\n\nMuch more.\n"""\nimport absent\n',
    "silent": "import absent\n",
    "broken": "def (\n",
    "built": "SUMMARY = str(1)\n",
}


@pytest.mark.parametrize(
    ("module", "summary"),
    [
        ("bundle.summed", "sums up"),
        ("bundle.told", "Tells a thing"),
        ("bundle.silent", ""),
        ("bundle.broken", ""),
        ("bundle.built", ""),
        ("bundle.absent", ""),
        ("nowhere.at.all", ""),
        ("sys", ""),
    ],
)
def test_a_commands_summary_is_read_from_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, summary: str
) -> None:
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "__init__.py").write_text("import absent\n")
    for name, text in SOURCES.items():
        (bundle / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert summary_of(module) == summary


def test_help_tells_every_commands_purpose_and_loads_none(tmp_path: Path, capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = capsys.readouterr().out
    assert "of the package" not in listed
    assert re.search(r"^    doctor +why does it not learn\?", listed, re.MULTILINE)
    code = (
        "import sys; from league.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print([name for name in sys.modules if name.split('.')[0] in "
        "('learner', 'matchmaker', 'torch', 'numba', 'numpy', 'grpc', 'pydantic')], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stderr == "[]\n"
    assert "of the package" not in done.stdout, "wherever one stands"
