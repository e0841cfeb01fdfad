"""Every command line of README and docs/ is run, or named here with the reason why not, and can
be parsed.
"""

from __future__ import annotations

import argparse
import re
import shlex
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer
import typer.main
from cli_league import make_run
from test_docs import PAGES, ROOT, examples
from typer.core import TyperGroup

import evaluator.main
import league.cli.main
import learner.cloning.main
import learner.main
import matchmaker.main
from league.cluster.main import parse
from league.errors import LeagueError
from matchmaker.tools.fsck import fsck

LONG = "trains for minutes; tests/system/test_league.py runs the command with the preset smoke"
GUIDES = "trains for hours; test_preset_starts.py begins such a run"
OWN_GAME = "needs the page's own files; test_docs_own_game.py runs it"
BY_HAND = (
    "trains until it is stopped; tests/service/test_learner.py and test_evaluator_process.py run it"
)
CARDS = "test_sb3_league.py trains in such a league"
EXPORTS = "takes its time; test_cli_export.py runs it with a small agent"
REPLAYS = "needs a run with replays; test_cli_replay.py runs it"
ANCHORS = "needs a run that goes on; test_cli_anchors.py pins and imports in one"
APART = "needs a run that goes on; test_quarantine.py puts a player there by command"
STAGES = "needs a run that goes on; test_cli_stage.py asks one"
CLONING = "records and learns for minutes; test_cloning_commands.py runs it, at small size"
PROFILE = (
    "measures for minutes; tests/unit/test_profile_command.py runs the command on small settings"
)
STRUCTURE = "an example of cli.md runs it"
DOCTOR = "half a minute and more; test_doctor_presets.py runs it, marked slow"
DOCTOR_CARDS = "test_doctor_command.py runs it, kuhn with smaller rollouts, leduc marked slow"
DOCTOR_RUN = "needs a run; test_doctor_run_command.py trains a short one"
MINIMAL = "a minute and more; test_doctor_command.py runs it, for seconds, and marked slow for all of them"
SIMULATED = "an example of cli.md simulates a smaller league"
THREE = "trains for minutes; tests/system/test_league3.py runs such a league"
SPRT_FILE = "needs a file; tests/unit/test_sprt_command.py writes one"
OUTSIDER = "needs grpcurl or buf; test_matchmaker_docs.py asks the same by reflection in Python"
SECURED = "tests/service/test_security_commands.py runs it"
FUZZ = "minutes; tests/service/test_fuzzing.py sends a few of its messages"
TESTS = "runs this test"
MEASURED = "what a benchmark was measured with"
NOT_RUN = {
    ".venv/bin/python tests/bench/skill.py FOLDER": MEASURED,
    ".venv/bin/python tests/bench/laptop.py FOLDER --rounds 1 --seconds 30 [--run RUN] [--set ...] "
    "[-- --cpu --ranks 2]": MEASURED,
    ".venv/bin/python tests/bench/fuzz_matchmaker.py --messages 1000000": FUZZ,
    'grpcurl -plaintext -H "authorization: Bearer $KUMITE_TOKEN" 127.0.0.1:50051 '
    "league.v1.MatchmakerService/GetRatings": OUTSIDER,
    'grpcurl -plaintext -d \'{"book": "BOOK_EVAL"}\' 127.0.0.1:50051 '
    "league.v1.MatchmakerService/GetRatings": OUTSIDER,
    'buf curl --protocol grpc --http2-prior-knowledge -d \'{"book": "BOOK_EVAL"}\' '
    "http://127.0.0.1:50051/league.v1.MatchmakerService/GetRatings": OUTSIDER,
    "bin/start-league --no-learners": LONG,
    "bin/start-league --config mine.toml": LONG,
    "bin/start-league --set security.tokens=true": LONG,
    "bin/start-league --preset league3 --headless --steps 1200000": LONG,
    "bin/start-league --set security.host=0.0.0.0 --set security.tokens=true --set security.tls=certs": LONG,
    "bin/league certs certs --host gpu-7.lan --client bob": SECURED,
    "bin/league certs certs": SECURED,
    "bin/league certs certs --client bob": SECURED,
    "bin/league tokens make --run-dir runs/laptop-1": SECURED,
    "bin/league tokens add read dashboard --run-dir runs/laptop-1": SECURED,
    "bin/league tokens add read dashboard --run-dir runs/laptop-1 --out dashboard.token": SECURED,
    "bin/league tokens list --run-dir runs/laptop-1": SECURED,
    "bin/league tokens revoke dashboard --run-dir runs/laptop-1": SECURED,
    "bin/league ratings --address 127.0.0.1:50051 --token-file dashboard.token": SECURED,
    "bin/matchmaker --db runs/one/league.db --port 50051 --metrics-port 9187": "test_operations.py runs it",
    "curl -s http://127.0.0.1:9187/metrics": "test_operations.py asks so",
    "bin/league sprt --p0 0.55 --p1 0.65 --results played.txt": SPRT_FILE,
    "bin/league sprt --certificate certificate.json": SPRT_FILE,
    "bin/league record based based --matches 300 --seed 1000 --pace 4 --disturb 0.05 --out lessons": CLONING,
    "bin/league record based random aggressive clockwork constant --matches 40 --seed 1000 "
    "--pace 4 --disturb 0.05 --out lessons": CLONING,
    "bin/learner clone --replays lessons --seat based --out clones": CLONING,
    "bin/learner clone --replays lessons --seat based --run-dir runs/mine "
    "--matchmaker 127.0.0.1:50051": CLONING,
    "bin/learner --matchmaker 127.0.0.1:50051 --run-dir runs/mine --from clone-based@0 "
    "--set regularisation.alpha=0.01 "
    "--set regularisation.reference_interval=0": "trains; test_cloning_commands.py runs it, at small size",
    "bin/start-league --from clones/SNAPSHOT.safetensors --set regularisation.alpha=0.01 "
    "--set regularisation.reference_interval=0": LONG,
    "bin/learner --gpu 0": "needs a GPU; test_learner_joins.py runs it on the CPU",
    "bin/start-league": LONG,
    "bin/start-league --preset smoke": LONG,
    "bin/start-league --run-dir runs/laptop-1": LONG,
    "bin/start-league --steps 200000 --headless": LONG,
    "bin/start-league --config mine.toml --set learner.learning_rate=5e-4": LONG,
    "bin/start-league --preset board --set game.name=leduc": LONG,
    "bin/start-league --preset board --set game.name=pettingzoo:pettingzoo.classic.tictactoe_v3 "
    "--steps 100000": LONG,
    "bin/start-league --preset board --set game.name=pettingzoo:sticks --set game.options.sticks=17 "
    "--steps 100000": OWN_GAME,
    "bin/start-league --preset board --set game.name=python:quick_sticks:make --steps 100000": OWN_GAME,
    "bin/league demo random random --game pettingzoo:sticks --seed 1": OWN_GAME,
    "bin/league demo random perfect --game python:quick_sticks:make --seed 1": OWN_GAME,
    "bin/league exploitability --game python:quick_sticks:make perfect": OWN_GAME,
    "bin/start-league --preset board --set game.name=kuhn": LONG,
    "bin/start-league --preset board --set game.name=pettingzoo:pettingzoo.classic.connect_four_v3": LONG,
    "bin/league simulate": SIMULATED,
    "bin/league simulate --scenario elo --players 2000 --matches 1000000": SIMULATED,
    "bin/league simulate --scenario rps --set matchmaker.within_snapshots=pfsp_var --plot rps.png": SIMULATED,
    "bin/league simulate --scenario rps --players 18 --matches 10000 "
    "--set matchmaker.within_snapshots=pfsp_var --plot league-rps.png": SIMULATED,
    "bin/league simulate --scenario drift --players 40 --matches 10000 "
    "--set matchmaker.roles=alphastar-pseudocode --plot league-drift.png": SIMULATED,
    "bin/league simulate --replay runs/laptop-1 --policy mine.toml": "an example of cli.md runs it",
    "bin/league structure": STRUCTURE,
    "bin/league structure --plot structure.png --json structure.json": STRUCTURE,
    "bin/league structure --run-dir runs/rps --plot structure.png": STRUCTURE,
    "bin/start-league --preset board --set game.name=matrix:rps --set learner.snapshot_interval=4000 "
    "--set learner.ent_coef=0 --set learner.ent_coef_final=0 --steps 60000 --run-dir runs/rps": LONG,
    "bin/league exploitability": "needs a run of a small game; test_cli_exploitability.py runs it",
    "bin/league doctor": DOCTOR,
    "bin/league doctor --game python:rope:make": OWN_GAME,
    "bin/league doctor --config mine.toml --set learner.learning_rate=1e-3": "needs a file; "
    "test_doctor_command.py writes one",
    "bin/league doctor --run-dir runs/laptop-1": DOCTOR_RUN,
    "bin/league doctor --emergency": MINIMAL,
    "bin/league doctor --json findings.json": DOCTOR,
    "bin/league doctor --preset board --set game.name=leduc": DOCTOR_CARDS,
    "bin/league doctor --game kuhn": DOCTOR_CARDS,
    "bin/league doctor --run-dir runs/laptop-1 --json findings.json": DOCTOR_RUN,
    "bin/league pin based --mu 27": ANCHORS,
    "bin/league pin based --unpin": ANCHORS,
    "bin/league quarantine main@4050000 --reason 'weights of the wrong build'": APART,
    "bin/league quarantine main@4050000 --release": APART,
    "bin/league import runs/laptop-1 --run-dir runs/laptop-2 --players 'main@1*'": ANCHORS,
    "bin/start-league --preset league3": THREE,
    "bin/start-league --preset league3-board --set game.name=matrix:rps": THREE,
    "bin/start-league --config planted.toml --run-dir runs/planted": THREE,
    "bin/league exploiters": "an example of cli.md runs it",
    "bin/league gates": "an example of cli.md runs it",
    "bin/league gates main@200000": "needs a league that admits by gates; test_admission_log.py has one",
    "bin/start-league --preset laptop --set matchmaker.admit=gate": "trains for hours",
    "bin/league exploiters main-exploiter.g1@12288": "needs an exploiter; test_cli_exploiters.py has one",
    "bin/learner --matchmaker 127.0.0.1:50051 --run-dir runs/mine --name second-exploiter "
    "--role main_exploiter": "trains; test_exploiter_generations.py runs an exploiter",
    "bin/league stage next": STAGES,
    "bin/league stage based --address 127.0.0.1:50051": STAGES,
    "bin/league replay": REPLAYS,
    "bin/league replay MATCH": REPLAYS,
    "bin/league render MATCH --out fight.html": REPLAYS,
    "bin/league config write --preset board --set game.name=kuhn cards.toml": CARDS,
    "bin/matchmaker --db runs/cards/league.db --port 50052 --config cards.toml": CARDS,
    "bin/league profile": PROFILE,
    "bin/league attention MATCH --out a.png": "needs a run with replays; an example of cli.md runs it",
    "bin/league curves": "an example of cli.md runs it",
    "bin/league export main@2000 --out agent.onnx": EXPORTS,
    "bin/league export main@2000 --format folder --out agent": EXPORTS,
    "bin/start-league --gpu 0": "needs a GPU",
    "bin/start-league --gpu 0,1": "needs two GPUs",
    "bin/start-league --cpu --ranks 2": "trains for minutes; test_learner_ranks.py runs such a learner",
    "bin/start-league --preset laptop --from "
    "runs/laptop-1/learner-main/checkpoints/step_000001500000.pt": "needs an agent; test_supervisor.py",
    "bin/league profile --preset laptop": PROFILE,
    "bin/league profile --preset laptop --sweep --output results.json --write-preset fast.toml": PROFILE,
    "bin/league profile --sweep --matches 64 128 256 --batch-size 512 1024 2048 --threads 1": PROFILE,
    "bin/start-league --config fast.toml": LONG,
    "bin/start-league --preset fast": GUIDES,
    "bin/start-league --preset stable": GUIDES,
    "bin/test": TESTS,
    "bin/test tests/unit/test_gates.py": TESTS,
    ".venv/bin/python -m pytest -m slow -s FILE": TESTS,
    ".venv/bin/python tests/mutation/red.py RECORD tests/unit/test_gates.py tests/unit/test_roles.py": TESTS,
    "git clone … kumite && cd kumite && bin/start-league --headless": MEASURED,
    "bin/matchmaker --db runs/mine/league.db --port 50051 --preset laptop": "test_matchmaker_process.py does",
    "bin/learner --matchmaker 127.0.0.1:50051 --run-dir runs/mine --preset laptop --cpu": BY_HAND,
    "bin/evaluator --matchmaker 127.0.0.1:50051 --run-dir runs/mine --preset laptop": BY_HAND,
    "bin/evaluator --matchmaker 127.0.0.1:50051 --run-dir runs/mine": BY_HAND,
    "bin/league COMMAND --address HOST:PORT": "a form, not a command",
    "bin/league COMMAND --run-dir DIR": "a form, not a command",
    "bin/league COMMAND": "a form, not a command",
}
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
        name, *words = words
        command = command.get_command(context, name)
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
    r"(?:\$ )?((?:bin|\.venv/bin)/\S.*|(?:git|mkdir|pip|python3?|grpcurl|buf|curl|docker|npm|cd) .*)"
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


def test_every_command_is_run_or_named_with_a_reason() -> None:
    tested = {example.command for page in PAGES for example in examples(page)}
    named = {command: page.name for page in PAGES for command in commands(page)}
    assert len(named) > 30
    assert tested <= named.keys()
    accounted = tested | NOT_RUN.keys() | SERVED | ALONE
    assert not {command: page for command, page in named.items() if command not in accounted}


@pytest.mark.parametrize("command", sorted(NOT_RUN.keys() | SERVED))
def test_its_program_understands_every_command(command: str) -> None:
    for part in command.split(" && "):
        program, *words = shlex.split(part)
        if program in ("git", "cd", "curl", "grpcurl", "buf"):
            continue
        assert (ROOT / program).is_file()
        if program in PARSERS and "COMMAND" not in words:
            try:
                PARSERS[program](words)
            except (SystemExit, argparse.ArgumentError, LeagueError, typer.TyperException) as error:
                pytest.fail(f"{command}: {error}")


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
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_matchmaker_is_served_and_checked_as_its_page_says(tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "one")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for command in sorted(SERVED):
        with served(command, tmp_path, port):
            findings, _ = fsck(tmp_path / "runs" / "one" / "league.db", f"127.0.0.1:{port}")
            assert findings == []
