"""``bin/league`` itself: its commands and their help, settings files."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_league import served

from league.cli.main import CommandGroup, main

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
        "@app.command()\n"
        "def other(word: str) -> None:\n"
        "    pass\n"
    )
    info = tmp_path / "sample_command-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sample-command\nVersion: 1.0\n")
    points = f"echo = sample_command:{target}\nratings = sample_command:echo\n"
    (info / "entry_points.txt").write_text(f"[kumite.commands]\n{points}")
    monkeypatch.delitem(sys.modules, "sample_command", raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert main(["echo", "hello"]) == 3
    assert capsys.readouterr().out == "heard hello\n"
    assert main(["echo"]) == 2
    assert main(["ratings", "hello"]) == 2, "Kumite's own takes no word"
    assert main(["ecko"]) == 2
    assert "'ecko'" in capsys.readouterr().err
    for words in (["--help"], ["echo", "--help"]):
        assert main(words) == 0
        assert "Repeats a word, 100 %." in capsys.readouterr().out


def test_help_has_each_command_under_a_heading_and_wraps_its_words_alone(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    headings = [line.strip("╭─╮ ") for line in lines if line.startswith("╭")]
    assert headings[0] == "Options"
    assert {"Train", "Look at a league", "Measure players"} < set(headings)
    assert "Commands" not in headings
    assert not [line for line in lines if line.startswith("│  ")], "the rest of a command's line"


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


NOTHING = """
serve-game --game nothing
sweep nothing.toml
ecko
dashboard --run-dir nowhere
ratings --run-dir nowhere
ratings --book nothing
players --kind nothing
payoff --row nothing
payoff --column nothing
structure --versus nothing based
exploiters nothing@1
gates nothing@1
evaluations 7
evaluations --cancel 7
watch --kind nothing
match 00000000000000000000000000000000
stage nothing
stage based --player nothing
pin nothing --mu 30
pin nothing --unpin
quarantine nothing --reason none
quarantine nothing --release
add nothing.py --as rival
remove nothing
import nowhere
import runs/laptop-1 --run-dir runs/second --players nothing@*
demo nothing based
demo nothing.safetensors based
player nothing
player nothing.py
demo main@1000 based --blobs nowhere
replay nothing
showdown replay nothing
replay nothing.replay
record nothing based
clone nothing
clone based --against nothing --run-dir runs/laptop-1
eval nothing
eval nothing --queue
compare nothing based
ready nothing
analyze nothing
analyze main@1000 --against nothing based
report nothing
exploitability nothing --game kuhn
exploit nothing
leaderboard export --run-dir nowhere
curves --learner nothing
render nothing --out x.png
film --run-dir nowhere
attention nothing --out x.png
export nothing@1 --out x.zip
export nothing.safetensors --out x.zip
export --out x.zip
export main@2000 --check my_agent.py
export main@2000 --out x.zip --greedy
export --check nothing.py
config write - --preset nothing
config write - --from nothing.toml
tokens list --run-dir runs/laptop-1
tokens add nothing gpu-1 --run-dir runs/second
tokens revoke nothing --run-dir runs/second
sprt --certificate nothing.json
status --run-dir nowhere
backup nowhere x.db
fsck nowhere
mix nowhere
mix set nothing.based=1 --run-dir runs/laptop-1
pause --run-dir runs/nothing
resume --run-dir runs/nothing
branch runs/nothing runs/new
mix runs/laptop-1 --player nothing
recompute nowhere
prune nowhere
restore nowhere x.db
restore runs/laptop-1 nothing.db
doctor --preset nothing
doctor --run-dir nowhere
doctor --run-dir runs/laptop-1 --name nothing
profile --preset nothing
simulate --scenario nothing
tournament nothing based
tournament nothing.py based
train --preset nothing
"""
"""Commands with a name of nothing that exists; of every command that takes names."""


def test_a_name_of_nothing_exits_with_2(
    tmp_path: Path, finished: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, second = tmp_path / "runs" / "laptop-1", tmp_path / "runs" / "second"
    shutil.copytree(finished, run)
    shutil.copytree(finished, second)
    monkeypatch.chdir(tmp_path)
    commands = NOTHING.strip().splitlines()
    with served(run, read_only=False), served(second, read_only=False):
        assert main(["tokens", "make", "--run-dir", str(second)]) == 0
        found = {command: main(shlex.split(command)) for command in commands}
    assert found == dict.fromkeys(commands, 2), capsys.readouterr().err
    assert set(CommandGroup().points) - {command.split()[0] for command in commands} == {"certs"}
