"""Commands find their league: a running one at its matchmaker, a finished one with a reader."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_league import announced, rows
from ports import free_port

from league.cli.main import main
from league.errors import Unavailable
from league.players import PlayerState
from league.rpc.client import MatchmakerClient
from league.runs.finding import live_address
from matchmaker.api.server import MatchmakerServer

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run_dir(finished: Path) -> Path:
    return finished


def test_watch_tells_what_happened_and_can_be_filtered(served_run: Path, capsys: Capture) -> None:
    assert main(["watch", "--run-dir", str(served_run), "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["position"] for event in events] == list(range(1, len(events) + 1))
    kinds = {event["kind"] for event in events}
    kind = events[0]["kind"]
    assert main(["watch", "--run-dir", str(served_run), "--kind", kind]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split("\t")[2] for line in lines} == {kind}
    assert len(kinds) > 1
    assert main(["watch", "--run-dir", str(served_run), "--kind", "result"]) == 0
    found = re.findall(r"\(match ([0-9a-f]{32})\)$", capsys.readouterr().out, re.MULTILINE)
    assert json.loads((served_run / "ids.json").read_text())["gauntlet"] in found


def test_a_finished_run_is_read_and_its_reader_ended(run_dir: Path, capsys: Capture) -> None:
    before = (run_dir / "league.db").read_bytes()
    assert main(["ratings", "--run-dir", str(run_dir)]) == 0
    assert rows(capsys.readouterr().out)[0]["player"] == "main@2000"
    assert (run_dir / "league.db").read_bytes() == before
    children = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "args="], capture_output=True, text=True
    )
    assert "-m matchmaker" not in children.stdout


def test_a_live_run_is_asked_at_its_own_matchmaker(
    served_run: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # would fail if it were called
    monkeypatch.setattr("league.contest.league._read_only_matchmaker", None)
    assert main(["ratings", "--run-dir", str(served_run)]) == 0
    assert rows(capsys.readouterr().out)[0]["player"] == "main@2000"


@pytest.mark.parametrize("command", ["status", "ratings", "players", "payoff", "stage"])
def test_a_run_is_read_while_the_server_of_its_game_is_away(
    served_run: Path, command: str, capsys: Capture
) -> None:
    config = served_run / "config.toml"
    before = config.read_text()
    config.write_text(before.replace('name = "brawl"', f'name = "grpc:127.0.0.1:{free_port()}"'))
    assert config.read_text() != before
    try:
        assert main([command, "--run-dir", str(served_run)]) == 0
        assert capsys.readouterr().out
    finally:
        config.write_text(before)


@pytest.mark.parametrize("said", ["127.0.0.1:1", "", "x" * 999, "\xff\n:7", ":", "[::1]:99999999"])
def test_an_address_that_nobody_serves_does_not_mislead(run_dir: Path, said: str) -> None:
    with announced(run_dir, said):
        assert live_address(run_dir) is None


def test_a_run_whose_matchmaker_is_gone_is_read(run_dir: Path, capsys: Capture) -> None:
    with announced(run_dir, "127.0.0.1:1"):
        assert main(["players", "--run-dir", str(run_dir), "--kind", "snapshot"]) == 0
    assert len(rows(capsys.readouterr().out)) == 2


def test_a_copy_of_a_running_run_is_not_that_run(
    finished: Path, tmp_path: Path, capsys: Capture
) -> None:
    """Neither while the first one runs, nor when another matchmaker serves the copy."""
    first, copy = tmp_path / "first", tmp_path / "copy"
    shutil.copytree(finished, first)
    with MatchmakerServer(first / "league.db") as server:
        shutil.copytree(first, copy)
        assert live_address(first) == server.address
        assert live_address(copy) is None
        words = ["quarantine", "main@1000", "--reason", "odd"]
        assert main([*words, "--run-dir", str(copy)]) == 1, "it is not running"
        assert state_of("main@1000", server.address) is PlayerState.ACTIVE
        with MatchmakerServer(copy / "league.db") as other:
            assert live_address(copy) == other.address
            assert main([*words, "--run-dir", str(copy)]) == 0
            assert state_of("main@1000", other.address) is PlayerState.QUARANTINED
            assert state_of("main@1000", server.address) is PlayerState.ACTIVE
    capsys.readouterr()


def test_a_killed_matchmaker_is_not_running_whoever_has_its_port(
    finished: Path, tmp_path: Path
) -> None:
    run_dir = tmp_path / "run"
    shutil.copytree(finished, run_dir)
    port = free_port()
    words = ["--db", str(run_dir / "league.db"), "--port", str(port)]
    command = [sys.executable, "-m", "matchmaker", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"ready {port}\n"
        assert live_address(run_dir) == f"127.0.0.1:{port}"
        process.kill()
        process.wait()
    with socket.create_server(("127.0.0.1", port)):
        assert live_address(run_dir) is None


def state_of(name: str, address: str) -> PlayerState:
    with MatchmakerClient(address) as client:
        return next(one.state for one in client.players() if one.name == name)


def test_the_newest_run_is_meant_when_none_is_named(
    tmp_path: Path, served_run: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").symlink_to(served_run.parent)
    assert main(["players", "--kind", "live"]) == 0
    assert "laptop-1" in capsys.readouterr().err
    assert main(["demo", "main@1000", "based"]) == 0
    said = capsys.readouterr()
    assert said.err.count("laptop-1") == 1
    seconds = re.search(r"^0:(\d\d\.\d)\tmain@1000 against based", said.out, re.MULTILINE)
    assert seconds, said.out
    assert float(seconds[1]) <= 4.0, "the run's own match length"


def test_a_command_says_what_it_waits_for(
    run_dir: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("league.contest.league.SAID_SECONDS", 0.01)
    assert main(["ratings", "--run-dir", str(run_dir)]) == 0
    said = capsys.readouterr()
    assert rows(said.out)[0]["player"] == "main@2000"
    assert f"{run_dir}/league.db" in said.err


def test_a_command_gives_up_where_nothing_moves(
    run_dir: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("league.contest.league.SAID_SECONDS", 0.05)
    monkeypatch.setattr("league.contest.league.IDLE_SECONDS", 0.5)
    start = subprocess.Popen

    def stopped(*arguments: Any, **more: Any) -> Any:
        process = start(*arguments, **more)
        process.send_signal(signal.SIGSTOP)
        return process

    monkeypatch.setattr("league.contest.league.subprocess.Popen", stopped)
    assert main(["ratings", "--run-dir", str(run_dir)]) == Unavailable.exit_code
    assert f"{run_dir}/league.db" in capsys.readouterr().err.splitlines()[-1]


def test_queries_load_neither_torch_nor_a_compiler(run_dir: Path) -> None:
    code = (
        "import sys; from league.cli.main import main; "
        "status = main(sys.argv[1:]); heavy = {'torch', 'numba', 'matchmaker'} & set(sys.modules); "
        "print(heavy, file=sys.stderr); sys.exit(status or len(heavy))"
    )
    words = ["ratings", "--run-dir", str(run_dir)]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
