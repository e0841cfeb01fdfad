"""Every command line of README and docs/ can be parsed by its program; those without a run work."""

from __future__ import annotations

import argparse
import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer
import typer.main
from cli_league import make_run
from ports import free_port
from test_docs import PAGES, ROOT
from typer.core import TyperGroup

import evaluator.main
import league.cli.main
import learner.cloning.main
import learner.main
import matchmaker.main
from league.cluster.main import parse
from league.errors import LeagueError
from matchmaker.tools.fsck import fsck

SERVED = {
    "bin/matchmaker --db runs/one/league.db --port 50051",
    "bin/matchmaker --db runs/one/league.db --port 50051 --read-only",
}
ALONE = {  # need no run
    "bin/league sprt --p0 0.55 --p1 0.65",
    "bin/league sprt --elo0 0 --elo1 35 --pentanomial 10,60,200,80,20",
    "bin/league demo caller nash --game kuhn --seed 1",
    "bin/league exploitability --game kuhn random caller nash",
}


def parse_league(words: list[str]) -> None:
    """Reads the flags of a command of ``bin/league``, and does not run it."""
    command = typer.main.get_command(league.cli.main.app)
    context = command.make_context("league", list(words), resilient_parsing=True)
    while isinstance(command, TyperGroup):
        name, command, words = command.resolve_command(context, list(words))
    command.make_context(name, words)


PARSERS: dict[str, Callable[[list[str]], object]] = {
    "bin/league": parse_league,
    "bin/start-league": parse,
    "bin/matchmaker": lambda words: matchmaker.main._parser().parse_args(words),
    "bin/learner": lambda words: (
        learner.cloning.main.parser().parse_args(words[1:])
        if words[0] == learner.cloning.main.COMMAND
        else learner.main.parser().parse_args(words)
    ),
    "bin/evaluator": lambda words: evaluator.main._parser().parse_args(words),
}
FENCE = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
COMMAND = re.compile(
    r"(?:\$ )?((?:bin|\.venv/bin)/\S.*|(?:git|mkdir|pip|python3?|grpcurl|buf|curl|docker|cd) .*)"
)


def commands(page: Path) -> list[str]:
    """Lines of fenced (but Python, TOML) and indented blocks that begin as a command; comments
    left out.
    """
    text = page.read_text(encoding="utf-8")
    lines = [line for kind, block in FENCE.findall(text) if kind in ("", "sh", "bash", "console")
             for line in block.splitlines()]  # fmt: skip
    lines += [line[4:] for line in FENCE.sub("", text).splitlines() if line.startswith("    ")]
    found = [match[1] for line in lines if (match := COMMAND.match(line))]
    return [re.split(r"\s{2,}", line)[0].strip() for line in found]


WRITTEN = sorted({command for page in PAGES for command in commands(page)} | SERVED)


@pytest.mark.parametrize("command", [command for command in WRITTEN if "COMMAND" not in command])
def test_its_program_understands_every_command(command: str) -> None:
    for part in command.split(" && "):
        program, *words = shlex.split(re.sub(r"\[(-- )?|\]", r"\1", part))
        if "/" not in program:
            continue  # git, curl, grpcurl
        assert (ROOT / program).is_file()
        if program in PARSERS:
            try:
                PARSERS[program](words)
            except (SystemExit, argparse.ArgumentError, LeagueError, typer.TyperException) as error:
                pytest.fail(f"{command}: {error}")
        for word in words:
            assert not word.startswith("tests/") or (ROOT / word).exists(), command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_sentences_have_no_unknown_flags(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands in a sentence may be incomplete, but each flag must exist."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for span in re.findall(r"`(bin/[^`]* --[^`]*)`", text):
        program, *words = shlex.split(re.sub(r"\[(-- )?|\]", r"\1", span))
        if program not in PARSERS:  # a script
            script = (ROOT / program).read_text(encoding="utf-8")
            assert all(word in script for word in words if word.startswith("--")), span
            continue
        try:
            PARSERS[program](words)
            refusal = ""
        except SystemExit:
            refusal = capsys.readouterr().err
        except (LeagueError, typer.TyperException) as error:
            refusal = str(error)
        assert not re.search("no such option|unrecognized arguments", refusal, re.IGNORECASE), span


@pytest.mark.parametrize("command", sorted(ALONE))
def test_what_needs_no_run_works_by_itself(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert league.cli.main.main(shlex.split(command)[1:]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out


@contextmanager
def served(command: str, folder: Path, port: int) -> Iterator[None]:
    words = shlex.split(command.replace("50051", str(port)))
    process = subprocess.Popen(
        [str(ROOT / words[0]), *words[1:]], cwd=folder, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == f"ready {port}\n"
        yield
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_matchmaker_is_served_and_checked_as_its_page_says(tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "one")
    port = free_port()
    for command in sorted(SERVED):
        with served(command, tmp_path, port):
            findings, _ = fsck(tmp_path / "runs" / "one" / "league.db", f"127.0.0.1:{port}")
            assert findings == []
